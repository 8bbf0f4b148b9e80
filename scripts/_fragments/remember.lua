-- Keep the seq of a call and its reply, all integers, for copies of it that come within 60 s.
local function remember(record, seq, reply)
  local text = seq
  for _, number in ipairs(reply) do
    text = text .. string.format(' %.0f', number)
  end
  redis.call('SET', record, text, 'PX', 60000)
end

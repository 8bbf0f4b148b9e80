-- What the caller called last: its seq, 0 if that was longer ago than the record lives, and what it
-- was answered.
local function recall(record)
  local last = {}
  for number in string.gmatch(redis.call('GET', record) or '', '%-?%d+') do
    last[#last + 1] = tonumber(number)
  end
  return table.remove(last, 1) or 0, last
end

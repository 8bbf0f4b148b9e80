-- The caller's last guarded call, as its record has it: its seq, how it ended, and its reply. The
-- seq is 0 if that was longer ago than the record lives, and nil if the record is another's.
local function recorded(record)
  local last = redis.call('GET', record) or '0 boolean '
  local seq, kind, text = string.match(last, '^(%d+) (%l+) (.*)$')
  local reply_as = {number = tonumber(text), string = text, boolean = false}
  return seq, kind, reply_as[kind]
end

#!lua flags=no-writes
--[[ latchkey-script
name:     period/check
version:  1.0.0
summary:  Whether a job is due, or has been done in this period of the server's clock.
keys:
  - period  hash     r  prefix:latchkey_period  the last run that was marked as done
argv:
  - every   ms       50..31622400000      how long a period is, at most 366 days
  - at      integer  0..9007199254740991  when the caller asked first, server ms; 0: now
returns:
  - {1, now_ms}                         due; a run that begins now is marked with this moment
  - {0, at_ms, ended_ms, owner, label}  done in that period or a later one: when, and by whom
errors:
  - LKARG   a key or argument is missing, unknown or out of range
repeat:   pure
cost:     at most 2 commands
cluster:  one slot
uses:     integer
]]

-->>> fragment integer
-- Is `text` a plain decimal integer from min to max? No sign, no leading zero, no exponent: the
-- text itself is handed on to Redis, which accepts nothing else. The sum makes a number of it.
local function is_integer(text, min, max)
  if text ~= '0' and not string.find(text or '', '^[1-9]%d*$') then
    return false
  end
  local number = text + 0
  return number >= min and number <= max
end
--<<< fragment integer

-- bind
local period = KEYS[1]
local every = ARGV[1]
local at = ARGV[2]

-- check
if #KEYS ~= 1 or #ARGV ~= 2 then
  return redis.error_reply('LKARG period/check takes 1 key and 2 arguments')
end
if not is_integer(every, 50, 31622400000) then
  return redis.error_reply('LKARG every must be an integer from 50 to 31622400000')
end
if not is_integer(at, 0, 9007199254740991) then
  return redis.error_reply('LKARG at must be an integer from 0 to 9007199254740991')
end

local run = redis.call('HMGET', period, 'begins', 'every', 'at', 'ended', 'owner', 'label')
local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
local begins_ms = tonumber(run[1])

-- Where periods had another length, that of the last run has it in its middle.
if begins_ms and run[2] ~= every then
  begins_ms = math.min(tonumber(run[3]), tonumber(run[4])) - math.floor(every / 2)
end

-- A period that is yet to come was marked before the clock was set back: it counts for nothing.
if not begins_ms or begins_ms > now_ms + tonumber(every) then
  return {1, now_ms}
end
local asked_ms = at == '0' and now_ms or tonumber(at)
if asked_ms < begins_ms + tonumber(every) then
  return {0, tonumber(run[3]), tonumber(run[4]), run[5], run[6]}
end
return {1, now_ms}

#!lua
--[[ latchkey-script
name:     period/mark
version:  1.0.0
summary:  Mark a job as done in the period in which its run began.
keys:
  - period  hash     rw  prefix:latchkey_period  the last run that was marked; ends by itself
argv:
  - every   ms       50..31622400000      how long a period is, at most 366 days
  - at      integer  1..9007199254740991  when the run began: what period/check said, server ms
  - owner   owner    1..256               the hold that it ran under; another one for each run
  - label   text     0..256               who that was, for people
returns:
  - {1}         marked, by this call or an earlier copy of it
  - {0, at_ms}  another run is marked for that period or a later one; nothing was written
errors:
  - LKARG   a key or argument is missing, unknown or out of range; nothing was written
  - NOPERM  the user may not run PEXPIRE; nothing was written
repeat:   hold
cost:     at most 4 commands
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
local owner = ARGV[3]
local label = ARGV[4]

-- check
if #KEYS ~= 1 or #ARGV ~= 4 then
  return redis.error_reply('LKARG period/mark takes 1 key and 4 arguments')
end
if not is_integer(every, 50, 31622400000) then
  return redis.error_reply('LKARG every must be an integer from 50 to 31622400000')
end
if not is_integer(at, 1, 9007199254740991) then
  return redis.error_reply('LKARG at must be an integer from 1 to 9007199254740991')
end
if #owner < 1 or #owner > 256 then
  return redis.error_reply('LKARG owner must have 1 to 256 bytes')
end
if #label > 256 then
  return redis.error_reply('LKARG label must have at most 256 bytes')
end
-- Where the server refuses PEXPIRE, it keeps what HSET has written, for ever.
if not redis.acl_check_cmd('PEXPIRE', period, every) then
  return redis.error_reply('NOPERM the user may not run PEXPIRE on the period')
end

local run = redis.call('HMGET', period, 'begins', 'every', 'at', 'ended', 'owner')
local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
if run[3] == at and run[5] == owner then
  return {1}
end

-- The first run begins in the middle of its period, as far as can be from where two of them meet:
-- machines whose clocks differ by less than half a period mean the same one. The others follow from
-- there. Where periods had another length, and where the clock was set back by more than one, it
-- begins anew.
local began_ms = math.min(tonumber(at), now_ms)
local begins_ms = began_ms - math.floor(every / 2)
local last_ms = tonumber(run[1])
if last_ms and run[2] ~= every then
  last_ms = math.min(tonumber(run[3]), tonumber(run[4])) - math.floor(every / 2)
end
if last_ms and last_ms <= now_ms + tonumber(every) then
  if began_ms < last_ms + tonumber(every) then
    return {0, tonumber(run[3])}
  end
  begins_ms = began_ms - (began_ms - last_ms) % every
end

-- It lives while its period is asked for, and until the next one has followed from it.
redis.call('HSET', period, 'begins', string.format('%.0f', begins_ms), 'every', every, 'at', at,
  'ended', string.format('%.0f', now_ms), 'owner', owner, 'label', label)
redis.call('PEXPIRE', period, string.format('%.0f', 2 * every))
return {1}

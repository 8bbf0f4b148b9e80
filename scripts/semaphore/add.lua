#!lua flags=allow-oom
--[[ latchkey-script
name:     semaphore/add
version:  1.0.0
summary:  Raise or lower how many permits a semaphore has in all.
keys:
  - permits  string  rw  {name}                      shared   how many are free
  - record   string  rw  prefix:latchkey_seq+caller  private  the caller's last seq and reply
argv:
  - count    count    1..2147483647        by how many
  - change   choice   RAISE|LOWER          lowering may leave less than 0 free: others hold them
  - channel  channel  prefix:redisson_sc   told how many are free
  - publish  verb     PUBLISH|SPUBLISH
  - caller   caller   1..256               who counts seq
  - seq      seq      1..9007199254740991  higher with every call
returns:
  - {1, free}   done; so many are free now
  - {-1, free}  that is beyond -2147483648 or 2147483647; nothing was done
  - {-2}        late: the caller has sent a higher seq; nothing was done
errors:
  - LKARG   an argument is wrong, or the key holds no integer; nothing was written
  - NOPERM  the user may not run SET on the record; nothing was written
message:  value
repeat:   seq
cost:     at most 5 commands
cluster:  one slot
uses:     integer, count, recall, remember, tell
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

-->>> fragment count
-- The number that a counter's text says: 0 if there is no text, nil if it is no plain integer of
-- at most 15 digits.
local function count_of(text)
  if not text then
    return 0
  end
  local digits = string.match(text, '^%-?([1-9]%d*)$') or string.match(text, '^0$')
  return digits and #digits <= 15 and tonumber(text) or nil
end
--<<< fragment count

-->>> fragment recall
-- What the caller called last: its seq, 0 if that was longer ago than the record lives, and what it
-- was answered.
local function recall(record)
  local last = {}
  for number in string.gmatch(redis.call('GET', record) or '', '%-?%d+') do
    last[#last + 1] = tonumber(number)
  end
  return table.remove(last, 1) or 0, last
end
--<<< fragment recall

-->>> fragment remember
-- Keep the seq of a call and its reply, all integers, for copies of it that come within 60 s.
local function remember(record, seq, reply)
  local text = seq
  for _, number in ipairs(reply) do
    text = text .. string.format(' %.0f', number)
  end
  redis.call('SET', record, text, 'PX', 60000)
end
--<<< fragment remember

-->>> fragment tell
-- Send `message` to everyone who listens on `channel`. Sharded and plain channels are two
-- different commands of the server, and a message sent with one never reaches the other.
local function tell(channel, publish, message)
  if publish == 'SPUBLISH' then
    redis.call('SPUBLISH', channel, message)
  else
    redis.call('PUBLISH', channel, message)
  end
end
--<<< fragment tell

-- bind
local permits = KEYS[1]
local record = KEYS[2]
local count = ARGV[1]
local change = ARGV[2]
local channel = ARGV[3]
local publish = ARGV[4]
local caller = ARGV[5]
local seq = ARGV[6]

-- check
if #KEYS ~= 2 or #ARGV ~= 6 then
  return redis.error_reply('LKARG semaphore/add takes 2 keys and 6 arguments')
end
if not is_integer(count, 1, 2147483647) then
  return redis.error_reply('LKARG count must be an integer from 1 to 2147483647')
end
if change ~= 'RAISE' and change ~= 'LOWER' then
  return redis.error_reply('LKARG change must be RAISE or LOWER')
end
if #channel < 1 or #channel > 1024 then
  return redis.error_reply('LKARG channel must have 1 to 1024 bytes')
end
if publish ~= 'PUBLISH' and publish ~= 'SPUBLISH' then
  return redis.error_reply('LKARG publish must be PUBLISH or SPUBLISH')
end
if #caller < 1 or #caller > 256 then
  return redis.error_reply('LKARG caller must have 1 to 256 bytes')
end
if not is_integer(seq, 1, 9007199254740991) then
  return redis.error_reply('LKARG seq must be an integer from 1 to 9007199254740991')
end
-- What is done without a record is done again, by a copy of this call.
if not redis.acl_check_cmd('SET', record, seq) then
  return redis.error_reply('NOPERM the user may not run SET on the record')
end

local last_seq, last_reply = recall(record)
if tonumber(seq) < last_seq then
  return {-2}
end
if tonumber(seq) == last_seq then
  return last_reply
end

local free = count_of(redis.call('GET', permits))
if not free then
  return redis.error_reply('LKARG permits must hold an integer')
end

local step = tonumber(count)
if change == 'LOWER' then
  step = -step
end
-- INCRBY keeps the TTL, if there is one.
local total = free + step
local reply = {-1, free}
if total >= -2147483648 and total <= 2147483647 then
  redis.call('INCRBY', permits, string.format('%.0f', step))
  reply = {1, total}
end
remember(record, seq, reply)
if reply[1] == 1 and step > 0 and total > 0 then
  tell(channel, publish, string.format('%.0f', total))
end
return reply

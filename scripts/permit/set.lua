#!lua
--[[ latchkey-script
name:     permit/set
version:  1.0.0
summary:  Say how many permits there are in all, or change it.
keys:
  - permits  string  rw  {name}                      shared   how many are free
  - leases   zset    rw  suffix:timeout              shared   id -> end of its lease, server ms
  - record   string  rw  prefix:latchkey_seq+caller  private  the caller's last seq and reply
argv:
  - total    count    0..2147483647        free and held ones together
  - mode     choice   INIT|CHANGE          INIT leaves another total as it is
  - channel  channel  prefix:redisson_sc   told how many are free
  - publish  verb     PUBLISH|SPUBLISH
  - caller   caller   1..256               who counts seq
  - seq      seq      1..9007199254740991  higher with every call
returns:
  - {1, free}   this is the total; so many are free (below 0: so many too many are held)
  - {0, total}  INIT found this other total; nothing was done
  - {-2}        late: the caller has sent a higher seq; nothing was done
errors:
  - LKARG   an argument is wrong, or the key holds no integer; nothing was written
  - NOPERM  the user may not run all that it takes; nothing was written
message:  value
repeat:   seq
cost:     at most 9 commands
cluster:  one slot
uses:     integer, count, recall, remember, tell, end_with
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

-->>> fragment end_with
-- The leases end at the time of the number they are counted with: the next number must not be
-- counted with them. Redisson gives that one a TTL, and takes it away without theirs: permits whose
-- leases then ended would never be free again.
local function end_with(leases, permits)
  local over_ms = redis.call('PEXPIRETIME', permits)
  if over_ms == -1 then
    redis.call('PERSIST', leases)
  elseif redis.call('PEXPIRETIME', leases) ~= over_ms then
    redis.call('PEXPIREAT', leases, string.format('%.0f', over_ms))
  end
end

-- May this user do that? It is asked before there is anything to end.
local function may_end_with(leases, permits)
  return redis.acl_check_cmd('PEXPIRETIME', permits) and redis.acl_check_cmd('PEXPIRETIME', leases)
    and redis.acl_check_cmd('PERSIST', leases) and redis.acl_check_cmd('PEXPIREAT', leases, 0)
end
--<<< fragment end_with

-- bind
local permits = KEYS[1]
local leases = KEYS[2]
local record = KEYS[3]
local total = ARGV[1]
local mode = ARGV[2]
local channel = ARGV[3]
local publish = ARGV[4]
local caller = ARGV[5]
local seq = ARGV[6]

-- check
if #KEYS ~= 3 or #ARGV ~= 6 then
  return redis.error_reply('LKARG permit/set takes 3 keys and 6 arguments')
end
if not is_integer(total, 0, 2147483647) then
  return redis.error_reply('LKARG total must be an integer from 0 to 2147483647')
end
if mode ~= 'INIT' and mode ~= 'CHANGE' then
  return redis.error_reply('LKARG mode must be INIT or CHANGE')
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
if not may_end_with(leases, permits) then
  return redis.error_reply('NOPERM the user may not run PEXPIREAT, PERSIST and PEXPIRETIME')
end

local last_seq, last_reply = recall(record)
if tonumber(seq) < last_seq then
  return {-2}
end
if tonumber(seq) == last_seq then
  return last_reply
end

local there = redis.call('GET', permits)
local free = count_of(there)
if not free then
  return redis.error_reply('LKARG permits must hold an integer')
end
local held = redis.call('ZCARD', leases)
if there and mode == 'INIT' and free + held ~= tonumber(total) then
  local reply = {0, free + held}
  remember(record, seq, reply)
  return reply
end

local free_now = tonumber(total) - held
local reply = {1, free_now}
redis.call('SET', permits, string.format('%.0f', free_now), 'KEEPTTL')
end_with(leases, permits)
remember(record, seq, reply)
if free_now > 0 and free_now > free then
  tell(channel, publish, string.format('%.0f', free_now))
end
return reply

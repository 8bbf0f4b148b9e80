#!lua flags=allow-oom
--[[ latchkey-script
name:     countdown/count_down
version:  1.0.0
summary:  Count a latch down; at zero it opens, and all who wait go on.
keys:
  - latch   string  rw  {name}                      shared   what is left to count; no key at 0
  - record  string  rw  prefix:latchkey_seq+caller  private  the caller's last seq and reply
argv:
  - count    count    1..2147483647                              by how many
  - channel  channel  braces:redisson_countdownlatch__channel__  told at zero
  - publish  verb     PUBLISH|SPUBLISH
  - caller   caller   1..256                                     who counts seq
  - seq      seq      1..9007199254740991                        higher with every call
returns:
  - {1, left}   counted; so many are left (0: it is open now)
  - {-1, left}  fewer are left than that (0: it is open, or was never set); nothing was done
  - {-2}        late: the caller has sent a higher seq; nothing was done
errors:
  - LKARG   an argument is wrong, or the key holds no integer; nothing was written
  - NOPERM  the user may not run SET on the record; nothing was written
message:  0
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
local latch = KEYS[1]
local record = KEYS[2]
local count = ARGV[1]
local channel = ARGV[2]
local publish = ARGV[3]
local caller = ARGV[4]
local seq = ARGV[5]

-- check
if #KEYS ~= 2 or #ARGV ~= 5 then
  return redis.error_reply('LKARG countdown/count_down takes 2 keys and 5 arguments')
end
if not is_integer(count, 1, 2147483647) then
  return redis.error_reply('LKARG count must be an integer from 1 to 2147483647')
end
if #channel < 1 or #channel > 1024 then
  return redis.error_reply('LKARG channel must have 1 to 1024 bytes')
end
if publish ~= 'PUBLISH' and publish ~= 'SPUBLISH' then
  return redis.error_reply('LKARG publish must be PUBLISH or SPUBLISH')
end
if publish == 'SPUBLISH' and string.find(latch, '{', 1, true) then
  return redis.error_reply('LKARG publish must be PUBLISH: the channel is of another slot')
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

local left = count_of(redis.call('GET', latch))
if not left then
  return redis.error_reply('LKARG latch must hold an integer')
end

-- Somebody has counted twice, or on the wrong latch: whoever waits must not go on for that.
local reply = {-1, left}
if left > tonumber(count) then
  redis.call('DECRBY', latch, count)
  reply = {1, left - tonumber(count)}
elseif left == tonumber(count) then
  redis.call('DEL', latch)
  reply = {1, 0}
end
remember(record, seq, reply)
if reply[1] == 1 and reply[2] == 0 then
  tell(channel, publish, '0')
end
return reply

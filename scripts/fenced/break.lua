#!lua flags=allow-oom
--[[ latchkey-script
name:     fenced/break
version:  1.0.0
summary:  Take a fenced lock away from the owner that inspect showed, and draw a higher token.
keys:
  - lock     hash     rw  {name}                      owner -> hold count; its TTL is the lease
  - counter  string   rw  prefix:redisson_lock_token  shared  the token drawn last
argv:
  - owner    owner    1..256                         the holder to break, as inspect names it
  - channel  channel  prefix:redisson_lock__channel  told when the lock becomes free
  - publish  verb     PUBLISH|SPUBLISH
returns:
  - {1, token}  broken, whatever its hold count was; its own token is below this one
  - {0}         nobody holds the lock
  - {-1}        another owner holds it by now; nothing was done
errors:
  - LKARG   an argument is wrong, or the counter is no token; nothing was written
message:  0
repeat:   hold
cost:     at most 7 commands
cluster:  one slot
uses:     integer, draw, tell
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

-->>> fragment draw
-- The fencing token after `last`, and the last one after itself. The server's clock in microseconds
-- is its floor, so that tokens go on rising when the counter was lost with the data of a server. A
-- clock past the year 2255 is wrong, and counts as that: above it is room for later tokens.
local function draw(last)
  local time = redis.call('TIME')
  local floor = math.min(time[1] * 1000000 + time[2], 9000000000000000)
  return math.min(math.max(last + 1, floor), 9007199254740991)
end
--<<< fragment draw

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
local lock = KEYS[1]
local counter = KEYS[2]
local owner = ARGV[1]
local channel = ARGV[2]
local publish = ARGV[3]

-- check
if #KEYS ~= 2 or #ARGV ~= 3 then
  return redis.error_reply('LKARG fenced/break takes 2 keys and 3 arguments')
end
if #owner < 1 or #owner > 256 or owner == 'mode' then
  return redis.error_reply('LKARG owner must have 1 to 256 bytes and not be mode')
end
if #channel < 1 or #channel > 1024 then
  return redis.error_reply('LKARG channel must have 1 to 1024 bytes')
end
if publish ~= 'PUBLISH' and publish ~= 'SPUBLISH' then
  return redis.error_reply('LKARG publish must be PUBLISH or SPUBLISH')
end

-- Only the named owner: its name is never used again, so a late copy of this call breaks nobody.
if redis.call('HEXISTS', lock, owner) == 0 then
  if redis.call('EXISTS', lock) == 0 then
    return {0}
  end
  return {-1}
end

local last = redis.call('GET', counter) or '0'
if not is_integer(last, 0, 9007199254740991) then
  return redis.error_reply('LKARG counter must hold an integer from 0 to 9007199254740991')
end

-- Who is broken may go on working. The token lets whoever breaks shut it out of the resource at
-- once, before there is a next holder. How long the counter lives is up to the holders; one that is
-- gone lived for a time, and comes back for a year, the longest there is.
local token = draw(tonumber(last))
local text = string.format('%.0f', token)
if last == '0' then
  redis.call('SET', counter, text, 'PX', '31536000000')
else
  redis.call('SET', counter, text, 'KEEPTTL')
end
redis.call('DEL', lock)
tell(channel, publish, '0')
return {1, token}

#!lua
--[[ latchkey-script
name:     fence/admit_set
version:  1.0.0
summary:  Set a string, unless a later hold has worked on it.
keys:
  - resource  string  rw  {name}                            what is set
  - fence     hash    rw  prefix:latchkey_fence  permanent  token, owner, seq of the last write
argv:
  - token     token   1..9007199254740991  the fencing token of the hold
  - owner     owner   1..256               the name of the hold
  - seq       seq     1..9007199254740991  higher with every write of the hold
  - value     text    0..1048576           what the string is afterwards, without a TTL
returns:
  - {1}         written, by this call or an earlier copy of it
  - {-1, last}  refused: a hold with this token has been, which is later or of another owner
  - {-2}        late: this hold has written with a higher seq; nothing was done
errors:
  - LKARG   an argument is wrong, or the fence is none; nothing was written
  - NOPERM  the user may not run HSET on the fence; nothing was written
repeat:   seq
cost:     at most 4 commands
cluster:  one slot
uses:     integer, outdated
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

-->>> fragment outdated
-- Is the hold with this token out of date where `last_owner` has been with the token `last`? An
-- equal token of another owner comes from a server that lost its counter, or its time: of two such
-- holds nobody can tell which is the later, and the one that came first stays.
local function is_outdated(token, owner, last, last_owner)
  return token < last or token == last and owner ~= last_owner
end
--<<< fragment outdated

-- bind
local resource = KEYS[1]
local fence = KEYS[2]
local token = ARGV[1]
local owner = ARGV[2]
local seq = ARGV[3]
local value = ARGV[4]

-- check
if #KEYS ~= 2 or #ARGV ~= 4 then
  return redis.error_reply('LKARG fence/admit_set takes 2 keys and 4 arguments')
end
if not is_integer(token, 1, 9007199254740991) then
  return redis.error_reply('LKARG token must be an integer from 1 to 9007199254740991')
end
if #owner < 1 or #owner > 256 then
  return redis.error_reply('LKARG owner must have 1 to 256 bytes')
end
if not is_integer(seq, 1, 9007199254740991) then
  return redis.error_reply('LKARG seq must be an integer from 1 to 9007199254740991')
end
if #value > 1048576 then
  return redis.error_reply('LKARG value must have at most 1048576 bytes')
end
-- What is written without the fence does not keep an earlier hold from writing later.
if not redis.acl_check_cmd('HSET', fence, 'token', token) then
  return redis.error_reply('NOPERM the user may not run HSET on the fence')
end

local admitted = redis.call('HMGET', fence, 'token', 'owner', 'seq')
local last = admitted[1] or '0'
local last_seq = admitted[3] or '0'
if not is_integer(last, 0, 9007199254740991) or not is_integer(last_seq, 0, 9007199254740991) then
  return redis.error_reply('LKARG fence must hold a token and a seq')
end
if is_outdated(tonumber(token), owner, tonumber(last), admitted[2]) then
  return {-1, tonumber(last)}
end

-- The same hold: its writes keep their order, and none is done twice.
if token == last and seq == last_seq then
  return {1}
end
if token == last and tonumber(seq) < tonumber(last_seq) then
  return {-2}
end

-- SET would replace a key of any type; STRLEN refuses all but a string.
redis.call('STRLEN', resource)
redis.call('SET', resource, value)
redis.call('HSET', fence, 'token', token, 'owner', owner, 'seq', seq)
return {1}

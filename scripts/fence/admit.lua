#!lua
--[[ latchkey-script
name:     fence/admit
version:  1.0.0
summary:  Let a hold work on a resource, unless a later hold has worked on it.
keys:
  - fence  hash   rw  prefix:latchkey_fence  permanent  token and owner admitted last; seq
argv:
  - token  token  1..9007199254740991        the fencing token of the hold
  - owner  owner  1..256                     the name of the hold
returns:
  - {1}        admitted: no later hold has been
  - {-1, last}  refused: a hold with this token has been, which is later or of another owner
errors:
  - LKARG   an argument is wrong, or the fence is none; nothing was written
repeat:   hold
cost:     at most 2 commands
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
local fence = KEYS[1]
local token = ARGV[1]
local owner = ARGV[2]

-- check
if #KEYS ~= 1 or #ARGV ~= 2 then
  return redis.error_reply('LKARG fence/admit takes 1 key and 2 arguments')
end
if not is_integer(token, 1, 9007199254740991) then
  return redis.error_reply('LKARG token must be an integer from 1 to 9007199254740991')
end
if #owner < 1 or #owner > 256 then
  return redis.error_reply('LKARG owner must have 1 to 256 bytes')
end

local admitted = redis.call('HMGET', fence, 'token', 'owner')
local last = admitted[1] or '0'
if not is_integer(last, 0, 9007199254740991) then
  return redis.error_reply('LKARG fence must hold a token')
end
if is_outdated(tonumber(token), owner, tonumber(last), admitted[2]) then
  return {-1, tonumber(last)}
end

-- A new hold counts its writes from 1.
if token ~= last then
  redis.call('HSET', fence, 'token', token, 'owner', owner, 'seq', 0)
end
return {1}

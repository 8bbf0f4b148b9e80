#!lua flags=allow-oom
--[[ latchkey-script
name:     guard/remove
version:  1.0.0
summary:  Run one command that takes from a key, as guard/call runs others, also on a full server.
keys:
  - lock     hash     r   {name}                              owner -> hold count
  - record   string   rw  prefix:latchkey_seq+caller  private  last seq and its reply, for 60 s
  - target   any      rw  {slot}                              the key of the command
derived:
  - level    string   r   suffix:*:rwlock_timeout:*  there while a reader's hold is
argv:
  - owner    owner    1..256               the name of the hold
  - caller   caller   1..256               who counts seq
  - seq      seq      1..9007199254740991  higher with every call of the caller
  - command  command  dynamic              one of the list below
  - words*   text     0..1048576  0..16    what follows the key in the command
returns:
  - {1, reply}  what the command answered now, or to an earlier copy of this call
  - {-1}        the owner does not hold the lock; nothing was done
  - {-2}        late: the caller has sent a higher seq; nothing was done
errors:
  - LKARG   a key or argument is missing, unknown or out of range; nothing was written
  - NOPERM  the user may not run SET on the record; nothing was written
repeat:   seq
cost:     at most 5 commands
dynamic:
  - HDEL
  - ZREM
  - PEXPIRE
  - LPOP     without words: one element
  - RPOP     likewise
  - UNLINK   without words: they would be further keys
cluster:  one slot
uses:     integer, prefix, recorded, held
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

-->>> fragment prefix
-- What the names of a lock's level keys start with, as Redisson forms them: in the lock's slot.
local function prefix_of(lock)
  return (string.find(lock, '{', 1, true) and lock or '{' .. lock .. '}') .. ':'
end
--<<< fragment prefix

-->>> fragment recorded
-- The caller's last guarded call, as its record has it: its seq, how it ended, and its reply. The
-- seq is 0 if that was longer ago than the record lives, and nil if the record is another's.
local function recorded(record)
  local last = redis.call('GET', record) or '0 boolean '
  local seq, kind, text = string.match(last, '^(%d+) (%l+) (.*)$')
  local reply_as = {number = tonumber(text), string = text, boolean = false}
  return seq, kind, reply_as[kind]
end
--<<< fragment recorded

-->>> fragment held
-- Does the owner hold the lock? A reader's field may outlast its hold, but not its level.
local function is_held(lock, owner, level)
  local found = redis.call('HMGET', lock, owner, 'mode')
  if found[2] and not string.find(owner, ':write$') then
    return found[1] and redis.call('EXISTS', level) == 1
  end
  return found[1]
end
--<<< fragment held

-- bind
local lock = KEYS[1]
local record = KEYS[2]
local target = KEYS[3]
local owner = ARGV[1]
local caller = ARGV[2]
local seq = ARGV[3]
local command = ARGV[4]
local words = ARGV -- from the fifth

local MOST_WORDS = { -- that may follow the key
  HDEL = 16, ZREM = 16, PEXPIRE = 2, LPOP = 0, RPOP = 0, UNLINK = 0,
}

-- check
if #KEYS ~= 3 or #ARGV < 4 or #ARGV > 20 then
  return redis.error_reply('LKARG guard/remove takes 3 keys and 4 to 20 arguments')
end
if target == lock or target == record then
  return redis.error_reply('LKARG target must be neither the lock nor the record')
end
if #owner < 1 or #owner > 256 or owner == 'mode' or #caller < 1 or #caller > 256 then
  return redis.error_reply('LKARG owner and caller must have 1 to 256 bytes; mode is no owner')
end
if not is_integer(seq, 1, 9007199254740991) then
  return redis.error_reply('LKARG seq must be an integer from 1 to 9007199254740991')
end
if not MOST_WORDS[command] or #words - 4 > MOST_WORDS[command] then
  return redis.error_reply('LKARG command must be one of the list, with the words it may have')
end
for i = 5, #words do
  if #words[i] > 1048576 then
    return redis.error_reply('LKARG words must have at most 1048576 bytes each')
  end
end
-- What is done without a record is done again, by a copy of this call.
if not redis.acl_check_cmd('SET', record, seq) then
  return redis.error_reply('NOPERM the user may not run SET on the record')
end

-- The record comes before the lock: what was done while it was held stays done.
local last_seq, kind, last_reply = recorded(record)
if not is_integer(last_seq, 0, 9007199254740991) then
  return redis.error_reply('LKARG record must be one of guard/call or guard/remove')
end
if seq == last_seq and kind == 'refused' then
  return {-1}
end
if seq == last_seq then
  return {1, last_reply}
end
if tonumber(seq) < tonumber(last_seq) then
  return {-2}
end

-- A refusal is recorded, too: whoever was told of it may do the work elsewhere, and a late copy of
-- this call must not do it again where a late acquire has brought the hold back.
local level = prefix_of(lock) .. owner .. ':rwlock_timeout:1'
if not is_held(lock, owner, level) then
  redis.call('SET', record, seq .. ' refused ', 'PX', 60000)
  return {-1}
end

-- A small number, text, or false. If it fails, so does the script, nothing written.
local reply = redis.call(command, target, unpack(words, 5, math.min(#words, 20)))
redis.call('SET', record, seq .. ' ' .. type(reply) .. ' ' .. (reply or ''), 'PX', 60000)
return {1, reply}

-- SPDX-License-Identifier: Apache-2.0
-- Where the two versions of the protocol answer a command in different forms, and the few replies
-- that a script does not see as a client does.
local convert = require('latchkey.mock.convert')
local resp = require('latchkey.mock.resp')

local newer = {}

local function double(text)
  return text and text ~= convert.null and { double = text } or false
end

local function map(reply)
  return { map = reply }
end

local function set(reply)
  return { set = reply }
end

-- Members and scores in one row become pairs.
local function pairs_of(reply)
  local list = {}
  for i = 1, #reply, 2 do
    list[#list + 1] = { reply[i], double(reply[i + 1]) }
  end
  return list
end

local function has(argv, word)
  for i = 5, #argv do
    if argv[i]:upper() == word then
      return true
    end
  end
  return false
end

local function with_scores(reply, argv)
  return has(argv, 'WITHSCORES') and pairs_of(reply) or reply
end

-- Without a count: one member with its score.
local function popped(reply, argv)
  if argv[3] then
    return pairs_of(reply)
  end
  return reply[1] and { reply[1], double(reply[2]) } or reply
end

local IN_NEWER = {
  HGETALL = map,
  ZSCORE = double,
  ZINCRBY = double,
  ZMSCORE = function(reply)
    local list = {}
    for i = 1, #reply do
      list[i] = double(reply[i])
    end
    return list
  end,
  -- With INCR it answers the new score, which is no number for it is written out.
  ZADD = function(reply)
    return type(reply) == 'string' and double(reply) or reply
  end,
  ZRANGE = with_scores, ZREVRANGE = with_scores, ZRANGEBYSCORE = with_scores,
  ZREVRANGEBYSCORE = with_scores,
  ZPOPMIN = popped, ZPOPMAX = popped,
  SMEMBERS = set, SUNION = set, SINTER = set, SDIFF = set,
  SPOP = function(reply, argv)
    return argv[3] and set(reply) or reply
  end,
}

-- Replies of the older protocol that are another nothing than that of scripts.
local function popped_elements(reply, argv)
  return argv[3] and not reply and resp.NULL_ARRAY or reply
end

-- COUNT 0, of a key that is there.
local function none_asked_for(reply)
  return reply or resp.NULL_ARRAY
end

newer.differs = { LPOP = popped_elements, RPOP = popped_elements, PING = true,
  XRANGE = none_asked_for, XREVRANGE = none_asked_for }

-- Who subscribes and speaks the older protocol is answered in the form of a message.
local function pong(reply, argv, conn)
  if conn.version == 2 and conn:is_subscriber() then
    return { 'pong', argv[2] or '' }
  end
  return reply
end

---@param reply any as the command gave it
---@return any reply for the version that the connection speaks
function newer.reply(command, argv, reply, conn)
  local name = command.name
  if name == 'PING' then
    return pong(reply, argv, conn)
  elseif newer.differs[name] then
    return newer.differs[name](reply, argv)
  end
  local change = IN_NEWER[name]
  return change and change(reply, argv) or reply
end

return newer

-- SPDX-License-Identifier: Apache-2.0
-- Who hears which channel, and the commands of subscribers. PUBSUB is the world's: scripts may ask
-- it, too.
local convert = require('latchkey.mock.convert')
local glob = require('latchkey.mock.glob')
local resp = require('latchkey.mock.resp')

local Channels = {}
Channels.__index = Channels

local channels = { commands = {} }

-- For each kind: the words of its replies.
local KINDS = {
  channel = { on = 'subscribe', off = 'unsubscribe', message = 'message' },
  pattern = { on = 'psubscribe', off = 'punsubscribe', message = 'pmessage' },
  shard = { on = 'ssubscribe', off = 'sunsubscribe', message = 'smessage' },
}

function channels.new()
  return setmetatable({ channel = {}, pattern = {}, shard = {}, patterns = {} }, Channels)
end

local function place_of(list, value)
  for i = 1, #list do
    if list[i] == value then
      return i
    end
  end
end

---@return boolean is it new?
function Channels:add(conn, kind, name)
  local heard = conn.heard[kind] or {}
  conn.heard[kind] = heard
  if place_of(heard, name) then
    return false
  end
  heard[#heard + 1] = name
  local list = self[kind][name]
  if not list then
    list = {}
    self[kind][name] = list
    if kind == 'pattern' then
      self.patterns[#self.patterns + 1] = name
    end
  end
  list[#list + 1] = conn
  return true
end

function Channels:remove(conn, kind, name)
  local heard = conn.heard[kind]
  local place = heard and place_of(heard, name)
  if not place then
    return
  end
  table.remove(heard, place)
  local list = self[kind][name]
  table.remove(list, place_of(list, conn))
  if #list == 0 then
    self[kind][name] = nil
    if kind == 'pattern' then
      table.remove(self.patterns, place_of(self.patterns, name))
    end
  end
end

---@param kind string
---@return string[] names in byte order
function Channels:names(kind)
  local found = {}
  for name in pairs(self[kind]) do
    found[#found + 1] = name
  end
  table.sort(found)
  return found
end

---How many have subscribed to this one.
function Channels:subscribers(kind, name)
  local list = self[kind][name]
  return list and #list or 0
end

---The connection hears nothing any more.
function Channels:leave(conn)
  for _, kind in ipairs({ 'channel', 'pattern', 'shard' }) do
    local heard = conn.heard[kind] or {}
    for i = #heard, 1, -1 do
      self:remove(conn, kind, heard[i])
    end
  end
end

---How many would hear a message.
function Channels:count(verb, channel)
  local list = self[verb == 'SPUBLISH' and 'shard' or 'channel'][channel]
  local count = list and #list or 0
  if verb == 'PUBLISH' then
    for _, pattern in ipairs(self.patterns) do
      if glob.match(pattern, channel) then
        count = count + #self.pattern[pattern]
      end
    end
  end
  return count
end

-- The newer protocol marks what was not asked for.
local function push(list, words)
  local old, new
  for i = 1, #list do
    local conn = list[i]
    if conn.version == 3 then
      new = new or resp.encode({ push = words }, 3)
      conn:send(new)
    else
      old = old or resp.encode(words, 2)
      conn:send(old)
    end
  end
end

---Tells all who hear it, those of the channel first, each in the order in which they came.
---@param message table { verb, channel, message }
function Channels:tell(message)
  local kind = message.verb == 'SPUBLISH' and 'shard' or 'channel'
  local list = self[kind][message.channel]
  if list then
    push(list, { KINDS[kind].message, message.channel, message.message })
  end
  if kind == 'channel' then
    for _, pattern in ipairs(self.patterns) do
      if glob.match(pattern, message.channel) then
        push(self.pattern[pattern], { 'pmessage', pattern, message.channel, message.message })
      end
    end
  end
end

-- Sharded channels are counted by themselves.
local function counted(conn, kind)
  if kind == 'shard' then
    return conn:count('shard')
  end
  return conn:count('channel') + conn:count('pattern')
end

local function confirm(conn, kind, word, name)
  local words = { word, name or convert.null, counted(conn, kind) }
  return resp.encode(conn.version == 3 and { push = words } or words, conn.version)
end

local function subscribe(kind)
  return function(front, conn, argv)
    if kind == 'shard' and conn.in_transaction then
      return nil, "ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client"
    end
    local parts = {}
    for i = 2, #argv do
      front.channels:add(conn, kind, argv[i])
      parts[i - 1] = confirm(conn, kind, KINDS[kind].on, argv[i])
    end
    return { bytes = table.concat(parts), is_pushed = true }
  end
end

-- Without names: all of the kind, one after the other; at least one reply.
local function unsubscribe(kind)
  return function(front, conn, argv)
    local names, parts = {}, {}
    for i = 2, #argv do
      names[i - 1] = argv[i]
    end
    if #argv == 1 then
      for i, name in ipairs(conn.heard[kind] or {}) do
        names[i] = name
      end
    end
    for i, name in ipairs(names) do
      front.channels:remove(conn, kind, name)
      parts[i] = confirm(conn, kind, KINDS[kind].off, name)
    end
    return { is_pushed = true, bytes = #parts > 0 and table.concat(parts)
      or confirm(conn, kind, KINDS[kind].off, nil) }
  end
end

local ALL = 'pubsub loading noscript'
local ALL_WORDS = { 1, -1, 1 }

channels.commands = {
  SUBSCRIBE = { arity = -2, flags = ALL, serve = subscribe('channel') },
  PSUBSCRIBE = { arity = -2, flags = ALL, serve = subscribe('pattern') },
  SSUBSCRIBE = { arity = -2, flags = ALL, slots = ALL_WORDS, serve = subscribe('shard') },
  UNSUBSCRIBE = { arity = -1, flags = ALL, serve = unsubscribe('channel') },
  PUNSUBSCRIBE = { arity = -1, flags = ALL, serve = unsubscribe('pattern') },
  SUNSUBSCRIBE = { arity = -1, flags = ALL, slots = ALL_WORDS, serve = unsubscribe('shard') },
}

return channels

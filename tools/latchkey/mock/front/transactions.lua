-- SPDX-License-Identifier: Apache-2.0
-- MULTI and EXEC: commands that are kept, and run one behind the other; WATCH: only if nothing was
-- touched meanwhile.
local resp = require('latchkey.mock.resp')

local OK = { ok = 'OK' }

local Queue = {}
Queue.__index = Queue

function Queue:add(command, argv, is_while_loading)
  self[#self + 1] = { command = command, argv = argv }
  self.denyoom = self.denyoom or command.denyoom
  self.write = self.write or command.write
  self.needs_data = self.needs_data or not is_while_loading
end

local function is_in(list, value)
  for i = 1, #list do
    if list[i] == value then
      return true
    end
  end
  return false
end

local function unwatch(front, conn)
  for _, watched in ipairs(conn.watched or {}) do
    local list = front.watchers[watched.key]
    for i = #list, 1, -1 do
      if list[i] == conn then
        table.remove(list, i)
      end
    end
    if #list == 0 then
      front.watchers[watched.key] = nil
    end
  end
  conn.watched, conn.is_dirty = nil, false
  if front.watchers and next(front.watchers) == nil then
    front.watchers = nil
  end
end

local function leave(conn)
  conn.queue = nil
  unwatch(conn.front, conn)
end

local function multi(_, conn)
  if conn.queue then
    return nil, 'ERR MULTI calls can not be nested'
  end
  conn.queue = setmetatable({}, Queue)
  return OK
end

local function discard(_, conn)
  if not conn.queue then
    return nil, 'ERR DISCARD without MULTI'
  end
  leave(conn)
  return OK
end

local function watch(front, conn, argv)
  if conn.queue then
    return nil, 'ERR WATCH inside MULTI is not allowed'
  end
  front.world:begin()
  front.watchers = front.watchers or {}
  conn.watched = conn.watched or {}
  for i = 2, #argv do
    local key, list = argv[i], front.watchers[argv[i]] or {}
    if not is_in(list, conn) then
      front.watchers[key] = list
      list[#list + 1] = conn
      table.insert(conn.watched, { key = key, there = front.world.store:get(key) ~= nil })
    end
  end
  return OK
end

-- A key whose lease has run out since it was watched was touched, though by nobody.
local function has_expired(front, conn)
  front.world:begin()
  for _, watched in ipairs(conn.watched or {}) do
    if watched.there and not front.world.store:get(watched.key) then
      return true
    end
  end
  return false
end

local function exec(front, conn)
  local execute = require('latchkey.mock.front.execute')
  local queue = conn.queue
  if not queue then
    return nil, 'ERR EXEC without MULTI'
  elseif queue.is_refused then
    leave(conn)
    return nil, 'EXECABORT Transaction discarded because of previous errors.'
  elseif conn.is_dirty or has_expired(front, conn) then
    leave(conn)
    return resp.NULL_ARRAY
  end
  leave(conn)
  -- A message to the client itself comes where it was published: in the middle of the replies.
  local parts = { ('*%d\r\n'):format(#queue) }
  conn.in_transaction = parts
  for i = 1, #queue do
    -- Who has asked for its own end is not told what came of the rest.
    local is_told = not conn.ends_after
    local reply, err = execute.perform(front, conn, queue[i].command, queue[i].argv)
    local bytes = execute.bytes(front, conn, reply, err)
    parts[#parts + 1] = is_told and bytes or nil
  end
  conn.in_transaction = nil
  return { bytes = table.concat(parts) }
end

local ALWAYS = 'now loading busy noscript'

return {
  unwatch = unwatch,
  leave = leave,
  commands = {
    MULTI = { arity = 1, flags = ALWAYS, serve = multi },
    EXEC = { arity = 1, flags = 'now loading noscript', serve = exec },
    DISCARD = { arity = 1, flags = ALWAYS, serve = discard },
    WATCH = { arity = -2, flags = ALWAYS, keys = { 1, -1, 1 }, serve = watch },
    UNWATCH = { arity = 1, flags = 'loading busy noscript', serve = function(front, conn)
      unwatch(front, conn)
      return OK
    end },
  },
}

-- SPDX-License-Identifier: Apache-2.0
-- A server as a session sees it: the methods of a mock world, as far as a server has them.
local fleet = require('latchkey.servers.fleet')
local latchkey = require('latchkey')
local text = require('latchkey.text')

local Server = { null = latchkey.null }
Server.__index = Server

-- Whoever looks at a server with many keys wants some, not all.
local DUMP_MAX, PAGE = 100, 100

-- What a user may not read is no empty value. A key may become one of another type meanwhile.
local function ask(client, ...)
  local reply, err = client:command(...)
  if err and err.status ~= 'LK_WRONGTYPE' then
    error('(error) ' .. text.safe(err.message), 0)
  end
  return reply
end

local READ = {
  string = function(client, key)
    return ask(client, 'GET', key)
  end,
  hash = function(client, key)
    local fields, count, cursor = {}, 0, '0'
    repeat
      local page = ask(client, 'HSCAN', key, cursor, 'COUNT', PAGE)
      cursor = page and page[1] or '0'
      for i = 1, page and page[2].n or 0, 2 do
        local field = page[2][i]
        if count < DUMP_MAX and not fields[field] then
          fields[field], count = page[2][i + 1], count + 1
        end
      end
    until cursor == '0' or count >= DUMP_MAX
    return fields
  end,
  list = function(client, key)
    local reply = ask(client, 'LRANGE', key, 0, DUMP_MAX - 1)
    return reply and { unpack(reply, 1, reply.n) }
  end,
  zset = function(client, key)
    local reply, entries = ask(client, 'ZRANGE', key, 0, DUMP_MAX - 1, 'WITHSCORES'), {}
    for i = 1, reply and reply.n or 0, 2 do
      entries[#entries + 1] = { reply[i], reply[i + 1] }
    end
    return entries
  end,
}

---@param client latchkey.client
---@return table world
function Server.new(client)
  return setmetatable({ client = client }, Server)
end

function Server:eval(name, keys, args)
  return self.client:eval(name, keys, args)
end

function Server:command(...)
  return self.client:command(...)
end

function Server.advance()
  error('the time of a server moves by itself', 0)
end

function Server.reset()
  error('a server is not emptied from here', 0)
end

-- Only who listens on a channel learns of its messages.
function Server.messages()
  return {}
end

-- Adds the keys of a node to a dump in which there are so many; how many there are then.
function Server:add_keys(node, dump, count)
  local client, cursor = self.client, '0'
  repeat
    local page = ask(node, 'SCAN', cursor, 'COUNT', PAGE)
    cursor = page[1]
    for i = 1, page[2].n do
      local key = page[2][i]
      local kind = not dump[key] and count < DUMP_MAX and ask(client, 'TYPE', key)
      local type = type(kind) == 'table' and kind.ok or kind
      if READ[type] then
        dump[key] = { type = type, value = READ[type](client, key) or '',
          pttl = ask(client, 'PTTL', key) }
        count = count + 1
      end
    end
  until cursor == '0' or count >= DUMP_MAX
  return count
end

-- A client sends SCAN, which has no key, to one master of a cluster.
function Server:dump()
  local masters, err = fleet.masters(self.client)
  if not masters then
    error('(error) ' .. text.safe(err.message), 0)
  end
  local dump, count = {}, 0
  -- Without a master: the one server is a replica.
  for _, node in ipairs(masters[1] and masters or { self.client }) do
    count = count < DUMP_MAX and self:add_keys(node, dump, count) or count
  end
  return dump
end

return Server

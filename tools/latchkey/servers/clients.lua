-- SPDX-License-Identifier: Apache-2.0
-- Who is behind an owner's name: a client is called after its host, its process and the beginning
-- of its UUID (lk_client_name() in client.h), and the server's CLIENT LIST says from where it is
-- connected and since when.
local expect = require('latchkey.servers.expect')
local text = require('latchkey.text')

local clients = {}

-- A list is that old at most. Of a server with 10,000 clients it has three million bytes.
local FRESH_MS = 5000

-- Above what a process is numbered with; and so a number that Lua has exactly.
local PROCESS_END = 2 ^ 31

local function read_line(line)
  local host, process, id, label
  local name = line:match(' name=(%S*)')
  if name then
    host, process, id, label = name:match('^latchkey:([^:]+):(%d+):(%x+):?(.*)$')
  end
  if not host or #id ~= 8 or #process > 10 or tonumber(process) >= PROCESS_END then
    return nil
  end
  return { host = host, process = tonumber(process), id = id, label = label ~= '' and label or nil,
    address = line:match(' addr=(%S+)'), connected_s = tonumber(line:match(' age=(%d+)')),
    connections = 1 }
end

---The clients that a CLIENT LIST tells of, by the first eight characters of their UUIDs.
---@param list string
---@return table<string, table> clients { host, process, label, address, connected_s, connections };
---  the address and the time are those of the connection that is oldest
function clients.parse(list)
  local found = {}
  for line in list:gmatch('[^\n]+') do
    local one = read_line(line)
    local known = one and found[one.id]
    if known then
      known.connections = known.connections + 1
      if one.connected_s > known.connected_s then
        known.address, known.connected_s = one.address, one.connected_s
      end
    elseif one then
      found[one.id] = one
    end
  end
  return found
end

---@class latchkey.clients
---@field lists table by the targets of nodes
local Clients = {}
Clients.__index = Clients

---@return latchkey.clients lists of each server that is asked, read when they are needed
function clients.new()
  return setmetatable({ lists = {} }, Clients)
end

-- What is known of a server's clients; nil where they may not be read.
function Clients:of(node)
  local target, now_ms = node:target(), require('latchkey').now_ms()
  local list = self.lists[target]
  if not list or now_ms - list.read_ms >= FRESH_MS then
    local reply, err = expect('text', 'CLIENT LIST',
      node:command('CLIENT', 'LIST', 'TYPE', 'normal'))
    list = { read_ms = now_ms, found = reply and clients.parse(reply), err = err }
    self.lists[target] = list
  end
  return list.found, list.err
end

---Adds to each holder of a view, and to each in its queue, its `client`, or why there is none:
---`foreign`, an owner that is not latchkey's; `absent`, no connection has such a name; `unnamed`,
---the view's kind does not tell. `hidden` of the view: the list may not be read.
---@param view table
---@param node latchkey.node that has the lock
function Clients:name(view, node)
  for _, list in ipairs({ view.holders or {}, view.queue or {} }) do
    for _, one in ipairs(list) do
      local id = one.owner:match('^lk%-(%x+)%-')
      if one.id then
        one.nobody = 'unnamed'
      elseif not id or #id ~= 8 then
        one.nobody = 'foreign'
      else
        local found, err = self:of(node)
        one.client = found and found[id]
        one.nobody = not one.client and (found and 'absent' or 'hidden') or nil
        view.hidden = not found and err.message or view.hidden
      end
    end
  end
end

---"web-3, process 4711 (pg_dump@nightly)"
---@param client table
---@return string
function clients.person(client)
  return ('%s, process %d%s'):format(text.safe(client.host), client.process,
    client.label and (' (%s)'):format(text.safe(client.label)) or '')
end

---"web-3:4711 (pg_dump@nightly)", for a column.
---@param client table
---@return string
function clients.short(client)
  return ('%s:%d%s'):format(text.safe(client.host), client.process,
    client.label and (' (%s)'):format(text.safe(client.label)) or '')
end

---What is to be said of the client of an owner.
---@param one table holder or waiter of a view
---@return string|nil
function clients.about(one)
  local client = one.client
  if client then
    return ('%s, connected from %s for %s'):format(clients.person(client),
      text.safe(client.address or '?'), text.show_ms(1000 * (client.connected_s or 0)))
  elseif one.nobody == 'absent' and one.owner:find(':kept$') then
    return 'released by its holder, and kept for the rest of a time (--at-least)'
  elseif one.nobody == 'absent' then
    return 'no connection is its client\'s: it has gone, or has a name of its own'
  elseif one.nobody == 'foreign' then
    return 'not a client of latchkey\'s: the server does not say whose it is'
  elseif one.nobody == 'hidden' then
    return 'whose it is cannot be seen: the list of connections was refused '
      .. '(latchkey acl --operator)'
  end
end

---@param one table holder or waiter of a view
---@return table|nil document
function clients.document(one)
  local client = one.client
  return client and { host = text.safe(client.host), process = client.process,
    label = client.label and text.safe(client.label), address = text.safe(client.address or ''),
    connected_s = client.connected_s, connections = client.connections } or nil
end

return clients

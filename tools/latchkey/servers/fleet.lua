-- SPDX-License-Identifier: Apache-2.0
-- The masters behind a client: one, or those of a cluster.
local expect = require('latchkey.servers.expect')

local fleet = {}

---What kind of fleet a URL leads to, or the target of a client.
---@param url string
---@return "cluster"|"sentinel"|nil topology nil for one server
function fleet.topology(url)
  return url:match('^rediss?%-(%l+):')
end

---The number of the database that a client uses.
---@param client latchkey.client
---@return integer
function fleet.database(client)
  local target = ((client:nodes() or {})[1] or client):target()
  return tonumber(target:match('/(%d+)$') or target:match('[?&]db=(%d+)')) or 0
end

---@param client latchkey.client
---@return latchkey.node[]|nil masters
---@return latchkey.error|nil err
function fleet.masters(client)
  local nodes, err = client:nodes()
  if not nodes then
    return nil, err
  end
  local masters = {}
  for _, node in ipairs(nodes) do
    if node:is_master() then
      masters[#masters + 1] = node
    end
  end
  return masters
end

---Which of the masters has this key, or would have it. All of them are asked, since none says so
---without being asked for it.
---@param masters latchkey.node[]
---@param key string
---@return latchkey.node|nil node
---@return latchkey.error|nil err
function fleet.master_of(masters, key)
  local failure
  for _, node in ipairs(masters) do
    local reply, err = node:command('TYPE', key)
    if reply then
      return node
    elseif err.code ~= 'MOVED' then
      failure = err
    end
  end
  return nil, failure or { status = 'LK_CLUSTERDOWN', hint = 'wait until the cluster is whole',
    message = 'no node of the cluster serves the slot of ' .. key }
end

---The masters, and which of them has this key.
---@param client latchkey.client
---@param key string
---@return latchkey.node[]|nil masters
---@return latchkey.node|latchkey.error master or why there is none
function fleet.home(client, key)
  local masters, err = fleet.masters(client)
  if not masters then
    return nil, err
  end
  local master = masters[1]
  if #masters > 1 then
    master, err = fleet.master_of(masters, key)
  end
  return master and masters, master or err
end

---How many listen on a channel. Of a cluster only the master of its slot knows who listens with
---SSUBSCRIBE; with SUBSCRIBE, each node knows its own listeners.
---@param client latchkey.client
---@param channel string
---@param masters latchkey.node[]
---@param at latchkey.node that of the channel's slot
---@return integer|nil count
---@return latchkey.error|nil err
function fleet.listeners(client, channel, masters, at)
  local is_sharded = client:publish_verb(channel) == 'SPUBLISH'
  local count = 0
  for _, node in ipairs(is_sharded and { at } or masters) do
    local reply, err = expect('list with a number', 'PUBSUB NUMSUB',
      node:command('PUBSUB', is_sharded and 'SHARDNUMSUB' or 'NUMSUB', channel))
    if not reply then
      return nil, err
    end
    count = count + reply[2]
  end
  return count
end

---Where a node is, without what is the same for all of them.
---@param node latchkey.node
---@return string
function fleet.place(node)
  return (node:target():gsub('^rediss?://', ''):gsub('/%d+$', ''))
end

return fleet

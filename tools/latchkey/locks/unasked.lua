-- SPDX-License-Identifier: Apache-2.0
-- Clients that wait for a lock and do not answer questions: the server's list of channels says for
-- which locks they listen, its list of connections who they are, ACL DRYRUN why they are silent.
local clients = require('latchkey.servers.clients')
local expect = require('latchkey.servers.expect')
local fleet = require('latchkey.servers.fleet')
local kinds = require('latchkey.locks.kinds')
local text = require('latchkey.text')

local unasked = {}

-- The kinds whose channels differ. Fair and fenced locks have that of lock, semaphores that of
-- permit.
local TELLING = { 'lock', 'rw', 'mutex', 'permit', 'countdown' }
local CHANNEL_OF = { fair = 'lock', fenced = 'lock', semaphore = 'permit', read = 'rw',
  write = 'rw' }

-- Where questions go (c/src/harness/ask.h).
local QUESTIONS = 'latchkey:ask:{{}'

-- So many channels are counted by one command, and so many clients are named.
local BATCH, NAMED_MAX = 500, 10

---What two kinds have in common whose waiters listen on one channel.
---@param kind string
---@return string
function unasked.family(kind)
  return CHANNEL_OF[kind] or kind
end

-- Behind a fair lock's channel, that of one waiter: latchkey's, Redisson's.
local OWN = { ':lk%-%x+%-[%x-]+$', ':%x+%-%x+%-%x+%-%x+%-%x+:%d+$' }

-- Who waits for a fair lock listens on a channel of its own; who wants to be counted, behind a mark
-- (c/src/locks/rivals.h).
local function own_part(rest)
  return rest:match(OWN[1]) or rest:match(OWN[2]) or rest:match(':latchkey$') or ''
end

-- The lock of a channel: its name stands in braces, or has braces of its own.
local function lock_of(home, channel)
  for _, kind in ipairs(TELLING) do
    local script = kinds.ROWS[kind].tells
    local before = kinds.formed(home, script, 'channel', 'x'):match('^(.-){x}$')
    local rest = channel:sub(1, #before) == before and channel:sub(#before + 1) or ''
    local own = own_part(rest)
    rest = rest:sub(1, #rest - #own)
    for _, name in ipairs({ rest:match('^{(.*)}$') or rest, rest }) do
      if name ~= '' and kinds.formed(home, script, 'channel', name) .. own == channel then
        return own ~= ':latchkey' and kind or nil, name, own ~= ''
      end
    end
  end
end

-- Adds how many listen at one master.
local function count(master, channels, verb, found, by_channel)
  for first = 1, #channels, BATCH do
    local some = { unpack(channels, first, math.min(first + BATCH - 1, #channels)) }
    local reply, err = expect('list with a number', 'PUBSUB NUMSUB',
      master:command('PUBSUB', verb, unpack(some)))
    if not reply then
      return nil, err
    end
    for i = 1, #some do
      local lock = by_channel[some[i]]
      local at = lock.own and 'own' or 'common'
      found[lock.key] = found[lock.key] or { kind = lock.kind, name = lock.name, own = 0,
        common = 0 }
      found[lock.key][at] = found[lock.key][at] + reply[2 * i]
    end
  end
  return true
end

local function add_master(home, master, sharded, found)
  local reply, err = expect('list', 'PUBSUB CHANNELS',
    master:command('PUBSUB', sharded and 'SHARDCHANNELS' or 'CHANNELS', '*{*'))
  if not reply then
    return nil, err
  end
  local channels, by_channel = {}, {}
  for i = 1, reply.n do
    local kind, name, own = lock_of(home, reply[i])
    if kind then
      channels[#channels + 1] = reply[i]
      by_channel[reply[i]] = { kind = kind, name = name, own = own, key = kind .. ' ' .. name }
    end
  end
  return count(master, channels, sharded and 'SHARDNUMSUB' or 'NUMSUB', found, by_channel)
end

-- Has each master looked at; of a cluster the others are, where one of them refuses.
---@return latchkey.error|nil err of the first that refuses
---@return integer done so many of those that did not
local function each_master(client, look)
  local masters, failure = fleet.masters(client)
  local done = 0
  for _, master in ipairs(masters or {}) do
    local ok, err = look(master)
    if ok then
      done = done + 1
    elseif not failure then
      failure = { status = err.status, hint = err.hint, message = #masters == 1 and err.message
        or ('%s: %s'):format(fleet.place(master), err.message) }
    end
  end
  return failure, done
end

---The locks that clients listen for, whether they answer or not.
---@param client latchkey.client
---@param home string
---@return table found by "kind name": { kind, name, listeners }
---@return latchkey.error|nil err of a server that does not tell
function unasked.listened(client, home)
  local found = {}
  local err = each_master(client, function(master)
    return add_master(home, master, client:publish_verb('{x}') == 'SPUBLISH', found)
  end)
  for _, lock in pairs(found) do
    -- A fair waiter may listen to both.
    lock.listeners = math.max(lock.own, lock.common)
  end
  return found, err
end

-- Why this user's clients are silent: a few words.
local function reason(node, user)
  local reply = user and node:command('ACL', 'DRYRUN', user, 'SUBSCRIBE', QUESTIONS)
  if not user or not reply then
    return 'it may not answer, or its program does not (option answers)'
  elseif type(reply) == 'table' and reply.ok == 'OK' then
    return 'its program does not answer: it lacks the option answers, or is older'
  end
  return ('user %s may not use the channel %s (latchkey acl %s --answers)'):format(text.safe(user),
    QUESTIONS, text.shell_word(user))
end

-- Adds the silent of one server's connections that listen.
local function add_silent(node, list, answered, found)
  local reasons = {}
  for line in list:gmatch('[^\n]+') do
    local name, user = line:match(' name=(%S*)'), line:match(' user=(%S+)')
    local host, process, id, label = (name or ''):match('^latchkey:([^:]+):(%d+):(%x+):?(.*)$')
    -- To a channel, on a cluster to that of a shard.
    local waits = line:find(' sub=[1-9]') or line:find(' ssub=[1-9]')
    if host and waits and label ~= 'blame' and not answered[id] and not found[id] then
      reasons[user or ''] = reasons[user or ''] or reason(node, user)
      found[id] = true
      found[#found + 1] = { person = clients.short({ host = host, process = tonumber(process),
        label = label ~= '' and label or nil }), why = reasons[user or ''] }
    end
  end
end

---Who of latchkey's clients listens and has not answered.
---@param client latchkey.client
---@param answers table[]
---@return { person: string, why: string }[]|nil silent the first ten
---@return latchkey.error|integer err, or how many there are
function unasked.silent(client, answers)
  local answered, found = {}, {}
  for _, answer in ipairs(answers) do
    answered[answer.uuid:sub(1, 8)] = true
  end
  local err, done = each_master(client, function(master)
    local list, why = expect('text', 'CLIENT LIST',
      master:command('CLIENT', 'LIST', 'TYPE', 'pubsub'))
    if list then
      add_silent(master, list, answered, found)
    end
    return list, why
  end)
  if done == 0 then
    return nil, err
  end
  local first = {}
  for i = 1, math.min(#found, NAMED_MAX) do
    first[i] = found[i]
  end
  return first, #found
end

return unasked

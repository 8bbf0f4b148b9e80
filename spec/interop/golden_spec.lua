-- SPDX-License-Identifier: Apache-2.0
-- The Redisson player leaves what the golden tables say: replies, keys and messages of every
-- operation.
local cjson = require('cjson')

local helper = require('helper')
local tables = require('interop.tables')

-- The tables; the modules that play them have the same names but for these.
local KINDS = { 'lock', 'spin', 'fenced', 'fair', 'read', 'write', 'semaphore', 'permit',
  'countdown' }
local MODULES = { read = 'rw', write = 'rw' }

-- What an application can ask of each object, so that no operation is without a row: lock without
-- and with a lease are one, and so are those that differ only in how long they wait.
local LOOKS = 'is_locked is_held hold_count remaining renew force_unlock '
local OPERATIONS = {
  lock = LOOKS .. 'lock unlock',
  spin = LOOKS .. 'lock unlock',
  fenced = LOOKS .. 'lock lock_and_get_token token unlock',
  fair = LOOKS .. 'lock try_lock leave unlock delete',
  read = 'read_lock read_unlock read_renew read_pass read_force_unlock read_is_locked read_is_held '
    .. 'read_hold_count remaining expire',
  write = 'write_lock write_unlock write_renew write_force_unlock write_is_locked write_is_held '
    .. 'write_hold_count remaining',
  semaphore = 'try_set try_acquire release release_if_exists add drain available',
  permit = 'try_set set add acquire release release_all available acquired total update_lease '
    .. 'remaining delete',
  countdown = 'try_set count_down count delete',
}

-- Callers that are not as the others: on a cluster with sharded channels, with a clock of its own,
-- and of an older version.
local OPTIONS = { S = { publish = 'SPUBLISH' }, F = { skew_ms = 3600000 }, O = { by_score = true } }

-- "~30000": what is left of 30000 ms.
local function to_reply(value)
  if type(value) == 'table' then
    local reply = {}
    for i, part in ipairs(value) do
      reply[i] = to_reply(part)
    end
    return reply
  end
  local left = type(value) == 'string' and value:match('^~(%d+)$')
  return left and helper.about(tonumber(left)) or value ~= cjson.null and value or nil
end

local function to_keys(cell)
  local keys = {}
  for key, record in pairs(tables.expand(cjson.decode(cell))) do
    keys[key] = { type = record[1], value = record[2], pttl = record[3] or -1 }
  end
  return keys
end

local function to_messages(cell)
  local messages = {}
  for i, text in ipairs(tables.expand(cjson.decode(cell))) do
    local verb, channel, message = text:match('^(%u+) (.*) (%S+)$')
    messages[i] = { verb = verb, channel = channel, message = message }
  end
  return messages
end

local function player(world, kind, by, name)
  local options = { name = name, owner = tables.expand('<' .. by .. '>') }
  for option, value in pairs(OPTIONS[by] or {}) do
    options[option] = value
  end
  local made = require('interop.player.' .. kind):new(world, options)
  if made.verb == 'SPUBLISH' then
    helper.listen(world, made:channel())
  end
  return made
end

-- The caller "-", which is none, is the clock, or somebody with a command.
local function run(world, by, call)
  local method, arguments = tables.words(call)
  if by then
    return by[method](by, unpack(arguments, 1, 3))
  elseif method == 'advance' then
    return world:advance(arguments[1])
  end
  return world:command(method, unpack(arguments))
end

local function pack_reply(...)
  local n = select('#', ...)
  return n > 1 and { n = n, ... } or (...)
end

local function play(kind, scenario)
  local world, players = helper.world(), {}
  for _, row in ipairs(scenario) do
    local by, name, call, reply, keys, messages = unpack(row)
    local key = by .. ' ' .. name
    players[key] = players[key] or by ~= '-' and player(world, kind, by, name)

    local ok, failure = pcall(function()
      assert.reply(to_reply(cjson.decode(reply)), pack_reply(run(world, players[key], call)))
      assert.left(world, to_keys(keys), to_messages(messages))
    end)
    assert(ok, ('line %d, %s: %s'):format(row.line, call, tostring(failure)))
  end
end

for _, kind in ipairs(KINDS) do
  describe(('the Redisson player: %s'):format(kind), function()
    it('has a row for every operation', function()
      local played = {}
      for _, scenario in ipairs(tables.read('golden', kind)) do
        for _, row in ipairs(scenario) do
          played[(tables.words(row[3]))] = true
        end
      end

      for operation in OPERATIONS[kind]:gmatch('%S+') do
        assert.is_true(played[operation], operation)
      end
    end)

    for _, scenario in ipairs(tables.read('golden', kind)) do
      it(scenario.title, function()
        play(MODULES[kind] or kind, scenario)
      end)
    end
  end)
end

-- SPDX-License-Identifier: Apache-2.0
-- What specs stand on: a world, which is the mock or, when LATCHKEY_SPEC_URL names one, a live
-- server; and assertions on replies, keys and messages. Nothing but this file knows which it is.
local assert = require('luassert')
local pretty = require('pl.pretty')
local tablex = require('pl.tablex')

local URL = os.getenv('LATCHKEY_SPEC_URL')

local helper = {}

helper.root = debug.getinfo(1, 'S').source:match('^@(.*)tools/latchkey/spec/init%.lua$') .. '.'
-- Mutants of the scripts are put in the place of the project's.
helper.scripts = os.getenv('LATCHKEY_SPEC_SCRIPTS') or helper.root .. '/scripts'

---Is the world a live server?
helper.is_live = URL ~= nil and URL ~= ''

-- A live server's clock goes on while a spec looks, the mock's stands still. Where it matters, the
-- leases in specs differ by more than this.
local SLACK_MS = helper.is_live and 10000 or 0

---@return table world empty, with the methods of tools/latchkey/mock/world.lua
function helper.world()
  return helper.is_live and helper.live_world() or helper.mock_world()
end

function helper.mock_world()
  return require('latchkey.mock.world').new({ scripts = helper.scripts })
end

function helper.live_world()
  return require('latchkey.spec.live').world(URL, helper.scripts)
end

---Has messages of a sharded channel seen, where they are only for those who listen.
function helper.listen(world, channel)
  if helper.is_live then
    world:listen(channel)
  end
end

---What `world:dump()` shows of a string.
---@param lease? integer ms; a key without one lives for ever
function helper.string(value, lease)
  return { type = 'string', value = value, pttl = lease or -1 }
end

---What `world:dump()` shows of a hash.
---@param lease? integer ms
function helper.hash(fields, lease)
  return { type = 'hash', value = fields, pttl = lease or -1 }
end

---What `world:dump()` shows of a list.
---@param lease? integer ms
function helper.list(elements, lease)
  return { type = 'list', value = elements, pttl = lease or -1 }
end

---What `world:dump()` shows of a sorted set.
---@param entries table[] { member, score } in the order of scores
---@param lease? integer ms
function helper.zset(entries, lease)
  return { type = 'zset', value = entries, pttl = lease or -1 }
end

-- Numbers of 13 digits are times: milliseconds since 1970, as servers and clients write them. In
-- specs they stand as their distance from now, such as "@+5000", alone or within a text.
local TIME, DISTANCE = '%f[%d]' .. ('%d'):rep(13) .. '%f[%D]', '@([+-]%d+)'

local function to_text(value)
  return type(value) == 'number' and ('%.17g'):format(value) or value
end

local function to_distances(value, now_ms)
  if type(value) ~= 'table' then
    return (to_text(value):gsub(TIME, function(time_ms)
      return ('@%+.0f'):format(time_ms - now_ms)
    end))
  end
  local changed = {}
  for key, part in pairs(value) do
    changed[key] = to_distances(part, now_ms)
  end
  return changed
end

local function to_times(value, now_ms)
  if type(value) ~= 'table' then
    return (to_text(value):gsub(DISTANCE, function(distance_ms)
      return ('%.0f'):format(now_ms + distance_ms)
    end))
  end
  local changed = {}
  for key, part in pairs(value) do
    changed[key] = to_times(part, now_ms)
  end
  return changed
end

---`world:dump()` with times as distances from now, to be compared with what is there later, or in
---another world.
function helper.dump(world)
  local dump, now_ms = world:dump(), world:now_ms()
  for _, record in pairs(dump) do
    record.value = to_distances(record.value, now_ms)
  end
  return dump
end

local PUT = {
  string = function(world, key, value)
    assert(world:command('SET', key, value))
  end,
  -- In the order of their names: a small hash keeps the order in which its fields came, and a
  -- script that stops early must do so in each run at the same one.
  hash = function(world, key, fields)
    for field, value in tablex.sort(fields) do
      assert(world:command('HSET', key, field, value))
    end
  end,
  list = function(world, key, elements)
    for _, element in ipairs(elements) do
      assert(world:command('RPUSH', key, element))
    end
  end,
  zset = function(world, key, entries)
    for _, entry in ipairs(entries) do
      assert(world:command('ZADD', key, entry[2], entry[1]))
    end
  end,
}

---Puts keys into a world, as `helper.string` and its like describe them.
function helper.fill(world, keys)
  local now_ms = world:now_ms()
  for key, record in pairs(keys) do
    PUT[record.type](world, key, to_times(record.value, now_ms))
    if record.pttl ~= -1 then
      assert(world:command('PEXPIRE', key, record.pttl))
    end
  end
end

local About = {}

---In an expected reply: what is left of a lease of so many milliseconds.
function helper.about(ms)
  return setmetatable({ ms = ms }, About)
end

local function is_left_of(ms, actual)
  if ms < 0 then
    return actual == ms
  end
  return type(actual) == 'number' and actual >= 0 and math.abs(actual - ms) <= SLACK_MS
end

local function reply_matches(expected, actual)
  if getmetatable(expected) == About then
    return is_left_of(expected.ms, actual)
  elseif type(expected) ~= 'table' or type(actual) ~= 'table' then
    return expected == actual
  elseif expected.ok ~= actual.ok or expected.err ~= actual.err then -- a status such as OK
    return false
  end
  for i = 1, math.max(#expected, actual.n or #actual) do
    if not reply_matches(expected[i], actual[i]) then
      return false
    end
  end
  return true
end

local function fail(state, what, expected, actual)
  state.failure_message = ('%s\nexpected: %s\nactual:   %s'):format(what, pretty.write(expected),
    pretty.write(actual))
  return false
end

-- assert.reply(expected, world:eval(...))
local function reply(state, arguments)
  local expected, actual, err = arguments[1], arguments[2], arguments[3]
  return err == nil and reply_matches(expected, actual)
    or fail(state, 'another reply', expected, err or actual)
end

-- assert.refused(code, word, world:eval(...)): an error with this code, whose message has the word.
local function refused(state, arguments)
  local code, word, actual, err = arguments[1], arguments[2], arguments[3], arguments[4]
  return actual == nil and err ~= nil and err.code == code
    and err.message:find(word, 1, true) ~= nil
    or fail(state, 'another outcome', code .. ' ... ' .. word, err or actual)
end

-- Equal but for distances from now, which move on a live server.
local function same_value(expected, actual)
  if type(expected) == 'table' then
    for key in pairs(actual) do
      if expected[key] == nil then
        return false
      end
    end
    for key, part in pairs(expected) do
      if actual[key] == nil or not same_value(part, actual[key]) then
        return false
      end
    end
    return true
  end
  local text, next_ms = to_text(expected), actual:gmatch(DISTANCE)
  for distance_ms in text:gmatch(DISTANCE) do
    if math.abs(distance_ms - (next_ms() or math.huge)) > SLACK_MS then
      return false
    end
  end
  return text:gsub(DISTANCE, '@') == actual:gsub(DISTANCE, '@')
end

-- A lease that was to end at any moment may be over on a live server.
local function same_keys(expected, actual)
  for key in pairs(actual) do
    if not expected[key] then
      return false
    end
  end
  for key, record in pairs(expected) do
    local found = actual[key]
    local is_over = not found and record.pttl >= 0 and record.pttl < SLACK_MS
    local is_same = found and found.type == record.type and is_left_of(record.pttl, found.pttl)
      and same_value(record.value, found.value)
    if not (is_over or is_same) then
      return false
    end
  end
  return true
end

-- assert.left(world, keys, messages): all that is in the world now, and all that was published
-- since the last look; no messages unless they are given.
local function left(state, arguments)
  local world, keys, messages = arguments[1], arguments[2], arguments[3] or {}
  local dump, told = helper.dump(world), world:messages()
  if not same_keys(keys, dump) then
    return fail(state, 'other keys are left', keys, dump)
  end
  return tablex.deepcompare(messages, told) or fail(state, 'other messages', messages, told)
end

for name, callback in pairs({ reply = reply, refused = refused, left = left }) do
  assert:register('assertion', name, callback)
end

return helper

-- SPDX-License-Identifier: Apache-2.0
-- The Redisson player writes, publishes and listens to what a real Redisson did, command by
-- command, in the same order.
local dir = require('pl.dir')
local path = require('pl.path')

local helper = require('helper')
local tables = require('interop.tables')

-- The recordings of each version, and the module that plays them.
local VERSIONS = {
  {
    '3.49.0', receipts = true,
    { 'uncontended', 'lock' }, { 'contended', 'lock' }, { 'contended3', 'lock' },
    { 'leased', 'lock' }, { 'timeout', 'lock' }, { 'trylock', 'lock' }, { 'watchdog', 'lock' },
    { 'multi', 'lock' }, { 'redlock', 'lock' }, { 'spin', 'spin' }, { 'fenced', 'fenced' },
    { 'fair', 'fair' }, { 'fair3', 'fair' }, { 'rw', 'rw' }, { 'semaphore', 'semaphore' },
    { 'psemaphore', 'permit' }, { 'latch', 'countdown' },
  },
  {
    '3.17.6', receipts = false,
    { 'uncontended', 'lock' }, { 'contended', 'lock' }, { 'fair', 'fair' }, { 'rw', 'rw' },
    { 'semaphore', 'semaphore' }, { 'latch', 'countdown' },
  },
}

-- Redisson draws the life of a receipt from 16 to 20 s, and took some time between its calls.
local SLACK_MS = 4000

local WRITES = {}
for command in ('DEL DECR DECRBY HDEL HINCRBY HSET INCR INCRBY LPOP LREM PEXPIRE PUBLISH RPUSH SET '
  .. 'ZADD ZINCRBY ZREM'):gmatch('%u+') do
  WRITES[command] = true
end

-- A world that notes what is written.
local function noting(world)
  local notes = { null = world.null, now_ms = function()
    return world:now_ms()
  end }
  function notes:command(...)
    if WRITES[...] then
      table.insert(self, { ... })
    end
    return world:command(...)
  end
  return notes
end

local function same_word(expected, actual, now_ms)
  local kind, ms = expected:match('^([~@])%+?(%d+)$')
  if not kind then
    return expected == (type(actual) == 'number' and ('%.0f'):format(actual) or actual)
  end
  local distance = kind == '@' and actual - now_ms or actual
  return math.abs(distance - ms) <= SLACK_MS
end

local function same_command(expected, actual, now_ms)
  for i = 1, math.max(#expected, #actual) do
    if not (expected[i] and actual[i] and same_word(expected[i], actual[i], now_ms)) then
      return false
    end
  end
  return true
end

-- The calls of a recording, each with the commands that it led to.
local function read_calls(version, name)
  local scenario, calls = tables.read('recorded/' .. version, name)[1], {}
  for _, cells in ipairs(scenario) do
    if cells[1] ~= '' then
      table.insert(calls, { line = cells.line, by = cells[1], name = cells[2], call = cells[3] })
    else
      table.insert(calls[#calls], tables.expand({ unpack(cells, 2) }))
    end
  end
  return scenario.title, calls
end

local function play(calls, module, receipts)
  local notes, players = noting(helper.world()), {}
  for _, call in ipairs(calls) do
    local method, arguments = tables.words(call.call)
    local who = call.by .. call.name
    players[who] = players[who] or require('interop.player.' .. module):new(notes, {
      owner = tables.expand('<' .. call.by .. '>'), name = call.name, receipts = receipts })
    local first = #notes + 1
    local reply = players[who][method](players[who], unpack(arguments))
    if method == 'channel' then
      table.insert(notes, { call[1][1], reply })
    end

    local at = ('line %d, %s'):format(call.line, call.call)
    assert.equal(#call, #notes - first + 1, at)
    for i, expected in ipairs(call) do
      local actual = notes[first + i - 1]
      if not same_command(expected, actual, notes:now_ms()) then
        assert.same(expected, actual, at)
      end
    end
  end
end

for _, version in ipairs(VERSIONS) do
  describe(('the Redisson player as Redisson %s'):format(version[1]), function()
    it('plays every recording that is there', function()
      local there, played = {}, {}
      for _, file in ipairs(dir.getfiles(helper.root .. '/spec/interop/recorded/' .. version[1])) do
        table.insert(there, (path.splitext(path.basename(file))))
      end
      for i = 2, #version do
        played[i - 1] = version[i][1]
      end
      table.sort(there)
      table.sort(played)

      assert.same(there, played)
    end)

    for i = 2, #version do
      local recording, module = unpack(version[i])
      local title, calls = read_calls(version[1], recording)
      it(('%s (%s)'):format(title, recording), function()
        play(calls, module, version.receipts)
      end)
    end
  end)
end

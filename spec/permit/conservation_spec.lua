-- SPDX-License-Identifier: Apache-2.0
-- Permits are conserved: whatever clients do, in whatever order and however often, free and held
-- ones together are the total; and those of clients that are gone return when their leases end.
-- LATCHKEY_SPEC_SEED starts elsewhere.
local Player = require('interop.player.permit')

local helper = require('helper')
local permit = require('support.permit')
local recorded = require('support.recorded')

local FIRST_SEED = tonumber(os.getenv('LATCHKEY_SPEC_SEED')) or 1
local RUNS, LENGTH, TOTAL, MOST = 20, 100, 5, 3

-- The same numbers under every Lua: the minimal standard generator of Park and Miller.
local function generator(seed)
  local state = seed * 7919 % 2147483647 + 1
  return function(max)
    state = state * 16807 % 2147483647
    return state % max + 1
  end
end

local Run = {}
Run.__index = Run

local function start(seed)
  local world = helper.world()
  local run = setmetatable({ world = world, player = Player:new(world), random = generator(seed),
    last_id = 0, last_seq = 0, asked = {} }, Run)
  run:set(TOTAL)
  run:new_ids(1)
  return run
end

function Run:eval(verb, ...)
  local keys = verb == 'renew' and { permit.KEYS[2] } or permit.KEYS
  return assert(self.world:eval('permit/' .. verb, keys, { ... }))
end

function Run:acquire(lease, ids)
  return self:eval('acquire', lease, permit.CHANNEL, 'PUBLISH', unpack(ids))
end

function Run:set(total)
  self.last_seq, self.total = self.last_seq + 1, total
  local keys = { permit.KEYS[1], permit.KEYS[2], recorded.key('lk-ann') }
  assert(self.world:eval('permit/set', keys,
    { total, 'CHANGE', permit.CHANNEL, 'PUBLISH', 'lk-ann', self.last_seq }))
end

function Run:new_ids(count)
  local ids = permit.ids(self.last_id + 1, self.last_id + count)
  self.last_id = self.last_id + count
  table.insert(self.asked, ids)
  return ids
end

-- Ids that somebody asked for before: granted or not, held still or long gone.
function Run:some_ids()
  return self.asked[self.random(#self.asked)]
end

function Run:lease()
  return 1000 * self.random(9)
end

function Run:free()
  return tonumber(self.world:command('GET', permit.KEYS[1]))
end

function Run:assert_conserved(trace)
  local held = self.world:command('ZCARD', permit.KEYS[2])
  assert.equal(self.total, self:free() + held, trace)
end

-- Redisson's own messages may be negative.
function Run:assert_told_positive(trace)
  for _, told in ipairs(self.world:messages()) do
    assert.is_true(tonumber(told.message) > 0, trace)
  end
end

-- What clients do. Calls that are repeated, late or about another's permits are among them, since
-- the ids are chosen whatever became of them.
local STEPS = {
  { 'acquire', function(run, trace)
    local ids = run:new_ids(run.random(MOST))
    local reply = run:acquire(run:lease(), ids)
    local free = run:free()
    assert.is_true(reply[1] == 1 and free >= 0 or reply[1] == 0 and free < #ids, trace)
  end },
  { 'acquire again', function(run)
    run:acquire(run:lease(), run:some_ids())
  end },
  { 'renew', function(run)
    run:eval('renew', run:lease(), unpack(run:some_ids()))
  end },
  { 'release', function(run)
    run:eval('release', permit.CHANNEL, 'PUBLISH', unpack(run:some_ids()))
  end },
  { 'break', function(run)
    run:eval('break', permit.CHANNEL, 'PUBLISH', unpack(run:some_ids()))
  end },
  { 'change the total', function(run)
    run:set(run.random(2 * TOTAL))
  end },
  { 'wait', function(run)
    run.world:advance(500 * run.random(9))
  end },
  { 'Redisson acquires', function(run)
    run.player:acquire(run:new_ids(run.random(MOST)), run:lease())
    run.world:messages()
  end },
  { 'Redisson releases', function(run)
    run.player:release(run:some_ids()[1])
    run.world:messages()
  end },
  { 'Redisson looks', function(run)
    run.player:available()
    run.world:messages()
  end },
}

describe('permits', function()
  for seed = FIRST_SEED, FIRST_SEED + RUNS - 1 do
    it(('are conserved in the random run %d'):format(seed), function()
      local run, trace = start(seed), 'after'
      for _ = 1, LENGTH do
        local step = STEPS[run.random(#STEPS)]
        trace = trace .. ', ' .. step[1]
        step[2](run, trace)
        run:assert_told_positive(trace)
        run:assert_conserved(trace)
      end

      -- Nobody gives back what it holds; everything is there again all the same.
      run.world:advance(9001)

      assert.reply({ 1 }, run:acquire(1000, run:new_ids(run.total)))
      run:assert_conserved(trace)
    end)
  end
end)

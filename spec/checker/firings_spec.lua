-- SPDX-License-Identifier: Apache-2.0
-- The same crontab on five machines, whose clocks are off by up to a minute, for years: what
-- `latchkey exec --every` does, call by call, with machines that are killed between any two of
-- them. A job is done once at each firing of the crontab, and again only when it failed.
local World = require('latchkey.mock.world')
local helper = require('helper')

local LEASE_MS, WAIT_MS, MACHINES = 30000, 600000, 5
local CLOCK_MS = 60000 -- so far is a clock off at most
local KILLED = {}

-- A generator of its own, so that each Lua draws the same.
local function generator(seed)
  return function(max)
    seed = (seed * 16807) % 2147483647
    return seed % max + 1
  end
end

local Crontab = {}
Crontab.__index = Crontab

---@param options { every: integer, seed: integer, kills: integer } kills: in so many calls one
local function crontab(options)
  return setmetatable({ world = World.new({ scripts = helper.scripts }), every = options.every,
    random = generator(options.seed), kills = options.kills, serial = 0,
    counts = { done = 0, skipped = 0, failed = 0, killed = 0, busy = 0, lost = 0 } }, Crontab)
end

local function sleep(ms)
  coroutine.yield(ms)
end

function Crontab:may_die()
  if self.random(self.kills) == 1 then
    error(KILLED, 0)
  end
end

-- A call, before and after which its process may be killed. `note` looks at the reply before that.
function Crontab:call(script, key, args, note)
  self:may_die()
  local reply, err = self.world:eval(script, { key }, args)
  if err then
    error(err.message, 0)
  end
  if note then
    note(reply)
  end
  self:may_die()
  return reply
end

function Crontab:check(asked_ms)
  return self:call('period/check', 'latchkey_period:{job}', { self.every, asked_ms })
end

function Crontab:release(owner)
  self:call('lock/release', 'job', { LEASE_MS, owner, 0, 'redisson_lock__channel:{job}',
    'PUBLISH' })
end

-- False when the lock is lost.
function Crontab:work(owner)
  local left_ms = self.random(20) == 1 and 180000 or self.random(25000)
  while left_ms > 0 do
    sleep(math.min(left_ms, LEASE_MS / 3))
    left_ms = left_ms - LEASE_MS / 3
    if self:call('lock/renew', 'job', { LEASE_MS, owner })[1] ~= 1 then
      return false
    end
  end
  return true
end

-- The reply may be lost, and the call sent again.
function Crontab:mark(tick, owner, began_ms)
  repeat
    self:call('period/mark', 'latchkey_period:{job}', { self.every, ('%.0f'):format(began_ms),
      owner, 'machine' }, function(reply)
        assert.equal(1, reply[1])
        tick.done = true
      end)
  until self.random(4) > 1
end

-- One exec. What became of it.
function Crontab:fire(tick)
  local first = self:check(0)
  if first[1] == 0 then
    return 'skipped'
  end
  self.serial = self.serial + 1
  local owner, deadline_ms = 'lk-machine:' .. self.serial, self.world:now_ms() + WAIT_MS
  while self:call('lock/acquire', 'job', { LEASE_MS, owner, 1 })[1] ~= 1 do
    if self.world:now_ms() > deadline_ms then
      return 'busy'
    end
    sleep(1000)
  end
  local second = self:check(('%.0f'):format(first[2]))
  if second[1] == 0 then
    self:release(owner)
    return 'skipped'
  end
  assert.is_falsy(tick.done, 'a job that is done was run again')
  if not self:work(owner) then
    return 'lost'
  end
  local works = self.random(4) > 1
  if works then
    self:mark(tick, owner, second[2])
  end
  self:release(owner)
  return works and 'done' or 'failed'
end

-- The machines' processes in the order of time, until all have ended.
function Crontab:run(processes)
  while #processes > 0 do
    table.sort(processes, function(a, b)
      return a.at_ms < b.at_ms
    end)
    local process = processes[1]
    self.world:advance(math.max(0, process.at_ms - self.world:now_ms()))
    local alive, result = coroutine.resume(process.thread)
    if not alive and result ~= KILLED then
      error(result, 0)
    elseif alive and coroutine.status(process.thread) == 'suspended' then
      process.at_ms = self.world:now_ms() + result
    else
      process.ended(alive and result or 'killed')
      table.remove(processes, 1)
    end
  end
end

-- One firing of the crontab, at this moment of a clock that is right.
function Crontab:tick(at_ms)
  local tick, processes, ends = {}, {}, { failed = 0, killed = 0, busy = 0, lost = 0, skipped = 0,
    done = 0 }
  for i = 1, MACHINES do
    processes[i] = { at_ms = at_ms - CLOCK_MS + self.random(2 * CLOCK_MS),
      thread = coroutine.create(function()
        return self:fire(tick)
      end),
      ended = function(how)
        ends[how] = ends[how] + 1
        self.counts[how] = self.counts[how] + 1
      end }
  end
  self:run(processes)
  -- One has done it, whoever skipped it found that; or all of them came to grief.
  assert.is_true(ends.done <= 1)
  assert.is_true(tick.done or ends.done + ends.skipped == 0)
  return tick.done
end

describe('a crontab on five machines', function()
  local HOUR = 3600000

  it('does its hourly job once an hour, in 10,000 firings', function()
    local cron = crontab({ every = HOUR, seed = 20261122, kills = 40 })
    local begin_ms, done = cron.world:now_ms() + HOUR, 0

    for n = 0, 1999 do
      done = done + (cron:tick(begin_ms + n * HOUR) and 1 or 0)
    end

    local counts, sum = cron.counts, 0
    for _, count in pairs(counts) do
      sum = sum + count
    end
    assert.equal(10000, sum)
    assert.is_true(counts.killed > 1000 and counts.failed > 500, 'too little went wrong')
    assert.is_true(done > 1700 and done < 2000, ('%d of 2000 were done'):format(done))
  end)

  it('does its daily job once a day, where summer comes and goes', function()
    local cron = crontab({ every = 24 * HOUR, seed = 7, kills = 1000000 })
    local begin_ms = cron.world:now_ms() + 24 * HOUR

    for n = 0, 364 do
      local summer_ms = n > 80 and n < 300 and -HOUR or 0
      cron:tick(begin_ms + n * 24 * HOUR + summer_ms)
    end

    assert.equal(0, cron.counts.killed)
    assert.is_true(cron.counts.done > 360)
  end)
end)

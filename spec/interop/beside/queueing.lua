-- SPDX-License-Identifier: Apache-2.0
-- One fair queue of both: in the order of coming, whoever dies, gives up, or sleeps in it.
local people = require('interop.people')

local QUEUE = 'redisson_lock_queue:{job}'
local LEASE_MS = people.choose(2000, 6000, 30000)

-- How long a waiter of latchkey is believed in that is not heard of, and time for others to look.
local HEARTBEAT_MS = math.min(LEASE_MS / 4, 5000)
-- Less than what is left of the lease then.
local SLACK_MS = people.choose(1400, 3000, 5000)
-- Redisson, which knows nothing of heartbeats, drops it so much later.
local SCORE_MS = 30000

describe(people.other .. ' and latchkey, in one fair queue,', function()
  local server, holder

  before_each(function()
    server = people.begin()
    holder = people.latchkey()
  end)
  teardown(people.finish)

  local function length()
    return server:command('LLEN', QUEUE)
  end

  -- In the queue behind whoever is there already.
  local function queue(process, thread, method, ...)
    local before = length()
    local waiter = people.ask(process, thread, 'fair', method, 'job', ...)
    people.see('a place in the queue', function()
      return length() == before + 1
    end)
    return waiter
  end

  local function give_back(waiter)
    waiter.process:ask(waiter.thread, 'fair', 'unlock', 'job', LEASE_MS)
  end

  it('are served in order, ten of them', function()
    holder:ask('1', 'fair', 'lock', 'job', LEASE_MS)
    local java, waiters = people.java(), {}
    for i = 1, 10 do
      local theirs = people.is_real and i % 2 == 1
      waiters[i] = queue(theirs and java or people.latchkey(), tostring(i), 'lock_at', LEASE_MS)
    end

    holder:ask('1', 'fair', 'unlock', 'job', LEASE_MS)

    local last_us = 0
    for i, waiter in ipairs(waiters) do
      local got_us = people.comes_back(waiter)
      assert.is_true(got_us > last_us, ('number %d came too early'):format(i))
      last_us = got_us
      give_back(waiter)
    end
    assert.equal(0, length())
  end)

  it('pass over a waiter of latchkey that died before its turn', function()
    holder:ask('1', 'fair', 'lock', 'job', LEASE_MS)
    local victim = people.latchkey()
    queue(victim, '1', 'lock_at', LEASE_MS)
    local ours = queue(people.latchkey(), '2', 'lock_at', LEASE_MS)
    local theirs = queue(people.java(), '3', 'lock_at', LEASE_MS)

    people.kill(victim)
    local killed_ms = people.now_ms()
    holder:ask('1', 'fair', 'unlock', 'job', LEASE_MS)

    people.comes_back(ours, LEASE_MS + 60000)
    local took_ms = people.now_ms() - killed_ms
    people.note('a waiter of latchkey that died before its turn: the next one has it after %.1f s '
      .. '(lease %.1f s)', took_ms / 1000, LEASE_MS / 1000)
    give_back(ours)
    people.comes_back(theirs)
    assert.is_true(took_ms < HEARTBEAT_MS + SLACK_MS)
  end)

  it('pass over a waiter of latchkey that died, where only the other side waits', function()
    holder:ask('1', 'fair', 'lock', 'job', LEASE_MS)
    local victim = people.latchkey()
    queue(victim, '1', 'lock_at', LEASE_MS)
    local theirs = queue(people.java(), '2', 'lock_at', LEASE_MS)

    people.kill(victim)
    local killed_ms = people.now_ms()
    holder:ask('1', 'fair', 'unlock', 'job', LEASE_MS)

    people.comes_back(theirs, 400000)
    local took_ms = people.now_ms() - killed_ms
    people.note('the same with only %s behind it: %.1f s', people.other, took_ms / 1000)
    assert.is_true(took_ms < LEASE_MS + HEARTBEAT_MS + SCORE_MS + SLACK_MS)
  end)

  it('say that somebody waits when nobody holds it, and wake who sleeps at its head', function()
    holder:ask('1', 'fair', 'lock', 'job')
    local asker = people.latchkey()
    -- With a long lease, it does not look again soon, and find the free lock itself.
    local sleeper = queue(people.java(), '1', 'lock_at', 30000)
    people.see_asleep()
    server:command('DEL', 'job')

    local why = asker:ask('1', 'fair', 'why', 'job')
    people.note('beside a sleeping head: "%s"', why)
    assert.matches('a waiter is first', why)
    local ours = people.ask(asker, '2', 'fair', 'lock_at', 'job', LEASE_MS)

    people.comes_back(sleeper)
    give_back(sleeper)
    people.comes_back(ours)
    give_back(ours)
    assert.equal(0, length())
  end)

  if not people.is_real then
    return -- waiters of latchkey have heartbeats, and no tryLockAsync
  end

  it('wait for a dead waiter of the other side no longer than it would have', function()
    holder:ask('1', 'fair', 'lock', 'job', 2000)
    local victim = people.java()
    queue(victim, '1', 'try_for', 5000, LEASE_MS)
    local ours = queue(people.latchkey(), '2', 'lock_at', LEASE_MS)
    local theirs = queue(people.java(), '3', 'lock_at', LEASE_MS)

    people.kill(victim)
    local killed_ms = people.now_ms()
    holder:ask('1', 'fair', 'unlock', 'job', 2000)

    people.comes_back(ours, 60000)
    people.note('a waiter of Redisson that died, 5 s of its wait left: the next one has it after '
      .. '%.1f s', (people.now_ms() - killed_ms) / 1000)
    give_back(ours)
    people.comes_back(theirs, 60000)
    give_back(theirs)
    assert.equal(0, length())
  end)

  it('keep their places when asynchronous tryLocks before them give up', function()
    holder:ask('1', 'fair', 'lock', 'job', LEASE_MS)
    local java = people.java()
    local give_up = {}
    for i = 1, 3 do
      give_up[i] = queue(java, 'a' .. i, 'try_async', 1500, LEASE_MS)
    end
    local ours = queue(people.latchkey(), '2', 'lock_at', LEASE_MS)
    for _, waiter in ipairs(give_up) do
      assert.equal(0, people.comes_back(waiter))
    end
    people.see('their places given up', function()
      return length() == 1
    end)
    local place = server:command('LINDEX', QUEUE, 0)
    people.pause(HEARTBEAT_MS)

    local newcomer = people.ask(java, '3', 'fair', 'lock_at', 'job', LEASE_MS)
    people.see('the newcomer in the queue', function()
      return length() == 2
    end)
    assert.equal(place, server:command('LINDEX', QUEUE, 0))
    holder:ask('1', 'fair', 'unlock', 'job', LEASE_MS)

    local got_us = people.comes_back(ours)
    give_back(ours)
    assert.is_true(people.comes_back(newcomer) > got_us)
    give_back(newcomer)
  end)
end)

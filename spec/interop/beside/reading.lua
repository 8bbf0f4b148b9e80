-- SPDX-License-Identifier: Apache-2.0
-- Writers beside readers of Redisson, whose watchdog renews the levels of a read hold, or, in some
-- versions and some company, only the lock itself: writers of both sides wait as long as it reads.
local people = require('interop.people')

-- Long enough for every level key to end that is not renewed.
local WATCHDOG_MS = not people.is_full and 3000 or nil
local READ_MS = people.choose(400, 8000, 65000)

-- A message that gets lost costs the end of a lease, or more.
local WOKEN_MS = 5000

describe('While ' .. people.other .. ' reads,', function()
  local java

  before_each(function()
    people.begin()
    java = people.java(WATCHDOG_MS)
    -- A first unlock takes Java a tenth of a second.
    java:ask('1', 'read', 'lock', 'warm')
    java:ask('1', 'read', 'unlock', 'warm')
  end)
  teardown(people.finish)

  local function writer_of(name, process)
    local waiter = people.ask(process or people.latchkey(), '9', 'write', 'lock_at', name)
    waiter.name = name
    return waiter
  end

  -- Nothing may come from any of them for so long.
  local function see_waiting(waiters, for_ms)
    local end_ms = people.now_ms() + for_ms
    while people.now_ms() < end_ms do
      for _, waiter in ipairs(waiters) do
        local line = waiter.process.rest ~= '' or (not waiter.begun and waiter.process:line(50))
        assert.is_falsy(line, waiter.name .. ' was given to a writer beside a reader: '
          .. tostring(line))
      end
      people.pause(50)
    end
  end

  -- The reader's last unlock wakes the writer.
  local function see_written(waiter, unlocked_us, what)
    local got_us = people.comes_back(waiter, WOKEN_MS)
    local took_ms = (got_us - unlocked_us) / 1000
    people.note('%s: kept out for %.1f s, and there %.1f ms after the last unlock', what,
      READ_MS / 1000, took_ms)
    assert.is_true(got_us >= unlocked_us, 'it wrote while the other read')
    waiter.process:ask(waiter.thread, 'write', 'unlock', waiter.name)
  end

  it('two names in one thread, a writer of either waits', function()
    for _, name in ipairs({ 'orders', 'stock' }) do
      java:ask('1', 'read', 'lock', name)
    end
    local writers = { writer_of('orders'), writer_of('stock') }

    see_waiting(writers, READ_MS)

    for _, writer in ipairs(writers) do
      see_written(writer, java:ask('1', 'read', 'unlock_at', writer.name), writer.name)
    end
  end)

  it('one name twice, a writer waits for both', function()
    java:ask('1', 'read', 'lock', 'orders')
    java:ask('1', 'read', 'lock', 'orders')
    local writer = writer_of('orders')

    see_waiting({ writer }, READ_MS)
    local unlocked_us = java:ask('1', 'read', 'unlock_at', 'orders')
    if java:ask('1', 'read', 'hold_count', 'orders') > 0 then
      see_waiting({ writer }, READ_MS / 8)
      unlocked_us = java:ask('1', 'read', 'unlock_at', 'orders')
    else
      people.note('this Redisson frees it with the first of two unlocks, as its levels are over')
    end

    see_written(writer, unlocked_us, 'read twice')
  end)

  it('beside a reader of latchkey that re-entered, writers of both wait', function()
    local reader = people.latchkey()
    reader:ask('1', 'read', 'lock', 'orders')
    reader:ask('1', 'read', 'lock', 'orders')
    java:ask('1', 'read', 'lock', 'orders')
    people.pause(READ_MS / 2)
    reader:ask('1', 'read', 'unlock', 'orders')
    reader:ask('1', 'read', 'unlock', 'orders')
    local ours = writer_of('orders')
    local theirs = people.java(WATCHDOG_MS)

    see_waiting({ ours }, READ_MS)
    assert.equal(0, theirs:ask('1', 'write', 'try_lock', 'orders', 30000))

    see_written(ours, java:ask('1', 'read', 'unlock_at', 'orders'), 'beside two levels')
    assert.equal(1, theirs:ask('1', 'write', 'try_lock', 'orders', 30000))
  end)

  if not people.is_real then
    return -- a stand-in has no watchdog to set
  end

  it('and dies, writers of latchkey wait no longer than its lease', function()
    local victim = people.java(3000)
    victim:ask('1', 'read', 'lock', 'orders')
    local writer = writer_of('orders')
    people.kill(victim)
    local died_ms = people.now_ms()

    people.comes_back(writer, 60000)

    local took_ms = people.now_ms() - died_ms
    people.note('a dead reader with a lease of 3 s kept a writer out for %.1f s', took_ms / 1000)
    assert.is_true(took_ms < 10000)
  end)
end)

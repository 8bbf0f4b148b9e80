-- SPDX-License-Identifier: Apache-2.0
-- Who gives back wakes who waits, in either direction and for every kind; so do those who take by
-- force.
local utils = require('pl.utils')

local helper = require('helper')
local people = require('interop.people')

local ROUNDS = people.choose(2, 8, 100)
local PROGRAM = os.getenv('LATCHKEY_PROGRAM') or helper.root .. '/build/latchkey'

-- Without a message, it takes the end of a lease.
local WOKEN_MS = 5000

-- kind: what is given back; waits: what is waited for, if that is another one
local CASES = {
  { kind = 'lock' }, { kind = 'fenced' }, { kind = 'fair' },
  { kind = 'write' }, { kind = 'read', waits = 'write' }, { kind = 'write', waits = 'read' },
  { kind = 'semaphore', set = { 'SET', 'job', '1' } },
  { kind = 'permit', set = { 'SET', 'job', '1' } },
  { kind = 'countdown', set = { 'SET', 'job', '1' }, once = true },
}

local function median(values)
  table.sort(values)
  return values[math.ceil(#values / 2)]
end

describe(people.other .. ' and latchkey', function()
  local server

  before_each(function()
    server = people.begin()
  end)
  teardown(people.finish)

  -- One gives back while the other waits: after how many milliseconds that one has it.
  local function round(case, giver, waiter)
    local waits = case.waits or case.kind
    if case.set then
      assert(server:command('DEL', 'job', '{job}:timeout'))
      assert(server:command(unpack(case.set)))
    end
    if not case.once then
      giver:ask('1', case.kind, 'lock_at', 'job')
    end
    local waiting = people.ask(waiter, '2', waits, 'lock_at', 'job')
    people.pause(150)
    local given_us = giver:ask('1', case.kind, 'unlock_at', 'job')
    local took_ms = (people.comes_back(waiting, WOKEN_MS) - given_us) / 1000
    if not case.once then
      waiter:ask('2', waits, 'unlock_at', 'job')
    end
    return took_ms
  end

  for _, case in ipairs(CASES) do
    it(('wake each other (%s%s)'):format(case.kind, case.waits and ', ' .. case.waits or ''),
      function()
        if people.lacks(case.kind) then
          pending('this Redisson has no fenced locks')
          return
        end
        local java, ours = people.java(), people.latchkey()
        local to_java, to_ours = {}, {}
        for i = 1, ROUNDS do
          to_java[i] = round(case, ours, java)
          to_ours[i] = round(case, java, ours)
        end

        local to_java_ms, to_ours_ms = median(to_java), median(to_ours)
        people.note('%s%s, %d rounds: %s woken after %.1f ms (median; longest %.1f), latchkey '
          .. 'after %.1f (%.1f)', case.kind, case.waits and ' to ' .. case.waits or '', ROUNDS,
          people.other, to_java_ms, to_java[ROUNDS], to_ours_ms, to_ours[ROUNDS])
      end)
  end

  it('lose to `latchkey break`, and whoever waits is woken', function()
    local java, ours, next_one = people.java(), people.latchkey(), people.java()
    java:ask('1', 'lock', 'lock', 'job')
    local waiting = people.ask(next_one, '1', 'lock', 'lock_at', 'job')
    people.pause(150)

    local _, code, _, err = utils.executeex(('%s break job --yes --url %s'):format(
      utils.quote_arg(PROGRAM), utils.quote_arg(os.getenv('LATCHKEY_SPEC_URL'))))

    assert.equal(0, code, err)
    people.comes_back(waiting, WOKEN_MS)
    assert.is_false(pcall(java.ask, java, '1', 'lock', 'unlock', 'job'))
    assert.equal(0, ours:ask('1', 'lock', 'try_lock', 'job'))
    next_one:ask('1', 'lock', 'unlock', 'job')
    assert.equal(1, ours:ask('1', 'lock', 'try_lock', 'job'))
  end)

  if not people.is_real then
    return -- a stand-in has no forceUnlock
  end

  it('are told when the other takes a lock by force', function()
    local java, ours, next_one = people.java(), people.latchkey(), people.latchkey()
    ours:ask('1', 'lock', 'lock', 'job')
    local waiting = people.ask(next_one, '1', 'lock', 'lock_at', 'job')
    people.pause(150)

    assert.equal(1, java:ask('1', 'lock', 'force_unlock', 'job'))

    people.comes_back(waiting, WOKEN_MS)
    local ok, why = pcall(ours.ask, ours, '1', 'lock', 'unlock', 'job')
    assert.is_false(ok)
    assert.matches('^LK_LOST ', why)
    next_one:ask('1', 'lock', 'unlock', 'job')
  end)
end)

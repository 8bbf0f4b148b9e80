-- SPDX-License-Identifier: Apache-2.0
-- A saturated lock: three threads in two processes of Redisson's and three processes of latchkey's
-- take it again and again for 1 ms. No update is lost, and neither side starves.
local people = require('interop.people')

local KINDS = { 'lock', 'fenced', 'write', 'fair' }
local HOLD_MS = 1

-- Below a third of an equal share, a side starves.
local LEAST_SHARE = 1 / 3

local function storms(kind, for_ms)
  local waiters, processes = { java = {}, latchkey = {} }, { people.java(), people.java() }
  processes[3] = people.is_real and processes[1] or people.java()
  local ours = { people.latchkey(), people.latchkey(), people.latchkey() }
  for i = 1, 3 do
    waiters.java[i] = people.ask(processes[i], tostring(i), kind, 'storm', 'job', 'number', for_ms,
      HOLD_MS)
    waiters.latchkey[i] = people.ask(ours[i], '1', kind, 'storm', 'job', 'number', for_ms, HOLD_MS)
  end
  return waiters
end

local function outcome(waiters, for_ms)
  local sum, longest = 0, 0
  for _, waiter in ipairs(waiters) do
    local taken, longest_us = people.comes_back(waiter, for_ms + 60000):match('^(%d+) (%d+)$')
    sum, longest = sum + taken, math.max(longest, longest_us / 1000)
  end
  return sum, longest
end

describe(people.other .. ' and latchkey, both always wanting one lock,', function()
  local server

  before_each(function()
    server = people.begin()
  end)
  teardown(people.finish)

  for _, kind in ipairs(KINDS) do
    it(('lose no update, and neither starves the other (%s)'):format(kind), function()
      if people.lacks(kind) then
        pending('this Redisson has no fenced locks')
        return
      end
      local for_ms = people.choose(500, 4000, 20000)

      local waiters = storms(kind, for_ms)
      local java, java_longest = outcome(waiters.java, for_ms)
      local ours, our_longest = outcome(waiters.latchkey, for_ms)

      people.note('%s, %.1f s: %s %d takes, longest wait %d ms; latchkey %d, %d ms', kind,
        for_ms / 1000, people.other, java, java_longest, ours, our_longest)
      assert.equal(java + ours, tonumber(server:command('GET', 'number')))
      if not people.is_real then
        return -- they are all alike, and no sides
      end
      local least = (java + ours) / 2 * LEAST_SHARE
      assert.is_true(java >= least, ('%s has %d of %d'):format(people.other, java, java + ours))
      assert.is_true(ours >= least, ('latchkey has %d of %d'):format(ours, java + ours))
    end)
  end
end)

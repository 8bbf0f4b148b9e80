-- SPDX-License-Identifier: Apache-2.0
-- Copies of calls that arrive when their caller is gone: whatever they are, and whenever they come,
-- nobody else loses the lock, or its place among those who wait.
local fair = require('support.fair')
local helper = require('helper')

local LEASES = { 10000, 30000, 60000 }

describe('a fair lock whose calls come late', function()
  local world

  before_each(function()
    world = helper.world()
  end)

  -- Who holds it, with what, and who waits, in order: at all, and for some time still.
  local function look()
    local dump, now_ms = world:dump(), world:now_ms()
    local lock, queue, records = dump[fair.KEYS[1]], dump[fair.KEYS[2]], dump[fair.KEYS[4]]
    local seen = { waiting = {}, queue = queue and queue.value or {} }
    if lock then
      seen.holder, seen.count = next(lock.value)
      seen.left = lock.pttl
    end
    for _, owner in ipairs(seen.queue) do
      local record = records and records.value[owner]
      if record and record:match('^%d+') - now_ms > 2000 then
        table.insert(seen.waiting, owner)
      end
    end
    return seen
  end

  local function without(list, gone)
    local rest = {}
    for _, owner in ipairs(list) do
      if not gone[owner] then
        table.insert(rest, owner)
      end
    end
    return rest
  end

  -- Nobody who goes on waiting was before that one.
  local function assert_first(before, gone, owner, what)
    local first = without(before.waiting, gone)[1]
    for _, waiter in ipairs(before.queue) do
      if waiter == owner then
        return
      end
      assert.not_equal(first, waiter, what)
    end
    error(what .. ': ' .. owner .. ' did not wait')
  end

  -- Only a lock that is free goes to somebody by it: to the first.
  local function assert_untouched(before, owner, what)
    local after, gone = look(), { [owner] = true }
    if before.holder and before.holder ~= owner then
      assert.same({ before.holder, before.count }, { after.holder, after.count }, what)
      assert.is_true(after.left > before.left - 2000, what)
    elseif after.holder and after.holder ~= owner then
      assert_first(before, gone, after.holder, what)
      gone[after.holder] = true
    end
    assert.same(without(before.waiting, gone), without(after.waiting, gone), what)
  end

  -- Five clients, who come, wait, leave, enter again and give back; each time with a new name.
  local function clients(random)
    local serial, past = 0, {}

    local function call(owner, method, ...)
      local arguments = { owner, ... }
      local function run()
        return assert(fair[method](world, unpack(arguments)))[1]
      end
      table.insert(past, { owner = owner, run = run, what = method .. ' of ' .. owner })
      return run()
    end

    local function come(client)
      if not client.owner then
        serial = serial + 1
        client.owner, client.count = 'lk-c' .. serial .. ':' .. serial, 0
        call(client.owner, 'acquire', 1, { lease = LEASES[random(3)] })
      end
    end

    local function wait(client)
      if client.owner and client.count == 0 then
        local outcome = call(client.owner, 'wait_renew')
        client.count = outcome == 1 and 1 or 0
        client.owner = outcome ~= -1 and client.owner or nil
      end
    end

    local function leave(client)
      if client.owner and client.count == 0 then
        call(client.owner, 'leave')
        client.owner = nil
      end
    end

    local function enter(client)
      if client.owner and client.count > 0 then
        client.count = client.count + 1
        client.owner = call(client.owner, 'acquire', client.count) == 1 and client.owner or nil
      end
    end

    local function give_back(client)
      if client.owner and client.count > 0 then
        client.count = random(client.count) - 1
        local outcome = call(client.owner, 'release', client.count)
        client.owner = outcome == 1 and client.count > 0 and client.owner or nil
      end
    end

    return past, { come, come, wait, wait, leave, enter, give_back, give_back }
  end

  for seed = 1, 10 do
    it(('costs nobody else the lock or a place: seed %d'):format(seed), function()
      local state = seed
      local function random(n)
        state = (state * 1103515245 + 12345) % 2 ^ 31
        return math.floor(state / 2 ^ 16) % n + 1
      end
      local past, actions = clients(random)
      local people = { {}, {}, {}, {}, {} }

      for _ = 1, 120 do
        actions[random(8)](people[random(5)])
        if random(5) == 1 then
          world:advance(random(12) * 1000)
        end
        local late, before = past[random(#past)], look()
        for _, person in ipairs(people) do
          late = late and late.owner ~= person.owner and late or nil
        end
        if late then
          late.run()
          assert_untouched(before, late.owner, late.what)
        end
        world:messages()
      end
    end)
  end
end)

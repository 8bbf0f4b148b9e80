-- SPDX-License-Identifier: Apache-2.0
-- Copies of calls that arrive when their hold is over: whatever they are, and whenever they come,
-- the holds of others stay as they are.
local helper = require('helper')
local rw = require('support.rw')

local LEASES = { 10000, 30000, 60000 }

describe('a read-write lock whose calls come late', function()
  local world

  before_each(function()
    world = helper.world()
  end)

  -- Of each hold: its count, and how long it lives at least.
  local function holds()
    local dump, found = world:dump(), {}
    local fields = dump.job and dump.job.value or {}
    for owner, count in pairs(fields) do
      local level = dump[rw.level(owner, 1)]
      if owner:find(':write$') then
        found[owner] = { count = count, left = dump.job.pttl }
      elseif level then
        found[owner] = { count = count, left = math.min(level.pttl, dump.job.pttl) }
      end
    end
    return found
  end

  local function assert_untouched(before, owner, what)
    local after = holds()
    for other, hold in pairs(before) do
      if other ~= owner then
        assert.is_table(after[other], what .. ' ended ' .. other)
        assert.equal(hold.count, after[other].count, what)
        assert.is_true(after[other].left > hold.left - 2000, what)
      end
    end
  end

  -- Three callers, who read, write and give back as they like; each hold has a name of its own.
  local function callers(random)
    local serial, past = 0, {}

    local function call(owner, method, ...)
      local arguments = { owner, ... }
      local function run()
        return assert(rw[method](world, unpack(arguments)))[1]
      end
      table.insert(past, { owner = owner, run = run, what = method .. ' of ' .. owner })
      return run() == 1
    end

    local function take(caller, side, method)
      local hold, other = caller[side], caller[side == 'read' and 'write' or 'read']
      if not hold then
        serial = serial + 1
        local tail = side == 'write' and ':write' or ''
        hold = { owner = ('lk-c:%d%s'):format(serial, tail), count = 0 }
      end
      local options = { lease = LEASES[random(3)] }
      options[side == 'read' and 'writer' or 'reader'] = other and other.owner or ''
      if call(hold.owner, method, hold.count + 1, options) then
        hold.count = hold.count + 1
        caller[side] = hold
      end
    end

    local function give_back(caller, side, method)
      local hold = caller[side]
      if hold then
        hold.count = random(hold.count) - 1
        call(hold.owner, method, hold.count, LEASES[random(3)])
        caller[side] = hold.count > 0 and hold or nil
      end
    end

    local function renew(caller)
      for _, side in ipairs({ 'read', 'write' }) do
        if caller[side] and not call(caller[side].owner, side .. '_renew', LEASES[random(3)]) then
          caller[side] = nil
        end
      end
    end

    return past, { function(caller) take(caller, 'read', 'read') end,
      function(caller) take(caller, 'write', 'write') end,
      function(caller) give_back(caller, 'read', 'read_release') end,
      function(caller) give_back(caller, 'write', 'write_release') end, renew }
  end

  for seed = 1, 10 do
    it(('loses no hold of another by it: seed %d'):format(seed), function()
      local state = seed
      local function random(n)
        state = (state * 1103515245 + 12345) % 2 ^ 31
        return math.floor(state / 2 ^ 16) % n + 1
      end
      local past, actions = callers(random)
      local people = { {}, {}, {} }

      for _ = 1, 80 do
        actions[random(5)](people[random(3)])
        if random(4) == 1 then
          world:advance(random(20) * 1000)
        end
        local late, before = past[random(#past)], holds()
        for _, person in ipairs(people) do
          for _, hold in pairs(person) do
            late = late and late.owner ~= hold.owner and late or nil
          end
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

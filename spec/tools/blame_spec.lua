-- SPDX-License-Identifier: Apache-2.0
-- Who waits for whom, as a pure function: deadlocks that are there are named, others are not.
local answer = require('latchkey.locks.answer')
local blame = require('latchkey.locks.blame')

local function wait_of(unit, kind, name)
  local family = (kind == 'read' or kind == 'write') and 'rw' or kind
  return { unit = unit, kind = kind, lock = family .. ' ' .. name, any = kind == 'permit',
    client = unit }
end

-- units: { name = { 'kind name', ... } }, what each waits for; locks: { ['family name'] =
-- { { units }, ... } }, its holders.
local function picture_of(units, locks, free)
  local picture = { units = {}, locks = {} }
  for key, holders in pairs(locks) do
    local kind, name = key:match('^(%S+) (.*)$')
    local lock = { kind = kind, name = name, holders = {}, unnamed = 0,
      free = free and free[key] or 0 }
    for i, list in ipairs(holders) do
      lock.holders[i] = { units = list, writes = not list.reads, view = {} }
    end
    picture.locks[key] = lock
  end
  for unit, waits in pairs(units) do
    local list = {}
    for i, text in ipairs(waits) do
      list[i] = wait_of(unit, text:match('^(%S+) (.*)$'))
    end
    picture.units[unit] = { client = unit, waits = list }
  end
  return picture
end

local function cycles(...)
  local list = {}
  for i, cycle in ipairs(blame.cycles(picture_of(...))) do
    local parts = {}
    for k, step in ipairs(cycle) do
      parts[k] = step.unit
    end
    list[i] = table.concat(parts, ' ')
  end
  return list
end

describe('a deadlock', function()
  it('of two to eight is named with all who are in it, in order', function()
    for size = 2, 8 do
      local units, locks, expected = {}, {}, {}
      for i = 1, size do
        units['u' .. i] = { 'lock l' .. i % size + 1 }
        locks['lock l' .. i] = { { 'u' .. i } }
        expected[i] = 'u' .. i
      end

      assert.same({ table.concat(expected, ' ') }, cycles(units, locks))
    end
  end)

  it('of a reader and a writer is one, of readers alone is none', function()
    assert.same({ 'a b' }, cycles({ a = { 'write w' }, b = { 'lock l' } },
      { ['rw w'] = { { 'b', reads = true } }, ['lock l'] = { { 'a' } } }))
    assert.same({}, cycles({ a = { 'read w' }, b = { 'lock l' } },
      { ['rw w'] = { { 'b', reads = true } }, ['lock l'] = { { 'a' } } }))
  end)

  it('of permits needs all of those who hold some', function()
    local units = { a = { 'permit p' }, b = { 'lock l' }, c = { 'lock l' } }

    assert.same({ 'a b', 'c a' }, cycles(units, { ['permit p'] = { { 'b' }, { 'c' } },
      ['lock l'] = { { 'a' } } }))
    assert.same({}, cycles({ a = units.a, b = units.b },
      { ['permit p'] = { { 'b' }, {} }, ['lock l'] = { { 'a' } } }))
    assert.same({}, cycles(units, { ['permit p'] = { { 'b' }, { 'c' } }, ['lock l'] = { { 'a' } } },
      { ['permit p'] = 1 }))
  end)

  it('of permits is none where one holds some who is not named', function()
    local function client(uuid, owner, kind, name)
      return { client = uuid, uuid = uuid, within = { owner }, holds = {},
        waits = { { kind = kind, name = name } } }
    end
    local function found(held)
      local picture = assert(blame.picture({ client('a', 'x', 'permit', 'p'),
        client('b', 'y', 'lock', 'l') }, function(kind)
        return kind == 'lock' and { fits = true, fields = 1, holders = { { owner = 'x' } } }
          or { fits = true, permits = 0, held = held, holders = { { owner = 'y' } } }
      end))
      return #blame.cycles(picture), picture.locks['permit p'].unnamed
    end

    assert.same({ 1, 0 }, { found(1) })
    assert.same({ 0, 50 }, { found(51) })
  end)

  it('may be of one with itself, where its kind is not re-entrant', function()
    assert.same({ 'a' }, cycles({ a = { 'mutex m' } }, { ['mutex m'] = { { 'a' } } }))
    assert.same({ 'a' }, cycles({ a = { 'permit p' } }, { ['permit p'] = { { 'a' } } }))
    assert.same({}, cycles({ a = { 'lock l' } }, { ['lock l'] = { { 'a' } } }))
  end)

  it('is not told of those who only stand behind it, nor twice', function()
    assert.same({ 'a b' }, cycles({ a = { 'lock y' }, b = { 'lock x' }, c = { 'lock x' } },
      { ['lock x'] = { { 'a' } }, ['lock y'] = { { 'b' } } }))
  end)

  it('is none where one in it has another way on, or is not known', function()
    assert.same({}, cycles({ a = { 'lock y' }, b = { 'lock x' } },
      { ['lock x'] = { { 'a' } }, ['lock y'] = { {} } }))
    assert.same({}, cycles({ a = { 'lock y' }, b = { 'lock x', 'lock z' } },
      { ['lock x'] = { { 'a' } }, ['lock y'] = { { 'b' } }, ['lock z'] = {} }))
  end)
end)

describe('a random state', function()
  local KINDS = { 'lock', 'fair', 'mutex', 'rw', 'permit' }
  local seed

  local function random(n)
    seed = (seed * 16807) % 2147483647
    return seed % n + 1
  end

  -- Everyone waits for locks of those with lower numbers, or of nobody who is known: no cycle.
  local function state(number)
    seed = number
    local units, locks, names = {}, {}, {}
    for i = 1, random(9) do
      local kind, holders = KINDS[random(#KINDS)], {}
      for k = 1, (kind == 'rw' or kind == 'permit') and random(3) or 1 do
        holders[k] = { reads = kind == 'rw' }
      end
      names[i] = kind .. ' ' .. i
      locks[names[i]] = holders
    end
    local top = {}
    for unit = 1, random(12) do
      local key = names[random(#names)]
      local family, name = key:match('^(%S+) (.*)$')
      local wants = family == 'rw' and (random(2) == 1 and 'read' or 'write') or family
      units['u' .. unit] = random(4) > 1 and { wants .. ' ' .. name } or {}
      -- It holds what only those behind it may wait for.
      local held = names[random(#names)]
      local is_free = not top[held] and held ~= key
      for earlier = 1, unit do
        local first = (units['u' .. earlier] or {})[1]
        is_free = is_free and not (first and first:match(' (.*)$') == held:match(' (.*)$'))
      end
      if is_free then
        top[held] = true
        table.insert(locks[held][1], 'u' .. unit)
      end
    end
    return units, locks, names
  end

  it('without a cycle has no deadlock: 10,000 of them', function()
    local waiting = 0
    for number = 1, 10000 do
      local units, locks = state(number)
      for _, waits in pairs(units) do
        waiting = waiting + #waits
      end
      local found = cycles(units, locks)
      assert.same({}, found, 'state ' .. number)
    end
    assert.is_true(waiting > 20000)
  end)

  it('into which a ring is laid has that one', function()
    for number = 1, 1000 do
      local units, locks = state(number)
      units.x, units.y = { 'lock ring1' }, { 'lock ring2' }
      locks['lock ring1'], locks['lock ring2'] = { { 'y' } }, { { 'x' } }

      assert.same({ 'x y' }, cycles(units, locks), 'state ' .. number)
    end
  end)
end)

describe('an answer', function()
  local UUID = 'd31bad7c-5ea3-4445-9f82-f7eabf061e0d'

  it('is read as far as it is one', function()
    local found = answer.read('{"answer":1,"client":"c","uuid":"' .. UUID .. '","within":"a b",'
      .. '"waits":[{"kind":"lock","name":"a\\u00e9\\u000a","caller":3},{"kind":1,"name":"x"},7],'
      .. '"holds":"none","later":{"x":[]}}')

    assert.same({ 'a', 'b' }, found.within)
    assert.equal(1, #found.waits)
    assert.equal('a\233\n', found.waits[1].name)
    assert.equal(3, found.waits[1].caller)
    assert.same({}, found.holds)
  end)

  it('has no kinds, names and numbers that no lock has', function()
    local found = answer.read('{"answer":1,"client":"c","uuid":"' .. UUID .. '","waits":['
      .. '{"kind":"later","name":"a"},{"kind":"__index","name":"a"},{"kind":"lock","name":""},'
      .. '{"kind":"lock","name":"a}"},{"kind":"lock","name":"' .. ('x'):rep(513) .. '"},'
      .. '{"kind":"read","name":"a","waited_ms":1e999,"rest_ms":NaN,"caller":1}],"holds":[]}')

    assert.same({ { kind = 'read', name = 'a', caller = 1 } }, found.waits)
  end)

  it('says which database it is about; one of an older client does not', function()
    for text, database in pairs({ ['"db":3,'] = 3, ['"db":0,'] = 0, [''] = false,
      ['"db":"3",'] = false, ['"db":-1,'] = false, ['"db":1.5,'] = false,
      ['"db":1e999,'] = false, ['"db":1e15,'] = false }) do
      local found = answer.read('{"answer":1,"client":"c",' .. text .. '"uuid":"' .. UUID
        .. '","waits":[],"holds":[]}')

      assert.equal(database, found.db or false, text)
    end
  end)

  it('is none if it is anything else', function()
    for _, text in ipairs({ '', '7', 'null', '[]', '{}', '{"answer":2}', '{"answer":1}',
      '{"answer":1,"client":"c","uuid":"../x"}', ('['):rep(100), '{"answer":1,"client":7,"uuid":"'
        .. UUID .. '"}' }) do
      assert.is_nil(answer.read(text), text)
    end
  end)
end)

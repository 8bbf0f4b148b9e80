-- SPDX-License-Identifier: Apache-2.0
-- That a module which breaks a rule of the floors is found, from what nm prints of its object file.
local tablex = require('pl.tablex')

local floors = require('lib.floors')

local RULES = { floors = { 'os', 'base', 'locks' }, system_floor = 'os', pure = { 'mem%l+' },
  libraries = { locks = { 'redis%u%w+' } }, system = {} }

-- Each row: object, symbol, kind as `nm -P -A` prints them.
local GOOD = {
  { 'os/clock', 'lk_clock_us', 'T' }, { 'os/clock', 'clock_gettime', 'U' },
  { 'base/text', 'lk_text', 'T' }, { 'base/text', 'memcpy', 'U' }, { 'base/text', 'hidden', 't' },
  { 'locks/lock', 'lk_lock', 'T' }, { 'locks/lock', 'lk_text', 'U' },
  { 'locks/lock', 'lk_clock_us', 'U' }, { 'locks/lock', 'redisReply', 'U' },
}

local function check(rows, rules)
  local lines = {}
  for i, row in ipairs(tablex.insertvalues(tablex.copy(GOOD), rows)) do
    lines[i] = ('x/%s.c.o: %s %s 0000000000000000 0000000000000010'):format(row[1], row[2], row[3])
  end
  local modules = floors.read(lines, function(object)
    return object:match('^x/(.+)%.c%.o$')
  end)
  return floors.check(modules, tablex.merge(RULES, rules or {}, true))
end

describe('the floors of the library', function()
  it('hold where every arrow points down and only the first uses the system', function()
    assert.same({}, check({}))
  end)

  it('are broken by an arrow that points up', function()
    assert.same({ 'base/text uses locks/lock, which is above it' },
      { check({ { 'base/text', 'lk_lock', 'U' } })[1] })
  end)

  it('are broken by a circle within a floor', function()
    assert.same({ 'a circle: locks/hold -> locks/lock -> locks/hold' }, check({
      { 'locks/hold', 'lk_hold', 'T' }, { 'locks/hold', 'lk_lock', 'U' },
      { 'locks/lock', 'lk_hold', 'U' } }))
  end)

  it('are broken by a symbol of the system above the first floor', function()
    assert.same({ 'locks/lock uses poll of the system; only os/ may' },
      check({ { 'locks/lock', 'poll', 'U' } }))
  end)

  it('are broken by a symbol of a library that is not for that floor', function()
    assert.same({ 'base/text uses redisReply of the system; only os/ may' },
      check({ { 'base/text', 'redisReply', 'U' } }))
  end)

  it('are broken by a symbol that nobody may use, on any floor', function()
    assert.same({ 'os/clock uses gets: it asks for trouble' },
      check({ { 'os/clock', 'gets', 'U' } }, { refused = { gets = 'it asks for trouble' } }))
  end)

  it('are broken by a module on no floor', function()
    assert.same({ 'cellar/wine is on no floor: os, base, locks' },
      check({ { 'cellar/wine', 'lk_wine', 'T' } }))
  end)

  it('allow what is excepted', function()
    assert.same({}, check({ { 'locks/lock', 'poll', 'U' } },
      { system = { ['locks/lock'] = { 'poll' } } }))
  end)

  it('want exceptions gone that nothing needs any more', function()
    assert.same({
      'locks/lock does not use poll any more: remove the exception',
      'there is no module locks/gone: remove its exceptions',
    }, check({}, { system = { ['locks/lock'] = { 'poll' }, ['locks/gone'] = { 'poll' } } }))
  end)
end)

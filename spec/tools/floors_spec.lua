-- SPDX-License-Identifier: Apache-2.0
-- That a module which breaks a rule of the floors is found: of C from what nm prints of its object
-- file, of Lua in its text.
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

describe('the floors of the Lua that is installed', function()
  local FLOORS = { floors = { 'latchkey', 'script', 'cli' }, outside = { 'latchkey%.made%..*' } }

  -- Each row: what a file is required as, and the lines of its text.
  local function findings(...)
    local files = { { 'latchkey', "require('cjson')" }, { 'latchkey.json', '' },
      { 'latchkey.script.header', "local json = require('latchkey.json')" },
      { 'latchkey.cli', "local header = require('latchkey.script.header')" } }
    for _, row in ipairs({ ... }) do
      files[#files + 1] = { row[1], table.concat(row, '\n', 2) }
    end
    return floors.check_lua(files, FLOORS)
  end

  it('hold where every file requires its own floor and those below', function()
    assert.same({}, findings({ 'latchkey.cli.run', "require('latchkey')", "require('latchkey.cli')",
      "require('latchkey.script.header')", "require('latchkey.json')" }))
  end)

  it('are broken by a file that requires one above, wherever it does', function()
    for _, line in ipairs({ "local cli = require('latchkey.cli')", "  return require'latchkey.cli'",
      "  local ok, cli = pcall(require, 'latchkey.cli')", "x = (require 'latchkey.cli').x -- why" })
    do
      assert.equal('latchkey/json uses cli/init, which is above it',
        findings({ 'latchkey.json', line })[1], line)
    end
    assert.same({ 'script/names uses cli/commands.ls, which is above it' },
      findings({ 'latchkey.script.names', "require('latchkey.cli.commands.ls')" }))
  end)

  it('are broken by a circle of what is loaded, not by one of what is required later', function()
    local there, back = "local text = require('latchkey.text')", "json = require('latchkey.json')"

    assert.same({ 'a circle: latchkey/json -> latchkey/text -> latchkey/json' },
      findings({ 'latchkey.json', there }, { 'latchkey.text', back }))
    assert.same({}, findings({ 'latchkey.json', there }, { 'latchkey.text', '  ' .. back }))
  end)

  it('are broken by a file that requires what is not installed', function()
    assert.same({ 'latchkey/json requires lib.words, which is not installed' },
      findings({ 'latchkey.json', "local words = require('lib.words')" }))
  end)

  it('leave out comments, other libraries, and what the build makes', function()
    assert.same({}, findings({ 'latchkey.json', "-- require('latchkey.cli')", "require('cli.x')",
      "require('latchkey.made.cli')", "required('latchkey.cli')" }))
  end)
end)

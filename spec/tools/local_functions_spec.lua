-- SPDX-License-Identifier: Apache-2.0
-- What lint knows of a script's own functions: the keys that they are handed, and their commands.
local dir = require('pl.dir')
local path = require('pl.path')
local utils = require('pl.utils')

local digest = require('latchkey.digest')
local lint = require('latchkey.lint')

local CONTRACT = [[
name:     own/take
version:  1.0.0
sha1:     %s
summary:  Take.
keys:
  - taken  any  r  own:{{name}}  what is taken
derived:
  - more  any  r  {name}:x  further ones
argv:
  - count  count  0..9  so many
returns:
  - 1  taken
cost:     at most 1 command
cluster:  one slot
]]

describe('lint of local functions', function()
  local folder

  before_each(function()
    folder = path.tmpname()
    os.remove(folder)
    dir.makepath(folder .. '/own')
  end)

  after_each(function()
    dir.rmtree(folder)
  end)

  local function findings_of(code)
    local source = code .. '\nreturn 1\n'
    utils.writefile(folder .. '/own/take.lua', source)
    utils.writefile(folder .. '/own/take.contract', CONTRACT:format(digest.sha1(source)))
    local rules = {}
    for i, finding in ipairs((lint.run({ folder }))) do
      rules[i] = finding.rule
    end
    return table.concat(rules, ' ')
  end

  it('knows a key that a function hands on to itself', function()
    local found = {}
    for i, call in ipairs({ 'drop(key, n - 1)', 'local same = key drop(same, n - 1)',
      'local function again(k, m) drop(k, m) end again(key, n - 1)',
      "drop('other', n - 1)" }) do
      found[i] = findings_of("local function drop(key, n)\n  redis.call('EXISTS', key)\n"
        .. ('  if n > 0 then %s end\nend\ndrop(KEYS[1], tonumber(ARGV[1]))'):format(call))
    end

    assert.same({ '', '', '', 'derived' }, found)
  end)

  it('does not know a name that a function makes longer each time', function()
    local found = {}
    for i, name in ipairs({ "KEYS[1] .. ':x'", 'KEYS[1]' }) do
      found[i] = findings_of("local function drop(name, n)\n  redis.call('EXISTS', name)\n"
        .. "  if n > 0 then drop(name .. ':x', n - 1) end\nend\n"
        .. ('drop(%s, tonumber(ARGV[1]))'):format(name))
    end

    assert.same({ 'derived', 'derived' }, found)
  end)

  it('knows a name that a function hands on to itself', function()
    assert.equal('', findings_of("local function drop(name, n)\n  redis.call('EXISTS', name)\n"
      .. '  if n > 0 then drop(name, n - 1) end\nend\n'
      .. "drop(KEYS[1] .. ':x', tonumber(ARGV[1]))"))
  end)

  it('knows keys and commands of a function, declared or made in a local', function()
    for _, make in ipairs({ 'local function look(key) %s end',
      'local look = function(key) %s end' }) do
      make = make:format("return redis.call('EXISTS', key)")
      local all = make .. '\nlook(key) look(key)\n'

      assert.equal('', findings_of(make .. '\nif ARGV[1] then look(KEYS[1]) end'))
      assert.equal('cost', findings_of(make .. '\nif ARGV[1] then look(KEYS[1]) end look(KEYS[1])'))
      for _, outer in ipairs({ 'local function all(key)\n%send\n',
        'local all = function(key)\n%send\n' }) do
        assert.equal('cost', findings_of(outer:format(all) .. 'if ARGV[1] then all(KEYS[1]) end'))
      end
    end
  end)

  it('knows nothing of a local that is made another function later', function()
    assert.equal('', findings_of('local look = function(key) '
      .. "return redis.call('EXISTS', key) end\n"
      .. 'if ARGV[1] then look = type end\nlook(KEYS[1]) look(KEYS[1])'))
  end)

  it('knows the commands of a function in a field of a table', function()
    local call = "redis.call('EXISTS', KEYS[1])"
    for _, form in ipairs({ 'local M = {} function M.go() %s end\nM.go()',
      'local M = {} function M:go() %s end\nM:go()',
      'local M = {} function M:go() %s end\nM.go(M)',
      'local M = {} M.go = function() %s end\nM["go"]()',
      'local M = { go = function() %s end }\nlocal n = (M.go)()',
      'local M = { ["go"] = function() %s end }\npcall(M.go)',
      'local M = { deep = {} } function M.deep.go() %s end\nM.deep.go()',
      'local M = { deep = { go = function() %s end } }\nM.deep.go()',
      'local M = {} function M.go() %s end local go = M.go\ngo()',
      'local M = {} function M.go() %s end local N = M\nN.go()',
      'local function go() %s end local M = { go = go }\nM.go()',
      'local M = {} if ARGV[1] then M.go = function() end else function M.go() %s end end\nM.go()',
      'local M M = {} function M.go() %s end\nM.go()',
      'local M = {} function M.all() M.go() end function M.go() %s end\nM.all()' }) do
      local defined, called = ('local n = ARGV[1] ' .. form):match('^(.*\n)(.*)$')

      assert.equal('', findings_of(defined:format(call) .. called), form)
      assert.equal('cost', findings_of(defined:format(call .. ' ' .. call) .. called), form)
      assert.equal('cost', findings_of(defined:format(call) .. called .. ' ' .. called), form)
    end
  end)

  it('counts no function in a field that is not called, calls itself, or is another later',
    function()
      local call = "redis.call('EXISTS', KEYS[1])"
      for _, code in ipairs({ 'local M = {} function M.go() %s end %s',
        'local M = {} function M.go() %s M.go() end M.go()',
        'local M = {} function M.go() %s %s end M.go = type M.go() %s',
        'local M = {} function M.go() %s %s end M = KEYS M.go() %s',
        'local M = {} M.a = M.b M.b = M.a M.a() %s',
        'local M = { go = function() %s %s end } M[ARGV[1]]() %s' }) do
        assert.equal('', findings_of('local n = ARGV[1] ' .. code:gsub('%%s', call)), code)
      end
    end)
end)

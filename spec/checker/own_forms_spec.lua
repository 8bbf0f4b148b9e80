-- SPDX-License-Identifier: Apache-2.0
-- The string lock as somebody else may have it: with another form of its key, and with releases
-- that tell nobody.
local dir = require('pl.dir')
local path = require('pl.path')
local utils = require('pl.utils')

local checker = require('latchkey.checker')
local helper = require('helper')

describe('a check of a string lock', function()
  local folder

  -- A copy of the scripts, changed each by `change(verb, source)`.
  local function scripts(change)
    folder = path.tmpname()
    os.remove(folder)
    dir.makepath(folder .. '/mutex')
    for _, file in ipairs(dir.getfiles(helper.scripts .. '/mutex', '*.lua')) do
      local name = path.basename(file)
      utils.writefile(folder .. '/mutex/' .. name, (change(name, utils.readfile(file, true))), true)
    end
    return folder
  end

  local function check()
    return checker.check('mutex', { scripts = folder, clients = 2, rounds = 1,
      kinds = { 'crash', 'late' } })
  end

  after_each(function()
    dir.rmtree(folder)
  end)

  local function with_prefix(_, source)
    return source:gsub('{name}', 'prefix:acme', 1)
  end

  -- The arguments and the message go, and what sends it.
  local function silent(_, source)
    return (source:gsub('  %- channel [^\n]*\n  %- publish [^\n]*\n', '')
      :gsub('message: [^\n]*\n', ''):gsub('uses:     tell\n', '')
      :gsub('local channel = [^\n]*\nlocal publish = [^\n]*\n', '')
      :gsub('if #channel.-\nend\nif publish.-\nend\n', ''):gsub('\ntell%(channel[^\n]*', '')
      :gsub('#ARGV ~= 3', '#ARGV ~= 1'))
  end

  it('looks at the key that the headers form', function()
    scripts(with_prefix)

    local verdict = check()

    assert.same({}, verdict.findings)
    assert.is_true(verdict.complete)
  end)

  it('finds there that anybody renews', function()
    scripts(function(name, source)
      source = with_prefix(name, source)
      return name == 'renew.lua'
        and source:gsub("redis.call%('GET', lock%) == owner", "redis.call('EXISTS', lock) == 1")
        or source
    end)

    assert.equal('G4', check().findings[1].property)
  end)

  it('lets who waits look by itself where a release tells nobody', function()
    scripts(silent)

    local verdict = check()

    assert.same({}, verdict.findings)
    assert.is_true(verdict.complete)
  end)

  it('finds there that a release frees the lock of another', function()
    scripts(function(name, source)
      source = silent(name, source)
      return name == 'release.lua'
        and source:gsub("redis.call%('GET', lock%) ~= owner", "redis.call('EXISTS', lock) == 0")
        or source
    end)

    assert.equal('G4', check().findings[1].property)
  end)
end)

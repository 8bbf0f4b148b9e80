-- SPDX-License-Identifier: Apache-2.0
-- Servers that are broken in one way each, and engines that are no Redis: what doctor says of them.
local path = require('pl.path')

local program = require('cli.program')

-- The way, the check that finds it, and a part of what is said, and of what is to be done.
local WAYS = {
  { 'shebang', 'trial', 'it refuses scripts that begin with "#!lua"', 'Redis 7.0' },
  { 'full', 'trial', 'no memory for scripts', 'maxmemory' },
  { 'forgets', 'trial', 'forgets scripts at once', 'proxy' },
  { 'read_only', 'trial', 'it is read-only', 'name the master' },
  { 'no_evalsha', 'trial', 'does not know EVALSHA', 'rename-command' },
  { 'no_script', 'trial', 'does not know SCRIPT LOAD', 'rename-command' },
  { 'wrong_answer', 'trial', 'does not run', 'latchkey needs Redis 7.0' },
  { 'evicts', 'memory', 'volatile-lru', 'noeviction' },
  { 'clock', 'clock', 'ahead', 'time service' },
  { 'old', 'version', 'too old', 'update' },
}

local ENGINES = {
  ['dragonfly_version:df-v1.21.0'] = 'Dragonfly df-v1.21.0',
  ['kvrocks_version:2.9.0'] = 'Kvrocks 2.9.0',
  ['garnet_version:1.0.40'] = 'Garnet 1.0.40',
  ['redict_version:7.3.1'] = 'Redict 7.3.1',
  ['executable:/usr/bin/keydb-server'] = 'KeyDB 7.0.15',
  ['os:Amazon ElastiCache'] = 'Redis 7.0.15 (Amazon ElastiCache)',
}

describe('latchkey doctor of a broken server', function()
  after_each(program.clean)

  local function server(way, more)
    local at = program.folder() .. '/s'
    program.start_any('luajit', { program.root .. '/spec/cli/broken_server.lua', at, way, more })
    program.eventually('the server listens', function()
      return path.exists(at)
    end)
    return 'unix://' .. at
  end

  -- The findings of this check, and the exit code.
  local function examine(url, check, ...)
    local result = program.run({ 'doctor', '--url', url, '--json', ... })
    local found = {}
    for _, finding in ipairs(program.decode(result.out).findings) do
      if finding.check == check then
        found[#found + 1] = finding
      end
    end
    return found, result.code
  end

  for _, row in ipairs(WAYS) do
    local way, check, said, advice = unpack(row)
    it(('names it, and what to do: %s'):format(way), function()
      local found, code = examine(server(way), check)

      assert.equal(1, code)
      assert.equal(1, #found)
      assert.equal('problem', found[1].level)
      assert.truthy(found[1].message:find(said, 1, true), found[1].message)
      assert.truthy(found[1].advice:find(advice, 1, true), found[1].advice)
    end)
  end

  it('names one whose scripts may not publish, when a lock is tried', function()
    local url = server('no_publish')
    local before, code_before = examine(url, 'trial')
    local found, code = examine(url, 'trial', '--family', 'lock')

    assert.same({ 0, 'good' }, { code_before, before[1].level })
    assert.equal(1, code)
    assert.equal('problem', found[2].level)
    assert.truthy(found[2].message:find('lock: a lock was not given back', 1, true),
      found[2].message)
    assert.truthy(found[2].message:find('PUBLISH', 1, true), found[2].message)
  end)

  it('finds nothing wrong with the same server when it is not broken', function()
    local found, code = examine(server('not'), 'trial')

    assert.equal(0, code)
    assert.equal('good', found[1].level)
  end)

  it('says which engine it is, and that it is not tested', function()
    for more, title in pairs(ENGINES) do
      local found = examine(server('not', more), 'version')

      assert.equal('note', found[1].level)
      assert.equal(title .. ': latchkey is not tested with it', found[1].message)
    end
  end)

  it('takes a lock of each family that is named, and leaves none behind', function()
    local real = program.server('--appendonly', 'yes')
    local found, code = examine(real.url, 'trial', '--family', 'lock', '--family', 'mutex',
      '--family', 'fair', '--family', 'fenced')

    assert.equal(0, code)
    assert.equal(5, #found)
    for _, finding in ipairs(found) do
      assert.equal('good', finding.level, finding.message)
    end
    program.eventually('the token is gone, too', function()
      return real:command('DBSIZE') == '0'
    end)
  end)
end)

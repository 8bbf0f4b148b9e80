-- SPDX-License-Identifier: Apache-2.0
local dir = require('pl.dir')
local utils = require('pl.utils')

local program = require('cli.program')

describe('latchkey mutate', function()
  after_each(program.clean)

  local function run(...)
    return program.run({ 'mutate', '--no-check', ... })
  end

  -- A tree of its own, copied and not linked: what is in it is removed at the end. Its specs see
  -- nothing.
  local function careless_home()
    local home = program.folder()
    dir.makepath(home .. '/scripts')
    dir.makepath(home .. '/spec/mutex')
    for from, to in pairs({ tools = '', ['scripts/mutex'] = 'scripts', ['spec/helper.lua'] = 'spec',
      ['scripts/_fragments'] = 'scripts', ['spec/support'] = 'spec' }) do
      assert(utils.executeex(('cp -RL %s/%s %s/%s'):format(program.root, from, home, to)))
    end
    local weak = "describe('x', function() it('y', function() assert.is_true(true) end) end)\n"
    utils.writefile(home .. '/spec/contract_spec.lua', weak)
    utils.writefile(home .. '/spec/mutex/renew_spec.lua', weak)
    return home
  end

  it('shows that the specs catch every mutant of a script', function()
    local result = run('mutex/renew', '--json')

    local document = program.decode(result.out)
    assert.equal('latchkey/mutate/1', document.schema)
    assert.is_true(document.mutants >= 10)
    assert.equal(document.mutants, document.killed + document.equivalent)
    assert.equal(0, document.alive)
    assert.equal(0, result.code)
  end)

  it('shows the line of a mutant that nothing catches', function()
    local result = program.run({ 'mutate', '--no-check', 'mutex/renew' },
      { env = { LATCHKEY_HOME = careless_home() } })

    assert.matches('alive mutex/renew:%S+  scripts/mutex/renew.lua:%d+\n  %- [^\n]+\n  %+ ',
      result.out)
    assert.matches('\nmutants: (%d+), killed: 0, equivalent: 0, alive: %1\n$', result.out)
    assert.equal(1, result.code)
  end)

  it('catches nothing by specs that fail without any change', function()
    local home = careless_home()
    utils.writefile(home .. '/spec/mutex/renew_spec.lua',
      "describe('x', function() it('y', function() assert.is_true(false) end) end)\n")

    local result = program.run({ 'mutate', '--no-check', 'mutex/renew' },
      { env = { LATCHKEY_HOME = home } })

    assert.matches('mutex/renew fails as it is: specs: x: y', result.err, 1, true)
    assert.equal('', result.out)
    assert.equal(1, result.code)
  end)

  it('takes the same sample each time, and lists mutants and kinds', function()
    local first = program.decode(run('--sample', '5', '--list', '--json').out)

    assert.equal(5, first.mutants)
    assert.same(first, program.decode(run('--sample', '5', '--list', '--json').out))
    assert.is_true(#program.decode(run('--kinds', '--json').out).kinds >= 12)
  end)

  it('refuses what it cannot do', function()
    assert.equal(64, run('mutex/none').code)
    assert.equal(64, run('--sample', '0').code)
    assert.equal(64, run('--jobs', 'x').code)
  end)
end)

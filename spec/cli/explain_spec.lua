-- SPDX-License-Identifier: Apache-2.0
local program = require('cli.program')

describe('latchkey explain', function()
  after_each(program.clean)

  it('explains a status by its name, with or without its prefix', function()
    local long, short = program.run({ 'explain', 'LK_BUSY' }), program.run({ 'explain', 'busy' })

    assert.equal(0, long.code)
    assert.truthy(long.out:find('^LK_BUSY %(status 1%): another owner holds the lock\n  %l'))
    assert.equal(long.out, short.out)
  end)

  it('explains an exit code', function()
    local result = program.run({ 'explain', '75' })

    assert.equal(0, result.code)
    assert.truthy(result.out:find('^exit code 75: the lock was held by another'))
  end)

  it('shows both when a number is a status and an exit code', function()
    local document = program.decode(program.run({ 'explain', '--json', '1' }).out)

    assert.equal('latchkey/explain/1', document.schema)
    assert.equal(1, document.meanings[1].exit)
    assert.equal('LK_BUSY', document.meanings[#document.meanings].status)
  end)

  it('says what a code means for each command that ends with it', function()
    local result = program.run({ 'explain', '2' })

    assert.truthy(result.out:find('exit code 2: load, .-could not be asked'))
    assert.truthy(result.out:find('exit code 2: check: a bound was reached', 1, true))
  end)

  it('explains the code of one command alone when that is named', function()
    local result = program.run({ 'explain', '2', 'doctor' })

    assert.equal(0, result.code)
    assert.truthy(result.out:find('could not be asked', 1, true))
    assert.is_nil(result.out:find('bound', 1, true))
    assert.is_nil(result.out:find('LK_', 1, true))
  end)

  it('says no more than the named command has to say', function()
    local result = program.run({ 'explain', '1', 'blame' })

    assert.truthy(result.out:find('^exit code 1: blame: there is a deadlock'))
    assert.is_nil(result.out:find('lint findings', 1, true))
    assert.truthy(program.run({ 'explain', '1', 'lint' }).out:find('lint findings', 1, true))
  end)

  it('knows each command that may have asked a part of several servers', function()
    for _, name in ipairs({ 'inspect', 'break', 'ls', 'doctor', 'blame' }) do
      local result = program.run({ 'explain', '2', name })

      assert.equal(0, result.code, name)
      assert.truthy(result.out:find('could not', 1, true), name)
    end
  end)

  it('does not call a limit of the system a defect alone', function()
    local result = program.run({ 'explain', '70', 'exec' })

    assert.truthy(result.out:find('memory, thread or descriptor', 1, true))
    assert.truthy(result.out:find('ulimit', 1, true))
  end)

  it('tells a missing tool from a defect', function()
    local result = program.run({ 'explain', '70', 'spec' })

    assert.truthy(result.out:find('^exit code 70: spec, mutate: busted or luaposix is not'))
    assert.is_nil(result.out:find('a defect', 1, true))
    assert.truthy(program.run({ 'explain', '70', 'lint' }).out:find('a defect', 1, true))
  end)

  it('exits 64 for a code that the named command does not have', function()
    local result = program.run({ 'explain', '3', 'doctor' })

    assert.equal(64, result.code)
    assert.truthy(result.err:find('exit code of doctor', 1, true))
  end)

  it('explains the exit code of a command that a signal ended', function()
    assert.truthy(program.run({ 'explain', '137' }).out:find('signal 9', 1, true))
  end)

  it('explains everything when nothing is asked', function()
    local result = program.run({ 'explain' })

    for _, code in ipairs({ 0, 1, 2, 3, 64, 69, 70, 74, 75, 80, 126, 127 }) do
      assert.truthy(result.out:find('exit code ' .. code .. ':', 1, true), code)
    end
    assert.truthy(result.out:find('LK_UNSURE', 1, true))
  end)

  it('exits 64 for what is neither', function()
    assert.equal(64, program.run({ 'explain', 'nonsense' }).code)
    assert.equal(64, program.run({ 'explain', '99' }).code)
  end)
end)

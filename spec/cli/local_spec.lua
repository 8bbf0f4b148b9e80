-- SPDX-License-Identifier: Apache-2.0
local program = require('cli.program')

describe('latchkey local', function()
  local settings

  before_each(function()
    settings = { env = { LATCHKEY_LOCAL_DIR = program.folder() } }
  end)

  after_each(function()
    program.run({ 'local', 'stop' }, settings)
    program.clean()
  end)

  it('starts nothing by looking', function()
    local first = program.run({ 'local', 'status' }, settings)
    local second = program.run({ 'local', 'status', '--json' }, settings)

    assert.equal(69, first.code)
    assert.truthy(first.out:find('not running', 1, true))
    assert.equal(69, second.code)
    assert.is_false(program.decode(second.out).running)
  end)

  it('shows the server that exec started, and stops it', function()
    local exec = program.run({ 'exec', '--url', 'local:', 'job', '--', 'echo', 'ran' }, settings)
    local status = program.run({ 'local', 'status', '--json' }, settings)
    local stop = program.run({ 'local', 'stop' }, settings)
    local after = program.run({ 'local', 'status' }, settings)

    local document = program.decode(status.out)
    assert.equal('ran\n', exec.out, exec.err)
    assert.equal(0, status.code)
    assert.is_true(document.running)
    assert.equal(settings.env.LATCHKEY_LOCAL_DIR, document.folder)
    assert.equal(0, stop.code, stop.err)
    assert.equal('stopped\n', stop.out)
    assert.equal(69, after.code)
    assert.is_true(program.is_gone(document.process))
  end)

  it('is not started by an exec whose servers are refused', function()
    for urls, why in pairs({
      ['local: local: local:'] = 'the server local: is named twice',
      ['local: unix:///nowhere local:?db=1'] = 'the server local: is named twice',
      ['local: unix:///nowhere unix:///nowhere'] = 'the server /nowhere is named twice',
      ['local: unix:///nowhere nonsense://host'] = 'scheme',
    }) do
      local result = program.run({ 'exec', '--url', urls, 'job', '--', 'true' }, settings)

      assert.equal(64, result.code, urls)
      assert.truthy(result.err:find(why, 1, true), result.err)
      assert.equal(69, program.run({ 'local', 'status' }, settings).code, urls)
    end
  end)

  it('is one of a majority', function()
    local one, two = program.server(), program.server()
    local urls = ('%s local: %s'):format(one.url, two.url)

    local exec = program.run({ 'exec', '--url', urls, 'job', '--', 'sh', '-c',
      'redis-cli -s "$0" EXISTS job', two.socket }, settings)

    assert.equal(0, exec.code, exec.err)
    assert.equal('1\n', exec.out)
    assert.equal(0, program.run({ 'local', 'status' }, settings).code)
  end)

  it('is asked without the password that LATCHKEY_PASSWORD has for others', function()
    settings.env.LATCHKEY_PASSWORD = 'secret'

    local exec = program.run({ 'exec', '--url', 'local:', 'job', '--', 'echo', 'ran' }, settings)
    local ls = program.run({ 'ls', '--url', 'local:' }, settings)
    local bench = program.run({ 'bench', '--url', 'local:?db=1', '--seconds', '1' }, settings)

    assert.equal('ran\n', exec.out, exec.err)
    assert.equal(0, ls.code, ls.err)
    assert.equal(0, bench.code, bench.err)
  end)

  it('has nothing to stop when nothing runs', function()
    local result = program.run({ 'local', 'stop' }, settings)

    assert.equal(0, result.code)
    assert.truthy(result.out:find('not running', 1, true))
  end)

  it('refuses a folder that is not the user\'s own', function()
    local result = program.run({ 'local', 'status' }, { env = { LATCHKEY_LOCAL_DIR = '/usr' } })

    assert.equal(69, result.code)
    assert.truthy(result.err:find('/usr', 1, true))
  end)

  it('knows no other action', function()
    assert.equal(64, program.run({ 'local', 'start' }, settings).code)
  end)
end)

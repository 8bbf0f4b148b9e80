-- SPDX-License-Identifier: Apache-2.0
-- Whole sessions on a terminal: what a person types, and all that is on the screen afterwards.
local program = require('cli.program')
local session = require('cli.session')

local CLIENT = 'lk-8743c9c0-0795-4907-87fd-6c719a6b4586'

describe('on a terminal, latchkey', function()
  local server, screen

  before_each(function()
    server = program.server()
    for i = 1, 2 do
      server:command('HSET', 'job' .. i, CLIENT .. ':' .. i, tostring(i))
      server:command('PEXPIRE', 'job' .. i, '600000')
    end
    server:command('SET', 'redisson_lock_token:{job2}', '77')
  end)

  after_each(function()
    screen:close()
    program.clean()
  end)

  local function start(command, ...)
    screen = session.start({ command, '--url', server.url, ... }, { columns = 110 })
  end

  -- Everything on the screen when the program has ended; what is left of leases as "T".
  local function recorded()
    local code = screen:wait().code
    local text = screen:text():gsub('%s+$', '\n'):gsub('%d+ min', 'T'):gsub('%d+%.%d s', 'T')
    return text, code
  end

  it('lists locks', function()
    start('ls')

    local text, code = recorded()

    assert.equal(0, code)
    local line = '%-24s %-9s %-6s %-8s %s\n'
    assert.equal('NAME                     KIND      LEASE      WAITING  HOLDERS\n'
      .. line:format('job1', 'lock', 'T', '0', CLIENT .. ':1')
      .. line:format('job2', 'fenced', 'T', '0', CLIENT .. ':2 x2 token 77'), text)
  end)

  it('inspects a lock', function()
    start('inspect', 'job2')

    local text, code = recorded()

    assert.equal(0, code)
    assert.equal('job2 is held.\n'
      .. '  kind     fenced (certain)\n'
      .. '  holder   ' .. CLIENT .. ':2, 2 holds\n'
      .. '           no connection is its client\'s: it has gone, or has a name of its own\n'
      .. '  token    77, drawn last\n'
      .. '  lease    ends in T unless it is renewed\n'
      .. '  waiting  0 clients listen for its release\n', text)
  end)

  it('asks before it breaks a lock', function()
    start('break', 'job1')
    screen:shows('Break it%? %[y/N%]')
    screen:press('y\n')

    local text, code = recorded()

    assert.equal(0, code)
    assert.equal('job1 is held by ' .. CLIENT .. ':1 for another T:\n'
      .. '  no connection is its client\'s: it has gone, or has a name of its own.\n'
      .. 'Break it? [y/N] y\n'
      .. 'job1 is free; it was held by ' .. CLIENT .. ':1.\n', text)
    assert.is_true(server:is_free('job1'))
  end)

  it('leaves a lock when the answer is another', function()
    start('break', 'job1')
    screen:shows('Break it%? %[y/N%]')
    screen:press('\n')

    local text, code = recorded()

    assert.equal(1, code)
    assert.truthy(text:find('nothing was done\n$'))
    assert.is_false(server:is_free('job1'))
  end)

  -- As in `docker exec -t` and in an editor's window.
  for how, kind in pairs({ ['without TERM'] = false, ['with an empty TERM'] = '',
    ['where TERM is dumb'] = 'dumb' }) do
    it('rewrites no line ' .. how, function()
      for _, words in ipairs({ { 'ls' }, { 'doctor' }, { 'load' },
        { 'exec', '--wait', '4s', 'job1', '--', 'true' } }) do
        table.insert(words, 2, '--url=' .. server.url)
        screen = session.start(words, { env = { TERM = kind } })
        screen:wait()

        local shown = screen.was_shown:gsub('\r\n', '\n')
        assert.falsy(shown:find('[\r\27]'), ('%s: %q'):format(words[1], shown))
      end
    end)
  end

  -- What is waited for is shown after a second.
  it('rewrites a line where TERM is another', function()
    for _, words in ipairs({ { 'ls' }, { 'exec', '--wait', '4s', 'job1', '--', 'true' } }) do
      table.insert(words, 2, '--url=' .. server.url)
      screen = session.start(words)
      screen:wait()

      assert.truthy(screen.was_shown:gsub('\r\n', '\n'):find('\r', 1, true), words[1])
    end
  end)
end)

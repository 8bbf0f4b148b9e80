-- SPDX-License-Identifier: Apache-2.0
local program = require('cli.program')
local session = require('cli.session')

local CLIENT = 'lk-8743c9c0-0795-4907-87fd-6c719a6b4586'

describe('latchkey top', function()
  local server, screen

  before_each(function()
    server = program.server()
  end)

  after_each(function()
    if screen then
      screen:close()
      screen = nil
    end
    program.clean()
  end)

  -- At once: nobody sees it without its lease.
  local function lock(name, serial, lease_ms, count)
    server:command('EVAL', [[redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
      return redis.call('PEXPIRE', KEYS[1], ARGV[3])]], '1', name, CLIENT .. ':' .. serial,
      count or '1', lease_ms or '60000')
  end

  local function start(options, ...)
    screen = session.start({ 'top', '--url', server.url, '--every', '100ms', ... }, options)
    return screen
  end

  -- The names on the screen, in their order.
  local function names(text)
    local list = {}
    for name in text:gmatch('\n(%w+) +%l+ +%d+%.%d s ') do
      list[#list + 1] = name
    end
    return table.concat(list, ' ')
  end

  it('shows the locks on a screen of 80 by 24, as they come and go', function()
    lock('a', '1')
    start()

    local text = screen:shows('1 lock, 0 waiting')
    lock('b', '2')
    screen:shows('2 locks')
    server:command('DEL', 'a')
    local last = screen:shows('1 lock,')

    assert.is_true(screen.alternate and screen.is_cursor_hidden)
    assert.truthy(text:find('^latchkey top  unix://'))
    assert.truthy(text:find('\nNAME +KIND +LEASE +WAITING +HOLDERS\na +lock +%d+%.%d s +0  lk%-87'))
    assert.truthy(text:find('\nq quit   s sort: name   r reverse'))
    assert.equal('b', names(last))
    for line in (text .. '\n'):gmatch('(.-)\n') do
      assert.is_true(#line <= 80)
    end
  end)

  it('has no line that is wider than a narrow screen', function()
    lock('a-name-that-has-more-than-twenty-characters', '1')
    start({ columns = 40 })

    local text = screen:shows('1 lock, 0 waiting')

    assert.matches('\nNAME +KIND +LEAS~\n', text)
    for line in (text .. '\n'):gmatch('(.-)\n') do
      assert.is_true(#line <= 40, line)
    end
  end)

  for rows = 1, 5 do
    it(('fits on a screen of %d rows, the keys below'):format(rows), function()
      local from_top = { 'latchkey top', '1 lock', 'NAME', 'a ' }
      lock('a', '1')
      start({ rows = rows })
      screen:shows('q quit')
      screen:press('r')

      local text = screen:shows('reversed')

      local lines = {}
      for line in (text .. '\n'):gmatch('(.-)\n') do
        lines[#lines + 1] = line
      end
      assert.equal(rows, #lines)
      for i = 1, rows - 1 do
        assert.equal(from_top[i], lines[i]:sub(1, #from_top[i]))
      end
      assert.matches('^q quit', lines[rows])
      assert.is_nil(screen.has_scrolled)
    end)
  end

  for kind, why in pairs({ dumb = 'a terminal of the kind dumb has no screen to draw on',
    [''] = 'TERM does not say which terminal this is' }) do
    it(('names --once on a terminal with TERM="%s", and draws nothing'):format(kind), function()
      start({ env = { TERM = kind ~= '' and kind } })

      local result = screen:wait()

      assert.equal(64, result.code)
      assert.truthy(screen:text():find(why .. '; write --once for one frame', 1, true),
        screen:text())
      assert.is_nil(screen.was_shown:find('\27', 1, true))
    end)
  end

  it('quits with q, and leaves the terminal as it was', function()
    start()
    screen:shows('no locks')
    screen:press('q')

    local result = screen:wait()

    assert.equal(0, result.code)
    assert.is_true(screen:is_as_before())
  end)

  for _, name in ipairs({ 'SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT' }) do
    it('gives the terminal back on ' .. name, function()
      start()
      screen:shows('no locks')
      assert.is_false(screen:is_as_before())
      screen:kill(name)

      local result = screen:wait()

      assert.equal(require('posix.signal')[name], result.signal)
      assert.is_true(screen:is_as_before())
    end)
  end

  it('gives the terminal back while it is stopped, and takes it again', function()
    lock('a', '1')
    start()
    screen:shows('1 lock')
    screen:kill('SIGTSTP')
    program.eventually('it has stopped', function()
      return program.state(screen.process.pid) == 'T'
    end)
    screen:text()
    local given_back = screen:is_as_before()
    screen:kill('SIGCONT')

    screen:shows('1 lock')

    assert.is_true(given_back)
    assert.is_false(screen:is_as_before())
  end)

  it('sorts by each column, and the other way round', function()
    server:command('SET', 'a', CLIENT .. ':1', 'PX', '60000') -- a mutex
    lock('b', '2', '90000', '5')
    lock('c', '3', '30000', '2')
    for _, name in ipairs({ 'b', 'c', 'c' }) do
      program.start_any('redis-cli', { '-s', server.socket, 'SUBSCRIBE',
        'redisson_lock__channel:{' .. name .. '}' })
    end
    start()

    local orders = { name = names(screen:shows('3 locks, 3 waiting')) }
    screen:press('s')
    orders.kind = names(screen:shows('sort: kind '))
    screen:press('s')
    orders.lease = names(screen:shows('sort: lease '))
    screen:press('r')
    orders.reversed = names(screen:shows('sort: lease, reversed '))
    screen:press('rs')
    orders.waiting = names(screen:shows('sort: waiting '))
    screen:press('s')
    orders.holds = names(screen:shows('sort: holds '))

    assert.same({ name = 'a b c', kind = 'b c a', lease = 'c a b', reversed = 'b a c',
      waiting = 'c b a', holds = 'b c a' }, orders)
  end)

  it('filters by what is typed', function()
    lock('orders1', '1')
    lock('orders2', '2')
    lock('users', '3')
    start()
    screen:shows('3 locks')

    screen:press('/')
    screen:press('ordx\127')
    screen:shows('\nfilter: ord_')
    screen:press('\r')
    local filtered = screen:shows('2 of 3 locks with "ord"')
    screen:press('\27')
    local all = screen:shows('\n3 locks')

    assert.equal('orders1 orders2', names(filtered))
    assert.equal('orders1 orders2 users', names(all))
  end)

  it('scrolls through more locks than fit, and follows the size of the terminal', function()
    for i = 10, 49 do
      lock('n' .. i, tostring(i))
    end
    start()

    local first = names(screen:shows('40 locks'))
    screen:press('\27[B')
    local second = names(screen:shows('\nn30 '))
    screen:press('\27[6~')
    local third = names(screen:shows('\nn49 '))
    screen:resize(10, 60)
    screen:shows('^latchkey top[^\n]*\n40 locks[^\n]*\nNAME[^\n]*\n[^\n]*\n[^\n]*\n'
      .. '[^\n]*\n[^\n]*\n[^\n]*\n[^\n]*\nq quit')

    assert.truthy(first:find('^n10 .* n29$'))
    assert.truthy(second:find('^n11 .* n30$'))
    assert.truthy(third:find('^n30 .* n49$'))
    -- stty changes the rows before the columns: a frame may come between.
    program.eventually('no line is longer than the terminal', function()
      for line in (screen:text() .. '\n'):gmatch('(.-)\n') do
        if #line > 60 then
          return false
        end
      end
      return true
    end)
  end)

  it('survives a restart of the server', function()
    lock('a', '1')
    start()
    screen:shows('1 lock')

    server.process:kill(9)
    server.process:wait()
    local away = screen:shows('no answer, trying again')
    server:start()
    screen:shows('no locks')
    lock('b', '2')
    local again = screen:shows('1 lock')

    assert.equal('a', names(away))
    assert.equal('b', names(again))
    screen:press('q')
    assert.equal(0, screen:wait().code)
  end)

  it('has colours on a terminal, unless NO_COLOR refuses them', function()
    start()
    screen:shows('no locks')
    local coloured = screen.is_coloured
    screen:press('q')
    screen:wait()
    screen:close()
    start({ env = { NO_COLOR = '1' } })
    screen:shows('no locks')

    assert.is_true(coloured)
    assert.is_nil(screen.is_coloured)
  end)

  it('prints one frame with --once', function()
    lock('a', '1', '60000', '3')

    local result = program.run({ 'top', '--url', server.url, '--once' })
    local document = program.decode(program.run({ 'top', '--url', server.url, '--once', '--json' })
      .out)

    assert.equal(0, result.code)
    assert.truthy(result.out:find('\n1 lock, 0 waiting\nNAME '))
    assert.truthy(result.out:find('\na +lock .* ' .. CLIENT:gsub('%p', '%%%0') .. ':1 x3\n$'))
    assert.falsy(result.out:find('\27', 1, true))
    assert.equal('latchkey/top/1', document.schema)
    assert.is_true(document.complete)
    assert.equal('a', document.locks[1].name)
  end)

  it('says that it is not complete where the limit left locks out, and only then', function()
    local function once(...)
      local result = program.run({ 'top', '--url', server.url, '--once', '--limit', '2', ... })
      return result.code, result.out
    end
    lock('a', '1')
    lock('b', '2')
    server:command('HSET', 'other', 'field', 'value')

    local code, out = once('--json')
    assert.equal(0, code)
    assert.is_true(program.decode(out).complete)

    lock('c', '3')
    code, out = once('--json')
    assert.equal(2, code)
    assert.is_false(program.decode(out).complete)
    assert.equal(2, #program.decode(out).locks)
    code, out = once()
    assert.equal(2, code)
    assert.truthy(out:find('at the limit', 1, true), out)
  end)

  it('writes a line of JSON for each frame', function()
    lock('a', '1')
    local process = program.start({ 'top', '--url', server.url, '--json', '--every', '100ms' })

    local lines = program.eventually('two frames came', function()
      local list = {}
      for line in require('pl.utils').readfile(process.out_file):gmatch('(.-)\n') do
        list[#list + 1] = program.decode(line)
      end
      return #list >= 2 and list
    end)
    process:kill(15)

    assert.equal('a', lines[2].locks[1].name)
    assert.equal(15, process:wait().signal)
  end)

  it('ends when nobody reads its frames, also where SIGPIPE is ignored', function()
    for _, trap in ipairs({ '', "trap '' PIPE; " }) do
      local script = ('%s%s top --json --every 100ms --url %s | head -n 1 >/dev/null')
        :format(trap, program.path, server.url)

      assert.equal(0, program.start_any('sh', { '-c', script }):wait().code)
    end
  end)

  it('exits 64 without a terminal, and for what it cannot do; 69 without a server', function()
    local plain = program.run({ 'top', '--url', server.url })
    local often = program.run({ 'top', '--url', server.url, '--every', '1ms', '--once' })
    local nobody = program.run({ 'top', '--url', 'unix:///nowhere', '--once' })

    assert.same({ 64, 64, 69 }, { plain.code, often.code, nobody.code })
    assert.truthy(plain.err:find('--once', 1, true))
  end)
end)

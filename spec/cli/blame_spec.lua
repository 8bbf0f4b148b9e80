-- SPDX-License-Identifier: Apache-2.0
-- Deadlocks of real processes: `exec` inside `exec`, in rings. Each holds one lock and waits for
-- that of the next one.
local path = require('pl.path')
local signal = require('posix.signal')
local utils = require('pl.utils')

local program = require('cli.program')

local WITHIN_MS, TRIES = 2000, 4

describe('latchkey blame', function()
  local server

  before_each(function()
    server = program.server()
  end)

  after_each(program.clean)

  local function blame(...)
    local before = program.now_ms()
    local result = program.run({ 'blame', '--url', server.url, ... })
    return result, program.now_ms() - before
  end

  local function json(...)
    local result = blame('--json', ...)
    return program.decode(result.out), result.code
  end

  local INNER = [[
    touch "$0"; while ! [ -e "$1" ]; do sleep 0.02; done
    shift; exec "$@"]]

  -- Each member is { kind that it holds, kind by which the one before it waits for the same }. They
  -- begin to wait when all hold.
  local function ring(members)
    local folder = program.folder()
    for i, member in ipairs(members) do
      local next_at = i % #members + 1
      local inner = program.exec(server, { '-q', '--kind', members[next_at][2], 'l' .. next_at },
        { 'true' })
      program.start(program.exec(server, { '-q', '--kind', member[1], 'l' .. i }, { 'sh', '-c',
        INNER, folder .. '/' .. i, folder .. '/go', program.path, unpack(inner) }))
    end
    program.eventually('all hold', function()
      for i = 1, #members do
        if not path.exists(folder .. '/' .. i) then
          return false
        end
      end
      return true
    end)
    utils.writefile(folder .. '/go', '')
    program.eventually('all wait', function()
      local answer = json()
      return answer.answered == #members and #answer.locks == #members
    end)
  end

  local PAIRS = { lock = { 'lock', 'lock' }, fair = { 'fair', 'fair' },
    mutex = { 'mutex', 'mutex' },
    permit = { 'permit:1', 'permit:1' }, writer = { 'write', 'read' },
    reader = { 'read', 'write' }, fenced = { 'fenced', 'fenced' } }
  local ORDER = { 'lock', 'fair', 'permit', 'writer', 'reader', 'mutex', 'fenced', 'lock' }

  for size = 2, 8 do
    it(('names a deadlock of %d within two seconds'):format(size), function()
      local members = {}
      for i = 1, size do
        members[i] = PAIRS[ORDER[i]]
      end
      ring(members)

      -- Of a machine that is busy elsewhere the best of a few tries counts.
      local result, took_ms
      for _ = 1, TRIES do
        result, took_ms = blame()
        if took_ms < WITHIN_MS then
          break
        end
      end
      local document, code = json()

      assert.equal(1, result.code, result.out)
      assert.truthy(result.out:find(('^DEADLOCK of %d clients\n'):format(size)), result.out)
      assert.is_true(took_ms < WITHIN_MS, took_ms)
      assert.equal(1, code)
      assert.equal(1, #document.deadlocks)
      assert.equal(size, #document.deadlocks[1])
    end)
  end

  for kind, pair in pairs(PAIRS) do
    it('names a deadlock over the kind ' .. kind, function()
      ring({ pair, PAIRS.lock })

      assert.equal(1, blame().code)
    end)
  end

  it('names none where somebody merely waits, and says for whom', function()
    program.start(program.exec(server, { 'job' }, { 'sleep', '60' }))
    program.eventually('it is held', function()
      return not server:is_free('job')
    end)
    program.start(program.exec(server, { '-q', 'job' }, { 'true' }))
    program.start_any('redis-cli', { '-s', server.socket, 'SUBSCRIBE',
      'redisson_lock__channel:{job}' })
    program.eventually('both wait', function()
      return server:waiters('job') == 2
    end)

    local result = blame()

    assert.equal(2, result.code)
    assert.truthy(result.out:find('^job %(lock%)\n  held by %S+:%d+ %(sleep@job%), lease ends'),
      result.out)
    assert.truthy(result.out:find('\n  `%- %S+:%d+ %(true@job%) waits since '), result.out)
    assert.truthy(result.out:find('\n1 client that waits could not be asked; a deadlock of them is '
      .. 'not seen\n  job (lock): 1 client\n  1 without a name of latchkey\'s', 1, true),
      result.out)
  end)

  it('says of how many holders it does not know who they are', function()
    local many = {}
    for i = 1, 150 do
      many[2 * i - 1], many[2 * i] = ('8743c9c0-0795-4907-87fd-6c719a6b4586:%d'):format(i), '1'
    end
    server:command('HSET', 'job', 'mode', 'read', unpack(many))
    server:command('PEXPIRE', 'job', '60000')
    program.start(program.exec(server, { '-q', '--kind', 'write', 'job' }, { 'true' }))
    program.eventually('the writer waits', function()
      return json().answered == 1
    end)

    local result, document, dot = blame(), json(), blame('--dot').out

    assert.equal(2, result.code, result.out)
    assert.truthy(result.out:find('^job %(rw%)\n  held by 150 who are not named\n  `%- '),
      result.out)
    assert.equal(150, document.locks[1].unnamed)
    assert.same({}, document.locks[1].holders)
    assert.truthy(dot:find('"rw job" -> "150 who are not named" [label="held by"];', 1, true), dot)
  end)

  describe('where databases of one server have the same names', function()
    -- The server as it is with another database.
    local function at(database)
      return setmetatable({ url = server.url .. '?db=' .. database }, { __index = server })
    end

    local function blame_at(database, ...)
      return program.run({ 'blame', '--url', at(database).url, ... })
    end

    local function job_at(database, name, command)
      program.start(program.exec(at(database), { name }, command or { 'sleep', '60' }))
    end

    local function hold_at(database, name)
      job_at(database, name)
      program.eventually('it is held', function()
        return server:command('-n', tostring(database), 'EXISTS', name) == '1'
      end)
    end

    -- Two jobs: each holds one lock, and waits for another when both hold theirs.
    local function nest(jobs)
      local folder = program.folder()
      for i, job in ipairs(jobs) do
        local inner = program.exec(at(job.wants[1]), { '-q', job.wants[2] }, { 'true' })
        job_at(job[1], job[2], { 'sh', '-c', INNER, folder .. '/' .. i, folder .. '/go',
          program.path, unpack(inner) })
      end
      program.eventually('both hold', function()
        return path.exists(folder .. '/1') and path.exists(folder .. '/2')
      end)
      utils.writefile(folder .. '/go', '')
    end

    local function answered(count)
      program.eventually('all wait', function()
        return json().answered == count
      end)
    end

    it('names no deadlock that is none', function()
      hold_at(1, 'x')
      hold_at(1, 'y')
      nest({ { 0, 'x', wants = { 1, 'y' } }, { 0, 'y', wants = { 1, 'x' } } })
      answered(2)

      local result, other = blame_at(0), program.decode(blame_at(1, '--json').out)
      local document = json()

      assert.equal(0, result.code, result.out)
      assert.equal('nobody who answers waits for anything\n2 clients wait in other databases of '
        .. 'this server (1): latchkey blame with the URL of one shows them\n', result.out)
      assert.same({ clients = 2, databases = { 1 } }, document.elsewhere)
      assert.equal(2, #other.locks)
      assert.is_nil(other.elsewhere)
    end)

    it('shows who waits for a lock of its own database alone', function()
      hold_at(0, 'a')
      hold_at(1, 'a')
      job_at(1, 'a', { 'true' })
      answered(1)

      local own, third = blame_at(0, 'a'), blame_at(2)
      local waits = program.decode(blame_at(1, '--json').out).locks[1].waits

      assert.equal(0, own.code, own.out)
      assert.truthy(own.out:find('^a %(lock%)\n  held by [^\n]+\n1 client waits in another '
        .. 'database of this server %(1%)'), own.out)
      assert.truthy(third.out:find('^nobody who answers waits for anything\n1 client waits in '),
        third.out)
      assert.equal(1, #waits)
    end)

    it('says that a holder waits in another one: a deadlock over both is not seen', function()
      nest({ { 0, 'm', wants = { 1, 'n' } }, { 1, 'n', wants = { 0, 'm' } } })
      answered(2)

      local result = blame_at(0)

      assert.equal(2, result.code, result.out)
      assert.truthy(result.out:find('\n  held by [^\n]+\n    which waits in database 1: a deadlock '
        .. 'over both is not seen\n'), result.out)
    end)
  end)

  it('says that nobody waits', function()
    local result = blame()

    assert.equal(0, result.code)
    assert.equal('nobody who answers waits for anything\n', result.out)
  end)

  it('watches: prints what has changed, and nothing while nothing has, until a signal', function()
    local watcher = program.start({ 'blame', '--url', server.url, '--watch', '--within', '200ms' })
    local function said()
      return utils.readfile(watcher.out_file) or ''
    end
    program.eventually('it says that nobody waits', function()
      return said() == 'nobody who answers waits for anything\n'
    end)
    local holder = program.start(program.exec(server, { 'job' }, { 'sleep', '60' }))
    program.eventually('it is held', function()
      return not server:is_free('job')
    end)
    program.start(program.exec(server, { '-q', 'job' }, { 'sleep', '60' }))
    program.eventually('it tells who waits', function()
      return said():find('\njob %(lock%)\n  held by %S+:%d+ %(sleep@job%)[^\n]*\n  `%- ')
    end)
    local before = said()
    utils.execute('sleep 2.5')
    assert.equal(before, said())

    holder:kill(signal.SIGTERM)
    program.eventually('it tells that nobody waits any more', function()
      return said():sub(#before + 1):find('nobody who answers waits for anything\n', 1, true)
    end)
    watcher:kill(signal.SIGTERM)
    assert.is_true(watcher:wait().code ~= 0)
  end)

  for form, expected in pairs({ ['--json'] = '"trouble":"[^"]+"',
    ['--within=500ms'] = '\nno answer, trying again: [^\n]+\n$',
    ['--dot'] = '\n// no answer, trying again: [^\n]+\n$' }) do
    it('watches on while the server is away, and says so once, with ' .. form, function()
      local watcher = program.start({ 'blame', '--url', server.url, '--watch', form })
      local function said()
        return utils.readfile(watcher.out_file) or ''
      end
      local first = program.eventually('it has looked', function()
        return said():match('^.+\n$')
      end)

      server.process:kill(signal.SIGKILL)
      server.process:wait()
      local away = program.eventually('it says that nobody answers', function()
        assert.is_false(watcher:poll())
        return said():find(expected) and said()
      end)
      utils.execute('sleep 2.5')
      assert.equal(away, said())

      server:start()
      program.eventually('it tells how it is now', function()
        return said():sub(#away + 1) == first
      end)
      watcher:kill(signal.SIGTERM)
      assert.is_true(watcher:wait().code ~= 0)
    end)
  end

  it('watches nothing where the first look fails, or is refused', function()
    server.process:kill(signal.SIGKILL)
    server.process:wait()

    assert.equal(69, blame('--watch').code)
  end)

  it('draws a graph', function()
    ring({ PAIRS.lock, PAIRS.fair })

    local out = blame('--dot').out

    assert.truthy(out:find('^digraph latchkey {\n'), out)
    assert.equal(2, select(2, out:gsub('color=red', '')), out)
  end)

  it('keeps to the lock that is named, and what its holders wait for', function()
    ring({ PAIRS.lock, PAIRS.lock })
    program.start(program.exec(server, { 'other' }, { 'sleep', '60' }))
    program.eventually('it is held', function()
      return not server:is_free('other')
    end)
    program.start(program.exec(server, { '-q', 'other' }, { 'true' }))
    program.eventually('it waits', function()
      return server:waiters('other') == 1
    end)

    local document = json('l1')

    assert.equal(2, #document.locks)
    assert.same({ 'l1', 'l2' }, { document.locks[1].name, document.locks[2].name })
    assert.equal(1, #document.deadlocks)
    assert.equal(0, document.deadlocks_elsewhere)
  end)

  it('tells of deadlocks of others in one line, where NAME is in none', function()
    ring({ PAIRS.lock, PAIRS.lock })
    program.start(program.exec(server, { 'other' }, { 'sleep', '60' }))
    program.eventually('it is held', function()
      return not server:is_free('other')
    end)

    local held, nothing = blame('other'), blame('nothing')

    assert.equal(0, held.code)
    assert.truthy(held.out:find('^other %(lock%)\n  held by %S+ %(sleep@other%), lease ends in '
      .. '[^\n]+\n1 deadlock elsewhere: latchkey blame names them\n$'), held.out)
    assert.equal(0, nothing.code)
    assert.equal('nobody holds nothing, and nobody who answers waits for it\n'
      .. '1 deadlock elsewhere: latchkey blame names them\n', nothing.out)
    assert.equal(1, blame('l1').code)
  end)

  it('goes on where one of those who answer says what it does not know', function()
    local holder = program.start(program.exec(server, { 'job' }, { 'sleep', '60' }))
    program.eventually('it is held', function()
      return not server:is_free('job')
    end)
    program.start(program.exec(server, { '-q', 'job' }, { 'true' }))
    local answer = '{"answer":1,"client":"other","uuid":"d31bad7c-5ea3-4445-9f82-f7eabf061e0d",'
      .. '"waits":[{"kind":"\\u001b[31m","name":"a"},{"kind":"lock","name":"a}"},'
      .. '{"kind":"lock","name":"job","caller":1,"waited_ms":1e999}],"holds":[]}'
    program.start_any('sh', { '-c', [[redis-cli -s "$0" --csv SUBSCRIBE 'latchkey:ask:{{}' |
      sed -un 's/.*"1 \(latchkey:answer:[^"]*\)"$/\1/p' |
      while read -r channel; do redis-cli -s "$0" PUBLISH "$channel" "$1"; done]],
      server.socket, answer })
    local document
    program.eventually('both answer', function()
      document = json('--within', '10s')
      return document.answered == 2 and #document.locks > 0
    end)

    assert.equal(1, #document.locks)
    assert.equal('job', document.locks[1].name)
    assert.equal(2, #document.locks[1].waits)
    holder:kill(signal.SIGTERM)
  end)

  it('names a deadlock beside a lock that its user may not read, and says which', function()
    ring({ PAIRS.lock, PAIRS.lock })
    program.start(program.exec(server, { 'other' }, { 'sleep', '60' }))
    program.eventually('it is held', function()
      return not server:is_free('other')
    end)
    program.start(program.exec(server, { '-q', 'other' }, { 'true' }))
    program.eventually('it waits', function()
      return server:waiters('other') == 1
    end)
    server:command('ACL', 'SETUSER', 'op', 'on', 'nopass', '+@all', '&*', '~l*', '~*{l*')
    local words = { 'blame', '--within', '10s', '--url',
      (server.url:gsub('^unix://', 'unix://op@')) }

    local found = program.run(words)

    assert.equal(1, found.code, found.err)
    assert.truthy(found.out:find('^DEADLOCK of 2 clients\n'), found.out)
    assert.truthy(found.out:find('\nother %(lock%)\n  who holds it is not known: '), found.out)
    words[#words + 1] = 'other'
    assert.equal(2, program.run(words).code)
  end)

  it('is refused where the user may not ask, and the waiting go on where they may not answer',
    function()
      local function user(...)
        local rule = program.run({ 'acl', 'app', ... }).out
        local words = {}
        for word in rule:match('ACL SETUSER [^\n]*'):gmatch('%S+') do
          words[#words + 1] = word
        end
        words[#words + 1] = '>secret'
        server:command(unpack(words))
        server:command('ACL', 'LOG', 'RESET')
        return (server.url:gsub('^unix://', 'unix://app:secret@'))
      end
      local function wait_as(url)
        program.start({ 'exec', '-q', '--url', url, 'job', '--', 'true' })
        program.eventually('it waits', function()
          return server:waiters('job') == 1
        end)
      end
      program.start(program.exec(server, { 'job' }, { 'sleep', '60' }))
      program.eventually('it is held', function()
        return not server:is_free('job')
      end)

      local url = user('--family', 'lock')
      assert.equal(69, program.run({ 'blame', '--url', url }).code)
      wait_as(url)
      local silent, code = json()
      assert.equal(2, code)
      assert.equal(0, silent.answered)
      assert.equal(1, silent.unasked.clients)
      assert.same({ { name = 'job', kind = 'lock', clients = 1 } }, silent.unasked.locks)
      assert.truthy(silent.unasked.people[1].client:find('%(true@job%)$'))
      assert.equal('user app may not use the channel latchkey:ask:{{} (latchkey acl app --answers)',
        silent.unasked.people[1].why)
      local text = blame('job')
      assert.equal(2, text.code)
      assert.truthy(text.out:find('^job %(lock%)\n  held by %S+ %(sleep@job%)'), text.out)

      program.clean()
      server = program.server()
      program.start(program.exec(server, { 'job' }, { 'sleep', '60' }))
      program.eventually('it is held', function()
        return not server:is_free('job')
      end)
      url = user('--family', 'lock', '--answers')
      wait_as(url)
      assert.equal(1, json().answered)
      assert.equal('', server:command('ACL', 'LOG'))
      user('--operator')
      assert.equal(0, program.run({ 'blame', '--url', url }).code)
      server:command('ACL', 'SETUSER', 'app', '-pubsub|channels')
      local hidden = program.run({ 'blame', '--url', url })
      assert.equal(2, hidden.code)
      assert.truthy(hidden.out:find('cannot be seen: ', 1, true), hidden.out)
    end)
end)

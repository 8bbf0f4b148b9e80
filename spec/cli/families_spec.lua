-- SPDX-License-Identifier: Apache-2.0
-- ls, inspect and break on the families that have more than one key, or several holders.
local utils = require('pl.utils')

local program = require('cli.program')

local CLIENT = 'lk-8743c9c0-0795-4907-87fd-6c719a6b4586'
local REDISSON = '8743c9c0-0795-4907-87fd-6c719a6b4586:42'

describe('latchkey on a server', function()
  local server

  before_each(function()
    server = program.server()
  end)

  after_each(program.clean)

  local function run(command, ...)
    return program.run({ command, '--url', server.url, ... })
  end

  local function json(command, ...)
    local result = run(command, '--json', ...)
    return program.decode(result.out), result.code
  end

  local function call(script, name, ...)
    local result = run('eval', script, '--name', name, ...)
    assert.equal(0, result.code, result.out .. result.err)
    return result.out
  end

  -- Listens until it is killed.
  local function listener(channel)
    local process = program.start_any('redis-cli', { '-s', server.socket, 'SUBSCRIBE', channel })
    program.eventually('it listens', function()
      return server:command('PUBSUB', 'NUMSUB', channel):find('\n1$')
    end)
    return process
  end

  local function heard(process, what)
    return program.eventually('heard: ' .. what, function()
      return utils.readfile(process.out_file):find(what, 1, true)
    end)
  end

  local function queue_up(name, serial)
    call('fair/acquire', name, '--lease', '30s', '--owner', CLIENT .. ':' .. serial, '--hold', '1',
      '--wait', '300s', '--heartbeat', '60s', '--client', CLIENT, '--ticket', serial)
  end

  local function read_hold(name, serial, levels)
    for level = 1, levels or 1 do
      call('rw/read_acquire', name, '--lease', '30s', '--owner', CLIENT .. ':' .. serial, '--hold',
        tostring(level), '--writer', '')
    end
  end

  describe('with fair locks', function()
    before_each(function()
      queue_up('job', '1')
      queue_up('job', '2')
      queue_up('job', '3')
    end)

    it('lists holder and number of waiters', function()
      local locks = json('ls').locks

      assert.equal(1, #locks)
      assert.equal('fair', locks[1].kind)
      assert.is_true(locks[1].certain)
      assert.equal(2, locks[1].waiters)
      assert.same({ { owner = CLIENT .. ':1', holds = 1 } }, locks[1].holders)
    end)

    it('names who waits, in order', function()
      local result, document = run('inspect', 'job'), json('inspect', 'job')

      assert.equal(0, result.code)
      assert.truthy(result.out:find('fair (certain)', 1, true))
      assert.truthy(result.out:find('queue    1. ' .. CLIENT .. ':2\n           2. ' .. CLIENT
        .. ':3\n', 1, true))
      assert.equal(CLIENT .. ':2', document.kinds[1].queue[1].owner)
      assert.is_true(document.kinds[1].queue[2].stays_ms > 0)
    end)

    it('breaks the lock, which goes to the first waiter, and tells it and other listeners',
      function()
        local first = listener('redisson_lock__channel:{job}:' .. CLIENT)
        local plain = listener('redisson_lock__channel:{job}')

        local document, code = json('break', 'job', '--yes')

        assert.equal(0, code)
        assert.equal('broken', document.outcome)
        assert.equal('fair', document.kind)
        assert.equal(CLIENT .. ':1', document.owner)
        assert.equal(CLIENT .. ':2', document.next)
        assert.equal('1', server:command('HGET', 'job', CLIENT .. ':2'))
        assert.equal('1', server:command('LLEN', 'redisson_lock_queue:{job}'))
        heard(first, 'message\nredisson_lock__channel:{job}:' .. CLIENT .. '\n2\n')
        heard(plain, 'message\nredisson_lock__channel:{job}\n0\n')
      end)

    it('says that nobody holds it, and who waits nevertheless', function()
      server:command('DEL', 'job')

      local result, document = run('inspect', 'job'), json('inspect', 'job')

      assert.equal(3, result.code)
      assert.truthy(result.out:find('^job is free%.\n  queue    1%. '))
      assert.equal('free', document.state)
      assert.equal(2, document.kinds[1].waiters)
      assert.truthy(run('break', 'job', '--yes').out:find('nobody holds it', 1, true))
    end)

    it('is not sure of a lock with both a queue and a counter of tokens', function()
      server:command('SET', 'redisson_lock_token:{job}', '7')

      local kinds = json('inspect', 'job').kinds
      local unsure = run('break', 'job', '--yes')
      local kept = server:command('HGET', 'job', CLIENT .. ':1')
      local first = listener('redisson_lock__channel:{job}:' .. CLIENT .. ':2')
      local told = json('break', 'job', '--yes', '--kind', 'fenced')

      assert.same({ 'fair', 'fenced' }, { kinds[1].kind, kinds[2].kind })
      assert.is_false(kinds[1].certain or kinds[2].certain)
      assert.equal(64, unsure.code)
      assert.truthy(unsure.err:find('fair, fenced', 1, true))
      assert.equal('1', kept)
      assert.is_true(told.token > 7)
      assert.is_true(server:is_free('job'))
      heard(first, 'message\nredisson_lock__channel:{job}:' .. CLIENT .. ':2\n0\n')
    end)
  end)

  it('shows a plain lock as one that may be fair, when nobody waits', function()
    queue_up('job', '1')

    local kinds = json('inspect', 'job').kinds

    assert.same({ 'lock', true, 'fair', false },
      { kinds[1].kind, kinds[1].certain, kinds[2].kind, kinds[2].certain })
    assert.same({ 'fair' }, json('ls').locks[1].also)
    assert.equal('lock', json('break', 'job', '--yes').kind)
  end)

  describe('with read-write locks', function()
    it('names each reader with its levels and its own lease', function()
      read_hold('doc', '1')
      read_hold('doc', '2', 3)
      server:command('PEXPIRE', '{doc}:' .. CLIENT .. ':1:rwlock_timeout:1', '5000')

      local result, document, listed = run('inspect', 'doc'), json('inspect', 'doc'), run('ls')

      local view = document.kinds[1]
      assert.equal('rw', view.kind)
      assert.is_true(view.certain)
      assert.equal('read', view.mode)
      assert.same({ 1, 3 }, { view.holders[1].holds, view.holders[2].holds })
      assert.is_true(view.holders[1].left_ms <= 5000 and view.holders[2].left_ms > 5000)
      assert.truthy(result.out:find('mode     read\n', 1, true))
      assert.truthy(result.out:find(CLIENT .. ':2, 3 holds, for another', 1, true))
      assert.truthy(listed.out:find('\ndoc +rw .*' .. (':2 x3'):gsub('%p', '%%%0')))
    end)

    it('shows holds that are over, and counts writers that wait', function()
      read_hold('doc', '1')
      read_hold('doc', '2')
      server:command('DEL', '{doc}:' .. CLIENT .. ':1:rwlock_timeout:1')
      call('rw/write_wait', 'doc', '--heartbeat', '60s', '--owner', CLIENT .. ':9:write')

      local result, view = run('inspect', 'doc'), json('inspect', 'doc').kinds[1]

      assert.is_true(view.holders[1].over)
      assert.equal(1, view.writers_waiting)
      assert.truthy(result.out:find(CLIENT .. ':1, over: its lease has ended', 1, true))
      assert.truthy(result.out:find('1 writer waits', 1, true))
    end)

    it('breaks every hold, or the one that is named, and wakes who waits', function()
      read_hold('doc', '1')
      read_hold('doc', '2')
      read_hold('doc', '3')
      local waiter = listener('redisson_rwlock:{doc}')

      local one = json('break', 'doc', '--yes', '--owner', CLIENT .. ':2')
      local left = server:command('HKEYS', 'doc')
      local all = json('break', 'doc', '--yes')

      assert.same({ CLIENT .. ':2' }, one.owners)
      assert.truthy(left:find(':1', 1, true) and left:find(':3', 1, true))
      assert.falsy(left:find(':2', 1, true))
      assert.equal(2, all.count)
      assert.is_true(server:is_free('doc'))
      assert.equal('0', server:command('DBSIZE'))
      heard(waiter, 'message\nredisson_rwlock:{doc}\n0\n')
    end)

    it('breaks a writer', function()
      call('rw/write_acquire', 'doc', '--lease', '30s', '--owner', CLIENT .. ':1:write', '--hold',
        '1', '--reader', '')
      local waiter = listener('redisson_rwlock:{doc}')

      local listed, document = json('ls').locks[1], json('break', 'doc', '--yes')

      assert.same({ 'rw', 'write' }, { listed.kind, listed.mode })
      assert.equal(CLIENT .. ':1:write', document.owner)
      assert.is_true(server:is_free('doc'))
      heard(waiter, 'message\nredisson_rwlock:{doc}\n1\n')
    end)

    it('counts and breaks readers that are too many to be named', function()
      server:command('EVAL', [[
        redis.call('HSET', KEYS[1], 'mode', 'read')
        for i = 1, 300 do
          local owner = 'lk-8743c9c0-0795-4907-87fd-6c719a6b4586:' .. i
          redis.call('HSET', KEYS[1], owner, 1)
          redis.call('SET', '{doc}:' .. owner .. ':rwlock_timeout:1', 1, 'PX', 30000)
        end
        redis.call('PEXPIRE', KEYS[1], 30000)]], '1', 'doc')

      local result, listed = run('inspect', 'doc'), run('ls')
      local document = json('break', 'doc', '--yes', '--kind', 'rw')

      assert.truthy(result.out:find('rw (possible)', 1, true))
      assert.truthy(result.out:find('holder   300, too many', 1, true))
      assert.truthy(listed.out:find('\ndoc +rw .* 300 of them\n'))
      assert.equal(300, document.count)
      assert.equal('0', server:command('DBSIZE'))
    end)

    it('refuses them as plain locks', function()
      read_hold('doc', '1')

      assert.equal(64, run('break', 'doc', '--yes', '--kind', 'lock').code)
      assert.is_false(server:is_free('doc'))
    end)
  end)

  describe('with permits', function()
    before_each(function()
      call('permit/set', 'pool', '--total', '5', '--mode', 'INIT', '--caller', 'me', '--seq', '1')
      call('permit/acquire', 'pool', '--lease', '30s', '--ids', 'aaaaaaaaaaaaaaaa')
      call('permit/acquire', 'pool', '--lease', '60s', '--ids', 'bbbbbbbbbbbbbbbb')
    end)

    it('shows free and held ones, ids and leases', function()
      local view, result = json('inspect', 'pool').kinds[1], run('inspect', 'pool')
      local listed = json('ls', '--kind', 'permit').locks

      assert.same({ 'permit', true, 3, 2 }, { view.kind, view.certain, view.permits, view.held })
      assert.equal(('61'):rep(16), view.holders[1].owner)
      assert.is_true(view.holders[1].left_ms <= 30000 and view.holders[2].left_ms > 30000)
      assert.truthy(result.out:find('^pool is set%.'))
      assert.truthy(result.out:find('free     3 permits of 5\n', 1, true))
      assert.equal(1, #listed)
      assert.equal('pool', listed[1].name)
      local all = json('ls').locks
      assert.same({ 'pool', 'permit' }, { all[1].name, all[1].kind })
    end)

    it('breaks all, or the one with the id that is named', function()
      local waiter = listener('redisson_sc:{pool}')

      local one = json('break', 'pool', '--yes', '--owner', ('62'):rep(16))
      local left = server:command('ZRANGE', '{pool}:timeout', '0', '-1')
      local all = run('break', 'pool', '--yes')
      local none = run('break', 'pool', '--yes', '--kind', 'permit')

      assert.equal(1, one.count)
      assert.equal('aaaaaaaaaaaaaaaa', left)
      assert.equal('pool: 1 permit is free again.\n', all.out)
      assert.equal('5', server:command('GET', 'pool'))
      assert.truthy(none.out:find('nobody holds it', 1, true))
      heard(waiter, 'message\nredisson_sc:{pool}\n5\n')
    end)

    it('breaks more of them than it names', function()
      server:command('EVAL', 'for i = 1, 300 do redis.call("ZADD", KEYS[1], 9e12, "id" .. 1e13 + i)'
        .. ' end', '1', '{pool}:timeout')

      local view, result = json('inspect', 'pool').kinds[1], run('inspect', 'pool')
      local document = json('break', 'pool', '--yes')

      assert.same({ 302, 100 }, { view.held, #view.holders })
      assert.truthy(result.out:find('and 202 more', 1, true))
      assert.equal(302, document.count)
      assert.equal('0', server:command('ZCARD', '{pool}:timeout'))
      assert.equal('305', server:command('GET', 'pool'))
    end)

    it('breaks nothing when the id has no permit any more', function()
      local document, code = json('break', 'pool', '--yes', '--owner', ('63'):rep(16))

      assert.same({ 'another', 1 }, { document.outcome, code })
      assert.equal('3', server:command('GET', 'pool'))
    end)
  end)

  describe('with counters', function()
    it('lists integers only with --kind, and no keys that are parts of locks', function()
      call('semaphore/set', 'slots', '--count', '3', '--caller', 'me', '--seq', '1')
      server:command('SET', 'redisson_lock_token:{job}', '7')
      server:command('SET', '{doc}:' .. CLIENT .. ':1:rwlock_timeout:1', '1')
      server:command('SET', 'text', 'some text')

      local semaphores, mutexes = json('ls', '--kind', 'semaphore'), json('ls', '--kind', 'mutex')

      assert.same({}, json('ls').locks)
      assert.equal(1, #semaphores.locks)
      assert.same({ 'slots', 3 }, { semaphores.locks[1].name, semaphores.locks[1].permits })
      assert.truthy(run('ls', '--kind', 'semaphore').out:find('3 permits are free', 1, true))
      assert.same({ 'slots', 'text' }, { mutexes.locks[1].name, mutexes.locks[2].name })
    end)

    it('shows all that a number may be, and breaks it only as what it is told to be', function()
      call('countdown/set', 'gate', '--count', '3', '--caller', 'me', '--seq', '1')
      local waiter = listener('redisson_countdownlatch__channel__{gate}')

      local result, document = run('inspect', 'gate'), json('inspect', 'gate')
      local unsure = run('break', 'gate', '--yes')
      local told = json('break', 'gate', '--yes', '--kind', 'countdown')

      local found = {}
      for i, view in ipairs(document.kinds) do
        found[i] = view.kind
        assert.is_false(view.certain)
      end
      assert.same({ 'semaphore', 'permit', 'countdown', 'mutex' }, found)
      assert.truthy(result.out:find('left     3 to count', 1, true))
      assert.equal(64, unsure.code)
      assert.truthy(unsure.err:find('semaphore, permit, countdown, mutex', 1, true))
      assert.same({ 'broken', 3 }, { told.outcome, told.left })
      assert.is_true(server:is_free('gate'))
      heard(waiter, 'message\nredisson_countdownlatch__channel__{gate}\n0\n')
    end)

    it('says that a latch is open, and that a semaphore is not set', function()
      local open, unset = run('inspect', 'gate', '--kind', 'countdown'),
        run('inspect', 'slots', '--kind', 'semaphore')

      assert.same({ 3, 'gate is open.\n' }, { open.code, open.out })
      assert.same({ 3, 'slots is not set.\n' }, { unset.code, unset.out })
      assert.equal('gate is open.\n', run('break', 'gate', '--yes', '--kind', 'countdown').out)
    end)

    it('cannot break a semaphore, since nobody is known to hold it', function()
      call('semaphore/set', 'slots', '--count', '3', '--caller', 'me', '--seq', '1')

      local result = run('break', 'slots', '--yes', '--kind', 'semaphore')

      assert.equal(64, result.code)
      assert.truthy(result.err:find('does not know who', 1, true))
      assert.equal('3', server:command('GET', 'slots'))
    end)

    it('knows no lock in a long string, and looks into none', function()
      server:command('SET', 'page', ('x'):rep(300))

      local result = run('inspect', 'page')

      assert.equal(64, result.code)
      assert.truthy(result.err:find('a string of 300 bytes', 1, true))
      assert.same({}, json('ls', '--kind', 'mutex').locks)
    end)
  end)

  it('tells the first waiter of a fair queue when a lock of Redisson is broken as a plain one',
    function()
      server:command('HSET', 'job', REDISSON, '1')
      server:command('PEXPIRE', 'job', '30000')
      queue_up('job', '2')
      local first = listener('redisson_lock__channel:{job}:' .. CLIENT)

      local result = run('break', 'job', '--yes', '--kind', 'lock')

      assert.equal(0, result.code)
      assert.is_true(server:is_free('job'))
      heard(first, 'message\nredisson_lock__channel:{job}:' .. CLIENT .. '\n0\n')
    end)
end)

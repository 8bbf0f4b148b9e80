-- SPDX-License-Identifier: Apache-2.0
-- The tools on a cluster of three masters, the first of them with a replica.
local signal = require('posix.signal')

local fleet = require('cli.fleet')
local narrow = require('cli.narrow')
local program = require('cli.program')

local CLIENT = 'lk-8743c9c0-0795-4907-87fd-6c719a6b4586'
local OWNER = CLIENT .. ':1'

describe('on a cluster', function()
  local cluster, names

  setup(function()
    cluster = fleet.cluster({ replica = true })
    names = {}
    for i, master in ipairs(cluster.masters) do
      names[i] = cluster:name_on(master, 'orders')
    end
  end)

  teardown(program.clean)

  before_each(function()
    for _, master in ipairs(cluster.masters) do
      master:command('FLUSHALL')
    end
  end)

  local function run(command, ...)
    return program.run({ command, '--url', cluster.url, ... })
  end

  local function json(command, ...)
    local result = run(command, '--json', ...)
    return program.decode(result.out), result.code
  end

  local function hold(name)
    local result = run('eval', 'lock/acquire', '--name', name, '--lease', '10m', '--owner', OWNER,
      '--hold', '1')
    assert.equal(0, result.code, result.err)
  end

  local function hold_all()
    for _, name in ipairs(names) do
      hold(name)
    end
  end

  local function waiters(name)
    return json('inspect', name).kinds[1].waiters
  end

  -- A job that waits for a lock which OWNER holds.
  local function waiter_for(name)
    hold(name)
    local job = program.start({ 'exec', '--url', cluster.url, '--wait', '1m', name, '--', 'true' })
    program.eventually('it waits', function()
      return waiters(name) == 1
    end)
    return job
  end

  local function scripts_in(server)
    return tonumber(server:command('INFO', 'memory'):match('number_of_cached_scripts:(%d+)'))
  end

  local function flush_scripts()
    cluster:all('SCRIPT', 'FLUSH')
  end

  it('ls and top show the locks of all masters, and on which each is', function()
    hold_all()

    local document, code = json('ls')
    local shown, top = run('ls').out, run('top', '--once')

    local places = {}
    for _, lock in ipairs(document.locks) do
      places[lock.name] = lock.node
    end
    assert.equal(0, code)
    assert.is_true(document.complete)
    assert.equal(3, #document.locks)
    for i, name in ipairs(names) do
      local line = '\n' .. name:gsub('%p', '%%%0') .. ' .*' .. cluster.masters[i].at:gsub('%p',
        '%%%0')
      assert.equal(cluster.masters[i].at, places[name])
      assert.truthy(shown:find(line))
      assert.truthy(top.out:find(line))
    end
    assert.equal(0, top.code)
    assert.truthy(top.out:find('\n3 locks, 0 waiting\n', 1, true))
  end)

  it('ls stops at its limit wherever the locks are', function()
    hold_all()

    local document, code = json('ls', '--limit', '2')

    assert.equal(2, code)
    assert.equal(2, #document.locks)
    assert.is_false(document.complete)
  end)

  it('ls and top list the others where the slot of a lock is on the move', function()
    hold_all()
    local from, to = cluster.masters[1], cluster.masters[2]
    local other = cluster:name_on(from, 'orders')
    hold(other)
    local slot = from:command('CLUSTER', 'KEYSLOT', names[1])
    to:command('CLUSTER', 'SETSLOT', slot, 'IMPORTING', (from:command('CLUSTER', 'MYID')))
    from:command('CLUSTER', 'SETSLOT', slot, 'MIGRATING', (to:command('CLUSTER', 'MYID')))

    local document, code = json('ls')
    local shown, top = run('ls'), run('top', '--once')
    from:command('CLUSTER', 'SETSLOT', slot, 'STABLE')
    to:command('CLUSTER', 'SETSLOT', slot, 'STABLE')

    assert.equal(2, code)
    assert.is_false(document.complete)
    assert.equal(3, #document.locks)
    assert.same({ 0, 1 }, { document.left_out.denied, document.left_out.moving })
    assert.same({ names[1], 'LK_CLUSTERDOWN' }, { document.left_out.keys[1].name,
      document.left_out.keys[1].status })
    assert.truthy(shown.out:find('\n' .. other, 1, true), shown.out)
    assert.truthy(shown.err:find('latchkey ls: 1 key is left out, whose slot is on the move or not '
      .. 'served: ' .. names[1], 1, true), shown.err)
    assert.equal(2, top.code)
    assert.truthy(top.out:find('\n3 locks, 0 waiting, 1 key left out\n', 1, true), top.out)
  end)

  it('ls lists the others where nobody serves the slot of a key', function()
    hold_all()
    local server = cluster.masters[1]
    local other = cluster:name_on(server, 'orders')
    hold(other)
    local slot = server:command('CLUSTER', 'KEYSLOT', names[1])
    server:command('CLUSTER', 'DELSLOTS', slot)

    local document, code = json('ls')
    server:command('CLUSTER', 'ADDSLOTS', slot)

    assert.equal(2, code)
    assert.equal(3, #document.locks)
    assert.equal(1, document.left_out.moving)
    assert.equal(names[1], document.left_out.keys[1].name)
  end)

  it('ls lists the others where two servers send the question for a key to each other', function()
    hold_all()
    local from, to = cluster.masters[1], cluster.masters[2]
    local slot = from:command('CLUSTER', 'KEYSLOT', names[1])
    local from_id, to_id = from:command('CLUSTER', 'MYID'), to:command('CLUSTER', 'MYID')
    to:command('CLUSTER', 'SETSLOT', slot, 'IMPORTING', (from_id))
    from:command('CLUSTER', 'SETSLOT', slot, 'MIGRATING', (to_id))
    from:command('MIGRATE', '127.0.0.1', to.port, names[1], '0', '5000')
    to:command('CLUSTER', 'SETSLOT', slot, 'STABLE')

    local document, code = json('ls')
    from:command('CLUSTER', 'SETSLOT', slot, 'STABLE')

    assert.equal(2, code)
    assert.equal(2, #document.locks)
    assert.same({ names[1], 'LK_CLUSTERDOWN' }, { document.left_out.keys[1].name,
      document.left_out.keys[1].status })
  end)

  it('inspect says where a lock is, and counts who waits there', function()
    local job = waiter_for(names[2])

    local shown = run('inspect', names[2])

    assert.equal(0, shown.code)
    assert.truthy(shown.out:find('\n  node     ' .. cluster.masters[2].at .. '\n', 1, true))
    assert.truthy(shown.out:find('1 client listens', 1, true))
    assert.equal(1, json('ls').locks[1].waiters)
    job:kill(signal.SIGKILL)
    job:wait()
  end)

  it('blame asks those who wait on every node, over the connections that they have', function()
    local jobs, before = {}, 0
    for i, name in ipairs(names) do
      jobs[i] = waiter_for(name)
    end
    for _, master in ipairs(cluster.masters) do
      local _, listening = master:command('CLIENT', 'LIST', 'TYPE', 'pubsub'):gsub('id=', '')
      before = before + listening
    end

    local document, code = json('blame')

    assert.equal(0, code)
    assert.equal(#names, document.answered)
    assert.equal(#names, #document.locks)
    assert.equal(#names, before)
    for _, job in ipairs(jobs) do
      job:kill(signal.SIGKILL)
      job:wait()
    end
  end)

  it('blame tells who listens on the other nodes where one does not say', function()
    local first, second = cluster.masters[1], cluster.masters[2]
    local listener = program.start_any('redis-cli', { '-p', second.port, 'SSUBSCRIBE',
      'redisson_lock__channel:{' .. names[2] .. '}' })
    program.eventually('it listens', function()
      return second:command('PUBSUB', 'SHARDCHANNELS') ~= ''
    end)
    first:command('ACL', 'SETUSER', 'default', '-pubsub')

    local document, code = json('blame')

    first:command('ACL', 'SETUSER', 'default', '+pubsub')
    listener:kill(signal.SIGKILL)
    listener:wait()
    assert.equal(2, code)
    assert.same({ { name = names[2], kind = 'lock', clients = 1 } }, document.unasked.locks)
    assert.truthy(document.unasked.hidden:find('^' .. first.at:gsub('%p', '%%%0') .. ': '),
      document.unasked.hidden)
  end)

  it('blame names who waits there and may not answer', function()
    local words = { '>secret' }
    for word in run('acl', 'app', '--family', 'lock').out:gmatch('%S+') do
      table.insert(words, #words, word)
    end
    cluster:all(unpack(words))
    hold(names[2])
    local url = cluster.url:gsub('//', '//app:secret@')
    local job = program.start({ 'exec', '-q', '--url', url, names[2], '--', 'true' })
    program.eventually('it waits', function()
      return waiters(names[2]) == 1
    end)

    local document, code = json('blame')

    job:kill(signal.SIGKILL)
    job:wait()
    cluster:all('ACL', 'DELUSER', 'app')
    assert.equal(2, code)
    assert.equal(1, document.unasked.clients)
    assert.equal(1, #document.unasked.people)
    assert.truthy(document.unasked.people[1].client:find('(true@' .. names[2] .. ')', 1, true))
    assert.equal('user app may not use the channel latchkey:ask:{{} (latchkey acl app --answers)',
      document.unasked.people[1].why)
  end)

  it('eval tells those who wait, without being told the verb', function()
    local job = waiter_for(names[3])

    local result = run('eval', 'lock/release', '--name', names[3], '--lease', '1m', '--owner',
      OWNER, '--hold', '0')

    assert.equal(0, result.code)
    assert.equal(0, job:wait().code)
  end)

  it('break tells those who wait', function()
    local job = waiter_for(names[1])

    local result = run('break', '--yes', names[1])

    assert.equal(0, result.code)
    assert.truthy(result.out:find(OWNER, 1, true))
    assert.equal(0, job:wait().code)
  end)

  it('load takes all masters and replicas, and status shows what each lacks', function()
    flush_scripts()
    local document, code = json('load')
    local total = scripts_in(cluster.masters[1])
    for i, server in ipairs(cluster.servers) do
      assert.equal(total, scripts_in(server), i)
    end
    local status = run('status')
    cluster.masters[2]:command('SCRIPT', 'FLUSH')
    local after = run('status', '-v')

    assert.equal(0, code)
    assert.equal(4, #document.nodes)
    assert.is_true(total > 20)
    assert.equal(cluster.replica.tcp, document.nodes[4].target)
    assert.same({ 'replica', cluster.masters[1].tcp },
      { document.nodes[4].role, document.nodes[4].replica_of })
    assert.equal(0, status.code)
    assert.equal(1, after.code)
    assert.equal(total, select(2, after.out:gsub('  missing\n', '')))
  end)

  it('load leaves replicas alone when it is told to', function()
    flush_scripts()

    assert.equal(0, run('load', '--no-replicas').code)

    assert.equal(0, scripts_in(cluster.replica))
  end)

  it('load gives functions to each master, and waits until the replica has them', function()
    local document, code = json('load', '--functions')

    assert.equal(0, code)
    for _, node in ipairs(document.nodes) do
      assert.is_true(node.loaded > 20)
    end
    assert.truthy(cluster.replica:command('FUNCTION', 'LIST'):find('lock_acquire_1', 1, true))
  end)

  it('doctor examines each master, and the cluster', function()
    run('load')

    local document, code = json('doctor')

    local seen = {}
    for _, finding in ipairs(document.findings) do
      seen[finding.check .. ' ' .. finding.node] = finding.level
    end
    assert.equal(1, code)
    for _, master in ipairs(cluster.masters) do
      assert.same({ 'problem', 'good', 'good', 'good', 'good' },
        { seen['persistence ' .. master.tcp], seen['cluster ' .. master.tcp],
          seen['permissions ' .. master.tcp], seen['scripts ' .. master.tcp],
          seen['queues ' .. master.tcp] })
    end
  end)

  it('doctor finds what a user lacks on one of the nodes', function()
    for i, master in ipairs(cluster.masters) do
      master:command('ACL', 'SETUSER', 'app', 'on', 'allkeys', 'allchannels', '+@all',
        i == 2 and '-ssubscribe' or '-flushall')
    end

    local result = run('doctor', '--user', 'app')

    assert.equal(1, result.code)
    local at = result.out:find('the user app lacks +ssubscribe', 1, true)
    assert.is_number(at)
    assert.falsy(result.out:find('the user app lacks', at + 1, true))
    assert.truthy(result.out:find('latchkey acl app --cluster', at, true))
  end)

  it('ls and top pass over a key whose name keeps its parts out of its slot', function()
    hold_all()
    for _, name in ipairs({ 'cfg{}:x', 'x{y', 'a}b' }) do
      program.start_any('redis-cli', { '-c', '-p', cluster.masters[1].port, 'HSET', name, 'mode',
        'read', OWNER, '1' }):wait()
    end

    local listed, code = json('ls')
    local as_rw = json('ls', '--kind', 'rw')

    assert.equal(0, code)
    assert.same({ 3, true }, { #listed.locks, listed.complete })
    assert.equal(3, listed.possible.hashes)
    assert.same({}, as_rw.locks)
    assert.equal(0, run('top', '--once').code)
  end)

  describe('with a master that is gone', function()
    local gone

    before_each(function()
      gone = cluster.masters[3]
    end)

    local function stop()
      gone.process:kill(signal.SIGKILL)
      gone.process:wait()
    end

    local function bring_back()
      gone:start()
      cluster:wait()
    end

    it('ls, top, status, doctor and load name it, and the rest goes on', function()
      hold_all()
      flush_scripts()
      stop()
      program.eventually('the others miss it', function()
        return not cluster.masters[1]:command('CLUSTER', 'INFO'):find('slots_ok:16384', 1, true)
      end)

      local listed, code = json('ls')
      local results = {}
      for _, command in ipairs({ 'status', 'ls', 'doctor', 'load' }) do
        results[command] = run(command)
      end
      local top = run('top', '--once')
      local missing = run('inspect', names[3])
      local there = run('inspect', names[1])
      local before = results.load
      local loaded = scripts_in(cluster.masters[2])
      bring_back()
      local after = json('load')

      assert.same({ 2, 2, false, gone.tcp }, { code, #listed.locks, listed.complete,
        listed.failed[1].target })
      assert.same({ 1, 2, 1, 2 }, { results.status.code, results.ls.code, results.doctor.code,
        before.code })
      for command, result in pairs(results) do
        assert.truthy(result.err:find(('latchkey %s: %s'):format(command, gone.tcp), 1, true),
          command)
      end
      assert.truthy(results.doctor.out:find('of its 16384 slots are served', 1, true))
      assert.equal(2, top.code)
      assert.truthy(top.out:find(gone.tcp, 1, true))
      assert.truthy(top.out:find(names[2], 1, true))
      assert.same({ 69, 0 }, { missing.code, there.code })
      -- Loading again goes on where it ended.
      assert.is_true(loaded > 20)
      for _, node in ipairs(after.nodes) do
        assert.equal(node.target == gone.tcp and loaded or 0, node.loaded)
      end
    end)

    it('load names one that went half-way through, and loads the rest', function()
      flush_scripts()
      local process, pipe = narrow.start(cluster.url)
      local first
      program.eventually('it is in the middle of one', function()
        for _, server in ipairs(cluster.masters) do
          first = scripts_in(server) >= 4 and server or first
        end
        return first
      end)
      gone = first
      narrow.stopped(gone, scripts_in)

      stop()
      local result, said = narrow.finish(process, pipe)
      local others = {}
      for _, server in ipairs(cluster.masters) do
        others[#others + 1] = server ~= gone and scripts_in(server) or nil
      end
      bring_back()
      local again, code = json('load')

      assert.equal(2, result.code)
      assert.truthy(said:find('latchkey load: ' .. gone.tcp, 1, true))
      assert.is_true(#others == 2 and others[1] > 20 and others[1] == others[2])
      assert.equal(0, code)
      for _, node in ipairs(again.nodes) do
        assert.equal(node.target == gone.tcp and others[1] or 0, node.loaded)
      end
    end)
  end)

  it('bench counts what the servers of all locks do', function()
    local figures, code = json('bench', '--seconds', '1', '--threads', '8')

    assert.equal(0, code)
    assert.near(2, figures.commands_per_pair, 0.05)
    assert.is_true(figures.server_cpu_us_per_pair > 0)
  end)

  it('exits 69 when no node can be reached', function()
    for _, command in ipairs({ 'ls', 'top', 'status', 'doctor', 'load' }) do
      local words = command == 'top' and '--once' or '-q'
      local result = program.run({ command, words, '--url',
        'redis-cluster://127.0.0.1:1,127.0.0.1:2' })
      assert.equal(69, result.code, command)
    end
  end)
end)

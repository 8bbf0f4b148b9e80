-- SPDX-License-Identifier: Apache-2.0
-- The operator's commands with the URLs of a majority: each server is asked, and a last line is for
-- the whole.
local signal = require('posix.signal')

local program = require('cli.program')
local session = require('cli.session')

describe('with the URLs of a majority', function()
  local servers, urls

  before_each(function()
    servers = { program.server('--appendonly', 'yes'), program.server('--appendonly', 'yes'),
      program.server('--appendonly', 'yes') }
    urls = ('%s %s  %s'):format(servers[1].url, servers[2].url, servers[3].url)
  end)

  after_each(program.clean)


  -- The command's own words come first.
  local function call(words, ...)
    local arguments = { unpack(words) }
    for _, word in ipairs({ '--url', urls, ... }) do
      arguments[#arguments + 1] = word
    end
    return program.run(arguments)
  end

  local function json(...)
    local result = call({ ... }, '--json')
    return program.decode(result.out), result.code
  end

  local function stop(server)
    server.process:kill(signal.SIGKILL)
    server.process:wait()
  end

  local function hold(name)
    local gate = program.gate()
    program.start(program.exec({ url = urls }, { name }, gate.command))
    gate.started()
  end

  it('inspect says on how many a lock is held, and whether that is a majority', function()
    hold('job')

    local all = call({ 'inspect', 'job' })
    assert.equal(0, all.code)
    assert.truthy(all.out:find('\njob is held on 3 of 3 servers: a majority\n$'), all.out)
    for _, server in ipairs(servers) do
      assert.truthy(all.out:find(server.socket, 1, true), all.out)
    end

    servers[1]:command('DEL', 'job')
    assert.equal(0, call({ 'inspect', 'job' }).code)
    stop(servers[1])
    local two, code = json('inspect', 'job')
    assert.equal(0, code)
    assert.equal('job is held on 2 of 3 servers: a majority', two.verdict)
    assert.equal('LK_UNREACHABLE', two.servers[1].error.status)
    assert.same({ 69, 0, 0 }, { two.servers[1].exit, two.servers[2].exit, two.servers[3].exit })
    assert.equal('held', two.servers[2].state)

    servers[2]:command('DEL', 'job')
    local may
    may, code = json('inspect', 'job')
    assert.equal(2, code)
    assert.truthy(may.verdict:find('1 could not be asked, so it may be a majority', 1, true))

    servers[3]:command('DEL', 'job')
    local none
    none, code = json('inspect', 'job')
    assert.equal(3, code)
    assert.truthy(none.verdict:find('no majority, so nobody holds it', 1, true))

    stop(servers[2])
    stop(servers[3])
    assert.equal(69, call({ 'inspect', 'job' }).code)
  end)

  it('inspect counts the servers that one owner has, of whatever name it has there', function()
    hold('job')
    local own = servers[3]:command('HKEYS', 'job')
    local function shown(owner)
      servers[3]:command('DEL', 'job')
      servers[3]:command('HSET', 'job', owner, '1')
      local document, code = json('inspect', 'job')
      return { document.verdict, code }
    end

    assert.same({ 'job is held on 3 of 3 servers: a majority', 0 }, shown(own))
    assert.same({ 'job is held on 3 of 3 servers, on 2 of them by one owner: a majority', 0 },
      shown('somebody'))
    servers[2]:command('DEL', 'job')
    -- Another round of the same process, and another owner whose process is not known.
    assert.same({ 'job is held on 2 of 3 servers, on 1 of them by one owner: no majority, so '
      .. 'nobody holds it', 3 }, shown((own:gsub('%d+$', '%00'))))
    assert.same({ 'job is held on 2 of 3 servers, by owners that are not known to be one', 2 },
      shown('somebody'))
    servers[1]:command('DEL', 'job')
    servers[1]:command('HSET', 'job', 'somebody', '1')
    assert.same({ 'job is held on 2 of 3 servers: a majority', 0 }, shown('somebody'))
  end)

  it('inspect tells by the number of a round what one majority is, and by no other', function()
    hold('job')
    local uuids, round = {}, nil
    for i, server in ipairs(servers) do
      local uuid, number = server:command('HKEYS', 'job'):match('^(lk%-[%x-]+:)(%d+)$')
      uuids[i], round = uuid, round or number
      assert.equal(round, number)
    end
    -- What one process has on each server: the numbers of its owners' names, nil for none.
    local function shown(...)
      for i, server in ipairs(servers) do
        local number = select(i, ...)
        server:command('DEL', 'job')
        if number then
          server:command('HSET', 'job', uuids[i] .. number, '1')
        end
      end
      local document, code = json('inspect', 'job')
      return { document.verdict, code }
    end
    local other = round .. '0'
    local unsure = ', by owners that are not known to be one'

    assert.same({ 'job is held on 3 of 3 servers: a majority', 0 }, shown(round, round, round))
    assert.same({ 'job is held on 3 of 3 servers, on 2 of them by one owner: a majority', 0 },
      shown(round, other, round))
    assert.same({ 'job is held on 2 of 3 servers, on 1 of them by one owner: no majority, so '
      .. 'nobody holds it', 3 }, shown(round, other, nil))
    -- Each client counts for itself: whether the numbers are equal or not is chance.
    assert.same({ 'job is held on 3 of 3 servers' .. unsure, 2 }, shown('2', '4', '1'))
    assert.same({ 'job is held on 2 of 3 servers' .. unsure, 2 }, shown('1', '1', nil))
    assert.same({ 'job is held on 2 of 3 servers' .. unsure, 2 }, shown(round, '1', nil))
    assert.same({ 'job is held on 3 of 3 servers' .. unsure, 2 }, shown(round, other, '1'))
    assert.same({ 'job is held on 1 of 3 servers: no majority, so nobody holds it', 3 },
      shown(round, nil, nil))
  end)

  it('inspect counts the servers of what has no owners', function()
    for _, server in ipairs(servers) do
      server:command('SET', 'gate', '3')
    end

    local gate = call({ 'inspect', 'gate', '--kind', 'countdown' })

    assert.equal(0, gate.code, gate.out)
    assert.truthy(gate.out:find('gate is held on 3 of 3 servers: a majority\n', 1, true), gate.out)
  end)

  it('break asks once, and breaks on each', function()
    hold('job')

    local screen = session.start({ 'break', 'job', '--url', urls }, { columns = 200 })
    screen:shows('Break it on 3 servers%?')
    screen:press('n\n')
    assert.equal(1, screen:wait().code)
    screen:close()
    assert.is_false(servers[1]:is_free('job'))
    local refused = call({ 'break', 'job' })
    assert.equal(64, refused.code)
    assert.is_false(servers[1]:is_free('job'))

    screen = session.start({ 'break', 'job', '--url', urls }, { columns = 200 })
    local text = screen:shows('Break it on 3 servers%?')
    assert.equal(3, select(2, text:gsub('job is held by lk%-', '')))
    screen:press('y\n')
    assert.equal(0, screen:wait().code)
    screen:close()
    for _, server in ipairs(servers) do
      assert.is_true(server:is_free('job'))
    end
    local free = call({ 'break', 'job' }, '--yes')
    assert.equal(0, free.code)
    assert.truthy(free.out:find('3 of 3 servers do not have it any more', 1, true), free.out)
  end)

  it('break --owner finds the process on the other servers, and breaks no other holder', function()
    hold('job')
    servers[3]:command('DEL', 'job')
    servers[3]:command('HSET', 'job', 'somebody', '1')
    local owner = servers[1]:command('HKEYS', 'job')
    assert.are_not.equal(owner, servers[2]:command('HKEYS', 'job'))

    -- What may be something else is refused before anything is done on the others.
    local unsure = call({ 'break', 'job', '--owner', owner }, '--yes')
    assert.equal(64, unsure.code)
    assert.is_false(servers[1]:is_free('job'))
    local result, code = json('break', 'job', '--kind', 'lock', '--owner', owner, '--yes')

    assert.same({ 'broken', 'broken', 'another' }, { result.servers[1].outcome,
      result.servers[2].outcome, result.servers[3].outcome })
    assert.equal(1, code)
    assert.is_true(servers[1]:is_free('job'))
    assert.is_true(servers[2]:is_free('job'))
    assert.equal('somebody', servers[3]:command('HKEYS', 'job'))
    local nobody = call({ 'break', 'job', '--kind', 'lock', '--owner', 'nobody' }, '--yes')
    assert.equal(1, nobody.code)
    assert.truthy(nobody.out:find('job is held by somebody, which is not known to be the process '
      .. 'of nobody.', 1, true), nobody.out)
    assert.equal('somebody', servers[3]:command('HKEYS', 'job'))
  end)

  it('break says where it could not be done', function()
    hold('job')
    stop(servers[2])

    local result, code = json('break', 'job', '--yes')

    assert.equal(2, code)
    assert.equal('2 of 3 servers do not have it any more; a majority needs 2', result.verdict)
    assert.same({ 'broken', 'broken' }, { result.servers[1].outcome, result.servers[3].outcome })
    assert.equal('LK_UNREACHABLE', result.servers[2].error.status)
  end)

  it('ls, blame and doctor ask each, and end with the worst', function()
    hold('job')

    local listed, code = json('ls')
    assert.equal(0, code)
    for i = 1, 3 do
      assert.equal('job', listed.servers[i].locks[1].name)
    end
    -- Who waits for a majority answers nobody.
    local blamed = call({ 'blame' })
    assert.equal(2, blamed.code)
    assert.truthy(blamed.out:find('wait for a majority do not answer', 1, true), blamed.out)
    assert.equal(64, call({ 'blame', '--watch' }).code)
    local fit = call({ 'doctor', '--family', 'lock' })
    assert.equal(0, fit.code, fit.out)
    assert.truthy(fit.out:find('\n3 of 3 servers are fit for locks; a majority needs 2\n$'),
      fit.out)

    servers[2]:command('CONFIG', 'SET', 'maxmemory', '100mb')
    servers[2]:command('CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru')
    assert.equal(1, call({ 'doctor', '--family', 'lock' }).code)
    stop(servers[3])
    assert.equal(2, call({ 'ls' }).code)
    assert.equal(2, call({ 'blame' }).code)
    stop(servers[2])
    stop(servers[1])
    assert.equal(69, call({ 'ls' }).code)
    assert.equal(69, call({ 'blame' }).code)
    assert.equal(69, call({ 'doctor' }).code)
  end)

  it('says what is wrong with a name once, and shows no password', function()
    local wrong = call({ 'inspect', 'a}' })
    assert.equal(64, wrong.code)
    assert.equal('', wrong.out)

    local secret = program.run({ 'ls', '--url',
      'redis://u:secret@127.0.0.1:1 redis://127.0.0.1:2' })
    assert.equal(69, secret.code)
    assert.falsy((secret.out .. secret.err):find('secret', 1, true))
  end)
end)

-- SPDX-License-Identifier: Apache-2.0
local signal = require('posix.signal')

local program = require('cli.program')

describe('latchkey exec on several servers', function()
  local servers, urls

  before_each(function()
    servers = { program.server(), program.server(), program.server() }
    urls = ('%s %s %s'):format(servers[1].url, servers[2].url, servers[3].url)
  end)

  after_each(program.clean)

  local function words(options, command)
    return program.exec({ url = urls }, options, command)
  end

  local function stop(server)
    server.process:kill(signal.SIGKILL)
    server.process:wait()
  end

  for _, kind in ipairs({ 'lock', 'mutex' }) do
    it('holds the ' .. kind .. ' on all of them, and frees it', function()
      local gate = program.gate()
      local holder = program.start(words({ '--kind', kind, 'job' }, gate.command))
      gate.started()

      for _, server in ipairs(servers) do
        assert.is_false(server:is_free('job'))
      end
      local other = program.run(words({ '--kind', kind, '--wait', '0ms', 'job' }, { 'true' }))
      assert.equal(75, other.code)
      gate.open()
      assert.equal(0, holder:wait().code)
      for _, server in ipairs(servers) do
        assert.is_true(server:is_free('job'))
      end
    end)
  end

  it('refuses one that is named twice, which would be in its own way', function()
    local url = 'redis://127.0.0.1:1'
    for twice, named in pairs({
      [('%s %s %s'):format(servers[1].url, servers[2].url, servers[1].url)] = servers[1].socket,
      [url .. '/1 ' .. servers[1].url .. ' ' .. url .. '/2'] = '127.0.0.1:1',
    }) do
      local result = program.run(program.exec({ url = twice }, { '--wait', '0', 'job' },
        { 'true' }))

      assert.equal(64, result.code)
      assert.truthy(result.err:find(named .. ' is named twice', 1, true), result.err)
    end
  end)

  it('tells masters and clusters apart that begin alike, and one that is named twice', function()
    local function run(...)
      return program.run(program.exec({ url = table.concat({ ... }, ' ') },
        { '--wait', '0', 'job' }, { 'true' }))
    end
    local sentinels = 'redis-sentinel://127.0.0.1:1,127.0.0.1:2/'
    local clusters = 'redis-cluster://127.0.0.1:'

    assert.equal(69, run(sentinels .. 'a', sentinels .. 'b', sentinels .. 'c').code)
    assert.equal(69, run(clusters .. '1', clusters .. '2', clusters .. '3').code)
    assert.equal(64, run(sentinels .. 'a', sentinels .. 'b', sentinels .. 'a').code)
    assert.equal(64, run(clusters .. '1', clusters .. '2', clusters .. '1').code)
  end)

  it('needs a majority of them, from the start and while the command runs', function()
    stop(servers[2])
    assert.equal(0, program.run(words({ 'job' }, { 'true' })).code)

    local gate = program.gate()
    local report = program.folder() .. '/report.json'
    local holder = program.start(words({ '--lease', '4s', '--report', report, 'job' },
      gate.command))
    gate.started()
    stop(servers[1])
    local lost = holder:wait()
    assert.equal(80, lost.code)
    assert.truthy(lost.err:find('\n  [^\n]*' .. servers[1].socket:gsub('%p', '%%%0')), lost.err)
    local named = program.json(report).error
    assert.equal('LK_UNREACHABLE', named.cause.status)
    assert.equal('LK_UNREACHABLE', named.servers[1].status)
    assert.equal('LK_OK', named.servers[3].status)
    assert.falsy(lost.err:find('what some granted', 1, true), lost.err)

    local result = program.run(words({ '--wait', '200ms', 'job' }, { 'echo', 'no' }))
    assert.equal(69, result.code)
    assert.equal('', result.out)
    assert.truthy(result.err:find('2 are needed', 1, true))
  end)

  it('says which of them is down: when it waits, and when it holds the lock', function()
    local gate = program.gate()
    local holder = program.start(words({ 'job' }, gate.command))
    gate.started()
    stop(servers[3])
    local at = servers[3].socket:gsub('%p', '%%%0')

    local waits = program.run(words({ '--wait', '4s', 'job' }, { 'true' }))
    assert.equal(75, waits.code)
    assert.truthy(waits.err:find('waiting for "job": held by %S+ pid %d+ %(%S+@job%)[^\n]*; [^\n]*'
      .. at), waits.err)

    gate.open()
    assert.equal(0, holder:wait().code)
    local held = program.run(words({ 'job' }, { 'true' }))
    assert.equal(0, held.code)
    assert.truthy(held.err:find('^latchkey exec: held on 2 of 3 servers; it is lost when fewer '
      .. 'than 2 have it\n  [^\n]*' .. at .. '[^\n]*\n$'), held.err)
    assert.equal('', program.run(words({ '-q', 'job' }, { 'true' })).err)
    local document = program.decode(program.run(words({ '--json', 'job' }, { 'true' })).err)
    assert.equal(3, #document.missing)
    assert.equal('LK_OK', document.missing[1].status)
    assert.equal('LK_UNREACHABLE', document.missing[3].status)
  end)

  it('names each server that stood in the way, and why, wherever it tells of a failure', function()
    local report = program.folder() .. '/report.json'
    stop(servers[1])
    servers[2]:command('SET', 'job', 'another', 'PX', '60000')
    local options = { '--kind', 'mutex', '--wait', '0', '--report', report, 'job' }

    local text = program.run(words(options, { 'true' }))
    local written = program.json(report).error
    local json = program.decode(program.run(words({ '--json', unpack(options) }, { 'true' })).err)

    local lines = {}
    for line in text.err:gmatch('[^\n]+') do
      lines[#lines + 1] = line
    end
    assert.truthy(lines[2]:find('^  unix://' .. servers[1].socket:gsub('%p', '%%%0') .. '.*: .'),
      text.err)
    assert.truthy(lines[3]:find('^  unix://' .. servers[2].socket:gsub('%p', '%%%0') .. '.*: .'),
      text.err)
    assert.falsy(text.err:find(servers[3].socket, 1, true), text.err)
    assert.falsy(text.err:find('nothing was sent', 1, true), text.err)
    for _, document in ipairs({ written, json.error }) do
      assert.equal(3, #document.servers)
      assert.equal('LK_UNREACHABLE', document.servers[1].status)
      assert.equal('LK_BUSY', document.servers[2].status)
      assert.truthy(document.servers[1].server:find(servers[1].socket, 1, true))
      assert.falsy(document.hint:find('nothing was sent', 1, true))
    end
  end)

  it('gives back what a minority granted', function()
    servers[1]:command('HSET', 'job', 'somebody', '1')
    servers[2]:command('HSET', 'job', 'somebody', '1')

    assert.equal(75, program.run(words({ '--wait', '0ms', 'job' }, { 'true' })).code)

    program.eventually('the third is free', function()
      return servers[3]:is_free('job')
    end)
  end)

  it('refuses two servers, kinds that need one, and an exec of the same name inside', function()
    local both = { url = servers[1].url .. ' ' .. servers[2].url }
    local two = program.exec(both, { 'job' }, { 'true' })
    local refused = program.run(two)
    assert.equal(64, refused.code)
    assert.truthy(refused.err:find('neither may fail', 1, true))

    for _, kind in ipairs({ 'fenced', 'fair', 'read', 'write', 'permit:2' }) do
      assert.equal(64, program.run(words({ '--kind', kind, 'job' }, { 'true' })).code, kind)
    end

    local inner = ('"%s" exec --url "%s" job -- true'):format(program.path, urls)
    assert.equal(64, program.run(words({ 'job' }, { 'sh', '-c', inner })).code)
  end)
end)

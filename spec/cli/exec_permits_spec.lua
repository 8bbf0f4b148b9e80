-- SPDX-License-Identifier: Apache-2.0
local dir = require('pl.dir')
local lfs = require('lfs')
local path = require('pl.path')
local utils = require('pl.utils')

local program = require('cli.program')

describe('latchkey exec --kind permit:N', function()
  local server

  before_each(function()
    server = program.server()
  end)

  after_each(program.clean)

  local function exec(options, command)
    return program.run(program.exec(server, options, command))
  end

  local function start(options, command)
    return program.start(program.exec(server, options, command))
  end

  it('runs as many commands at a time as there are permits, and gives them back', function()
    local gates, holders = {}, {}
    for i = 1, 2 do
      gates[i] = program.gate()
      holders[i] = start({ '--kind', 'permit:2', 'pool' }, gates[i].command)
      gates[i].started()
    end

    local third = exec({ '--kind', 'permit:2', '--wait', '0ms', 'pool' }, { 'true' })
    assert.equal(75, third.code)
    assert.truthy(third.err:find('permits of "pool" are taken', 1, true))

    gates[1].open()
    assert.equal(0, holders[1]:wait().code)
    assert.equal(0, exec({ '--kind', 'permit:2', '--wait', '0ms', 'pool' }, { 'true' }).code)
    gates[2].open()
    assert.equal(0, holders[2]:wait().code)
    assert.equal('2', server:command('GET', 'pool'))
  end)

  it('waits for a permit', function()
    local gate = program.gate()
    local holder = start({ '--kind', 'permit:1', 'pool' }, gate.command)
    gate.started()
    local waiter = start({ '--kind', 'permit:1', '--wait', '60s', 'pool' }, { 'echo', 'mine' })
    program.eventually('it waits', function()
      return server:command('PUBSUB', 'NUMSUB', 'redisson_sc:{pool}'):find('\n1$')
    end)

    gate.open()

    assert.equal(0, holder:wait().code)
    assert.equal('mine\n', waiter:wait().out)
  end)

  it('names both numbers when another total stands, and changes it when it is told to', function()
    assert.equal(0, exec({ '--kind', 'permit:2', 'pool' }, { 'true' }).code)

    local other = exec({ '--kind', 'permit:3', 'pool' }, { 'true' })
    assert.equal(64, other.code)
    assert.truthy(other.err:find('is set to 2 permits, not 3', 1, true))

    assert.equal(0, exec({ '--kind', 'permit:3', '--set-limit', 'pool' }, { 'true' }).code)
    assert.equal('3', server:command('GET', 'pool'))
  end)

  it('refuses numbers that are none, and a limit without permits', function()
    for _, kind in ipairs({ 'permit:', 'permit:0', 'permit:x', 'permit:99999999999' }) do
      assert.equal(64, exec({ '--kind', kind, 'pool' }, { 'true' }).code, kind)
    end
    local limited = exec({ '--set-limit', 'pool' }, { 'true' })
    assert.equal(64, limited.code)
    assert.truthy(limited.err:find('goes with --kind permit:N', 1, true))
    assert.equal('0', server:command('DBSIZE'))
  end)

  it('tells the command to end when its permit is lost', function()
    local gate = program.gate()
    local holder = start({ '--kind', 'permit:1', '--lease', '1500ms', 'pool' }, gate.command)
    gate.started()

    server:command('FLUSHALL')

    assert.equal(80, holder:wait().code)
  end)

  it('gives each exec inside another a permit of its own', function()
    local inner = ('"%s" exec --url %s --kind permit:2 pool -- redis-cli -s %s GET pool')
      :format(program.path, server.url, server.socket)
    local result = exec({ '--kind', 'permit:2', 'pool' }, { 'sh', '-c', inner })

    assert.equal(0, result.code)
    assert.equal('0\n', result.out)
  end)
end)

describe('latchkey exec --metrics', function()
  after_each(program.clean)

  it('leaves what was counted in a file, in one piece', function()
    local server = program.server()
    local file = program.folder() .. '/job.prom'

    local result = program.run(program.exec(server, { '--metrics', file, 'job' }, { 'true' }))

    assert.equal(0, result.code)
    local text = assert(utils.readfile(file))
    for _, what in ipairs({ 'acquired', 'released' }) do
      assert.truthy(text:find(('\nlatchkey_lock_%s_total{lock="job",kind="lock"} 1\n'):format(what),
        1, true), text)
    end
    assert.truthy(text:find('\nlatchkey_exec_exit_code{lock="job"} 0\n', 1, true))
  end)

  -- The node exporter takes a series from one file alone.
  it('has no series of another job, and each line has the form that Prometheus reads', function()
    local server = program.server()
    local folder, seen = program.folder(), {}

    for i, name in ipairs({ 'one', 'two"\\\t\200' }) do
      local file = ('%s/%d.prom'):format(folder, i)
      assert.equal(0,
        program.run(program.exec(server, { '--metrics', file, name }, { 'true' })).code)
      for line in assert(utils.readfile(file)):gmatch('[^\n]+') do
        local series = line:match('^(latchkey_[%l_]+{.*}) [%d.]+$')
        assert.truthy(series or line:find('^# %u+ latchkey_[%l_]+ '), line)
        assert.is_nil(series and seen[series])
        seen[series or ''] = true
      end
    end

    assert.is_true(seen['latchkey_holds{lock="one"}'])
    assert.is_true(seen['latchkey_holds{lock="two\\"\\\\%09%C8"}'])
  end)

  it('is written where no server could be reached, and where the keeper was killed', function()
    local server = program.server()
    local file = program.folder() .. '/job.prom'
    local function said(code)
      local text = assert(utils.readfile(file))
      assert.truthy(text:find(('\nlatchkey_exec_exit_code{lock="job"} %d\n'):format(code), 1, true),
        text)
      assert.truthy(text:find('\nlatchkey_exec_ended_seconds{lock="job"} 1%d+\n'), text)
    end

    local away = program.run({ 'exec', '--url', 'unix:///nowhere', '--wait', '0ms', '--metrics',
      file, 'job', '--', 'true' })
    assert.equal(69, away.code)
    said(69)

    local killed = program.run(program.exec(server, { '--metrics', file, 'job' },
      { 'sh', '-c', 'kill -KILL $PPID; sleep 20' }))
    assert.equal(80, killed.code)
    said(80)
  end)

  -- As in a crontab that was changed at noon.
  it('is written where the call is refused, wherever the mistake stands', function()
    local file, report = program.folder() .. '/job.prom', program.folder() .. '/report'
    for _, words in ipairs({
      { '--wait', '5 minutes', '--metrics', file, '--report', report, 'job', 'a', '--', 'true' },
      { 'job', 'a', '--report', report, '--metrics', file, '--bogus', '--', 'true' },
      { '--metrics', file, '--report', report, 'job', 'a', 'job' } }) do
      assert(utils.writefile(file, 'latchkey_exec_succeeded_seconds{lock="a job"} 1234567\n'))
      os.remove(report)

      local result = program.run({ 'exec', '--url', 'unix:///nowhere', unpack(words) })

      assert.equal(64, result.code, result.err)
      local text = assert(utils.readfile(file))
      assert.truthy(text:find('\nlatchkey_exec_exit_code{lock="a job"} 64\n', 1, true), text)
      assert.truthy(text:find('\nlatchkey_exec_ended_seconds{lock="a job"} 1%d+\n'), text)
      assert.truthy(text:find('\nlatchkey_exec_succeeded_seconds{lock="a job"} 1234567\n', 1, true),
        text)
      assert.same({ 64, 'LK_INVALID' }, { program.json(report).exit,
        program.json(report).error.status })
    end
  end)

  it('is written, with the report, where the system gives no descriptors', function()
    -- Without those of the specs; to look for leaks takes descriptors, too.
    local few = 'for fd in 3 4 5 6 7 8 9; do eval "exec $fd>&-"; done; ulimit -n "$1"; shift\n'
      .. 'ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0 exec "$0" "$@"'
    -- The sockets between front and keeper; what the front waits on; what the keeper does.
    for limit = 4, 7 do
      local file, report = program.folder() .. '/job.prom', program.folder() .. '/report'

      local result = program.start_any('sh', { '-c', few, program.path, tostring(limit), 'exec',
        '--url', 'unix:///nowhere', '--wait', '0ms', '--metrics', file, '--report', report, 'job',
        '--', 'true' }):wait()

      assert.equal(70, result.code, result.err)
      assert.truthy(assert(utils.readfile(file)):find(
        '\nlatchkey_exec_exit_code{lock="job"} 70\n', 1, true))
      assert.same({ 70, 'LK_SYSTEM' }, { program.json(report).exit,
        program.json(report).error.status })
    end
  end)

  -- Busy every night is no success, though each run ends.
  it('keeps the time of the last run whose job was done, through those that were busy', function()
    local server = program.server()
    local file = program.folder() .. '/job.prom'
    local function succeeded(name, options, command)
      local code = program.run(program.exec(server, { '--metrics', file, name,
        unpack(options) }, command)).code
      local text = assert(utils.readfile(file))
      local pattern = ('\nlatchkey_exec_succeeded_seconds{lock="%s"} (%%d+)\n'):format(name)
      return tonumber(text:match(pattern)), code
    end
    local function set(name, seconds)
      assert(utils.writefile(file, ('latchkey_exec_succeeded_seconds{lock="%s"} %d\n'):format(name,
        seconds)))
    end

    assert.equal(0, (succeeded('job', {}, { 'false' })))
    assert.is_true(succeeded('job', {}, { 'true' }) > 1600000000)
    set('job', 1234567)
    server:command('SET', 'job', 'another owner')
    local seconds, code = succeeded('job', { '--wait', '0ms', '--kind', 'mutex' }, { 'true' })
    assert.equal(75, code)
    assert.equal(1234567, seconds)
    seconds, code = succeeded('job', { '--wait', '0ms', '--kind', 'mutex', '--busy-exit', '0' },
      { 'true' })
    assert.equal(0, code)
    assert.equal(1234567, seconds)
    -- A file that was another job's says nothing of this one.
    assert.equal(0, (succeeded('jo', {}, { 'false' })))
    -- Another run has done it in this period.
    assert.is_true(succeeded('nightly', { '--every', '1h' }, { 'true' }) > 1600000000)
    set('nightly', 1)
    seconds, code = succeeded('nightly', { '--every', '1h', '--done-code', '3' }, { 'true' })
    assert.equal(3, code)
    assert.is_true(seconds > 1600000000)
  end)

  -- As where the collector's folder has links to files on another disk, or of another machine.
  it('writes what a link leads to, in one piece, and leaves the link', function()
    local server, folder = program.server(), program.folder()
    assert(lfs.mkdir(folder .. '/there'))
    local link, target = folder .. '/job.prom', folder .. '/there/real.prom'
    assert(lfs.link('there/real.prom', folder .. '/second.prom', true))
    assert(lfs.link('second.prom', link, true))
    local old

    -- The first run makes the file. The next takes its place: who reads the old one reads on.
    for run, command in ipairs({ { 'true' }, { 'false' } }) do
      local result = program.run(program.exec(server, { '--metrics', link, 'job' }, command))

      assert.equal(run - 1, result.code, result.err)
      assert.equal('', result.err)
      assert.equal('link', lfs.symlinkattributes(link, 'mode'))
      assert.equal('link', lfs.symlinkattributes(folder .. '/second.prom', 'mode'))
      assert.equal('file', lfs.symlinkattributes(target, 'mode'))
      assert.truthy(utils.readfile(target):find(
        ('\nlatchkey_exec_exit_code{lock="job"} %d\n'):format(run - 1), 1, true))
      old = old or assert(io.open(target))
    end

    assert.truthy(old:read('*a'):find('\nlatchkey_exec_exit_code{lock="job"} 0\n', 1, true))
    old:close()
    assert.same({ target }, dir.getfiles(folder .. '/there'))
  end)

  it('says so where a link leads nowhere, and leaves it', function()
    local server, folder = program.server(), program.folder()
    local link = folder .. '/job.prom'
    assert(lfs.link('none/real.prom', link, true))

    local result = program.run(program.exec(server, { '--metrics', link, 'job' }, { 'true' }))

    assert.equal(0, result.code)
    assert.truthy(result.err:find('the metrics ' .. link .. ' were not written', 1, true))
    assert.equal('link', lfs.symlinkattributes(link, 'mode'))
  end)

  it('says so when it cannot, and the command has its exit code all the same', function()
    local server = program.server()
    local file = program.folder() .. '/no/such/folder'

    local result = program.run(program.exec(server, { '--metrics', file, 'job' },
      { 'sh', '-c', 'exit 3' }))

    assert.equal(3, result.code)
    assert.truthy(result.err:find('were not written', 1, true))
    assert.is_false(path.exists(file) and true or false)
  end)
end)

-- SPDX-License-Identifier: Apache-2.0
-- What exec cannot end, because it has no right to or cannot see it: it tells of that.
local signal = require('posix.signal')
local unistd = require('posix.unistd')
local utils = require('pl.utils')

local program = require('cli.program')

local NOBODY = { 'setpriv', '--reuid', '65534', '--regid', '65534', '--clear-groups' }

describe('latchkey exec, when it cannot end its job', function()
  local server, folder

  before_each(function()
    if unistd.geteuid() ~= 0 then
      pending('needs root')
    end
    if program.start_any('setpriv', { '--reuid', '65534', program.path, '--version' }):wait()
      .code ~= 0 then
      pending('another user cannot run ' .. program.path)
    end
    server = program.server('--unixsocketperm', '777')
    folder = program.folder()
    -- A program that changes its user, as sudo and su do.
    assert(utils.execute(('chmod 755 %s %s; cp "$(command -v setpriv)" %s/as; chmod 4755 %s/as')
      :format(folder, server.socket:match('^(.*)/'), folder, folder)))
  end)

  after_each(program.clean)

  -- Runs as nobody, with a child of CMD as the user daemon, for 60 s; in a shell after `before`.
  -- `command`: another CMD.
  local function start(options, before, command)
    local words = { '--mount', 'sh', '-c', (before or ':') .. ' && exec "$@"', 'sh' }
    command = command or { 'sh', '-c',
      '"$0/as" --reuid 1 --clear-groups sh -c "echo \\$\\$; exec sleep 60"; exit 5', folder }
    for _, list in ipairs({ NOBODY, { program.path },
      program.exec(server, { '--lease', '6s', unpack(options) }, command) }) do
      for _, word in ipairs(list) do
        words[#words + 1] = word
      end
    end
    return program.start_any('unshare', words)
  end

  local function other(holder)
    return tonumber((program.eventually('the other user works', function()
      return utils.readfile(holder.out_file):match('^(%d+)\n')
    end)))
  end

  local function says(holder, pattern)
    local good, found = pcall(program.eventually, 'it says ' .. pattern, function()
      return utils.readfile(holder.err_file):match(pattern)
    end, 50)
    return good and found or error(found .. '; but: ' .. utils.readfile(holder.err_file), 2)
  end

  -- When it is told to end; then the other one is ended.
  local function keeps_the_lock(holder, pid)
    holder:kill(signal.SIGTERM)
    local named = says(holder, 'cannot be ended, so the lock is kept until it ends: (.-)\n')
    local is_renewed = server:is_renewed('job', 1)
    signal.kill(pid, signal.SIGKILL)
    local result = holder:wait()

    assert.equal(('sleep (pid %d, uid 1)'):format(pid), named)
    assert.is_true(is_renewed, result.err)
    assert.equal(signal.SIGTERM, result.signal)
  end

  it('keeps the lock for as long as another user works, and names it', function()
    local holder = start({ 'job' })
    local pid = other(holder)

    keeps_the_lock(holder, pid)
    assert.is_true(server:is_free('job'))
  end)

  it('names it when the lock is lost, and reports it', function()
    local file = folder .. '/report'
    assert(utils.execute('chmod 777 ' .. folder))
    local holder = start({ '--on-lost', 'kill', '--report', file, 'job' })
    local pid = other(holder)

    server:command('DEL', 'job')
    local result = holder:wait()
    local goes_on = not program.is_gone(pid)
    signal.kill(pid, signal.SIGKILL)

    assert.equal(80, result.code)
    assert.is_true(goes_on)
    assert.truthy(result.err:find(('and goes on without the lock: sleep (pid %d, uid 1)')
      :format(pid), 1, true), result.err)
    assert.same({ { pid = pid, user = '1', command = 'sleep' } }, program.json(file).unended)
  end)

  it('names it when the keeper was killed, too', function()
    local holder = start({ 'job' })
    local pid = other(holder)

    signal.kill(holder:keeper(), signal.SIGKILL)
    local result = holder:wait()
    signal.kill(pid, signal.SIGKILL)

    assert.equal(80, result.code)
    assert.truthy(result.err:find(('sleep (pid %d, uid 1)'):format(pid), 1, true), result.err)
  end)

  it('names it while the user database does not answer', function()
    local holder = start({ 'job' })
    local pid = other(holder)
    -- Who opens a pipe to read it waits for a writer, as for a directory server that is away.
    assert(utils.execute(('mkfifo %s/passwd; nsenter --mount --target %d mount --bind %s/passwd '
      .. '/etc/passwd'):format(folder, holder.pid, folder)))

    keeps_the_lock(holder, pid)
  end)

  it('says once that it may not pass a signal on', function()
    local holder = start({ 'job' }, nil, { folder .. '/as', '--reuid', '1', '--clear-groups', 'sh',
      '-c', 'echo $$; exec sleep 60' })
    local pid = other(holder)

    holder:kill(signal.SIGTERM)
    says(holder, ('signal 15 was not passed on to the command %%(pid %d%%), which this user may '
      .. 'not signal; try: sudo kill %%-15 %d\n'):format(pid, pid))
    holder:kill(signal.SIGTERM)
    server:command('BLPOP', 'nothing', '0.5')
    local goes_on = not program.is_gone(pid)
    signal.kill(pid, signal.SIGKILL)
    local result = holder:wait()

    assert.is_true(goes_on)
    assert.equal(signal.SIGKILL, result.signal)
    assert.equal(1, select(2, result.err:gsub('passed on', '')), result.err)
  end)

  it('makes such processes impossible with --no-new-privs', function()
    local holder = start({ '--no-new-privs', 'job' })

    assert.equal(5, holder:wait().code)
    assert.equal('', holder.result.out)
  end)

  it('says so where /proc is that of another PID namespace', function()
    local holder = program.start_any('unshare', { '--pid', '--fork', '--kill-child', program.path,
      unpack(program.exec(server, { '--leftover', 'end', 'job' },
        { 'sh', '-c', 'sleep 60 &' })) })
    local good, message = pcall(says, holder,
      'the lock is kept until it ends: (a process that cannot be seen)')
    local is_free = server:is_free('job')
    holder:kill(signal.SIGKILL)
    holder:wait()

    assert.is_true(good, message)
    assert.is_false(is_free)
  end)

  it('says so when the system does not let it see the other user', function()
    local holder = start({ 'job' }, 'mount -t proc -o hidepid=2 proc /proc')
    local pid = other(holder)

    holder:kill(signal.SIGTERM)
    says(holder, 'the lock is kept until it ends: (a process that cannot be seen)')
    local is_free = server:is_free('job')
    signal.kill(pid, signal.SIGKILL)
    local result = holder:wait()

    assert.is_false(is_free)
    assert.equal(signal.SIGTERM, result.signal)
  end)
end)

-- SPDX-License-Identifier: Apache-2.0
-- Exec as it is typed: at the prompt of a shell on a terminal.
local fcntl = require('posix.fcntl')
local poll = require('posix.poll')
local stdlib = require('posix.stdlib')
local unistd = require('posix.unistd')
local utils = require('pl.utils')

local job_cases = require('cli.job_cases')
local program = require('cli.program')
local workshop = require('support.workshop')

local SHELLS = { bash = { 'bash', '--norc', '--noprofile', '-i' }, dash = { 'dash', '-i' } }

local Terminal = {}
Terminal.__index = Terminal

local function open(shell, url)
  local self = setmetatable({ shown = '' }, Terminal)
  self.master = assert(stdlib.openpt(fcntl.O_RDWR + fcntl.O_NOCTTY))
  -- Or what is started later would keep the terminal open.
  fcntl.fcntl(self.master, fcntl.F_SETFD, fcntl.FD_CLOEXEC)
  assert(stdlib.grantpt(self.master))
  assert(stdlib.unlockpt(self.master))
  self.shell = program.start_any('setsid', { 'sh', '-c', 'exec <"$0" >"$0" 2>&1; exec "$@"',
    stdlib.ptsname(self.master), unpack(SHELLS[shell]) },
    { env = { LATCHKEY_URL = url, LATCHKEY = program.path, PS1 = 'ready> ', TERM = 'xterm',
      ENV = false, LATCHKEY_HELD = false } })
  self:shows('ready> ')
  return self
end

function Terminal:read()
  while poll.rpoll(self.master, 0) == 1 do
    local bytes = unistd.read(self.master, 65536)
    if not bytes or bytes == '' then
      return
    end
    self.shown = self.shown .. bytes
  end
end

-- Waits for a pattern in what comes after what was found before.
function Terminal:shows(pattern)
  local good, found = pcall(program.eventually, 'the terminal shows ' .. pattern, function()
    self:read()
    local first, last = self.shown:find(pattern)
    if first then
      local text = self.shown:sub(first, last)
      self.shown = self.shown:sub(last + 1)
      return text
    end
  end)
  return good and found or error(found .. '\n' .. self.shown, 2)
end

function Terminal:press(keys)
  unistd.write(self.master, keys)
end

function Terminal:close()
  unistd.close(self.master)
  self.master = nil
end

for shell in pairs(SHELLS) do
  describe('latchkey exec at the prompt of ' .. shell, function()
    local server, folder, terminal
    local lacks = workshop.lacks(shell)
    local it = not lacks and it or function(title)
      pending(title .. ': ' .. lacks)
    end

    before_each(function()
      server, folder = program.server(), program.folder()
      terminal = open(shell, server.url)
    end)

    after_each(function()
      if terminal and terminal.master then
        terminal:close()
      end
      program.clean()
    end)

    local function write_script(name, text)
      assert(utils.writefile(folder .. '/' .. name, text))
      return folder .. '/' .. name
    end

    -- A script whose child works. It forks no more when ^Z comes: dash waits for a child that is
    -- stopped between its fork and its exec, and cannot be stopped itself then.
    local function work()
      local worker = write_script('worker.lua', job_cases.WORKER)
      return write_script('work.sh', ('exec 9>>%s/work; luajit %s; :\n'):format(folder, worker))
    end

    local function worked()
      return #(utils.readfile(folder .. '/work') or '')
    end

    local function works_on()
      local before = worked()
      local good, message = pcall(program.eventually, 'it works', function()
        return worked() > before + 100
      end)
      if not good then
        terminal:read()
        error(message .. '\n' .. terminal.shown, 2)
      end
    end

    local function let_pass(seconds)
      server:command('BLPOP', 'nothing', tostring(seconds))
    end

    it('keeps the lock through ^Z and fg, and ends by ^C', function()
      terminal:press(('"$LATCHKEY" exec --lease 9s job -- sh %s\n'):format(work()))
      works_on()

      terminal:press('\26')
      terminal:shows('ready> ')
      local worker = utils.readfile(folder .. '/work'):match('^(%d+) ')
      program.eventually('the worker is stopped', function()
        return program.state(worker) == 'T'
      end)
      local before = worked()
      local is_renewed = server:is_renewed('job', 2)
      local stood_still = worked() == before
      terminal:press('fg\n')
      works_on()
      terminal:press('\3')
      terminal:shows('ready> ')
      terminal:press('echo "code $?"\n')

      terminal:shows('code 130')
      assert.is_true(stood_still)
      assert.is_true(is_renewed)
      assert.is_true(server:is_free('job'))
    end)

    it('reads from the terminal, and feeds a pager in a pipeline', function()
      if program.start_any('sh', { '-c', 'command -v less' }):wait().code ~= 0 then
        pending('less is not installed')
      end
      terminal:press('"$LATCHKEY" exec job -- seq 100000 | less\n')
      terminal:shows('\n:')
      local held = not server:is_free('job')
      terminal:press('q')
      terminal:shows('ready> ')
      program.eventually('the lock is free', function()
        return server:is_free('job')
      end)
      terminal:press('"$LATCHKEY" exec job -- sh -c "seq 100000 | less"\n')
      terminal:shows('\n:')
      terminal:press('q')
      terminal:shows('ready> ')

      assert.is_true(held)
      assert.is_true(server:is_free('job'))
    end)

    it('ends the script that it stands in by ^C', function()
      local script = write_script('script.sh', '"$LATCHKEY" exec job -- sleep 60\necho next line\n')
      terminal:press(('%s %s\n'):format(shell, script))
      program.eventually('the lock is held', function()
        return not server:is_free('job')
      end)

      terminal:press('\3')
      terminal:shows('ready> ')
      terminal:press('echo "code $?"\n')

      terminal:shows('code 130')
      assert.falsy(terminal.shown:find('next line', 1, true))
      assert.is_true(server:is_free('job'))
    end)

    it('ends a script that waits for the lock by ^C', function()
      server:command('HSET', 'job', 'another', '1')
      local script = write_script('script.sh', '"$LATCHKEY" exec job -- true\necho next line\n')
      terminal:press(('%s %s\n'):format(shell, script))
      program.eventually('it waits', function()
        return server:waiters('job') == 1
      end)

      terminal:press('\3')

      assert.falsy(terminal:shows('.-ready> '):find('next line', 1, true))
    end)

    it('ends with the window', function()
      terminal:press(('"$LATCHKEY" exec job -- sh %s\n'):format(work()))
      works_on()

      terminal:close()
      program.eventually('the lock is free', function()
        return server:is_free('job')
      end)
      local before = worked()
      let_pass(0.5)

      assert.equal(before, worked())
    end)

    it('ends with the window when it is stopped', function()
      terminal:press(('"$LATCHKEY" exec job -- sh %s\n'):format(work()))
      works_on()
      terminal:press('\26')
      terminal:shows('ready> ')

      terminal:close()

      program.eventually('the lock is free', function()
        return server:is_free('job')
      end)
    end)
  end)
end

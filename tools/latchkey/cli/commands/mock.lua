-- SPDX-License-Identifier: Apache-2.0
local text = require('latchkey.text')

local command = { summary = 'a server for tests: it keeps nothing, and its time can be moved' }

-- What a shell says of a program that is not there, of one that it cannot run, and of one that a
-- signal has ended.
local NOT_FOUND, NOT_RUN, BY_SIGNAL = 127, 126, 128
-- As on a server: so many clients, and descriptors that are none of theirs.
local CLIENTS_MAX, RESERVED = 10000, 32

function command.configure(parser)
  parser:argument('command', 'Run this with LATCHKEY_URL set, and end with it.'):args('*')
    :argname('COMMAND')
  parser:option('--url', 'Where to listen: redis://127.0.0.1:PORT, 0 for a free one, or '
    .. 'unix:///PATH; may be given several times. Without it, a free port.')
    :argname('URL'):count('*')
  parser:option('--time', 'real: it flows; manual: it moves by MOCK ADVANCE alone.', 'real')
    :choices({ 'real', 'manual' })
  parser:flag('--strict', 'Refuse what latchkey forbids and a server tolerates.')
  parser:epilog('It listens on this machine alone, prints its URL when it is there, and ends with '
    .. 'a signal. Beside the commands of Redis it knows MOCK: redis-cli -u URL MOCK HELP lists '
    .. 'what a test may ask. With a COMMAND, the exit code is the command\'s own. LATCHKEY_URL is '
    .. 'not used.')
end

local function max_clients()
  local resource = require('posix.sys.resource')
  local most = resource.getrlimit(resource.RLIMIT_NOFILE).rlim_cur
  return most < 0 and CLIENTS_MAX or math.max(1, math.min(CLIENTS_MAX, most - RESERVED))
end

local function new_front(args, places, listener)
  local Front = require('latchkey.mock.front')
  local World = require('latchkey.mock.world')
  local world = World.new({ strict = args.strict or false, time = 'frozen' })
  local place = places[1]
  local front = Front.new({ world = world, password = places.password,
    max_clients = max_clients(), process = {
    process_id = require('posix.unistd').getpid(), tcp_port = listener.port,
    address = place.path and place.path .. ':0' or ('%s:%d'):format(place.shown, listener.port),
  } })
  local time = require('posix.time')
  local now = time.clock_gettime(time.CLOCK_REALTIME)
  front:at(now.tv_sec * 1000 + math.floor(now.tv_nsec / 1e6))
  front.began_ms = front:now_ms()
  front.flows = args.time == 'real'
  return front
end

-- The child has the signals as they were, and the URL, with the password that is the mock's.
local function start(words, url, signals)
  local stdlib, unistd = require('posix.stdlib'), require('posix.unistd')
  local pid = assert(unistd.fork())
  if pid == 0 then
    signals:restore()
    require('posix.signal').signal(require('posix.signal').SIGPIPE,
      require('posix.signal').SIG_DFL)
    stdlib.setenv('LATCHKEY_URL', url)
    stdlib.setenv('LATCHKEY_PASSWORD', nil)
    local arguments = {}
    for i, word in ipairs(words) do
      arguments[i - 1] = word
    end
    local _, why, code = unistd.execp(words[1], arguments)
    io.stderr:write('latchkey mock: ', text.safe(tostring(why)), '\n')
    unistd._exit(code == require('posix.errno').ENOENT and NOT_FOUND or NOT_RUN)
  end
  return pid
end

-- Ends the listener with a signal; with a child, when that has ended. Returns the exit code.
local function serve(listener, front, signals, child)
  local signal, wait = require('posix.signal'), require('posix.sys.wait')
  local code = 0
  listener:watch(signals.fd, function()
    local number, from_terminal = signals:take()
    if number == signal.SIGCHLD and child then
      local pid, how, value = wait.wait(child, wait.WNOHANG)
      if pid == child then
        code = how == 'exited' and value or BY_SIGNAL + value
        listener:stop()
      end
    elseif number and number ~= signal.SIGCHLD and child then
      -- The terminal tells the command itself, and one Ctrl-C must not look like two.
      if not from_terminal then
        signal.kill(child, number)
      end
    elseif number and number ~= signal.SIGCHLD then
      listener:stop()
    end
  end)
  listener:run(front)
  return code
end

local function read_places(urls)
  local places = {}
  for i, url in ipairs(urls[1] and urls or { 'redis://127.0.0.1:0' }) do
    local place, wrong = require('latchkey.mock.address').read(url)
    if not place then
      return nil, wrong
    elseif place.password and places.password and place.password ~= places.password then
      return nil, 'a server has one password'
    end
    places[i], places.password = place, places.password or place.password
  end
  return places
end

function command.run(args, ctx)
  local places, wrong = read_places(args.url)
  if not places then
    return ctx:misuse(wrong)
  end
  local signal = require('posix.signal')
  local signals, why = require('latchkey.cli.signals').open('SIGTERM', 'SIGINT', 'SIGHUP',
    'SIGQUIT', 'SIGCHLD')
  local listener
  if signals then
    listener, why = require('latchkey.mock.listener').open(places)
  end
  if not listener then
    return ctx:fail({ status = 'LK_UNREACHABLE', message = ('cannot listen: %s'):format(why) })
  end
  signal.signal(signal.SIGPIPE, signal.SIG_IGN)
  -- Who started this may ignore it, and then nobody would be told how the command ended.
  signal.signal(signal.SIGCHLD, signal.SIG_DFL)
  local front = new_front(args, places, listener)
  local child = args.command[1] and start(args.command, listener.urls[1], signals)
  local is_told = child ~= nil
  if not child then
    is_told = ctx:result({ urls = listener.urls, process = require('posix.unistd').getpid() },
      table.concat(listener.urls, '\n') .. '\n') and ctx.stdout:flush()
  end
  -- Nobody would learn where it is: what could not be written is said behind the end.
  local code = is_told and serve(listener, front, signals, child) or 0
  listener:close()
  signals:close()
  return code
end

return command

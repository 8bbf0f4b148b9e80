-- SPDX-License-Identifier: Apache-2.0
-- Processes that share a server: applications of Redisson and of latchkey. Without a Redisson, as
-- in the specs, latchkey stands in for it, so that the scenarios themselves are tried.
local clock = require('posix.time')

local utils = require('pl.utils')

local Process = require('interop.both.process')
local helper = require('helper')
local latchkey = require('latchkey')

local people = {}

local URL = os.getenv('LATCHKEY_SPEC_URL')
local DRIVER = os.getenv('LATCHKEY_REDISSON_DRIVER')

local PEER = ('env LUA_PATH=%s luajit %s %s'):format(
  utils.quote_arg(('%s/tools/?.lua;%s/tools/?/init.lua;;'):format(helper.root, helper.root)),
  utils.quote_arg(helper.root .. '/tools/lib/interop/peer.lua'), utils.quote_arg(URL))

people.is_real = DRIVER ~= nil
---The long forms of the scenarios, as Redisson and latchkey are by default.
people.is_full = os.getenv('LATCHKEY_INTEROP_FULL') == '1'

---One of three: for the stand-in, as usual, and in full.
function people.choose(brief, usual, full)
  return not people.is_real and brief or people.is_full and full or usual
end

---What runs beside latchkey.
people.other = DRIVER and 'Redisson' or 'another process'

local running, lacks = {}, nil

local function start(command)
  local process = Process.start(command)
  process:ask('version')
  running[process] = true
  return process
end

---@param watchdog_ms? integer the lease of its locks; Redisson's default is 30,000
function people.java(watchdog_ms)
  return start(DRIVER and DRIVER .. (watchdog_ms and ' ' .. watchdog_ms or '') or PEER)
end

function people.latchkey()
  return start(PEER)
end

---A process dies as it stands: nothing is given back.
function people.kill(process)
  running[process] = nil
  process:kill()
end

---Which kind is missing on the other side?
function people.lacks(kind)
  if not lacks then
    lacks = people.java():ask('lacks') or ''
  end
  return lacks == kind
end

---The server, emptied; everybody from before is gone.
---@return latchkey.client
function people.begin()
  for process in pairs(running) do
    people.kill(process)
  end
  people.server = people.server or assert(latchkey.open(URL, { script_dir = helper.scripts }))
  assert(people.server:command('FLUSHALL'))
  return people.server
end

people.finish = people.begin

function people.pause(ms)
  clock.nanosleep({ tv_sec = math.floor(ms / 1000), tv_nsec = ms % 1000 * 1e6 })
end

function people.now_ms()
  local now = clock.clock_gettime(clock.CLOCK_MONOTONIC)
  return now.tv_sec * 1000 + math.floor(now.tv_nsec / 1e6)
end

---Looks again and again.
function people.see(what, is_seen)
  local end_ms = people.now_ms() + 20000
  repeat
    if is_seen() then
      return
    end
    people.pause(10)
  until people.now_ms() > end_ms
  error('not seen in time: ' .. what, 2)
end

---Begins a call that waits; `still_waits` and `comes_back` say what becomes of it.
function people.ask(process, thread, ...)
  local waiter = { process = process, thread = thread }
  if DRIVER and process.command:sub(1, #DRIVER) == DRIVER then
    process:ask('begin', thread, ...)
    waiter.begun = true
  else
    process:say(thread, ...)
  end
  return waiter
end

---The answer to it, or an error after `within_ms`.
function people.comes_back(waiter, within_ms)
  within_ms = within_ms or 20000
  if waiter.begun then
    return waiter.process:ask('await', waiter.thread, within_ms)
  end
  return waiter.process:answer(within_ms)
end

---Redisson has nothing under way: who waits there has looked, listens, and sleeps. Its connections
---are the only ones over TCP.
function people.see_asleep()
  if not DRIVER then
    return people.pause(300)
  end
  people.see('Redisson asleep', function()
    for line in people.server:command('CLIENT', 'LIST'):gmatch('[^\n]+') do
      local idle_s, command = line:match(' idle=(%d+) .* cmd=(%S+)')
      if line:find(' addr=127.0.0.1:', 1, true) and command ~= 'ping' and tonumber(idle_s) < 2 then
        return false
      end
    end
    return true
  end)
end

---How many listen on a channel.
function people.listeners(channel)
  return people.server:command('PUBSUB', 'NUMSUB', channel)[2]
end

---A figure, for whoever reads the results.
function people.note(format, ...)
  io.stdout:write('# ', format:format(...), '\n')
end

return people

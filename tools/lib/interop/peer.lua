-- SPDX-License-Identifier: Apache-2.0
-- luajit peer.lua URL: a process that uses liblatchkey, told what to call as RedissonDriver.java
-- is, a call a line: `THREAD KIND METHOD NAME ARGUMENT...`, answered by "= VALUE" or "! WHY".
-- It has one thread: THREAD is the caller, and a call that waits keeps all others waiting.
local ffi = require('ffi')
local clock = require('posix.time')

local latchkey = require('latchkey')

-- The binding has locks alone; what counts is opened here.
local registry = debug.getregistry()
local lib = registry['latchkey.library']
local raised = ffi.new('lk_error')

local client = assert(latchkey.open(arg[1]))
local handles, callers = {}, {}

local function now_us()
  local now = clock.clock_gettime(clock.CLOCK_REALTIME)
  return now.tv_sec * 1000000 + math.floor(now.tv_nsec / 1000)
end

local function must(value, err)
  return value or error({ text = ('%s %s'):format(err.status, err.message) })
end

local function check(status)
  if tonumber(status) ~= lib.LK_OK then
    error({ text = ('%s %s'):format(ffi.string(lib.lk_status_name(status)),
      ffi.string(raised.message)) })
  end
end

local function caller_of(thread)
  callers[thread] = callers[thread] or must(client:caller())
  return callers[thread]
end

-- ---- locks --------------------------------------------------------------------------------------

local LOCKS = { lock = true, fenced = true, fair = true, read = true, write = true }

local function open_lock(kind, name, lease_ms)
  local key = table.concat({ kind, name, lease_ms or '' }, ' ')
  handles[key] = handles[key] or must(client:lock(kind, name, { lease_ms = tonumber(lease_ms),
    renew = true }))
  return handles[key]
end

-- The handle by which a caller holds it may have another lease: any handle of the name will do.
local Lock = {}

function Lock.try_lock(lock, caller)
  local held, err = lock:acquire(0, caller)
  return held and 1 or err.status == 'LK_BUSY' and 0 or must(held, err)
end

-- Why it was refused, in the words that a user reads.
function Lock.why(lock, caller)
  return select(2, lock:acquire(0, caller)).message
end

function Lock.lock(lock, caller)
  must(lock:acquire(latchkey.FOREVER, caller))
  return 1
end

function Lock.lock_at(lock, caller)
  must(lock:acquire(latchkey.FOREVER, caller))
  return now_us()
end

function Lock.unlock(lock, caller)
  must(lock:release(caller))
  return 1
end

function Lock.unlock_at(lock, caller)
  local at = now_us()
  must(lock:release(caller))
  return at
end

function Lock.hold_count(lock, caller)
  return lock:hold_count(caller)
end

function Lock.owner(lock, caller)
  return lock:owner(caller)
end

-- Takes it again and again, and raises a number by a step that is not indivisible: so many times,
-- and how long the longest of its waits was.
function Lock.storm(lock, caller, counter, for_ms, hold_ms)
  local end_us, taken, longest_us = now_us() + for_ms * 1000, 0, 0
  while now_us() < end_us do
    local asked_us = now_us()
    must(lock:acquire(latchkey.FOREVER, caller))
    longest_us = math.max(longest_us, now_us() - asked_us)
    local before = client:command('GET', counter)
    clock.nanosleep({ tv_sec = 0, tv_nsec = hold_ms * 1e6 })
    must(client:command('SET', counter, tonumber(before or 0) + 1))
    must(lock:release(caller))
    taken = taken + 1
  end
  return taken .. ' ' .. longest_us
end

-- ---- what counts --------------------------------------------------------------------------------

local function counter_options(kind)
  local options = ffi.new(kind)
  options.size = ffi.sizeof(kind)
  return options
end

local function opener(call, options_kind, out_kind)
  return function(name)
    local out = ffi.new(out_kind)
    check(lib[call](client.pointer, name, counter_options(options_kind), out, raised))
    return out[0]
  end
end

local COUNTERS = {
  semaphore = {
    open = opener('lk_semaphore_open', 'lk_counter_options', 'lk_semaphore *[1]'),
    take = function(semaphore)
      check(lib.lk_semaphore_acquire(semaphore, 1, latchkey.FOREVER, raised))
    end,
    give = function(semaphore)
      check(lib.lk_semaphore_release(semaphore, 1, 0, nil, raised))
    end,
  },
  permit = {
    open = opener('lk_permits_open', 'lk_permits_options', 'lk_permits *[1]'),
    take = function(permits)
      local out = ffi.new('lk_permit *[1]')
      check(lib.lk_permits_acquire(permits, 1, latchkey.FOREVER, out, raised))
      handles['held permit'] = out[0]
    end,
    give = function()
      check(lib.lk_permit_release(handles['held permit'], raised))
    end,
  },
  countdown = {
    open = opener('lk_countdown_open', 'lk_counter_options', 'lk_countdown *[1]'),
    take = function(latch)
      check(lib.lk_countdown_wait(latch, latchkey.FOREVER, raised))
    end,
    give = function(latch)
      check(lib.lk_countdown_count_down(latch, 1, nil, raised))
    end,
  },
}

local function count(kind, method, name)
  local row = COUNTERS[kind] or error({ text = 'no kind is called ' .. kind })
  local key = kind .. ' ' .. name
  handles[key] = handles[key] or row.open(name)
  if method == 'lock_at' then
    row.take(handles[key])
    return now_us()
  end
  local at = now_us()
  row.give(handles[key])
  return at
end

-- ---- calls --------------------------------------------------------------------------------------

local function call(thread, kind, method, name, ...)
  if not LOCKS[kind] then
    return count(kind, method, name)
  end
  local run = Lock[method] or error({ text = 'a lock has no ' .. method })
  if method == 'storm' then
    return run(open_lock(kind, name), caller_of(thread), ...)
  end
  return run(open_lock(kind, name, (...)), caller_of(thread))
end

local function answer(line)
  if line == 'lacks' then
    return '= nil'
  elseif line == 'version' then
    return '= ' .. latchkey.version()
  end
  local words = {}
  for word in (line .. '\t'):gmatch('([^\t]*)\t') do
    words[#words + 1] = word
  end
  local ok, value = pcall(call, unpack(words))
  if ok then
    return '= ' .. (type(value) == 'number' and ('%.0f'):format(value) or value)
  end
  return '! ' .. (type(value) == 'table' and value.text or tostring(value)):gsub('%s+', ' ')
end

for line in io.lines() do
  io.stdout:write(answer(line), '\n')
  io.stdout:flush()
end
os.exit(0)

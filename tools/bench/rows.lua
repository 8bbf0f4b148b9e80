-- SPDX-License-Identifier: Apache-2.0
-- What is measured: rows of contenders that do the same work, and what latchkey is to reach there.
-- A target compares a contender's figure with another's (`against`) or with a number alone.

---@class bench.Setup
---@field port string
---@field build string
---@field python string "" where there is none
---@field node string "" where there is none
---@field seconds number
---@field calls integer|nil

-- `once`: one run; `seconds`, `calls`: how long one is, else as long as all are.

local function latchkey(name, options)
  return {
    name = name, ours = true,
    command = function(setup)
      return ('%s/latchkey bench --json --url redis://127.0.0.1:%s --seconds %d %s'):format(
        setup.build, setup.port, setup.seconds, options.words)
    end,
  }
end

local function pairs_of(name, mode, owners)
  return {
    name = name, sent = { 'evalsha' },
    command = function(setup)
      return ('%s/bench/bench_pairs %s %s %d %g %s %s'):format(setup.build, setup.port, mode,
        owners, setup.seconds, setup.sha1['lock/acquire'], setup.sha1['lock/release'])
    end,
  }
end

local function handover(name, mode, owners, sent)
  return {
    name = name, sent = sent,
    command = function(setup)
      return ('%s/bench/bench_handover %s %s %d %g 1000'):format(setup.build, setup.port, mode,
        owners, setup.seconds)
    end,
  }
end

local function redis_py(mode, owners)
  return {
    name = 'redis-py Lock', sent = { 'set', 'eval', 'evalsha' }, needs = 'python',
    command = function(setup)
      return ('%s tools/bench/peers/redis_py.py %s %s %d %g 1'):format(setup.python, setup.port,
        mode, owners, setup.seconds)
    end,
  }
end

local function ioredis(library, mode, owners)
  return {
    -- Inside of redlock's scripts there is a SET, too.
    name = library .. ' (Node)', needs = 'node',
    sent = library == 'redlock' and { 'eval', 'evalsha' } or { 'set', 'eval', 'evalsha' },
    command = function(setup)
      return ('node %s %s %s %s %d %g 1'):format(setup.node, setup.port, library, mode, owners,
        setup.seconds)
    end,
  }
end

local function scripts(name, folder, how)
  return {
    name = name,
    command = function(setup)
      return ('%s/bench/bench_pairs %s scripts %d %s %s %s'):format(setup.build, setup.port,
        setup.calls, setup.sha1[folder .. '/acquire'], setup.sha1[folder .. '/release'], how)
    end,
  }
end

local PAIRS = { 'pairs_per_s', 'p50_us', 'p99_us', 'commands_per_pair', 'client_cpu_us_per_pair',
  'server_cpu_us_per_pair' }
local HANDOFFS = { 'handoff_p50_us', 'handoff_p99_us', 'commands_per_handoff',
  'client_cpu_us_per_handoff', 'server_cpu_us_per_handoff' }

return {
  {
    id = 'one', title = 'Uncontended, 1 owner, blocking', figures = PAIRS, chart = 'pairs_per_s',
    contenders = {
      latchkey('latchkey', { words = '--threads 1' }),
      latchkey('latchkey, polling off', { words = '--threads 1 --poll -1' }),
      pairs_of('hiredis', 'threads', 1),
      redis_py('pairs', 1), ioredis('redlock', 'pairs', 1), ioredis('redis-semaphore', 'pairs', 1),
    },
    targets = {
      { 'latchkey', 'pairs_per_s', against = 'hiredis', least = 2 },
      { 'latchkey, polling off', 'commands_per_pair', most = 2.01 },
    },
  },
  {
    id = 'eight', title = 'Uncontended, 8 owners, blocking', figures = PAIRS, chart = 'pairs_per_s',
    contenders = {
      latchkey('latchkey', { words = '--threads 8' }), pairs_of('hiredis', 'threads', 8),
    },
    targets = {
      { 'latchkey', 'pairs_per_s', against = 'hiredis', least = 1 },
      { 'latchkey', 'p99_us', against = 'hiredis', most = 2 },
    },
  },
  {
    id = 'many', title = 'Uncontended, 64 owners, blocking', figures = PAIRS, chart = 'pairs_per_s',
    contenders = {
      latchkey('latchkey', { words = '--threads 64' }),
      pairs_of('hiredis', 'threads', 64),
      redis_py('pairs', 64), ioredis('redlock', 'pairs', 64),
      ioredis('redis-semaphore', 'pairs', 64),
    },
    targets = {
      { 'latchkey', 'pairs_per_s', against = 'hiredis', least = 1.5 },
      { 'latchkey', 'p99_us', against = 'hiredis', most = 1.2 },
    },
  },
  {
    id = 'async_one', title = 'Uncontended, 1 owner, asynchronous', figures = PAIRS,
    chart = 'pairs_per_s',
    contenders = {
      latchkey('latchkey', { words = '--mode async --threads 1' }),
      pairs_of('hiredis, batched', 'batched', 1),
    },
    targets = { { 'latchkey', 'p50_us', against = 'hiredis, batched', most = 0.5 } },
  },
  {
    id = 'async', title = 'Uncontended, 64 owners, asynchronous', figures = PAIRS,
    chart = 'pairs_per_s',
    contenders = {
      latchkey('latchkey', { words = '--mode async --threads 64' }),
      pairs_of('hiredis, batched', 'batched', 64),
    },
    targets = { { 'latchkey', 'pairs_per_s', against = 'hiredis, batched', least = 0.8 } },
  },
  {
    id = 'process', title = 'One lock, 32 owners in one process, sections of 1 ms',
    figures = HANDOFFS, chart = 'handoff_p50_us',
    contenders = {
      latchkey('latchkey', { words = '--mode contended --threads 32 --section 1ms' }),
      handover('BLPOP floor', 'blpop', 32, { 'blpop', 'lpush' }),
      redis_py('contended', 32), ioredis('redlock', 'contended', 32),
      ioredis('redis-semaphore', 'contended', 32),
    },
    targets = {
      { 'latchkey', 'handoff_p50_us', against = 'BLPOP floor', most = 1 },
      { 'latchkey', 'commands_per_handoff', most = 1.1 },
    },
  },
  {
    id = 'fair', title = 'One fair lock, 32 owners in one process, sections of 1 ms',
    figures = HANDOFFS, chart = 'handoff_p50_us',
    contenders = {
      latchkey('latchkey, fair', { words = '--mode fair --threads 32 --section 1ms' }),
      handover('Lua queue floor', 'queue', 32, { 'evalsha' }),
    },
    targets = {
      { 'latchkey, fair', 'handoff_p50_us', against = 'Lua queue floor', most = 1.4 },
      { 'latchkey, fair', 'commands_per_handoff', most = 2.1 },
    },
  },
  {
    id = 'processes', title = 'One lock, 8 processes of 4 owners, sections of 1 ms',
    figures = HANDOFFS, chart = 'handoff_p50_us',
    contenders = {
      latchkey('latchkey, lock',
        { words = '--mode contended --processes 8 --threads 4 --section 1ms' }),
      latchkey('latchkey, fair', { words = '--mode fair --processes 8 --threads 4 --section 1ms' }),
      handover('Lua queue floor', 'queue', 32, { 'evalsha' }),
    },
    targets = {
      { 'latchkey, lock', 'commands_per_handoff', most = 10 },
      { 'latchkey, fair', 'handoff_p50_us', against = 'Lua queue floor', most = 1.4 },
      { 'latchkey, fair', 'commands_per_handoff', most = 2.1 },
    },
  },
  {
    id = 'waiters', title = '1,000 asynchronous waiters in one process, 10 s', once = true,
    seconds = 10, figures = { 'commands', 'client_cpu_percent', 'bytes_per_waiter' },
    contenders = { latchkey('latchkey', { words = '--mode wait --threads 1000' }) },
    targets = {
      { 'latchkey', 'commands', most = 2 },
      { 'latchkey', 'client_cpu_percent', most = 1 },
      { 'latchkey', 'bytes_per_waiter', most = 1024 },
    },
  },
  {
    id = 'holds', title = '100,000 held locks, lease of 30 s', once = true, seconds = 40,
    figures = { 'renewals_per_s', 'client_cpu_percent', 'longest_unrenewed_ms', 'bytes_per_hold',
      'bytes_per_handle' },
    contenders = { latchkey('latchkey', { words = '--mode renew --threads 100000' }) },
    targets = {
      { 'latchkey', 'client_cpu_percent', most = 5 },
      { 'latchkey', 'longest_unrenewed_ms', most = 15000 },
      { 'latchkey', 'bytes_per_hold', most = 300 },
    },
  },
  {
    id = 'scripts', title = 'The server\'s time in one script', calls = 20000,
    figures = { 'acquire_us', 'release_us' },
    contenders = {
      scripts('latchkey', 'lock', 'ours'), scripts('Redisson\'s commands', 'plain', 'plain'),
    },
    targets = {
      { 'latchkey', 'acquire_us', against = 'Redisson\'s commands', most = 1 },
      { 'latchkey', 'release_us', against = 'Redisson\'s commands', most = 0.65 },
    },
  },
  {
    id = 'idle', title = 'A client that does nothing', once = true, seconds = 5,
    figures = { 'client_bytes', 'threads_added', 'client_cpu_percent', 'open_writes' },
    contenders = { latchkey('latchkey', { words = '--mode idle' }) },
    targets = {
      { 'latchkey', 'client_bytes', most = 1048576 },
      { 'latchkey', 'threads_added', most = 1 },
      { 'latchkey', 'open_writes', least = 1, most = 3 },
    },
  },
}

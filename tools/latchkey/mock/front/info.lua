-- SPDX-License-Identifier: Apache-2.0
-- INFO: sections of lines. What a mock has no measure of is 0 or missing.
local info = {}

local ORDER = { 'server', 'clients', 'memory', 'persistence', 'stats', 'replication', 'cpu',
  'commandstats', 'errorstats', 'cluster', 'keyspace' }
local BY_DEFAULT = { commandstats = false }
local EVERYTHING = { all = true, everything = true }

local function sorted(counts)
  local names = {}
  for name in pairs(counts) do
    names[#names + 1] = name
  end
  table.sort(names)
  return names
end

local function count(front, condition)
  local n = 0
  for _, conn in ipairs(front.connections) do
    n = condition(conn) and n + 1 or n
  end
  return n
end

local sections = {}

function sections.server(front)
  local process = front.process
  return { 'redis_version:7.0.15', 'latchkey_mock:1',
    'server_name:latchkey-mock', 'redis_mode:standalone', 'os:mock', 'arch_bits:64',
    ('process_id:%d'):format(process.process_id or 0),
    'run_id:' .. (process.run_id or ('0'):rep(40)),
    ('tcp_port:%d'):format(process.tcp_port or 0),
    ('server_time_usec:%.0f'):format(front:now_ms() * 1000),
    ('uptime_in_seconds:%d'):format(math.floor((front:now_ms() - front.began_ms) / 1000)),
    ('uptime_in_days:%d'):format(math.floor((front:now_ms() - front.began_ms) / 86400000)),
    'hz:10' }
end

function sections.clients(front)
  return { ('connected_clients:%d'):format(#front.connections), 'cluster_connections:0',
    ('maxclients:%d'):format(front.max_clients),
    ('blocked_clients:%d'):format(count(front, function(conn)
      return conn.waits
    end)) }
end

function sections.memory(front)
  local full = front.world.full and 1 or 0
  return { 'used_memory:0', 'used_memory_rss:0', ('maxmemory:%d'):format(full),
    'maxmemory_policy:noeviction',
    ('number_of_functions:%d'):format(#sorted(front.world.functions.functions)),
    ('number_of_libraries:%d'):format(#front.world.functions:list()),
    ('number_of_cached_scripts:%d'):format(#sorted(front.world.library.loaded)) }
end

function sections.persistence(front)
  return { ('loading:%d'):format(front.faults.refusal == 'LOADING' and 1 or 0),
    'rdb_changes_since_last_save:0', 'rdb_bgsave_in_progress:0', 'rdb_last_save_time:0',
    'rdb_last_bgsave_status:' .. (front.world.broken_disk and 'err' or 'ok'), 'aof_enabled:0' }
end

function sections.stats(front)
  local stats, channels = front.stats, front.channels
  return { ('total_connections_received:%d'):format(stats.connections),
    ('total_commands_processed:%d'):format(stats.commands), 'instantaneous_ops_per_sec:0',
    ('rejected_connections:%d'):format(stats.rejected), 'expired_keys:0', 'evicted_keys:0',
    ('pubsub_channels:%d'):format(#sorted(channels.channel)),
    ('pubsub_patterns:%d'):format(#channels.patterns),
    ('pubsubshard_channels:%d'):format(#sorted(channels.shard)),
    ('latchkey_mock_published:%d'):format(stats.published),
    ('latchkey_mock_lost_replies:%d'):format(stats.lost or 0) }
end

function sections.replication(front)
  return { 'role:' .. (front.world.replica and 'slave' or 'master'), 'connected_slaves:0',
    'master_replid:' .. ('0'):rep(40), 'master_repl_offset:0' }
end

function sections.cpu()
  return { 'used_cpu_sys:0', 'used_cpu_user:0' }
end

function sections.commandstats(front)
  local lines = {}
  for i, name in ipairs(sorted(front.stats.calls)) do
    lines[i] = ('cmdstat_%s:calls=%d,usec=0,usec_per_call=0.00,rejected_calls=0,failed_calls=0')
      :format(name:lower(), front.stats.calls[name])
  end
  return lines
end

function sections.errorstats(front)
  local lines = {}
  for i, code in ipairs(sorted(front.stats.errors)) do
    lines[i] = ('errorstat_%s:count=%d'):format(code:sub(2), front.stats.errors[code])
  end
  return lines
end

function sections.cluster()
  return { 'cluster_enabled:0' }
end

function sections.keyspace(front)
  front.world:begin()
  local store, keys, expires = front.world.store, 0, 0
  for _, name in ipairs(store:names()) do
    keys = keys + 1
    expires = store:get(name).expires_at and expires + 1 or expires
  end
  return keys > 0 and { ('db0:keys=%d,expires=%d,avg_ttl=0'):format(keys, expires) } or {}
end

local function wanted(argv)
  local set = {}
  for i = 2, #argv do
    local word = argv[i]:lower()
    for _, name in ipairs(ORDER) do
      if name == word or EVERYTHING[word] or word == 'default' and BY_DEFAULT[name] ~= false then
        set[name] = true
      end
    end
  end
  for _, name in ipairs(#argv == 1 and ORDER or {}) do
    set[name] = BY_DEFAULT[name] ~= false
  end
  return set
end

local function serve(front, _, argv)
  local set, parts = wanted(argv), {}
  for _, name in ipairs(ORDER) do
    if set[name] then
      parts[#parts + 1] = '# ' .. name:sub(1, 1):upper() .. name:sub(2) .. '\r\n'
        .. table.concat(sections[name](front), '\r\n') .. '\r\n'
    end
  end
  return { verbatim = table.concat(parts, '\r\n') }
end

info.commands = {
  INFO = { arity = -1, flags = 'loading', serve = serve },
}

return info

-- SPDX-License-Identifier: Apache-2.0
-- Is a server fit for locks? Each check answers with findings { check, level, message, advice }:
-- "problem" where locks can fail, "note" for what is good to know, "good" else.
local clock = require('latchkey.doctor.clock')
local commands = require('latchkey.doctor.commands')
local engine = require('latchkey.doctor.engine')
local expect = require('latchkey.servers.expect')
local loaded = require('latchkey.servers.loaded')
local manifest = require('latchkey.bundle.manifest')
local permissions = require('latchkey.doctor.permissions')
local queues = require('latchkey.doctor.queues')
local scratch = require('latchkey.doctor.scratch')
local sentinels = require('latchkey.doctor.sentinels')
local trial = require('latchkey.doctor.trial')

local doctor = {}

-- How full the memory is when new holds will soon be refused.
local FULL = 0.9

local function good(check, message)
  return { check = check, level = 'good', message = message }
end

local function note(check, message, advice)
  return { check = check, level = 'note', message = message, advice = advice }
end

local function problem(check, message, advice)
  return { check = check, level = 'problem', message = message, advice = advice }
end

-- What the server tells of itself, and of its configuration, as far as this user may know it.
local function facts_of(client)
  local facts = {}
  local reply, err = expect('text', 'INFO', client:command('INFO'))
  if not reply then
    return nil, err.status ~= 'LK_DENIED' and err or nil
  end
  for name, value in reply:gmatch('([%w_]+):([^\r\n]*)') do
    facts[name] = value
  end
  reply = client:command('HELLO')
  for i = 1, type(reply) == 'table' and reply.n or 0, 2 do
    facts['hello_' .. tostring(reply[i])] = reply[i + 1]
  end
  for _, name in ipairs({ 'save', 'min-replicas-to-write', 'min-replicas-max-lag',
    'appendfsync' }) do
    reply = client:command('CONFIG', 'GET', name)
    facts[name] = type(reply) == 'table' and reply[2] or nil
  end
  return facts
end

local function version(facts)
  local floor = manifest.wanted_version(facts)
  local what = engine.of(facts)
  local title = ('%s %s%s'):format(what.name, what.version,
    what.host and ' (' .. what.host .. ')' or '')
  if floor then
    return { problem('version', ('%s is too old: scripts need %s%s'):format(title,
      what.name == 'Redis' and '' or 'what Redis has from ', floor), 'update the server') }
  elseif not what.is_tested then
    return { note('version', title .. ': latchkey is not tested with it',
      'see the trial below; --family lock also tries a lock') }
  end
  return { good('version', title) }
end

-- A server alone, and what stands before several.
local function topology(facts, expected)
  local mode = facts.redis_mode or facts.server_mode
  if mode == 'sentinel' then
    return { problem('topology', 'it is a sentinel: it has no locks',
      'write redis-sentinel://HOST:PORT/MASTER') }
  elseif mode == 'cluster' and expected ~= 'cluster' then
    return { problem('topology', 'it is a node of a cluster, and the URL names one server: names '
      .. 'of other nodes are refused', 'write redis-cluster://HOST:PORT') }
  end
  return { good('topology', mode == 'cluster' and 'a node of a cluster'
    or facts.role == 'slave' and 'a replica'
    or expected == 'sentinel' and 'the master that Sentinel names' or 'a server of its own') }
end

local function role(facts)
  if facts.role == 'slave' then
    return { problem('role', ('it is a replica of %s:%s: locks are refused here'):format(
      facts.master_host, facts.master_port), ('name the master in the URL, %s:%s'):format(
      facts.master_host, facts.master_port)) }
  end
  return { good('role', 'it is a master') }
end

-- What is to be done about a setting; who runs a managed service has it in its own settings.
local function set_it(facts, words)
  local host = engine.of(facts).host
  return host and ('CONFIG is closed in %s: set %s in its own settings (parameter group)'):format(
    host, words:gsub('^CONFIG SET ', '')) or words
end

local function memory(facts)
  local policy = facts.maxmemory_policy or '?'
  local max, used = tonumber(facts.maxmemory) or 0, tonumber(facts.used_memory) or 0
  if policy ~= 'noeviction' and max > 0 then
    return { problem('memory', ('maxmemory-policy is %s: a full server evicts locks that '
      .. 'are held, since every lock has a TTL'):format(policy),
      set_it(facts, 'CONFIG SET maxmemory-policy noeviction') .. ', or use a server of its own for '
      .. 'locks') }
  elseif policy ~= 'noeviction' then
    return { note('memory', ('maxmemory-policy is %s; there is no maxmemory, so nothing is removed '
      .. 'yet'):format(policy), set_it(facts, 'CONFIG SET maxmemory-policy noeviction')
      .. ' before there is one') }
  elseif max > 0 and used > FULL * max then
    return { problem('memory', ('%.0f %% of maxmemory are used: new holds will soon be refused')
      :format(100 * used / max), 'raise maxmemory or free memory; held locks go on') }
  end
  return { good('memory', 'nothing is evicted (noeviction)') }
end

local function persistence(facts)
  local findings = {}
  local host = engine.of(facts).host or ''
  if host:find('MemoryDB', 1, true) then
    return { note('persistence', host .. ' keeps writes in a log of its own, by its documentation; '
      .. 'INFO does not show it', 'try a fail-over before you rely on it') }
  end
  if facts.rdb_last_bgsave_status == 'err' or facts.aof_last_write_status == 'err' then
    findings[1] = problem('persistence', 'the server cannot save to its disk, and may refuse '
      .. 'writes', 'read its log: disk space, permissions of its folder')
  end
  if facts.aof_enabled == '1' then
    if facts.appendfsync == 'no' then
      findings[#findings + 1] = note('persistence', 'appendfsync is no: a crash of the machine can '
        .. 'lose locks of the last half minute', 'CONFIG SET appendfsync everysec')
    end
  elseif facts.save and facts.save ~= '' then
    findings[#findings + 1] = note('persistence', 'only snapshots are kept: a restart brings back '
      .. 'the locks of the last one, and forgets what came after', 'CONFIG SET appendonly yes')
  elseif facts.save then
    findings[#findings + 1] = problem('persistence', 'nothing is kept: a restart forgets every '
      .. 'lock that is held', 'CONFIG SET appendonly yes; or let the resource check fencing tokens')
  else
    findings[#findings + 1] = note('persistence', 'there is no append-only file, and this user may '
      .. 'not see whether there are snapshots', 'allow CONFIG GET, or read its configuration')
  end
  return #findings > 0 and findings
    or { good('persistence', 'an append-only file is kept') }
end

-- Of a replica: how it follows its master.
local function following(facts)
  local down_s = tonumber(facts.master_link_down_since_seconds)
  if facts.master_link_status ~= 'up' then
    return { problem('replicas', ('its link to the master is down%s: a fail-over to it would lose '
      .. 'locks'):format(down_s and down_s >= 0 and (' for %d s'):format(down_s) or ''),
      'restore the link: its log says why') }
  end
  return { good('replicas', ('its link to the master is up; the master sent data %s s ago'):format(
    facts.master_last_io_seconds_ago or '?')) }
end

local function replicas(facts)
  if facts.role == 'slave' then
    return following(facts)
  end
  local count = tonumber(facts.connected_slaves) or 0
  local least = tonumber(facts['min-replicas-to-write'])
  local current = tonumber(facts.min_slaves_good_slaves)
  if least and least > 0 and current and current < least then
    return { problem('replicas', ('%d replicas keep up, min-replicas-to-write asks for %d: writes '
      .. 'are refused'):format(current, least), 'restore the replicas') }
  elseif count == 0 then
    return { note('replicas', 'there is no replica: while the server is away, so are its locks',
      'run replicas with Sentinel, or several masters (Redlock), if that matters') }
  elseif not least then
    return { note('replicas', ('%d replicas; this user may not see min-replicas-to-write'):format(
      count), 'allow CONFIG GET, or read its configuration') }
  elseif least == 0 then
    return { problem('replicas', ('%d replicas, and min-replicas-to-write is 0: a master that is '
      .. 'cut off from them goes on granting locks, beside the next one'):format(count),
      'CONFIG SET min-replicas-to-write 1 min-replicas-max-lag 10') }
  end
  return { good('replicas', ('%d replicas, writes need %d'):format(count, least)) }
end

-- A node's view of its cluster.
local function cluster(node)
  local reply, err = expect('text', 'CLUSTER INFO', node:command('CLUSTER', 'INFO'))
  if not reply then
    return err.status == 'LK_DENIED' and { note('cluster', 'this user may not ask for the state of '
      .. 'the cluster (CLUSTER INFO)', 'run it as an administrator') } or nil, err
  end
  local state, served = reply:match('cluster_state:(%l+)'), reply:match('cluster_slots_ok:(%d+)')
  if state ~= 'ok' or served ~= '16384' then
    return { problem('cluster', ('the state of the cluster is %s, %s of its 16384 slots are served')
      :format(state, served), 'bring back the nodes that are away; redis-cli --cluster check') }
  end
  return { good('cluster', 'all slots are served') }
end

local function scripts(client)
  local rows, err = loaded.scripts(client)
  if not rows then
    return err.status == 'LK_DENIED' and { note('scripts', 'this user may not ask which scripts '
      .. 'are there (SCRIPT EXISTS)', 'run it as an administrator') } or nil, err
  end
  local missing = loaded.missing(rows)
  if #missing > 0 then
    return { note('scripts', ('%d of %d scripts are not loaded: %s%s'):format(#missing, #rows,
      table.concat(missing, ' ', 1, math.min(3, #missing)), #missing > 3 and ' ...' or ''),
      'latchkey load; each is also loaded when it is first used') }
  end
  return { good('scripts', ('all %d scripts are loaded'):format(#rows)) }
end

---@param client latchkey.client
---@param node latchkey.node the master that is examined
---@param home string
---@param options table user, name, families, topology, and show: a function as of lib/terminal's
---  progress
---@return table[] findings what was found out, also where a question was not answered
---@return latchkey.error|nil err why not
function doctor.examine(client, node, home, options)
  local findings = {}
  local facts, err = facts_of(node)
  if err and commands.is_unknown(err) then
    findings[1], err = problem('server', 'it does not know INFO: renamed, or switched off',
      commands.GIVE_BACK), nil
  elseif err then
    return findings, err
  end
  local function add(list, failure)
    err = err or not list and failure or nil
    for _, finding in ipairs(list or {}) do
      findings[#findings + 1] = finding
    end
  end
  for _, check in ipairs(facts and { version, topology, role, memory, persistence, replicas }
    or {}) do
    add(check(facts, options.topology))
  end
  if not facts and #findings == 0 then
    add({ note('server', 'this user may not see what the server is (INFO)',
      'run it as an administrator') })
  end
  if options.topology == 'cluster' then
    add(cluster(node))
  end
  add(clock.check(node))
  local tried = {}
  if not err and (not facts or facts.role ~= 'slave') then
    local failure
    tried, failure = trial.scripts(node, home)
    add(tried)
    err = err or failure
  end
  -- Where no script runs, that is all there is to know of them.
  if not err and not (tried[1] and tried[1].level == 'problem') then
    add(commands.check(node, home, options))
    add(permissions.check(client, node, home, options))
    add(scripts(node))
    add(queues.check(client, node, home, options.show))
  end
  return findings, err
end

-- Where no script runs, none that writes, or not all that they call is known, no lock is tried.
local DECIDES = { trial = true, role = true, commands = true }

local function may_run(list)
  for _, part in ipairs(list) do
    for _, finding in ipairs(part.findings) do
      if finding.level == 'problem' and DECIDES[finding.check] then
        return false
      end
    end
    if part.err then
      return false
    end
  end
  return true
end

---Findings that are not of one server: what the sentinels say, and locks on trial.
---@param client latchkey.client
---@param home string
---@param url string
---@param options table as of doctor.examine; families: those whose locks are tried, none for all
---  that the user may use
---@param list table[] what was found on each master
---@return table[] findings
function doctor.around(client, home, url, options, list)
  local findings = options.topology == 'sentinel' and sentinels.check(url) or {}
  if #options.families > 0 or may_run(list) then
    for _, finding in ipairs(scratch.check(client, home, options.families, options.name)) do
      findings[#findings + 1] = finding
    end
  end
  return findings
end

return doctor

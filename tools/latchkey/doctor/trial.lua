-- SPDX-License-Identifier: Apache-2.0
-- What a server says of itself may be wrong: scripts of latchkey's are loaded and called on trial,
-- one for each first line that they have. They are called without a key, so that they refuse the
-- call and change nothing; the server has them from then on, as after their first use.
local path = require('pl.path')

local catalog = require('latchkey.script.catalog')
local commands = require('latchkey.doctor.commands')
local expect = require('latchkey.servers.expect')

local trial = {}

local function finding(level, message, advice)
  return { check = 'trial', level = level, message = message, advice = advice }
end

-- The smallest script of each first line.
local function samples(home)
  local smallest, list = {}, {}
  for _, script in ipairs(assert(catalog.read(path.join(home, 'scripts')))) do
    local line = script.source:match('^[^\n]*')
    if not smallest[line] or #script.source < #smallest[line].source then
      smallest[line] = script
    end
  end
  for line, script in pairs(smallest) do
    list[#list + 1] = { line = line, name = script.name, source = script.source,
      sha1 = script.sha1 }
  end
  table.sort(list, function(a, b)
    return a.line < b.line
  end)
  return list
end

-- Why a server does not call what it has loaded.
local function explain_call(sample, err)
  if err.code == 'NOSCRIPT' then
    return finding('problem', 'it forgets scripts at once: NOSCRIPT for one that was just loaded',
      'no proxy that spreads calls over servers belongs between, and nobody who runs SCRIPT FLUSH')
  elseif err.code == 'READONLY' then
    return finding('problem', 'it refuses scripts that may write: it is read-only',
      'name the master in the URL; no fail-over may be under way')
  elseif err.code == 'OOM' then
    return finding('problem', 'it has no memory for new holds: ' .. err.message,
      'raise maxmemory or free memory')
  elseif err.code == 'NOREPLICAS' then
    return finding('problem', 'it has fewer replicas than it needs to write: no lock is granted, '
      .. 'renewed or released: ' .. err.message,
      'restore the replicas, or lower min-replicas-to-write')
  elseif err.code == 'MISCONF' then
    return finding('problem', 'it cannot save to its disk, and refuses writes: no lock is granted, '
      .. 'renewed or released', 'read its log: disk space, permissions of its folder')
  elseif commands.is_unknown(err) then
    return finding('problem', 'it does not know EVALSHA: renamed, or switched off',
      commands.GIVE_BACK)
  end
  return finding('problem', ('a script that begins with "%s" does not run: %s'):format(sample.line,
    err.message), 'latchkey needs Redis 7.0, Valkey 7.2, or a server that runs their scripts')
end

local function explain_load(sample, err)
  if err.code == 'OOM' then
    return finding('problem', 'it has no memory for scripts: ' .. err.message,
      'raise maxmemory or free memory')
  elseif commands.is_unknown(err) then
    return finding('problem', 'it does not know SCRIPT LOAD: renamed, or switched off',
      commands.GIVE_BACK)
  end
  return finding('problem', ('it refuses scripts that begin with "%s": %s'):format(sample.line,
    err.message), 'latchkey needs Redis 7.0, Valkey 7.2, or what knows such first lines')
end

-- Where a failure of the server, or none of its rights, ends the look.
local function is_of_others(err)
  return err.status == 'LK_UNREACHABLE' or err.status == 'LK_UNSURE' or err.status == 'LK_DENIED'
end

-- Has this script run? Without a key each of them says by its own name how it is to be called.
local function refused_by_itself(sample, err)
  return err ~= nil and err.code == 'LKARG' and err.message:find(sample.name, 1, true) ~= nil
end

-- nil where all is well; else a finding, or the error that ends the look.
local function try(node, sample)
  local digest, err = expect('text', 'SCRIPT LOAD',
    node:command('SCRIPT', 'LOAD', sample.source))
  if not digest then
    return not is_of_others(err) and explain_load(sample, err) or nil, err
  elseif digest ~= sample.sha1 then
    return finding('problem', ('it keeps %s under another SHA1 than its own'):format(sample.name),
      'no proxy that changes scripts belongs between'), err
  end
  err = select(2, node:command('EVALSHA', digest, '0'))
  if refused_by_itself(sample, err) then
    return nil, nil
  end
  err = err or { status = 'LK_SERVER', message = 'the answer is none of the script\'s' }
  return not is_of_others(err) and explain_call(sample, err) or nil, err
end

-- What it has run it keeps; a user who may not ask is believed.
local function are_kept(node, list)
  local digests = {}
  for i, sample in ipairs(list) do
    digests[i] = sample.sha1
  end
  local reply = node:command('SCRIPT', 'EXISTS', unpack(digests))
  for i = 1, type(reply) == 'table' and #list or 0 do
    if reply[i] ~= 1 then
      return false
    end
  end
  return true
end

---@param node latchkey.node a master
---@param home string
---@return table[] findings; none where the user may not load scripts
---@return latchkey.error|nil err the server could not be asked
function trial.scripts(node, home)
  local list = samples(home)
  for _, sample in ipairs(list) do
    local found, err = try(node, sample)
    if found then
      return { found }
    elseif err then
      return {}, err.status ~= 'LK_DENIED' and err or nil
    end
  end
  if not are_kept(node, list) then
    return { finding('problem', 'it loses scripts: some that it had just run are gone',
      'nobody may run SCRIPT FLUSH there, and no proxy that spreads calls over servers belongs '
      .. 'between; until then each call may need a second one') }
  end
  return { finding('good', ('scripts of each kind are loaded and run (%d tried)'):format(#list)) }
end

return trial

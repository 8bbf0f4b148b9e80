-- SPDX-License-Identifier: Apache-2.0
-- What a server says of itself may be wrong: scripts are loaded and called on trial, one for each
-- first line that latchkey's have, and a lock of a family is taken and given back.
local path = require('pl.path')

local catalog = require('latchkey.script.catalog')
local kinds = require('latchkey.locks.kinds')

local trial = {}

local LEASE_MS = '1000'

-- The families that can be tried, and what takes and gives back a lock of each.
local LOCKS = {
  lock = { 'lock/acquire', 'lock/release' },
  fenced = { 'fenced/acquire', 'lock/release' },
  fair = { 'fair/acquire', 'fair/release' },
  mutex = { 'mutex/acquire', 'mutex/release' },
}
trial.FAMILIES = { 'fair', 'fenced', 'lock', 'mutex' }

local function finding(level, message, advice)
  return { check = 'trial', level = level, message = message, advice = advice }
end

-- The first lines of the scripts, each once.
local function first_lines(home)
  local lines, seen = {}, {}
  for _, script in ipairs(assert(catalog.read(path.join(home, 'scripts')))) do
    local line = script.source:match('^[^\n]*')
    if not seen[line] then
      seen[line], lines[#lines + 1] = true, line
    end
  end
  table.sort(lines)
  return lines
end

-- Why a server does not call what it has loaded.
local function explain_call(line, err)
  if err.code == 'NOSCRIPT' then
    return finding('problem', 'it forgets scripts at once: NOSCRIPT for one that was just loaded',
      'no proxy that spreads calls over servers belongs between, and nobody who runs SCRIPT FLUSH')
  elseif err.code == 'READONLY' then
    return finding('problem', 'it refuses scripts that may write: it is read-only',
      'name the master in the URL; no fail-over may be under way')
  elseif err.message:lower():find('unknown command', 1, true) then
    return finding('problem', 'it does not know EVALSHA: renamed, or switched off',
      'give the command its name back (rename-command), or take another server for locks')
  end
  return finding('problem', ('a script that begins with "%s" does not run: %s'):format(line,
    err.message), 'latchkey needs Redis 7.0, Valkey 7.2, or a server that runs their scripts')
end

local function explain_load(line, err)
  if err.code == 'OOM' then
    return finding('problem', 'it has no memory for scripts: ' .. err.message,
      'raise maxmemory or free memory')
  elseif err.message:lower():find('unknown command', 1, true) then
    return finding('problem', 'it does not know SCRIPT LOAD: renamed, or switched off',
      'give the command its name back (rename-command), or take another server for locks')
  end
  return finding('problem', ('it refuses scripts that begin with "%s": %s'):format(line,
    err.message), 'latchkey needs Redis 7.0, Valkey 7.2, or what knows such first lines')
end

-- Where a failure of the server, or none of its rights, ends the look.
local function is_of_others(err)
  return err.status == 'LK_UNREACHABLE' or err.status == 'LK_UNSURE' or err.status == 'LK_DENIED'
end

---@param node latchkey.node a master
---@param home string
---@return table[] findings; none where the user may not load scripts
---@return latchkey.error|nil err the server could not be asked
function trial.scripts(node, home)
  local lines = first_lines(home)
  for _, line in ipairs(lines) do
    local digest, err = node:command('SCRIPT', 'LOAD', line .. '\nreturn 1')
    if not digest then
      return is_of_others(err) and {} or { explain_load(line, err) },
        err.status ~= 'LK_DENIED' and is_of_others(err) and err or nil
    end
    local reply
    reply, err = node:command('EVALSHA', digest, '0')
    if reply ~= 1 then
      err = err or { status = 'LK_SERVER', message = 'the answer is none of the script\'s' }
      return is_of_others(err) and {} or { explain_call(line, err) },
        err.status ~= 'LK_DENIED' and is_of_others(err) and err or nil
    end
  end
  return { finding('good', ('scripts of each kind are loaded and run (%d tried)'):format(#lines)) }
end

local function random_name()
  local file = assert(io.open('/dev/urandom', 'rb'))
  local bytes = file:read(8)
  file:close()
  return 'latchkey-doctor-' .. bytes:gsub('.', function(byte)
    return ('%02x'):format(byte:byte())
  end)
end

---Takes and gives back a lock that nobody else has, and that ends by itself within a second.
---@param client latchkey.client
---@param home string
---@param family string one of trial.FAMILIES
---@return table finding
function trial.lock(client, home, family)
  local name = random_name()
  local args = { lease = LEASE_MS, owner = name, hold = '1', token_ttl = LEASE_MS, wait = '1000',
    heartbeat = '0', client = name, ticket = '1' }
  for i, script in ipairs(LOCKS[family]) do
    args.hold = i == 1 and '1' or '0'
    local reply, err = kinds.call(client, home, script, name, args)
    if not reply or reply[1] ~= 1 then
      return finding('problem', ('%s: a lock was not %s: %s'):format(family,
        i == 1 and 'taken' or 'given back', err and err.message or 'another answer than expected'),
        err and err.hint or 'look what else writes there')
    end
  end
  return finding('good', family .. ': a lock was taken and released')
end

return trial

-- SPDX-License-Identifier: Apache-2.0
-- Locks on trial: one of each family is taken and released, under a name that nobody else has. For
-- one release a subscription listens, as clients that wait have it. All keys end by themselves
-- within seconds; what callers counted, within a minute.
local tablex = require('pl.tablex')

local expect = require('latchkey.servers.expect')
local kinds = require('latchkey.locks.kinds')
local names = require('latchkey.script.names')
local text = require('latchkey.text')

local scratch = {}

local LEASE_MS, TTL_MS = '1000', '1000'
local UUID = 'lk-00000000-0000-0000-0000-000000000000'

-- Arguments by the names that headers give them: all families take theirs from here.
local ARGS = { lease = LEASE_MS, hold = '1', token_ttl = LEASE_MS, wait = '1000', heartbeat = '0',
  ticket = '1', reader = '', writer = '', count = '1', total = '1', mode = 'INIT', ttl = TTL_MS,
  every = LEASE_MS, label = 'doctor' }

local RELEASED = { hold = '0' }
local WRITER = { owner = UUID .. ':1:write' }
local WRITER_RELEASED = { owner = UUID .. ':1:write', hold = '0' }

-- Of each family the calls that take and give back, with what they need beside ARGS.
local FAMILIES = {
  lock = { { 'lock/acquire' }, { 'lock/release', RELEASED } },
  fenced = { { 'fenced/acquire' }, { 'lock/release', RELEASED } },
  fair = { { 'fair/acquire' }, { 'fair/release', RELEASED } },
  mutex = { { 'mutex/acquire' }, { 'mutex/release' } },
  rw = { { 'rw/write_acquire', WRITER }, { 'rw/write_release', WRITER_RELEASED },
    { 'rw/read_acquire' }, { 'rw/read_release', RELEASED } },
  permit = { { 'permit/set' }, { 'permit/acquire' }, { 'permit/release' }, ends = true },
  semaphore = { { 'semaphore/set' }, { 'semaphore/acquire' }, { 'semaphore/release' } },
  countdown = { { 'countdown/set' }, { 'countdown/count_down' } },
  period = { { 'period/check' } },
}

scratch.FAMILIES = { 'countdown', 'fair', 'fenced', 'lock', 'mutex', 'period', 'permit', 'rw',
  'semaphore' }

-- Those whose release tells all who listen; the first that can be taken is listened for, so long.
local TOLD = { 'lock', 'mutex', 'fenced', 'rw', 'semaphore', 'permit', 'countdown' }
local HEARD_MS = 2000

local function finding(level, message, advice)
  return { check = 'trial', level = level, message = message, advice = advice }
end

local function random(count)
  local file = assert(io.open('/dev/urandom', 'rb'))
  local bytes = file:read(count)
  file:close()
  return bytes
end

-- Below the name that a user is to use, where one is given: the rules of users allow names by their
-- begin.
local function random_name(below)
  local name = 'latchkey-doctor-' .. random(8):gsub('.', function(byte)
    return ('%02x'):format(byte:byte())
  end)
  local long = below and below .. ':' .. name
  return long and names.check(long) and long or name
end

-- The permits' number has no end of its own.
local function let_end(client, name)
  local now, err = expect('time', 'TIME', client:command('TIME'))
  if not now then
    return nil, err
  end
  return client:command('PEXPIREAT', name, ('%.0f'):format(now[1] * 1000 + 2 * TTL_MS))
end

-- The script that went wrong, and the error or nil where it gave another answer; nil: none did.
local function try(client, home, family, name)
  local own = { owner = name, client = name, caller = name, ids = { random(16) }, at = '0' }
  for i, step in ipairs(FAMILIES[family]) do
    local script, more = step[1], step[2] or {}
    own.seq = tostring(i)
    local reply, err = kinds.call(client, home, script, name, setmetatable({}, {
      __index = function(_, field)
        return more[field] or own[field] or ARGS[field]
      end,
    }))
    if not reply or reply[1] ~= 1 then
      return script, err
    end
    if i == 1 and FAMILIES[family].ends then
      reply, err = let_end(client, name)
      if not reply then
        return script, err
      end
    end
  end
end

local function explain(family, script, err)
  local released = script:find('release', 1, true) or script:find('count_down', 1, true)
  return finding('problem', ('%s: a lock was not %s: %s'):format(family,
    released and 'released' or 'taken', err and err.message or 'another answer than expected'),
    err and err.hint or 'look what else writes there')
end

local function told(level, message, advice)
  return { check = 'messages', level = level, message = message, advice = advice }
end

-- Why no release can be listened for.
local function explain_deaf(verb, err)
  if err.status == 'LK_DENIED' then
    return told('note', ('not tried, since this user may not listen (%s): %s'):format(verb,
      err.message), 'who waits for a lock needs that: latchkey acl prints a rule that allows it')
  end
  return told('problem', ('nobody can listen for a release (%s): %s'):format(verb, err.message),
    ('who waits for a lock needs %s: no proxy without it belongs between'):format(verb))
end

-- Does a release reach who listens for it? A proxy may refuse that, or pass nothing on.
local function listen(client, home, family, name)
  local channel = kinds.formed(home, kinds.ROWS[family].tells, 'channel', name)
  local verb = client:publish_verb(channel) == 'SPUBLISH' and 'SSUBSCRIBE' or 'SUBSCRIBE'
  local wait, err = client:wait(channel)
  if not wait then
    return explain_deaf(verb, err)
  end
  local script
  script, err = try(client, home, family, name)
  local heard = not script and wait:sleep(HEARD_MS)
  wait:close()
  if script then
    return explain(family, script, err)
  elseif not heard then
    return told('problem', ('the message of a release did not come within %s'):format(
      text.show_ms(HEARD_MS)), 'waiters look again only at their recheck: no proxy that keeps '
      .. 'messages from subscribers belongs between')
  end
  return told('good', 'the message of a release reaches who listens for it')
end

---@param client latchkey.client
---@param home string
---@param families string[] those that are asked for; none: all that this user may use
---@param below string|nil the begin of the names
---@return table[] findings
function scratch.check(client, home, families, below)
  local findings, well, denied = {}, {}, {}
  local name = random_name(below)
  for _, family in ipairs(#families > 0 and families or scratch.FAMILIES) do
    local script, err = try(client, home, family, name .. '-' .. family)
    if script and err and err.status == 'LK_DENIED' and #families == 0 then
      denied[#denied + 1] = family
    elseif script then
      findings[#findings + 1] = explain(family, script, err)
    else
      well[#well + 1] = family
    end
  end
  local first = tablex.find_if(TOLD, function(family)
    return tablex.find(well, family) ~= nil
  end)
  if first then
    findings[#findings + 1] = listen(client, home, TOLD[first], name .. '-heard')
  end
  if #well > 0 then
    table.insert(findings, 1, finding('good', 'one of each was taken and released: '
      .. table.concat(well, ', ')))
  end
  if #denied > 0 then
    findings[#findings + 1] = finding('note', ('not tried, since this user may not use %s so: %s')
      :format(text.safe(name), table.concat(denied, ', ')),
      below and ('a rule with the pattern %s* lets one be tried; of a rule with the exact name, '
        .. 'try the lock itself: latchkey exec --wait 0ms %s -- true'):format(text.safe(below),
        text.shell_word(below))
        or '--name NAME tries names that begin with NAME')
  end
  return findings
end

return scratch

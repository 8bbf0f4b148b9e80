-- SPDX-License-Identifier: Apache-2.0
-- Entries of fair queues whose owners are gone. They leave when they are first and somebody comes;
-- those that nobody comes for stay.
local expect = require('latchkey.servers.expect')
local kinds = require('latchkey.locks.kinds')
local names = require('latchkey.script.names')
local shapes = require('latchkey.locks.kinds.shapes')
local survey = require('latchkey.locks.survey')
local text = require('latchkey.text')

local queues = {}

-- So many queues are told of one by one.
local SHOWN = 10

local function finding(level, message, advice)
  return { check = 'queues', level = level, message = message, advice = advice }
end

-- The lock of a queue's key; nil for keys that only look alike.
local function lock_of(home, key)
  local prefix = kinds.formed(home, 'fair/inspect', 'queue', ''):match('^[^{]*')
  local rest = key:sub(#prefix + 1)
  local name = rest:match('^{([^{}]+)}$') or rest
  return names.check(name) and kinds.formed(home, 'fair/inspect', 'queue', name) == key and name
end

local function dead_in(view)
  local dead = 0
  for _, waiter in ipairs(view.queue) do
    dead = dead + (waiter.stays_ms == 0 and 1 or 0)
  end
  return dead
end

local function describe(name, view, dead)
  local who = ('%d of %d waiters in the queue of %s are dead'):format(dead, view.waiting,
    text.safe(name))
  if view.free and dead == view.waiting then
    return finding('problem', who .. ', and nobody holds it',
      'they leave with the next acquire; if none will come, delete the queue\'s keys')
  end
  local first = view.queue[1]
  if first.stays_ms == 0 and not shapes.is_owner(first.owner) then
    who = who .. ', the first with a name of no client'
  end
  return finding('problem', who, 'latchkey clients pass over them; Redisson\'s wait until the '
    .. 'score of each is over, and without end behind one without a score')
end

local function look(client, home, key, findings)
  local name = lock_of(home, key)
  local view, err
  if name then
    view, err = kinds.read(client, home, 'fair', name)
  end
  if err and err.status ~= 'LK_WRONGTYPE' then
    return nil, err
  end
  local dead = view and view.queue and dead_in(view) or 0
  if dead > 0 then
    findings[#findings + 1] = describe(name, view, dead)
  end
  return true
end

---@param client latchkey.client
---@param node latchkey.node whose keys are looked through
---@param home string
---@param show fun(text: string|nil)
---@return table[]|nil findings
---@return latchkey.error|nil err
function queues.check(client, node, home, show)
  local pattern = kinds.formed(home, 'fair/inspect', 'queue', ''):match('^[^{]*') .. '*'
  local cursor, steps, seen, findings = '0', 0, 0, {}
  repeat
    local reply, err = expect('cursor and list', 'SCAN', node:command('SCAN', cursor, 'MATCH',
      pattern, 'COUNT', survey.STEP, 'TYPE', 'list'))
    if not reply then
      return err.status == 'LK_DENIED' and { finding('note', 'this user may not search for queues '
        .. '(SCAN)', 'run it as an administrator') } or nil, err
    end
    cursor, steps = reply[1], steps + 1
    show(('looking for queues: %d keys'):format(steps * survey.STEP))
    for i = 1, reply[2].n do
      seen = seen + 1
      local looked
      looked, err = look(client, home, reply[2][i], findings)
      if not looked then
        return nil, err
      end
    end
  until cursor == '0' or #findings >= SHOWN
  show(nil)
  if #findings == 0 then
    findings[1] = finding('good', ('no dead waiters in %d fair queues'):format(seen))
  end
  return findings
end

return queues

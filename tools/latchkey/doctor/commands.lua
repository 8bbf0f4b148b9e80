-- SPDX-License-Identifier: Apache-2.0
-- Does the server know all commands that scripts and the library send? One that was renamed, or
-- that an engine does not have, fails only when it is needed: a release that cannot publish wakes
-- nobody.
local tablex = require('pl.tablex')

local acl = require('latchkey.locks.acl')

local commands = {}

commands.GIVE_BACK = 'give the command its name back (rename-command), or take another server for '
  .. 'locks'

---@param err latchkey.error
---@return boolean
function commands.is_unknown(err)
  return err.message:lower():find('unknown command', 1, true) ~= nil
end

-- What the library does without, in another way.
local SPARED = { ['cluster'] = true, ['client'] = true, ['ping'] = true, ['pubsub'] = true }
-- Those of them that are missed, and by whom.
local MISSED = {
  { 'pubsub', 'it does not know PUBSUB: inspect, ls and top cannot count who waits, and fail' },
  { 'ping', 'it does not know PING: locks work without it, health checks do not' },
}

local function finding(level, message, advice)
  return { { check = 'commands', level = level, message = message, advice = advice } }
end

-- A note for each that is missing of those that locks do without; `infos` begins with theirs.
local function notes_of(infos)
  local notes = {}
  for i, row in ipairs(MISSED) do
    if type(infos[i]) ~= 'table' then
      notes[#notes + 1] = finding('note', row[2],
        'give the command its name back (rename-command)')[1]
    end
  end
  return notes
end

-- Without subcommands, which not every engine can be asked about.
local function wanted(home, options)
  local list, seen = {}, {}
  for _, name in ipairs(acl.rule(home, { names = { '*' }, topology = options.topology,
    families = options.families }).commands) do
    local command = name:match('^[^|]+')
    if not seen[command] and not SPARED[command] then
      seen[command], list[#list + 1] = true, command
    end
  end
  return list
end

---@param node latchkey.node
---@param home string
---@param options table families: those that are to be used, none for all; topology
---@return table[]|nil findings
---@return latchkey.error|nil err
function commands.check(node, home, options)
  local list, missing, asked = wanted(home, options), {}, {}
  for i, row in ipairs(MISSED) do
    asked[i] = row[1]
  end
  tablex.insertvalues(asked, list)
  local infos, err = node:command('COMMAND', 'INFO', unpack(asked))
  if type(infos) ~= 'table' or infos.ok then
    if err and err.status ~= 'LK_DENIED' and err.status ~= 'LK_SERVER' then
      return nil, err
    end
    return finding('note', 'the server does not say which commands it knows (COMMAND INFO)',
      'the trial below uses most of them')
  end
  for i, command in ipairs(list) do
    if type(infos[#MISSED + i]) ~= 'table' then
      missing[#missing + 1] = command:upper()
    end
  end
  if #missing > 0 then
    return finding('problem', ('it does not know %s: renamed, switched off, or never there'):format(
      table.concat(missing, ' ')),
      'give the commands their names back (rename-command), or take another server for locks')
  end
  local notes = notes_of(infos)
  return #notes > 0 and notes
    or finding('good', ('it knows all %d commands that are needed'):format(#list))
end

return commands

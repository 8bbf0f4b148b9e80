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

local function finding(level, message, advice)
  return { { check = 'commands', level = level, message = message, advice = advice } }
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
  local list, missing = wanted(home, options), {}
  local asked = tablex.copy(list)
  asked[#asked + 1] = 'pubsub'
  local infos, err = node:command('COMMAND', 'INFO', unpack(asked))
  if type(infos) ~= 'table' or infos.ok then
    if err and err.status ~= 'LK_DENIED' and err.status ~= 'LK_SERVER' then
      return nil, err
    end
    return finding('note', 'the server does not say which commands it knows (COMMAND INFO)',
      'the trial below uses most of them')
  end
  for i, command in ipairs(list) do
    if type(infos[i]) ~= 'table' then
      missing[#missing + 1] = command:upper()
    end
  end
  if #missing > 0 then
    return finding('problem', ('it does not know %s: renamed, switched off, or never there'):format(
      table.concat(missing, ' ')),
      'give the commands their names back (rename-command), or take another server for locks')
  elseif type(infos[#asked]) ~= 'table' then
    return finding('note', 'it does not know PUBSUB: inspect, ls and top cannot count who waits, '
      .. 'and fail', 'give the command its name back (rename-command)')
  end
  return finding('good', ('it knows all %d commands that are needed'):format(#list))
end

return commands

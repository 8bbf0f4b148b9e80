-- SPDX-License-Identifier: Apache-2.0
-- May a user do what the scripts and the library do? The server is asked (ACL DRYRUN); nothing is
-- run. Without a name only the commands are asked about, since keys and channels follow from names.
local acl = require('latchkey.locks.acl')
local expect = require('latchkey.servers.expect')
local kinds = require('latchkey.locks.kinds')
local text = require('latchkey.text')

local permissions = {}

local PROBE = 'latchkey-doctor'
local NO_SHA1 = ('0'):rep(40)

local function finding(level, message, advice)
  return { { check = 'permissions', level = level, message = message, advice = advice } }
end

-- A call of a command with as many words as it takes; the key, where it has one, stands first.
local function call_of(command, arity, key)
  local words = {}
  for word in command:gmatch('[^|]+') do
    words[#words + 1] = word
  end
  for _ = #words + 1, math.abs(arity) do
    words[#words + 1] = key
  end
  if command == 'evalsha' then
    return { command, NO_SHA1, '1', key }
  end
  return words
end

-- What the server says against such a call: "command", "key", "channel", or nothing (false).
local function refusal(node, user, words)
  local reply, err = expect('status or text', 'ACL DRYRUN',
    node:command('ACL', 'DRYRUN', user, unpack(words)))
  if not reply then
    return nil, err
  elseif type(reply) == 'table' then
    return false
  end
  return reply:find('to run the', 1, true) and 'command' or reply:match('(channel)') or 'key'
end

-- Asks about each call; adds to `list` what it is shown as where the answer is `what`.
local function ask(node, user, calls, what, list)
  for _, call in ipairs(calls) do
    local answer, err = refusal(node, user, call.words)
    if answer == nil then
      return nil, err
    elseif answer == what then
      list[#list + 1] = call.shown
    end
  end
  return list
end

local function all_calls(node, rule, key, listen)
  local commands, keys, channels = {}, {}, {}
  local infos, err = node:command('COMMAND', 'INFO', unpack(rule.commands))
  if err then
    return nil, err
  end
  for i, command in ipairs(rule.commands) do
    -- One that the server does not know is not asked about: doctor/commands.lua names it.
    local info = type(infos) == 'table' and infos[i]
    local arity = type(info) == 'table' and tonumber(info[2])
    commands[#commands + 1] = arity and { words = call_of(command, arity, key),
      shown = '+' .. command } or nil
  end
  for i, pattern in ipairs(rule.keys) do
    keys[i] = { words = { 'evalsha', NO_SHA1, '1', (pattern:gsub('%*', 'x')) },
      shown = '~' .. pattern }
  end
  for i, pattern in ipairs(rule.channels) do
    channels[i] = { words = { listen, (pattern:gsub('%*', 'x')) }, shown = '&' .. pattern }
  end
  return { commands = commands, keys = keys, channels = channels }
end

-- What the user lacks, as words of a rule.
local function lacks(node, home, user, options)
  local name = options.name
  local rule = acl.rule(home, { names = { name or PROBE }, topology = options.topology,
    families = options.families })
  local calls, err = all_calls(node, rule, name or PROBE,
    options.topology == 'cluster' and 'ssubscribe' or 'subscribe')
  if not calls then
    return nil, err
  end
  local list = {}
  for _, part in ipairs({ 'commands', 'keys', 'channels' }) do
    local asked = list
    if part == 'commands' or name then
      asked, err = ask(node, user, calls[part], part:sub(1, -2), list)
    end
    if not asked then
      return nil, err
    end
  end
  return list
end

-- The user may not ask about itself; one look shows whether scripts run at all.
local function try(client, home, options)
  local name, row = options.name, kinds.ROWS[options.families[1] or 'lock']
  local reply, err = true, nil
  if row then
    reply, err = kinds.call(client, home, row.inspect, name or PROBE)
  end
  local is_denied = not reply and err.status == 'LK_DENIED'
  if is_denied and not name and err.message:find('of the keys', 1, true) then
    return finding('note', 'this user may not use names that begin with ' .. PROBE,
      '--name NAME tries names that begin with NAME; or run it as an administrator, with --user')
  elseif is_denied then
    return finding('problem', row.inspect .. ' was refused: ' .. err.message,
      'latchkey acl prints a rule that allows what scripts need')
  elseif not reply and err.status ~= 'LK_WRONGTYPE' then
    return nil, err
  end
  return finding('note', 'this user runs scripts, but may not ask what else it may do (ACL DRYRUN)',
    'run it as an administrator, with --user')
end

---@param client latchkey.client
---@param node latchkey.node every one has users of its own
---@param home string
---@param options table user: whose permissions, nil for this connection's; name: of a lock;
---  families: those that it is to use, none for all; topology
---@return table[]|nil findings
---@return latchkey.error|nil err
function permissions.check(client, node, home, options)
  local user, list, err = options.user, nil, nil
  if not user then
    user, err = expect('text', 'ACL WHOAMI', node:command('ACL', 'WHOAMI'))
  end
  if user then
    list, err = lacks(node, home, user, options)
  end
  if list and #list > 0 then
    return finding('problem', ('the user %s lacks %s'):format(text.safe(user),
      text.safe(table.concat(list, ' '))), ('latchkey acl %s%s prints a rule that allows it')
      :format(text.shell_word(user), options.topology and ' --' .. options.topology or ''))
  elseif list then
    return finding('good', ('the user %s may do all that scripts need%s'):format(text.safe(user),
      options.name and ' on ' .. text.safe(options.name) or ''))
  elseif err.status == 'LK_DENIED' and not options.user then
    return try(client, home, options)
  elseif err.status == 'LK_DENIED' or err.status == 'LK_SERVER' then
    return finding('note', 'the server does not say what the user may do: ' .. err.message,
      'check the name given with --user, and run it as an administrator')
  end
  return nil, err
end

return permissions

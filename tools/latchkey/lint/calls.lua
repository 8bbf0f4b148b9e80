-- SPDX-License-Identifier: Apache-2.0
-- Rules on the Redis commands of a script.
local key_names = require('latchkey.lint.key_names')
local key_places = require('latchkey.redis.key_places')
local parser = require('latchkey.lua51.parser')
local redis_commands = require('latchkey.redis.commands')
local script_of = require('latchkey.lint.script')
local server_commands = require('latchkey.mock.commands')
local their_keys = require('latchkey.lint.their_keys')

local PUBLISHER = 'tell'

-- Is the name of a command an argument whose values are the header's list of commands? Such a one
-- has a variable; a script with a contract may do without.
local function chooser(script)
  local function is_of_type(place)
    local argument = script.header.argv[place]
    return argument ~= nil and argument.kind == 'command'
  end
  local chosen = {}
  for _, bound in ipairs(script.bindings) do
    chosen[bound.var] = bound.array == 'ARGV' and is_of_type(bound.index) or nil
  end
  return function(node)
    local is_place = node and script.contract and node.tag == 'Index'
      and script_of.is_global(node[1], 'ARGV') and node[2].tag == 'Number'
    return node and chosen[node.var or false] or is_place and is_of_type(node[2].value)
  end
end

-- Of a script that is somebody else's: does a server run this for it?
local function may_run(script, name)
  local known = script.contract and server_commands[name]
  return known and not known.noscript or false
end

-- redis.call as a value, and any name that it has, can be called where nobody sees it.
local function hidden(script, report)
  local called, aliases = {}, script.aliases
  for _, call in ipairs(script.calls) do
    called[call.node[1]] = true
  end
  parser.walk(script.block, function(node)
    local verb = script_of.member(node, 'redis')
    local name = (verb == 'call' or verb == 'pcall') and 'redis.' .. verb
      or node.tag == 'Name' and aliases.vars[node.var or false] and node.name
    if name and not called[node] and not aliases.nodes[node] then
      report(node.line, ('%s as a value hides commands; call it by that name'):format(name))
    end
  end)
end

local function command(script, report)
  local is_chosen = chooser(script)
  for _, call in ipairs(script.calls) do
    if not call.name then
      if not is_chosen(call.node[2]) then
        report(call.line, 'the command is not written out; write it as a string, or take it from '
          .. 'an argument of type command')
      end
    elseif not call.command and not may_run(script, call.name) then
      local upper = call.name:upper()
      report(call.line, upper ~= call.name and ('write %s in capitals'):format(upper)
        or ('%s is no command that a script may call; use another'):format(call.name))
    end
  end
  for _, name in ipairs(script.header.dynamic) do
    if not redis_commands[name] then
      report(script.header.lines.dynamic, ('%s is no command that a script may call'):format(name))
    end
  end
  hidden(script, report)
end

-- What is wrong with the use of a key, else nil.
local function misused(call, place, key)
  local kind = place.type
  if kind ~= 'any' and key.type ~= 'any' and kind ~= key.type then
    return ('%s is for a %s, but %s is a %s in the header'):format(call.name, kind, key.name,
      key.type)
  elseif place.access == 'w' and not key.access:find('w') then
    return ('%s writes %s, which the header calls "%s"'):format(call.name or 'the command',
      key.name, key.access)
  end
end

-- Where there are several keys that it may be, one that fits is meant.
local function check_use(call, place, found, report)
  local first
  for _, key in ipairs(found.keys) do
    local message = misused(call, place, key)
    if not message then
      return
    end
    first = first or message
  end
  if first and not found.unknown then
    report(call.line, first)
  end
end

local WRONG = {
  keys = 'the key of %s is not one of the header; declare and bind it',
  derived = 'the key of %s follows no form under "derived:"; declare it there',
  slot = 'the key of %s is built of a key without braces; without them it has another slot',
}

-- What stands in the place of a key: keys of the header, or the rule that it breaks.
local function found_by(script)
  if script.contract then
    local values = their_keys.of(script)
    return function(node, is_last)
      return values:of(node, is_last)
    end
  end
  local origin = key_names.of(script)
  return function(node)
    local key, wrong = origin:of(node)
    return { keys = { key }, wrong = { [wrong or false] = true } }
  end
end

-- Which keys are written, and whether others may be that only a run can tell.
local function note_written(written, place, found)
  if place.access == 'w' then
    for _, key in ipairs(found.keys) do
      written[key] = true
    end
    written.unknown = written.unknown or found.unknown
  end
end

local function report_unwritten(script, written, report)
  for _, list in ipairs({ script.header.keys, script.header.derived }) do
    for _, key in ipairs(list) do
      if key.access:find('w') and not written[key] then
        report(script.header.lines.keys, ('the header calls %s "%s", but nothing writes it')
          :format(key.name, key.access))
      end
    end
  end
end

-- One rule for each way in which a key can be wrong.
local function key_rule(rule, check_declared)
  return function(script, report)
    local find, written = found_by(script), {}
    for _, call in ipairs(script.calls) do
      for _, place in ipairs(call.command and key_places.of(call) or {}) do
        local found = find(place.node, place.node == call.node[#call.node])
        if found.wrong[rule] and not place.is_guess then
          report(call.line, WRONG[rule]:format(call.name or 'the command'))
        end
        if check_declared then
          check_use(call, place, found, report)
          note_written(written, place, found)
        end
      end
      written.unknown = written.unknown or script.contract and not call.name
    end
    if check_declared and not written.unknown then
      report_unwritten(script, written, report)
    end
  end
end

local function flags(script, report)
  local has = {}
  for _, flag in ipairs(script.header.flags) do
    has[flag] = true
  end
  local writes = #script.header.dynamic > 0
  for _, call in ipairs(script.calls) do
    if call.name and call.command and call.command.access ~= 'r' then
      writes = true
      if has['no-writes'] then
        report(call.line, ('%s in a script with the flag no-writes; remove one of them'):format(
          call.name))
      end
    end
  end
  if not writes and not has['no-writes'] then
    report(1, 'the script only reads; write "#!lua flags=no-writes"')
  end
  if writes and script.header.repeat_ == 'pure' then
    report(script.header.lines['repeat'], '"repeat: pure" is for scripts that only read')
  end
end

local function time(script, report)
  local first
  for _, call in ipairs(script.calls) do
    if call.name == 'TIME' and first then
      report(call.line, ('a second TIME; keep the answer of line %d'):format(first))
    elseif call.name == 'TIME' then
      first = call.line
    end
  end
end

local function publish(script, report)
  for _, call in ipairs(script.calls) do
    if call.command and call.command.access == 'publish' and call.within ~= PUBLISHER then
      report(call.line, ('%s outside of the fragment tell; call tell(channel, publish, message)')
        :format(call.name))
    end
  end
  local told, message = false, script.header.message
  parser.walk(script.block, function(node)
    if node.tag == 'Call' and node[1].tag == 'Name' and node[1].name == PUBLISHER then
      told = true
      local text = node[4] and node[4].tag == 'String' and node[4].value
      if message and message:find('^%d') and not (' ' .. message .. ' '):find(
        ' ' .. (text or '?') .. ' ', 1, true) then
        report(node.line, ('the header says "message: %s"; send that as a string'):format(message))
      end
    end
  end)
  if told ~= (message ~= nil) then
    report(script.header.lines.message or script.header.first_code_line,
      'a script that calls tell has a channel and a "message:", and no other has one')
  end
end

return {
  { id = 'command', wants = 'commands are written out, in capitals, and may run in scripts',
    needs = 'both', check = command },
  { id = 'keys', wants = 'commands touch declared keys, by the type and access of the header',
    needs = 'both', check = key_rule('keys', true) },
  { id = 'derived', wants = 'names that a script builds follow a form under "derived:"',
    needs = 'both', check = key_rule('derived', false) },
  { id = 'slot', wants = 'names that a script builds keep the slot: {name}, in braces, is in them',
    needs = 'both', check = key_rule('slot', false) },
  { id = 'flags', wants = 'the flag no-writes on scripts that only read, and on no other',
    needs = 'both', check = flags },
  { id = 'time', wants = 'TIME is read once: a second one may differ', needs = 'block',
    check = time },
  { id = 'publish', wants = 'messages are sent by the fragment tell, and are what the header says',
    needs = 'both', check = publish },
}

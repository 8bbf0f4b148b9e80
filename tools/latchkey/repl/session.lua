-- SPDX-License-Identifier: Apache-2.0
-- What a line of `latchkey repl` means: Lua, in which every script is a function. A session has a
-- world: repl.mock or repl.server.
local pretty = require('pl.pretty')
local tablex = require('pl.tablex')

local call = require('latchkey.repl.call')
local header = require('latchkey.script.header')
local lexer = require('latchkey.lua51.lexer')
local replies = require('latchkey.replies')
local text = require('latchkey.text')

local Session = {}
Session.__index = Session

local HELP = [[
lock.acquire('k', '10s', 'me', 1)   any script: the lock's name, then its arguments; channels are
                                    formed. By name: lock.acquire{name='k', lease=1000, ...}
help(lock)  help('lock/acquire')    what scripts there are; what one takes and answers
redis('GET', 'k')                   any command
dump()                              every key: type, value, what is left of its lease
advance(500)  advance('2s')         moves the time of the mock
messages()                          what was published; shown after each line as well
reset()                             an empty mock
quit()                              or the end of the input
]]

local Reply = {}

-- A reply in an array of replies, and nothing in its elements, look like what redis-cli shows.
local function show_reply(self, null)
  local shown = replies.show(self.value, null)
  return self.meaning and ('%s\n-- %s'):format(shown, self.meaning) or shown
end

local function family_name(script)
  return script.name:match('^[^/]+')
end

local function meaning_of(script, reply)
  local shape = header.reply_shape(script.header, reply)
  for _, listed in ipairs(script.header.returns) do
    if listed.shape == shape then
      return ('%s: %s'):format(shape, listed.text)
    end
  end
end

-- A reply that can be looked into: r[1] is its first element.
local function new_reply(value, meaning)
  local elements = type(value) == 'table' and value.n and value or { value }
  return setmetatable({ value = value, meaning = meaning },
    { __index = elements, reply = Reply })
end

local function is_reply(value)
  local metatable = type(value) == 'table' and getmetatable(value)
  return metatable and metatable.reply == Reply
end

function Session:run_script(script, ...)
  local keys, args = call.form(script, ...)
  local reply, err = self.world:eval(script.name, keys, args)
  if err then
    error(('(error) %s%s'):format(text.safe(err.message),
      err.line and ('\n-- %s, line %d'):format(script.name, err.line) or ''), 0)
  end
  return new_reply(reply, meaning_of(script, reply))
end

local function find_script(self, name)
  return self.scripts[tostring(name)] or error('no script is named ' .. tostring(name), 0)
end

local function show_pttl(pttl)
  return pttl >= 0 and ('   %d ms left'):format(pttl) or ''
end

function Session:dump()
  local lines = {}
  for key, record in tablex.sort(self.world:dump()) do
    local value = type(record.value) == 'table' and pretty.write(record.value, '')
      or text.quoted(record.value)
    lines[#lines + 1] = ('%s  %s  %s%s'):format(text.quoted(key), record.type, text.safe(value),
      show_pttl(record.pttl))
  end
  self:say(#lines > 0 and table.concat(lines, '\n') or '(empty)')
end

function Session:messages()
  for _, message in ipairs(self.world:messages()) do
    self:say(('%s %s: %s'):format(message.verb, text.safe(message.channel),
      text.quoted(message.message)))
  end
end

local function in_ms(span)
  if type(span) == 'number' and span >= 0 and span % 1 == 0 then
    span = text.number(span)
  elseif type(span) ~= 'string' then
    error('advance takes whole milliseconds or a duration: 500, "2s"', 0)
  end
  local ms, why = text.span(span)
  return ms or error(why, 0)
end

-- How scripts are called whose family is called like something else here.
local function help_taken(self)
  local seen = {}
  for _, script in ipairs(self.scripts) do
    local family = family_name(script)
    if call.is_taken(family) and not seen[family] then
      seen[family] = true
      self:say(("%-35s scripts of %s, which is something else here"):format(
        ("call('%s', ...)"):format(script.name), family))
    end
  end
end

local function help_family(self, family)
  local found = false
  for _, script in ipairs(self.scripts) do
    if family_name(script) == family then
      found = true
      self:say(('%s\n    %s'):format(call.usage(script), script.header.summary))
    end
  end
  return found
end

function Session:help(about)
  if about == nil then
    self:say((HELP:gsub('\n$', '')))
    return help_taken(self)
  elseif help_family(self, type(about) == 'table' and about.family or about) then
    return
  end
  local script = find_script(self, (tostring(about):gsub('%.', '/')))
  self:say(('%s\n%s'):format(call.usage(script), script.header.summary))
  for _, field in ipairs(script.header.argv) do
    self:say(('  %-9s %s'):format(field.name, field.text))
  end
  for _, listed in ipairs(script.header.returns) do
    self:say(('  %-16s %s'):format(listed.shape, listed.text))
  end
end

-- A family: its scripts are found in it, and what is no script is said at once.
local function family_of(self, family)
  return setmetatable({ family = family }, {
    __index = function(_, verb)
      local script = find_script(self, family .. '/' .. tostring(verb))
      return function(...)
        return self:run_script(script, ...)
      end
    end,
  })
end

local function environment_of(self)
  local env = {}
  for _, name in ipairs(call.LUA) do
    env[name] = _G[name]
  end
  for _, script in ipairs(self.scripts) do
    local family = family_name(script)
    if not call.is_taken(family) then
      env[family] = env[family] or family_of(self, family)
    end
  end
  function env.call(name, ...)
    return self:run_script(find_script(self, name), ...)
  end
  function env.redis(...)
    if select('#', ...) == 0 then
      error("redis takes a command: redis('GET', 'k')", 0)
    end
    for i = 1, select('#', ...) do
      call.check_number((select(i, ...)))
    end
    local reply, err = self.world:command(...)
    if err then
      error('(error) ' .. text.safe(err.message), 0)
    end
    return new_reply(reply)
  end
  function env.advance(span)
    self.world:advance(in_ms(span))
  end
  function env.reset()
    self.world:reset()
  end
  function env.help(about)
    self:help(about)
  end
  function env.quit()
    self.over = true
  end
  function env.print(...)
    local words = {}
    for i = 1, select('#', ...) do
      words[i] = self:show((select(i, ...)))
    end
    self:say(table.concat(words, '  '))
  end
  for _, name in ipairs({ 'dump', 'messages' }) do
    env[name] = function()
      self[name](self)
    end
  end
  return setmetatable(env, { __index = function(_, name)
    error(('nothing is named %s; help() says what there is'):format(tostring(name)), 0)
  end })
end

---@param world table { eval, command, advance, dump, messages, reset, null }
---@param scripts table of lib.catalog
---@param say fun(line: string) shows text
---@return table session
function Session.new(world, scripts, say)
  local self = setmetatable({ world = world, scripts = scripts, over = false }, Session)
  function self.say(_, line)
    say(line)
  end
  self.env = environment_of(self)
  return self
end

---A value as people read it.
function Session:show(value)
  if is_reply(value) then
    return show_reply(value, self.world.null)
  elseif type(value) == 'string' then
    return text.quoted(value)
  elseif type(value) == 'table' then
    return text.safe(pretty.write(value, ''))
  elseif type(value) == 'number' or type(value) == 'cdata' then
    return text.number(value)
  end
  return tostring(value)
end

-- A verb may be a word of Lua's own, as in lock.break.
local function with_verbs(source)
  local parts, at, before = {}, 1, {}
  for _, token in ipairs((lexer.tokens(source))) do
    if token.kind == 'keyword' and before.kind == 'operator' and before.text == '.' then
      parts[#parts + 1] = source:sub(at, before.at - 1) .. ("['%s']"):format(token.text)
      at = token.at + #token.text
    end
    before = token
  end
  return table.concat(parts) .. source:sub(at)
end

-- Does a compiler's message say that the text is all good as far as it goes?
local function is_open(why)
  return why:find("near '<eof>'", 1, true) ~= nil
end

-- An expression or a statement; nil and "more" while its end is missing.
local function compile(source)
  source = with_verbs(source)
  local chunk, of_value = loadstring('return ' .. source, '=line')
  local why
  if not chunk then
    chunk, why = loadstring(source, '=line')
  end
  if not chunk and (is_open(of_value) or is_open(why)) then
    return nil, 'more'
  end
  return chunk, why
end

-- Of an error, where in the line or in a tool's own file it was raised helps nobody.
local function reason_of(err)
  return text.safe_lines((tostring(err):gsub('^line:%d+: ', ''):gsub('^[^\n:]*%.lua:%d+: ', '')))
end

-- What a line gave, or what went wrong.
function Session:say_all(ok, ...)
  if not ok then
    self:say(reason_of((...)))
    return false
  end
  for i = 1, select('#', ...) do
    self:say(self:show((select(i, ...))))
  end
  return true
end

---Runs what has been typed.
---@param source string one line, or several when the first was not the end
---@return boolean done false: it goes on in the next line
---@return boolean failed
function Session:run(source)
  if source:match('^%s*$') then
    return true, false
  end
  local chunk, why = compile(source)
  if why == 'more' then
    return false, false
  elseif not chunk then
    self:say(reason_of(why))
    return true, true
  end
  local ok = self:say_all(pcall(setfenv(chunk, self.env)))
  self:messages()
  return true, not ok
end

---What a word could become: scripts of a family, families, functions.
---@param word string what stands before the cursor
---@return string[] words sorted
function Session:completions(word)
  local found, seen = {}, {}
  local function add(candidate)
    if candidate:sub(1, #word) == word and not seen[candidate] then
      seen[candidate] = true
      found[#found + 1] = candidate
    end
  end
  for _, script in ipairs(self.scripts) do
    local family, verb = script.name:match('^([^/]+)/(.+)$')
    if not call.is_taken(family) then
      add(word:find('.', 1, true) and ('%s.%s('):format(family, verb) or family .. '.')
    end
  end
  for name, call_of in pairs(call.OWN) do
    add(name .. call_of)
  end
  table.sort(found)
  return found
end

return Session

-- SPDX-License-Identifier: Apache-2.0
-- The debugger at a prompt, or with its commands from a pipe. Where it does what redis-cli --ldb
-- does, it says it in the same words.
local tablex = require('pl.tablex')

local headers = require('latchkey.script.header')
local inline = require('latchkey.mock.inline')
local replies = require('latchkey.replies')
local show = require('latchkey.debugger.show')
local stack = require('latchkey.debugger.stack')
local text = require('latchkey.text')

local Prompt = {}
Prompt.__index = Prompt

local MARK = 'lua debugger> '
local AROUND, MOST = 5, 1024

---@param target table
---@param source table of latchkey.repl.input
---@param say fun(line: string)
function Prompt.new(target, source, say)
  local self = setmetatable({ target = target, source = source, most = MOST,
    lines = show.lines(target.source), failed = false, records = {} }, Prompt)
  function self.say(_, ...)
    say((...))
  end
  return self
end

function Prompt:cut(shown)
  return show.cut(shown, self.most)
end

function Prompt:now_ms()
  return self.target.world.clock.ms
end

-- What is wrong with what was typed.
function Prompt:complain(words)
  self.failed = true
  self:say(words)
end

function Prompt:show_line(number, is_current)
  local mark = is_current and '->' or '  '
  local point = self.debugger.points.lines[number] and '#' or ' '
  self:say(('%s%s%-3d %s'):format(mark, point, number, text.safe_lines(self.lines[number]))
    :gsub('%s+$', ''))
end

function Prompt:called(call)
  self:say('<redis> ' .. self:cut(show.command(call.words)))
  self:say('<reply> ' .. self:cut(show.value(call.reply)))
end

function Prompt:said(...)
  local words = {}
  for i = 1, select('#', ...) do
    words[i] = show.value((select(i, ...)))
  end
  self:say('<debug> ' .. self:cut(table.concat(words, ', ')))
end

function Prompt:show_key(key, mark)
  self:say(('%s%s  %s'):format(mark, text.quoted(key.name),
    self:cut(show.record(key.record, self:now_ms()))))
end

-- The keys that are not what they were when this was last asked.
function Prompt:show_changes()
  local records = {}
  for _, key in ipairs(show.keyspace(self.target.world, self.debugger.before)) do
    records[key.name] = key.record
    if self.records and self.records[key.name] ~= key.record then
      self:show_key(key, '<key> ')
    end
  end
  self.records = records
end

-- After these, what differs from the stop before is no change.
local BACKWARDS = { back = true, rewind = true, restart = true }

-- Asks for an order; the end of the input is one.
function Prompt:ask()
  while true do
    local line = self.source.read(MARK)
    if not line then
      return { go = 'quit' }
    end
    local order = self:obey(line)
    if order then
      self.records = not BACKWARDS[order.go] and self.records or nil
      return order
    end
  end
end

function Prompt:stopped(stop)
  if stop.step == 1 or not self.has_stopped then
    self.records, self.has_stopped = self.debugger.before, true
  end
  self:show_changes()
  self.stop, self.outcome = stop, nil
  local frame = stop.frames[1]
  self:say(('* Stopped at %d%s, stop reason = %s'):format(stop.line,
    #stop.frames > 1 and ' in ' .. text.safe(frame.name) or '', stop.reason))
  if stop.text then
    self:say('  ' .. text.safe(stop.text))
  end
  self:show_line(stop.line, true)
  return self:ask()
end

local function meaning_of(header, reply)
  local shape = header and headers.reply_shape(header, reply)
  for _, listed in ipairs(header and header.returns or {}) do
    if listed.shape == shape then
      return ('-- %s: %s'):format(shape, listed.text)
    end
  end
end

function Prompt:ended(outcome)
  self:show_changes()
  self.stop, self.outcome = nil, outcome
  if outcome.err then
    self:say('* Ended with (error) ' .. text.safe(outcome.err.message))
  else
    self:say('* Ended with')
    self:say(replies.show(outcome.reply, self.target.world.null))
    local meaning = meaning_of(self.target.header, outcome.reply)
    if meaning then
      self:say(meaning)
    end
  end
  return self:ask()
end

local commands = {}

local function go(kind)
  return function(self)
    if not self.stop then
      self:complain('the script has ended; back, rewind or restart goes on')
      return nil
    end
    return { go = kind }
  end
end

commands.step = go('step')
commands.next = go('next')
commands.out = go('out')
commands.continue = go('continue')
commands.write = go('write')

function commands.back(self)
  if self.stop and self.stop.step == 1 then
    return self:complain('this is the first line')
  end
  return { go = 'back' }
end

function commands.rewind()
  return { go = 'rewind' }
end

function commands.restart()
  return { go = 'restart' }
end

function commands.quit()
  return { go = 'quit' }
end

local function line_of(self, word)
  local number = word:find('^%d+$') and tonumber(word)
  local line = number and self.debugger.points:nearest(number)
  if not line then
    self:complain((number and 'nothing runs at line %s or below it' or '"%s" is no line')
      :format(text.safe(word)))
  end
  return line
end

commands['until'] = function(self, rest)
  local line = line_of(self, rest)
  if line and go('line')(self) then
    return { go = 'line', line = line }
  end
end

local function show_points(self)
  local points = self.debugger.points.lines
  self:say(('%d breakpoints set:'):format(tablex.size(points)))
  for number, point in tablex.sort(points) do
    self:show_line(number)
    if point.condition then
      self:say('       if ' .. text.safe(point.condition))
    end
  end
end

commands['break'] = function(self, rest)
  local points = self.debugger.points
  local number, condition = rest:match('^(-?%d+)%s+if%s+(.*)$')
  number = number or rest:match('^-?%d+$')
  if rest == '' then
    return show_points(self)
  elseif number == '0' then
    points.lines = {}
    return self:say('All breakpoints removed.')
  elseif number and number:find('^-') then
    local line = -tonumber(number)
    if not points.lines[line] then
      return self:complain(('No breakpoint in line %d.'):format(line))
    end
    points.lines[line] = nil
    return self:say('Breakpoint removed.')
  end
  local line = line_of(self, number or rest)
  if line then
    points.lines[line] = { condition = condition }
    self:show_line(line, self.stop and self.stop.line == line)
  end
end

function commands.watch(self, rest)
  local points, keys = self.debugger.points, {}
  if rest == '' then
    for key in tablex.sort(points.keys) do
      keys[#keys + 1] = text.quoted(key)
    end
    return self:say(('%d keys watched: %s'):format(#keys, table.concat(keys, ' ')))
  end
  local words = inline.split(rest)
  if not words or #words ~= 1 then
    return self:complain('watch takes one key')
  elseif words[1]:find('^-') and points.keys[words[1]:sub(2)] then
    return points:watch(words[1]:sub(2), false)
  end
  points:watch(words[1], true)
end

function commands.list(self, rest)
  local from, around = rest:match('^(%d*)%s*(%d*)$')
  if not from then
    return self:complain('list takes a line, and how many around it')
  end
  local current = self.stop and self.stop.line or 0
  local middle = tonumber(from) or 0
  middle = middle == 0 and math.max(current, 1) or middle
  around = tonumber(around) or AROUND
  for number = math.max(middle - around, 1), math.min(middle + around, #self.lines) do
    self:show_line(number, number == current)
  end
end

function commands.whole(self)
  return commands.list(self, ('1 %d'):format(#self.lines))
end

local function frame_of(self)
  if not self.stop then
    self:complain('the script has ended: it has no variables')
  end
  return self.stop and self.stop.frames[1]
end

local function evaluate(self, code, is_kept)
  local frame = frame_of(self)
  if not frame then
    return
  end
  local results, why = self.debugger:evaluate(frame, code)
  if not results then
    return self:complain('<error> ' .. text.safe(why))
  end
  for i = 1, results.n do
    self:say('<value> ' .. self:cut(show.value(results[i])))
  end
  if is_kept then
    self.debugger:meddle(function(again)
      self.debugger:evaluate(again, code)
    end)
  end
end

function commands.print(self, rest)
  if rest ~= '' then
    return evaluate(self, rest)
  end
  local frame = frame_of(self)
  for _, list in ipairs(frame and { stack.locals(frame), stack.upvalues(frame) } or {}) do
    for _, variable in ipairs(list) do
      self:say(('<value> %s = %s'):format(variable.name, self:cut(show.value(variable.value))))
    end
  end
end

function commands.eval(self, rest)
  if rest == '' then
    return self:complain('eval takes Lua')
  end
  return evaluate(self, rest, true)
end

function commands.redis(self, rest)
  local words = inline.split(rest)
  if not words or #words == 0 then
    return self:complain('redis takes a command, with its quotation marks closed')
  end
  local reply, why = self.debugger:command(words)
  if why then
    self.failed = true
    self:say('<error> ' .. text.safe(why))
  else
    self:say('<reply> ' .. self:cut(show.value(reply)))
  end
  if self.stop then
    self.debugger:meddle(function()
      self.debugger:command(words)
    end)
  end
end

function commands.keys(self)
  local keys = show.keyspace(self.target.world, self.debugger.before)
  for _, key in ipairs(keys) do
    self:show_key(key, key.mark .. ' ')
    if key.mark == '~' or key.mark == '-' then
      self:say('    was ' .. self:cut(show.record(key.was, self.target.world.clock.begun)))
    end
  end
  if #keys == 0 then
    self:say('(empty)')
  end
end

function commands.calls(self)
  for _, call in ipairs(self.debugger.calls) do
    self:called(call)
  end
end

function commands.trace(self)
  for i, frame in ipairs(self.stop and self.stop.frames or {}) do
    self:say((i == 1 and 'In %s:' or 'From %s:'):format(text.safe(frame.name)))
    self:show_line(frame.line, i == 1)
  end
end

function commands.advance(self, rest)
  local ms, why = text.span(rest)
  if not ms then
    return self:complain('advance takes milliseconds or a duration: '
      .. (rest == '' and '500, 2s' or text.safe(why)))
  end
  self.target.world:advance(ms)
  if self.stop then
    self.debugger:meddle(function()
      self.target.world:advance(ms)
    end)
  end
end

function commands.maxlen(self, rest)
  if not rest:find('^%d*$') then
    return self:complain('maxlen takes a number; 0 for no limit')
  end
  self.most = tonumber(rest) or self.most
  self:say(('values are shown up to %d bytes'):format(self.most))
end

-- The words, the letters that stand for them, what they take and do; in the order of the help.
local WORDS = {
  { 'step', 's', '', 'run this line, and stop in functions that it calls' },
  { 'next', 'n', '', 'run this line, functions included' },
  { 'out', 'o', '', 'run until this function returns' },
  { 'continue', 'c', '', 'run to the next break point, or the end' },
  { 'until', 'u', 'LINE', 'run to a line' },
  { 'write', nil, '', 'run to the next line that writes a key, and stop before it does' },
  { 'back', '<', '', 'go back to the line before' },
  { 'rewind', '<<', '', 'go back to the break point before, or to the start' },
  { 'break', 'b', '[LINE [if EXPRESSION]]', 'add a break point; -LINE removes it, 0 all' },
  { 'watch', nil, '[KEY]', 'stop when a key has changed; -KEY no more' },
  { 'print', 'p', '[EXPRESSION]', 'all variables, or what an expression is' },
  { 'keys', 'k', '', 'the keyspace; + new, ~ changed, - gone since the script began' },
  { 'calls', nil, '', 'the commands that ran until here, with their replies' },
  { 'trace', 't', '', 'the functions that are under way' },
  { 'list', 'l', '[LINE [AROUND]]', 'the source around a line' },
  { 'whole', 'w', '', 'the whole source' },
  { 'eval', 'e', 'LUA', 'run Lua at this line; it may set variables' },
  { 'redis', 'r', 'COMMAND', 'run a command' },
  { 'advance', nil, 'MS', 'move the time that TIME answers' },
  { 'maxlen', 'm', '[BYTES]', 'show values up to so many bytes' },
  { 'restart', nil, '', 'run the script again, from its start' },
  { 'quit', 'q', '', 'end; so does abort' },
  { 'help', 'h', '', 'this' },
}

function commands.help(self)
  for _, entry in ipairs(WORDS) do
    local title = entry[1] .. (entry[2] and ', ' .. entry[2] or '')
    self:say(('%-12s %-23s %s'):format(title, entry[3], entry[4]))
  end
  self:say('An empty line repeats step, next, out, continue and back.')
end

local function find_command(word)
  if word == 'abort' or word == 'a' then
    return 'quit'
  end
  local found, count = nil, 0
  for _, entry in ipairs(WORDS) do
    if entry[1] == word or entry[2] == word then
      return entry[1]
    elseif #word > 1 and entry[1]:sub(1, #word) == word then
      found, count = entry[1], count + 1
    end
  end
  return count == 1 and found or nil
end

local REPEATED = { step = true, next = true, out = true, continue = true, back = true }

---Does what a line says.
---@param line string
---@return table|nil order for the debugger
function Prompt:obey(line)
  local word, rest = line:match('^%s*(%S*)%s*(.-)%s*$')
  if word == '' then
    word = self.last or ''
  end
  local name = find_command(word)
  if word == '' then
    return nil
  elseif not name then
    self:complain(('there is no command "%s"; help lists them'):format(text.safe(word)))
    return nil
  end
  self.last = REPEATED[name] and name or nil
  return commands[name](self, rest)
end

---What a word could become.
---@param word string
---@return string[]
function Prompt.completions(word)
  local found = {}
  for _, entry in ipairs(WORDS) do
    if entry[1]:sub(1, #word) == word then
      found[#found + 1] = entry[1] .. ' '
    end
  end
  return found
end

return Prompt

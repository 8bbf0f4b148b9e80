-- SPDX-License-Identifier: Apache-2.0
-- The debugger as a server of the Debug Adapter Protocol, for one editor and one call of a script.
-- While the script is stopped, requests are read in its hook; before and after, here.
local path = require('pl.path')
local stdlib = require('posix.stdlib')

local Debugger = require('latchkey.debugger')
local Variables = require('latchkey.debugger.dap.variables')
local Wire = require('latchkey.debugger.dap.wire')
local launch = require('latchkey.debugger.dap.launch')
local replies = require('latchkey.replies')
local show = require('latchkey.debugger.show')
local stack = require('latchkey.debugger.stack')
local text = require('latchkey.text')

local Adapter = {}
Adapter.__index = Adapter

local THREAD = 1

local CAPABILITIES = {
  supportsConfigurationDoneRequest = true, supportsConditionalBreakpoints = true,
  supportsStepBack = true, supportsEvaluateForHovers = true, supportsSetVariable = true,
  supportsRestartRequest = true, supportsTerminateRequest = true, supportsDataBreakpoints = true,
  supportsExceptionInfoRequest = true,
  exceptionBreakpointFilters = { { filter = 'errors', label = 'Errors that end the script',
    default = true } },
}

-- Why it has stopped, in the words of the protocol.
local REASONS = { start = 'entry', ['break point'] = 'breakpoint', error = 'exception',
  ['watched key'] = 'data breakpoint', pause = 'pause', ['end'] = 'step',
  ['step over'] = 'step', back = 'step', ['redis.breakpoint() called'] = 'breakpoint' }

function Adapter:say(category, words)
  self.wire:event('output', { category = category, output = text.safe(words) .. '\n' })
end

function Adapter:called(call)
  self:say('console', '<redis> ' .. show.command(call.words))
  self:say('console', '<reply> ' .. show.value(call.reply))
end

function Adapter:said(...)
  local words = {}
  for i = 1, select('#', ...) do
    words[i] = show.value((select(i, ...)))
  end
  self:say('console', '<debug> ' .. table.concat(words, ', '))
end

-- What stands in an array of the client's: objects, and an empty one for whatever is none.
local function objects(list)
  local found = {}
  for i, element in ipairs(type(list) == 'table' and list or {}) do
    found[i] = type(element) == 'table' and element or {}
  end
  return found
end

-- Reads and does requests until one of them says how to go on.
function Adapter:converse()
  while not self.over do
    local order = self:read_one()
    if order then
      return order
    end
  end
  return { go = 'quit' }
end

function Adapter:read_one()
  local request, why = self.wire:read()
  if not request then
    self.over, self.wrong = true, why
    return nil
  end
  local do_it = self.requests[request.command]
  if not do_it then
    self.wire:refuse(request, ('there is no request "%s"'):format(text.safe(request.command)))
    return nil
  end
  return do_it(self, request, type(request.arguments) == 'table' and request.arguments or {})
end

function Adapter:stopped(stop)
  self.stop = stop
  self.variables:forget()
  self.wire:event('stopped', { reason = REASONS[stop.reason] or 'pause', threadId = THREAD,
    allThreadsStopped = true, description = stop.reason,
    text = stop.text and text.safe(stop.text) or nil })
  local order = self:converse()
  self.stop = nil
  return order
end

function Adapter:ended(outcome)
  if outcome.err then
    self:say('stderr', '(error) ' .. outcome.err.message)
  else
    self.wire:event('output', { category = 'stdout',
      output = replies.show(outcome.reply, self.target.world.null) .. '\n' })
  end
  self.wire:event('exited', { exitCode = outcome.err and 1 or 0 })
  self.wire:event('terminated')
  self.has_ended = true
  local order = self:converse()
  self.has_ended = false
  return order
end

---Between two lines: may a request be waiting? Who has gone asks for nothing any more.
function Adapter:busy()
  local order = self.wire:is_ready() and self:read_one() or nil
  return self.over and { go = 'quit' } or order
end

local requests = {}
Adapter.requests = requests

-- Lines and columns begin at 1, unless the client counts from 0.
function requests.initialize(self, request, arguments)
  if type(arguments.pathFormat) == 'string' and arguments.pathFormat ~= 'path' then
    return self.wire:refuse(request, 'files are named by their paths here: pathFormat "path"')
  end
  self.less_lines = arguments.linesStartAt1 == false and 1 or 0
  self.first_column = arguments.columnsStartAt1 == false and 0 or 1
  self.wire:answer(request, CAPABILITIES)
end

function requests.launch(self, request, arguments)
  if self.target then
    return self.wire:refuse(request, 'a script has been launched already')
  end
  local target, order = launch.of(self.home, arguments)
  if not target then
    self.wire:refuse(request, order)
    return
  end
  self.target, self.order = target, order
  self.debugger = Debugger.new(target, self, { stops = arguments.noDebug ~= true })
  self.debugger.stops_at_end = arguments.stopAtEnd == true
  self.variables = Variables.new(self.debugger, target)
  self.wire:answer(request)
  self.wire:event('initialized')
end

-- Requests that mean something only when a script has been launched, or while it is stopped.
local function needs(what, do_it)
  return function(self, request, arguments)
    if not self[what] then
      return self.wire:refuse(request, what == 'stop' and 'the script is not stopped'
        or 'no script has been launched')
    end
    return do_it(self, request, arguments)
  end
end

requests.configurationDone = needs('debugger', function(self, request)
  self.wire:answer(request)
  self.is_ready = not self.is_terminated
end)

local function same_file(one, other)
  return type(one) == 'string' and (path.abspath(one) == path.abspath(other)
    or stdlib.realpath(one) == (stdlib.realpath(other) or false))
end

requests.setBreakpoints = needs('debugger', function(self, request, arguments)
  local source, answers = type(arguments.source) == 'table' and arguments.source or {}, {}
  local is_ours = same_file(source.path, self.target.file)
  local points = self.debugger.points
  if is_ours then
    points.lines, self.path = {}, source.path
  end
  for i, wanted in ipairs(objects(arguments.breakpoints)) do
    local line = is_ours and type(wanted.line) == 'number'
      and points:nearest(wanted.line + self.less_lines)
    if line then
      local condition = type(wanted.condition) == 'string' and wanted.condition:find('%S')
      points.lines[line] = { condition = condition and wanted.condition or nil }
    end
    answers[i] = line and { verified = true, line = line - self.less_lines }
      or { verified = false, message = is_ours and 'nothing runs at this line or below it'
        or 'this is not the script that is debugged' }
  end
  self.wire:answer(request, { breakpoints = answers })
end)

requests.setExceptionBreakpoints = needs('debugger', function(self, request, arguments)
  self.debugger.stops_at_errors = false
  for _, filter in ipairs(type(arguments.filters) == 'table' and arguments.filters or {}) do
    self.debugger.stops_at_errors = self.debugger.stops_at_errors or filter == 'errors'
  end
  self.wire:answer(request)
end)

requests.exceptionInfo = needs('stop', function(self, request)
  self.wire:answer(request, { exceptionId = 'error', breakMode = 'always',
    description = text.safe(self.stop.text or '') })
end)

requests.dataBreakpointInfo = needs('stop', function(self, request, arguments)
  local key = self.variables:key_of(arguments.variablesReference, arguments.name)
  self.wire:answer(request, { dataId = key and text.quoted(key) or require('cjson').null,
    description = key and text.safe(key) or 'only keys are watched',
    accessTypes = key and { 'write' } or nil })
end)

requests.setDataBreakpoints = needs('debugger', function(self, request, arguments)
  local points, answers, quoted = self.debugger.points, {}, {}
  for key in pairs(points.store.keys) do
    quoted[text.quoted(key)] = key
  end
  for key in pairs(points.keys) do
    quoted[text.quoted(key)] = key
  end
  points.keys = {}
  for i, wanted in ipairs(objects(arguments.breakpoints)) do
    local key = type(wanted.dataId) == 'string' and quoted[wanted.dataId]
    if key then
      points:watch(key, true)
    end
    answers[i] = { verified = key and true or false }
  end
  self.wire:answer(request, { breakpoints = answers })
end)

requests.threads = needs('debugger', function(self, request)
  self.wire:answer(request, { threads = { { id = THREAD, name = self.target.name } } })
end)

requests.stackTrace = needs('stop', function(self, request, arguments)
  -- By another path than the editor's own, it would open the file a second time.
  local all, frames, file = self.stop.frames, {}, self.path or path.abspath(self.target.file)
  local first = math.max(math.floor(tonumber(arguments.startFrame) or 0), 0)
  local levels = tonumber(arguments.levels) or 0
  for i = first + 1, levels > 0 and math.min(first + levels, #all) or #all do
    frames[#frames + 1] = { id = i, name = all[i].name, line = all[i].line - self.less_lines,
      column = self.first_column, source = { name = path.basename(file), path = file } }
  end
  self.wire:answer(request, { stackFrames = frames, totalFrames = #all })
end)

requests.scopes = needs('stop', function(self, request, arguments)
  local frame = self.stop.frames[arguments.frameId]
  if not frame then
    return self.wire:refuse(request, 'there is no such frame')
  end
  self.wire:answer(request, { scopes = self.variables:scopes(frame) })
end)

requests.variables = needs('stop', function(self, request, arguments)
  local list = self.variables:list(arguments.variablesReference)
  if not list then
    return self.wire:refuse(request, 'this reference means nothing any more')
  end
  self.wire:answer(request, { variables = list })
end)

requests.evaluate = needs('stop', function(self, request, arguments)
  local frame = self.stop.frames[arguments.frameId or 1] or self.stop.frames[1]
  local code = arguments.expression
  if type(code) ~= 'string' then
    return self.wire:refuse(request, 'an expression is a text')
  end
  local results, why = self.debugger:evaluate(frame, code)
  if not results then
    return self.wire:refuse(request, text.safe(why))
  end
  if arguments.context == 'repl' and frame == self.stop.frames[1] then
    self.debugger:meddle(function(again)
      self.debugger:evaluate(again, code)
    end)
  end
  local shown = self.variables:of_value(results[1])
  self.wire:answer(request, { result = results.n > 0 and shown.value or '', type = shown.type,
    variablesReference = shown.variablesReference })
end)

requests.setVariable = needs('stop', function(self, request, arguments)
  local frame = self.variables:frame_of(arguments.variablesReference)
  if not frame then
    return self.wire:refuse(request, 'only local variables can be set')
  elseif type(arguments.value) ~= 'string' then
    return self.wire:refuse(request, 'a value is a text')
  end
  local results, why = self.debugger:evaluate(frame, arguments.value)
  if not results then
    return self.wire:refuse(request, text.safe(why))
  end
  local value, name = results[1], arguments.name
  if not stack.set(frame, name, value) then
    return self.wire:refuse(request, ('no local variable is named %s'):format(
      text.safe(tostring(name))))
  end
  if frame == self.stop.frames[1] then
    self.debugger:meddle(function(again)
      stack.set(again, name, value)
    end)
  end
  self.wire:answer(request, self.variables:of_value(value))
end)

-- Requests after which the script goes on.
for command, kind in pairs({ next = 'next', stepIn = 'step', stepOut = 'out',
  continue = 'continue', stepBack = 'back', reverseContinue = 'rewind' }) do
  requests[command] = needs('stop', function(self, request)
    self.wire:answer(request, command == 'continue' and { allThreadsContinued = true } or nil)
    return { go = kind }
  end)
end

requests.restart = needs('debugger', function(self, request)
  if not self.is_ready or self.is_terminated then
    return self.wire:refuse(request, self.is_terminated and 'the script was terminated'
      or 'the script has not begun')
  end
  self.wire:answer(request)
  return { go = 'restart', first = self.order }
end)

function requests.pause(self, request)
  if self.has_ended or self.is_terminated or not self.is_ready then
    return self.wire:refuse(request, 'the script does not run')
  end
  self.wire:answer(request)
  return not self.stop and { go = 'pause' } or nil
end

function requests.disconnect(self, request)
  self.wire:answer(request)
  self.over = true
  return { go = 'quit' }
end

requests.terminate = needs('debugger', function(self, request)
  self.wire:answer(request)
  if not self.has_ended and not self.is_terminated then
    self.wire:event('terminated')
  end
  self.is_terminated = true
  return { go = 'quit' }
end)

---Serves one editor until it disconnects.
---@param home string
---@param input file*
---@param output file*
---@return string|nil what was wrong with the bytes that came, if that ended it
local function serve(home, input, output)
  local self = setmetatable({ home = home, wire = Wire.new(input, output), less_lines = 0,
    first_column = 1 }, Adapter)
  while not self.over and not self.is_ready do
    self:read_one()
  end
  if self.is_ready and not self.over then
    self.debugger:start(self.order)
    while not self.over do
      self:read_one()
    end
  end
  return self.wrong
end

return { serve = serve }

-- SPDX-License-Identifier: Apache-2.0
-- Runs a script of the mock line by line, forwards and back. A script has no input but its keys,
-- arguments and keyspace, so going back is to run it again, up to an earlier line.
--
-- While the script is stopped it stands in the hook of its line, and so does whoever asks what to
-- do next: a view, which is { stopped(stop) -> order, ended(outcome) -> order or nil, called(call),
-- said(text), busy() -> order or nil }.
--
-- An order is { go = ... }: step (into functions), next (over them), out, continue, line { line },
-- write (before the next command that writes), back, rewind (to the break point before), goto
-- { step }, restart { first: the order that it begins with; step }, quit.
local Points = require('latchkey.debugger.points')
local convert = require('latchkey.mock.convert')
local dispatch = require('latchkey.mock.dispatch')
local show = require('latchkey.debugger.show')
local stack = require('latchkey.debugger.stack')

local Debugger = {}
Debugger.__index = Debugger

-- A script that has not stopped after so many lines may never do.
local MAX_LINES = 300000
-- Deeper than any function of the script's own: those of its coroutines.
local COROUTINE = 1000

local ABORTED = 'MOCK the debugger has ended this run'

local methods_of_texts = getmetatable('')

---@param target table { world, reset = fun(), run = fun(): reply, err }
---@param view table
---@param options? { max_lines: integer, stops: boolean|nil } `stops` false: only where a pause is
---  asked for
function Debugger.new(target, view, options)
  local self = setmetatable({ target = target, world = target.world, view = view,
    points = Points.new(target.world.store, target.source), meddled = {}, trail = {}, step = 0,
    calls = {}, max_lines = options and options.max_lines or MAX_LINES,
    stops = not options or options.stops ~= false, stops_at_errors = true, stops_at_end = false },
    Debugger)
  for _, sandbox in ipairs({ self.world.sandbox, self.world.functions.sandbox }) do
    self:listen(sandbox)
  end
  return self
end

-- Ends the run, whatever the script does with the error: each of its next lines throws again.
function Debugger:abort()
  self.aborting = true
  self.world.run.finding = ABORTED
  error(ABORTED, 0)
end

-- As they are sent; what cannot be is refused by the call itself.
local function in_words(...)
  local words = { ... }
  for i = 1, select('#', ...) do
    words[i] = convert.argument(words[i]) or type(words[i])
  end
  return words
end

-- Calls of the script: what it asked for, what came back, and whether that wrote.
function Debugger:listen(sandbox)
  local redis = sandbox.behind[sandbox.globals.redis]
  for _, name in ipairs({ 'call', 'pcall' }) do
    local own = redis[name]
    redis[name] = function(...)
      if not self.running or self.aside then
        return own(...)
      end
      local written = #self.world.store.undo
      local call = { step = self.step, words = in_words(...) }
      local hook, mask = debug.gethook()
      debug.sethook() -- the mock's own lines are many
      local good, reply = pcall(own, ...)
      if hook then
        debug.sethook(hook, mask)
      end
      call.reply, call.wrote = reply, #self.world.store.undo > written
      self:called(call)
      if not good then
        error(reply, 0)
      end
      return reply
    end
  end
  function redis.breakpoint()
    self.asked = self.running
    return self.running or false
  end
  function redis.debug(...)
    if self.running and not self.silent then
      self:outside(self.view.said, self.view, ...)
    end
  end
end

function Debugger:called(call)
  self.calls[#self.calls + 1] = call
  local order = self.order
  if call.wrote and order.go == 'write' and self.step > order.from then
    self.again = { go = 'goto', step = self.step, reason = 'write' }
    self:abort()
  elseif not self.silent then
    self:outside(self.view.called, self.view, call)
  end
end

-- Runs what is not the script's: texts have their usual methods meanwhile, and what fails ends the
-- debugger, not the script.
function Debugger:outside(code, ...)
  local methods = methods_of_texts.__index
  self.methods = methods
  methods_of_texts.__index = string
  local good, result = pcall(code, ...)
  methods_of_texts.__index = methods
  if not good then
    self.failure = result
    self:abort()
  end
  return result
end

local function packed(...)
  return { n = select('#', ...), ... }
end

-- Runs what was typed as the script would, outside its accounts: no rule counts it.
---@return table results { ok, ... , n }
function Debugger:beside(code, ...)
  local world = self.world
  local run, clock, methods = world.run, world.clock, methods_of_texts.__index
  local ms, asked = clock.ms, clock.asked
  world.run, self.aside = { allow_oom = true }, true
  methods_of_texts.__index = self.methods or methods
  local results = packed(pcall(code, ...))
  methods_of_texts.__index = methods
  world.run, self.aside = run, false
  clock.ms, clock.asked = ms, asked
  return results
end

local function reason_of(err)
  -- No metatable of the script's has a say.
  local text = type(err) == 'table' and rawget(err, 'err') or err
  return type(text) == 'string' and (text:gsub('^%S+:%d+: ', '')) or show.value(text)
end

---The values of an expression, or what a statement did, at a function's line.
---@param frame table
---@param code string
---@return table|nil results { n, ... }
---@return string|nil why
function Debugger:evaluate(frame, code)
  local chunk, why = stack.compile(frame, code, self.world.sandbox)
  if not chunk then
    return nil, why
  end
  stack.limit(true)
  local results = self:beside(chunk)
  stack.limit(false)
  if not results[1] then
    return nil, reason_of(results[2])
  end
  return packed(unpack(results, 2, results.n))
end

---Runs a command on the keyspace as it is.
---@param words string[]
---@return any reply as a script sees it
---@return string|nil why
function Debugger:command(words)
  local results = self:beside(dispatch.from_script, self.world, words)
  if not results[1] then
    return nil, reason_of(results[2])
  end
  return results[2], results[3]
end

---Remembers what was done to the script at this line, for when it comes there again.
---@param act fun(frame: table)
function Debugger:meddle(act)
  self.meddled[#self.meddled + 1] = { step = self.step, act = act }
end

function Debugger:repeat_meddling()
  for _, entry in ipairs(self.meddled) do
    if entry.step == self.step then
      self:outside(entry.act, stack.frames()[1])
    end
  end
end

-- What was done at this line or later is undone by coming back before it.
local function forget_meddling(self)
  for i = #self.meddled, 1, -1 do
    if self.meddled[i].step >= self.step then
      table.remove(self.meddled, i)
    end
  end
end

local FORWARDS = {
  step = function()
    return true
  end,
  next = function(order, depth)
    return depth <= order.depth
  end,
  out = function(order, depth)
    return depth < order.depth
  end,
  line = function(order, _, line)
    return line == order.line
  end,
}

-- What an order does that comes to its line by running the script anew.
local ANEW = {}

ANEW['goto'] = function(self, order)
  if self.step < order.step then
    return self:repeat_meddling()
  end
  self.silent = false
  forget_meddling(self)
  return order.reason or 'back', order.text
end

function ANEW.rewind(self, order, line)
  if self.step < order.before then
    order.last = self:hits(line) and self.step or order.last
    return self:repeat_meddling()
  end
  self.again = { go = 'goto', step = order.last or 1,
    reason = order.last and 'break point' or 'start' }
  self:abort()
end

function ANEW.blame() end

-- Why the run stops at this line, if it does.
function Debugger:reason(line, depth)
  local order = self.order
  local watched = self.points:changed_key()
  if not self.stops then
    return nil
  elseif ANEW[order.go] then
    return ANEW[order.go](self, order, line)
  elseif self.asked then
    self.asked = false
    return 'redis.breakpoint() called'
  elseif watched and self.step > 1 then
    return 'watched key', watched
  end
  local is_point, text = self:hits(line)
  if is_point then
    return 'break point', text
  elseif FORWARDS[order.go] and FORWARDS[order.go](order, depth, line) then
    return self.step == 1 and 'start' or order.go == 'line' and 'line' or 'step over'
  end
end

---Is there a break point at the line, whose condition holds?
---@return boolean
---@return string|nil why its condition could not be told
function Debugger:hits(line)
  local point = self.points.lines[line]
  if not point or not point.condition then
    return point ~= nil
  end
  local told = self:outside(function()
    local results, why = self:evaluate(stack.frames()[1], point.condition)
    return { holds = results and results[1], why = why }
  end)
  if told.why then
    return true, ('the condition %s fails: %s'):format(point.condition, told.why)
  end
  return told.holds and true or false
end

local BACKWARDS = { back = true, rewind = true, ['goto'] = true, restart = true, quit = true }

-- The step before, over functions that were called meanwhile; nil at the first.
function Debugger:step_before(step)
  local here = self.trail[step]
  for before = step - 1, 1, -1 do
    if not here or self.trail[before].depth <= here.depth then
      return before
    end
  end
end

-- What an order that ends this run leads to.
local function next_run(self, order, step)
  if order.go == 'back' then
    return { go = 'goto', step = self:step_before(step) or 1 }
  elseif order.go == 'rewind' then
    return { go = 'rewind', before = step }
  elseif order.go == 'restart' then
    self.meddled, self.has_stopped_last = {}, nil
    return order.first or { go = 'step' }
  elseif order.go ~= 'quit' then
    return order
  end
end

function Debugger:obey(order, depth)
  if BACKWARDS[order.go] then
    self.again = next_run(self, order, self.step)
    self:abort()
  end
  self.order = { go = order.go, line = order.line, depth = depth, from = self.step }
  self.silent = false
end

function Debugger:stop(reason, text, line, depth)
  local frames = stack.frames()
  self.lines_run, self.asked = 0, false
  local order = self:outside(self.view.stopped, self.view, { step = self.step, line = line,
    reason = reason, text = text, frames = frames })
  self:obey(order, depth)
end

-- Has the script come to another line? One that is run several times in a row counts once, unless
-- its function is called anew: how often hooks are called then depends on the Lua.
local function is_new_line(self, line, func, depth)
  for deeper = depth + 1, self.deepest do
    self.seen[deeper] = nil
  end
  self.deepest = depth
  local last = self.seen[depth]
  if last and last.func == func and last.line == line and not self.entered then
    return false
  end
  self.seen[depth], self.entered = { func = func, line = line }, false
  return true
end

-- A line that may be one of many without an end.
function Debugger:look_up(line, depth)
  if self.stops and self.lines_run > self.max_lines and self.order.go ~= 'goto' then
    return self:stop('timeout reached, infinite loop?', nil, line, depth)
  end
  local order = self.lines_run % 1000 == 0 and self.view.busy
    and self:outside(self.view.busy, self.view)
  if order and order.go == 'pause' then
    self:stop('pause', nil, line, depth)
  elseif order then
    self:obey(order, depth)
  end
end

function Debugger:at_line(line, func, depth)
  self.lines_run = self.lines_run + 1
  self.world.run.line = line
  if not self.points:is_passed_over(line) and is_new_line(self, line, func, depth) then
    self.step = self.step + 1
    self.trail[self.step] = { line = line, depth = depth }
    local reason, text = self:reason(line, depth)
    if reason then
      return self:stop(reason, text, line, depth)
    end
  end
  self:look_up(line, depth)
end

local function hook_of(self)
  local main = coroutine.running()
  return function(event, line)
    local info = debug.getinfo(2, 'Sf')
    if not stack.SOURCES[info.source] or not self.running then
      return
    elseif self.aborting then
      self:abort()
    elseif event ~= 'line' then
      self.entered = true
      return
    end
    local beyond = coroutine.running() ~= main and COROUTINE or 0
    self:at_line(line, info.func, stack.height() - 1 + beyond)
  end
end

-- What these come by has been shown already.
local SILENT = { ['goto'] = true, rewind = true, blame = true }

---Runs the script once.
---@return table|nil outcome { reply, err, step }; nil: an order has ended it
function Debugger:run_once()
  self.target.reset()
  self.step, self.calls, self.seen, self.deepest, self.lines_run = 0, {}, {}, 0, 0
  self.aborting, self.again, self.asked, self.entered = false, nil, false, false
  self.silent = SILENT[self.order.go] or false
  self.before = self.world.store:snapshot()
  self.points:begin()
  local hook, mask, count = debug.gethook()
  self.running = true
  debug.sethook(hook_of(self), 'cl')
  local good, reply, err = pcall(self.target.run)
  debug.sethook(hook, mask, count)
  self.running = false
  if self.failure or not good then
    error(self.failure or reply, 0)
  elseif not self.aborting then
    return { reply = reply, err = err, step = self.step }
  end
end

-- The last step at a line.
local function last_at(self, line)
  for step = self.step, 1, -1 do
    if self.trail[step].line == line then
      return step
    end
  end
end

-- At the end there is nothing to look at any more: a run that fails stops at its last line, once;
-- and any other, where that is wanted.
local function last_stop(self, outcome)
  local err = outcome.err and outcome.err.line and outcome.err
  local is_wanted = err and self.stops_at_errors or not err and self.stops_at_end
  if self.step == 0 or self.has_stopped_last or not is_wanted or not self.stops then
    return nil
  end
  self.has_stopped_last = true
  return { go = 'goto', step = self.step, reason = err and 'error' or 'end',
    text = err and err.message }
end

-- What comes after a run to the script's end.
function Debugger:after(outcome)
  if self.order.go == 'blame' then
    local step = last_at(self, self.order.line)
    return { go = 'goto', step = step or 1, reason = step and self.order.reason or 'start' }
  end
  local again = last_stop(self, outcome)
  if again then
    return again
  end
  local order = self.view:ended(outcome)
  return order and next_run(self, order, self.step + 1)
end

---Runs until the view wants no more.
---@param order table of the first run: step, continue, or blame { line, reason }, which stops where
---  the script came to that line for the last time
function Debugger:start(order)
  while order do
    self.order = order
    local outcome = self:run_once()
    if outcome then
      order = self:after(outcome)
    else
      order = self.again
    end
  end
end

return Debugger

-- SPDX-License-Identifier: Apache-2.0
-- Runs one script from start to end, as one step of the world.
local Strict = require('latchkey.mock.strict')
local convert = require('latchkey.mock.convert')
local dispatch = require('latchkey.mock.dispatch')
local lua51 = require('latchkey.mock.lua51')
local methods = require('latchkey.mock.methods')
local nesting = require('latchkey.mock.nesting')
local place = require('latchkey.mock.place')

local runner = {}

local NO_FLAGS = {}
-- So many instructions of a script are looked at one by one.
local TRACED_MAX = 100000
-- After so many instructions the hook looks how many are left. Where a command comes between, those
-- before it are not counted.
local SLICE = 1000

-- A script without a shebang is checked command by command; one with it, before it starts.
local function refuse(world, script, read_only)
  local flags = script.flags
  if not flags or flags['no-writes'] then
    return nil
  elseif world.full and not flags['allow-oom'] then
    return dispatch.OOM
  elseif world.broken_disk then
    return dispatch.MISCONF
  elseif world.replica then
    return dispatch.READONLY
  elseif read_only then
    return 'ERR Can not execute a script with write flag using *_ro command.'
  end
end

local function copy(list)
  local new = {}
  for i = 1, #list do
    new[i] = list[i]
  end
  return new
end

-- What all texts of the process share, and is put back when a script ends.
local shared = getmetatable('')

local jit = rawget(_G, 'jit')
local sandbox, failed, is_certain

local function look(err)
  failed, is_certain = place.of_error(sandbox)
  return err
end

-- Calls a script's code, or a function's; where it fails, `run` knows.
local function call(run, its_sandbox, code, keys, args)
  local before = shared.__index
  shared.__index, sandbox, failed = methods, its_sandbox, nil
  nesting.begin()
  local ok, result
  if jit or not keys then
    ok, result = xpcall(code, look, keys, args)
  else
    ok, result = xpcall(function()
      return code(keys, args)
    end, look)
  end
  shared.__index = before
  run.failed, run.is_certain = failed, is_certain
  return ok, result
end

local function attempt(world, script, keys, args, read_only)
  local flags = script.flags or NO_FLAGS
  local rules = world.strict
    and Strict.new(script.header, keys, world.slots, world.most_number) or nil
  local run = { read_only = read_only or flags['no-writes'], allow_oom = flags['allow-oom'],
    rules = rules }
  world.run = run
  run.finding = rules and rules:start()
  if run.finding then
    return run, false, run.finding
  elseif script.callback then
    return run, call(run, world.functions.sandbox, script.callback, copy(keys), copy(args))
  end
  world.sandbox:set_arguments(copy(keys), copy(args))
  return run, call(run, world.sandbox, script.chunk)
end

-- A hook: an endless script is stopped, and stopped again wherever it catches the error; the mock's
-- own code is let through. `redis.lua` takes it off while a command runs, and counts that itself.
local function stopper(world)
  local meter = { left = world.max_instructions, count = math.min(world.max_instructions, SLICE) }
  function meter.hook()
    meter.left = meter.left - meter.count
    if meter.left > 0 then
      return
    end
    debug.sethook(meter.hook, '', 1)
    local env = getfenv(debug.getinfo(2, 'f').func)
    if env == world.sandbox.env or env == world.functions.sandbox.env then
      local run = world.run
      run.stopped, run.line = true, run.line or place.line(2)
      run.finding = ('MOCK the script ran more than %d instructions')
        :format(world.max_instructions)
      error(run.finding, 0)
    end
  end
  return meter
end

local function measure(world, meter)
  world.meter, world.store.written = meter, 0
  debug.sethook(meter.hook, '', meter.count)
end

local function member_err(thrown)
  return thrown.err
end

-- The server looks for "err" as a script would, also behind a metatable.
local function error_text(err)
  if type(err) ~= 'table' then
    return 'ERR ' .. lua51.text(err)
  end
  local good, text = pcall(member_err, err)
  return good and type(text) == 'string' and text
    or 'MOCK a table without "err" was thrown: a server of version 7.0 dies of it'
end

-- An error is read while the hook is there: what its metatable calls may never end, either.
local function told(run, ok, result)
  if not ok then
    result = error_text(result)
  end
  return run, ok, result
end

-- A hook that somebody else has set, a coverage tool's, stays instead.
local function limited(world, ...)
  if debug.gethook() then
    return told(attempt(world, ...))
  end
  measure(world, stopper(world))
  local run, ok, result = told(attempt(world, ...))
  debug.sethook()
  world.meter = nil
  return run, ok, result
end

-- The line that returned what it may not, or that failed in a function which has left its frame.
-- The call stack does not know. So the script runs once more, from the same state to the same end,
-- and its last instruction tells; nil: it has too many. Functions do not: they may keep a state of
-- their own, which another run would change.
local function last_line(world, before, script, ...)
  if script.callback then
    return nil
  end
  local hook, mask, count = debug.gethook()
  local line, left = nil, TRACED_MAX
  world.store:rollback()
  world.clock.ms, world.clock.asked = before.ms, false
  while #world.outbox > before.messages do
    table.remove(world.outbox)
  end
  measure(world, { left = math.huge, count = 1, hook = function()
    line, left = place.line(2) or line, left - 1
    if left == 0 and hook then
      world.meter = nil
      debug.sethook(hook, mask, count)
    elseif left == 0 then
      measure(world, stopper(world))
    end
  end })
  attempt(world, script, ...)
  debug.sethook(hook, mask, count)
  world.meter = nil
  return left > 0 and line or nil
end

-- What a script returned; a finding counts even if the script went on after it.
---@return any reply
---@return string|nil err
---@return boolean|nil is_finding about what was returned
local function returned(run, result)
  if run.finding then
    return nil, run.finding
  end
  local reply, err = convert.from_script(result)
  local finding = run.rules and run.rules:reply(reply, err)
  if finding then
    return nil, finding, true
  end
  return reply, err
end

-- In a server's words; what the mock itself says is a sentence, which ends before them.
local function with_place(err, script, line)
  return line and ('%s%s script: %s, on %s:%d.'):format(err, err:find('^MOCK ') and ';' or '',
    script.sha1 or script.name, script.callback and '@user_function' or '@user_script', line) or err
end

---@param script table of the library
---@param keys string[]
---@param args string[]
---@param read_only boolean EVAL_RO and the like
---@return any reply as a client sees it
---@return string|nil err
function runner.run(world, script, keys, args, read_only)
  local refusal = refuse(world, script, read_only)
  if refusal then
    return nil, refusal
  end
  world:begin()
  local before = { ms = world.clock.ms, messages = #world.outbox }
  local run, ok, result = limited(world, script, keys, args, read_only)
  if ok then
    local reply, wrong, is_finding = returned(run, result)
    if is_finding then
      local line = run.line or last_line(world, before, script, keys, args, read_only)
      wrong = with_place(wrong, script, line)
    end
    return reply, wrong
  end
  local err, line = run.finding or result, run.line
  if not run.stopped and not line then -- a debugger knows it
    line = not run.is_certain and last_line(world, before, script, keys, args, read_only)
      or run.failed
  end
  return nil, with_place(err, script, line)
end

return runner

-- SPDX-License-Identifier: Apache-2.0
-- Runs one script from start to end, as one step of the world.
local Strict = require('latchkey.mock.strict')
local convert = require('latchkey.mock.convert')
local dispatch = require('latchkey.mock.dispatch')
local lua51 = require('latchkey.mock.lua51')

local runner = {}

local NO_FLAGS = {}
-- What the server calls the text of a script, and that of functions.
local OURS = { ['@user_script'] = true, ['@user_function'] = true }

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

-- What texts have for methods, as in `text:format(1)`: while a script runs, those of its Lua. What
-- all texts of the process share is put back when it ends.
local METHODS = {}
for name, own in pairs(string) do
  METHODS[name] = lua51.string[name] or own
end
local shared = getmetatable('')

local function call(code, ...)
  local methods = shared.__index
  shared.__index = METHODS
  local ok, result = pcall(code, ...)
  shared.__index = methods
  return ok, result
end

local function attempt(world, script, keys, args, read_only)
  local flags = script.flags or NO_FLAGS
  local rules = world.strict and Strict.new(script.header, keys, world.slots) or nil
  local run = { read_only = read_only or flags['no-writes'], allow_oom = flags['allow-oom'],
    rules = rules }
  world.run = run
  run.finding = rules and rules:start()
  if run.finding then
    return run, false, run.finding
  elseif script.callback then
    return run, call(script.callback, copy(keys), copy(args))
  end
  world.sandbox:set_arguments(copy(keys), copy(args))
  return run, call(script.chunk)
end

-- Of which functions the text is, since this is asked at every instruction.
local is_ours = setmetatable({}, { __mode = 'k' })

local function script_line(level)
  local place = debug.getinfo(level + 1, 'fl')
  local ours = place.func and is_ours[place.func]
  if place.func and ours == nil then
    ours = OURS[debug.getinfo(place.func, 'S').source] or false
    is_ours[place.func] = ours
  end
  return ours and place.currentline or nil
end

-- An endless script is stopped, and stopped again wherever it catches the error; the mock's own
-- code is let through. A hook that somebody else has set, a coverage tool's, stays instead.
local function limited(world, ...)
  if debug.gethook() then
    return attempt(world, ...)
  end
  local function stop()
    debug.sethook(stop, '', 1)
    local env = getfenv(debug.getinfo(2, 'f').func)
    if env == world.sandbox.env or env == world.functions.sandbox.env then
      local run = world.run
      run.stopped, run.line = true, run.line or script_line(2)
      run.finding = ('MOCK the script ran more than %d instructions')
        :format(world.max_instructions)
      error(run.finding, 0)
    end
  end
  debug.sethook(stop, '', world.max_instructions)
  local run, ok, result = attempt(world, ...)
  debug.sethook()
  return run, ok, result
end

-- The line that failed, or that returned what it may not. The call stack does not know: a tail call
-- has left its frame, and where the server's redis.call is a C function, the mock's is not. So the
-- script runs once more, from the same state to the same end, and its last instruction tells.
local function failing_line(world, before, ...)
  local hook, mask, count = debug.gethook()
  local line
  world.store:rollback()
  world.clock.ms, world.clock.asked = before.ms, false
  while #world.outbox > before.messages do
    table.remove(world.outbox)
  end
  world.is_traced = true
  debug.sethook(function()
    line = script_line(2) or line
  end, '', 1)
  attempt(world, ...)
  debug.sethook(hook, mask, count)
  world.is_traced = false
  return line
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
      local line = run.line or failing_line(world, before, script, keys, args, read_only)
      wrong = with_place(wrong, script, line)
    end
    return reply, wrong
  end
  local err, line = run.finding or error_text(result), run.line
  if not run.stopped and not line then -- a debugger knows it
    line = failing_line(world, before, script, keys, args, read_only)
  end
  return nil, with_place(err, script, line)
end

return runner

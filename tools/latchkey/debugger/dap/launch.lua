-- SPDX-License-Identifier: Apache-2.0
-- What an editor's launch request asks for: a call of a script, a line of a trace, or a replay of
-- the checker.
local path = require('pl.path')

local cjson = require('cjson')

local recorded = require('latchkey.debugger.recorded')
local replayed = require('latchkey.debugger.replayed')
local targets = require('latchkey.debugger.target')
local text = require('latchkey.text')

local launch = {}

local KINDS = {
  script = 'string', lock = 'string', dir = 'string', library = 'string', trace = 'string',
  model = 'string', replay = 'string', fields = 'table', keys = 'table', args = 'table',
  before = 'table', options = 'table', strict = 'boolean', stopOnEntry = 'boolean',
  stopAtEnd = 'boolean', asFunction = 'boolean', noDebug = 'boolean', cwd = 'string',
}

-- What editors add to each request beside names of their own, which begin with two underscores.
local OF_EDITORS = { type = true, request = true, name = true, presentation = true,
  internalConsoleOptions = true, preLaunchTask = true, postDebugTask = true, program = true,
  debugServer = true, serverReadyAction = true, suppressMultipleSessionWarning = true }

local function refuse_member(given)
  for member, value in pairs(given) do
    local kind = KINDS[member]
    if kind and type(value) ~= kind then
      return ('"%s" of the launch request is no %s'):format(member, kind)
    elseif not kind and not OF_EDITORS[member] and not member:find('^__') then
      return ('a launch request has no "%s"'):format(member)
    end
  end
end

-- A plain value of JSON as a word of a call; whole numbers have all of their digits.
local function word_of(value)
  return type(value) == 'number' and text.number(value) or tostring(value)
end

-- What is no plain value where words are to stand: nothing that a key or an argument could be.
local function refuse_element(given)
  for _, member in ipairs({ 'before', 'keys', 'args', 'fields' }) do
    for name, value in pairs(given[member] or {}) do
      if (member == 'fields') ~= (type(name) == 'string') then
        return ('"%s" of the launch request is no %s'):format(member,
          member == 'fields' and 'object' or 'array')
      end
      local is_word = type(value) == 'string'
        or member ~= 'before' and (type(value) == 'number' or type(value) == 'boolean')
      if not is_word then
        return ('"%s" of the launch request takes %s, not %s'):format(member,
          member == 'before' and 'texts' or 'texts and numbers',
          value == cjson.null and 'null' or type(value))
      end
    end
  end
end

-- The words of a call: the script, its keys, a comma, its arguments.
local function words_of(given)
  local words = { given.script }
  for _, key in ipairs(given.keys or {}) do
    words[#words + 1] = word_of(key)
  end
  if given.args then
    words[#words + 1] = ','
  end
  for _, value in ipairs(given.args or {}) do
    words[#words + 1] = word_of(value)
  end
  return words
end

local function of_call(home, given)
  local wrong = refuse_element(given)
  if wrong then
    return nil, wrong
  end
  local args = { script = words_of(given), name = given.lock, dir = given.dir,
    library = given.library, before = given.before, as_function = given.asFunction,
    no_strict = given.strict == false }
  for name, value in pairs(given.fields or {}) do
    args['field_' .. name] = word_of(value)
  end
  local target, failure = targets.call(home, args)
  return target, failure and failure.message
end

local function of_replay(home, given)
  local checker = require('latchkey.checker')
  local options = { scripts = given.dir or path.join(home, 'scripts') }
  for name, value in pairs(given.options or {}) do
    options[name] = value
  end
  local good, run, why, steps = pcall(checker.run, given.model, given.replay, options)
  if not good or not run then
    return nil, good and why or tostring(run)
  end
  local target, order = replayed.of(steps, run)
  return target, target and order or 'no script runs in this replay'
end

local function of(home, given)
  local target, why
  if given.replay then
    if not given.model then
      return nil, 'a replay needs the "model" that it is of'
    end
    return of_replay(home, given)
  elseif given.trace then
    local failure
    target, failure = recorded.of(home, given)
    why = failure and failure.message
  elseif given.script then
    target, why = of_call(home, given)
  else
    why = 'a launch request names a "script", a "trace" or a "replay"'
  end
  if not target then
    return nil, why
  end
  return target, { go = given.stopOnEntry and 'step' or 'continue' }
end

---@param home string
---@param given table arguments of the request; its `cwd` becomes that of this process
---@return table|nil target
---@return table|string order of the first run, or what is wrong
function launch.of(home, given)
  local wrong = refuse_member(given)
  if wrong then
    return nil, wrong
  end
  local before = path.currentdir()
  if given.cwd and not path.chdir(given.cwd) then
    return nil, ('the "cwd" %s is not a folder'):format(given.cwd)
  end
  local target, order = of(home, given)
  if not target then
    path.chdir(before)
    return nil, order
  end
  return target, given.noDebug and { go = 'continue' } or order
end

return launch

-- SPDX-License-Identifier: Apache-2.0
-- What an editor can unfold while a script is stopped: its variables, its arguments, the keyspace
-- and the commands that ran. Numbers stand for them until the script goes on.
local show = require('latchkey.debugger.show')
local stack = require('latchkey.debugger.stack')
local text = require('latchkey.text')

local Variables = {}
Variables.__index = Variables

---@param debugger table
---@param target table
function Variables.new(debugger, target)
  return setmetatable({ debugger = debugger, target = target, things = {} }, Variables)
end

---The script is stopped, or goes on: numbers that were given mean nothing any more.
function Variables:forget()
  self.things = {}
end

local function add(self, thing)
  self.things[#self.things + 1] = thing
  return #self.things
end

---A value as the protocol has it.
---@param value any
---@return table variable { value, type, variablesReference }
function Variables:of_value(value)
  local shown = type(value) == 'table' and show.cut(show.value(value), 80) or show.value(value)
  return { value = text.safe(shown), type = type(value),
    variablesReference = type(value) == 'table' and next(value) ~= nil
      and add(self, { kind = 'table', table = value }) or 0 }
end

local function named(variable, name)
  variable.name = name
  return variable
end

local LISTS = {}

local function of_list(self, list, can_evaluate)
  local variables = {}
  for i, entry in ipairs(list) do
    variables[i] = named(self:of_value(entry.value), text.safe(entry.name))
    variables[i].evaluateName = can_evaluate and entry.name or nil
  end
  return variables
end

function LISTS.locals(self, thing)
  return of_list(self, stack.locals(thing.frame), true)
end

function LISTS.upvalues(self, thing)
  return of_list(self, stack.upvalues(thing.frame), true)
end

LISTS.table = function(self, thing)
  return of_list(self, show.entries(thing.table))
end

local function given(list, fields, word)
  local variables = {}
  for i, value in ipairs(list) do
    local field = fields and fields[i]
    variables[i] = { name = ('%s[%d]%s'):format(word, i, field and ' ' .. field.name or ''),
      value = text.quoted(value), type = 'string', variablesReference = 0,
      evaluateName = ('%s[%d]'):format(word, i) }
  end
  return variables
end

function LISTS.call(self)
  local target = self.target
  local header = target.header or {}
  local variables = given(target.keys, header.keys, 'KEYS')
  for _, variable in ipairs(given(target.args, header.argv, 'ARGV')) do
    variables[#variables + 1] = variable
  end
  return variables
end

local MARKS = { ['+'] = 'new: ', ['~'] = 'changed: ', ['-'] = 'gone: ', [' '] = '' }

function LISTS.keyspace(self)
  local variables, clock = {}, self.target.world.clock
  for i, key in ipairs(show.keyspace(self.target.world, self.debugger.before)) do
    local record = key.record or key.was
    variables[i] = { name = text.safe(key.name), type = record.type, variablesReference = 0,
      value = MARKS[key.mark] .. show.record(record, clock.ms) }
  end
  return variables
end

function LISTS.calls(self)
  local variables = {}
  for i, call in ipairs(self.debugger.calls) do
    local variable = self:of_value(call.reply)
    variable.value = ('%s -> %s'):format(text.safe(table.concat(call.words, ' ')), variable.value)
    variables[i] = named(variable, tostring(i))
  end
  return variables
end

---@param frame table
---@return table[] scopes
function Variables:scopes(frame)
  local function scope(name, kind, hint)
    return { name = name, presentationHint = hint, expensive = false,
      variablesReference = add(self, { kind = kind, frame = frame }) }
  end
  return { scope('Locals', 'locals', 'locals'), scope('Upvalues', 'upvalues'),
    scope('KEYS and ARGV', 'call', 'arguments'), scope('Keyspace', 'keyspace'),
    scope('Commands', 'calls') }
end

---@param reference integer
---@return table[]|nil variables nil: it means nothing, or nothing any more
function Variables:list(reference)
  local thing = self.things[reference]
  return thing and LISTS[thing.kind](self, thing)
end

---The function whose variables these are.
---@param reference integer
---@return table|nil frame
function Variables:frame_of(reference)
  local thing = self.things[reference]
  return thing and (thing.kind == 'locals' or thing.kind == 'upvalues') and thing.frame or nil
end

---The key that a variable shows.
---@param reference integer|nil
---@param name string
---@return string|nil key
function Variables:key_of(reference, name)
  local thing = self.things[reference]
  for _, key in ipairs(thing and thing.kind == 'keyspace'
    and show.keyspace(self.target.world, self.debugger.before) or {}) do
    if text.safe(key.name) == name then
      return key.name
    end
  end
end

return Variables

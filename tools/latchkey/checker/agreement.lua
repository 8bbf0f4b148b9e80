-- SPDX-License-Identifier: Apache-2.0
-- Do a model file and the contracts of its scripts speak of the same things? A name or a shape that
-- only one of them has would otherwise show as a mistake of the scripts.
local utils = require('pl.utils')

local domain = require('latchkey.script.domain')

local agreement = {}

-- The first line at or after `from` that has this word by itself; else `from`.
local function line_of(lines, word, from)
  local plain = '%f[%w_]' .. word:gsub('%p', '%%%0') .. '%f[^%w_]'
  plain = word:find('^[%w_]') and plain or word:gsub('%p', '%%%0')
  for number = from, #lines do
    if lines[number]:find(plain) then
      return number
    end
  end
  return from
end

local function names_of(list, field)
  local names = {}
  for i, entry in ipairs(list) do
    names[i] = entry[field]
  end
  return #names > 0 and table.concat(names, ', ') or 'nothing'
end

local function has(list, field, value)
  for _, entry in ipairs(list) do
    if entry[field] == value then
      return true
    end
  end
  return false
end

-- What is named of a script, in which list of its contract, and what that list is called.
local LISTS = {
  key = { 'keys', 'name', 'keys' },
  argument = { 'argv', 'name', 'arguments' },
  reply = { 'returns', 'shape', 'replies' },
}

local function missing(said, header)
  local list, field, what = unpack(LISTS[said.kind])
  local is_error = said.kind == 'reply' and has(header.errors, 'code', said.name)
  if not is_error and not has(header[list], field, said.name) then
    local errors = said.kind == 'reply' and #header.errors > 0
      and ', its errors ' .. names_of(header.errors, 'code') or ''
    return ('%s has no %s "%s"; the %s of its contract are %s%s'):format(said.script, said.kind,
      said.name, what, names_of(header[list], field), errors)
  end
end

-- The models of locks read one key and one channel, which they form of the lock's name alone.
local function depends(entry, said, what)
  if entry.form.kind == 'slot' or entry.form.plus ~= '' then
    return ('the %s "%s" of %s depends on %s, and clients form it of the lock\'s name alone')
      :format(what, entry.name, said.script, entry.form.kind == 'slot' and 'the caller'
        or ('the argument "%s"'):format(entry.form.plus))
  end
end

local function unread_key(said, header)
  local wrong = missing(said, header)
  for _, key in ipairs(not wrong and said.where == 'holders' and header.keys or {}) do
    wrong = wrong or key.name == said.name and depends(key, said, 'key') or nil
  end
  return wrong
end

-- Waiters that are woken by messages need a channel to listen on.
local function without_channel(said, header)
  for _, channel in ipairs(header.channels) do
    local wrong = depends(channel, said, 'channel')
    if wrong then
      return wrong
    end
  end
  if #header.channels == 0 and not has(header.argv, 'type', 'channel') then
    return ('the contract of %s names no channel, neither as an argument nor under "channels:"; '
      .. 'where nothing is published, waits = "polling"'):format(said.script)
  end
end

-- Types whose values clients know whatever the argument is called.
local KNOWN = { owner = true, ms = true, channel = true, verb = true }

local function is_sent(argument, said)
  return said.given[argument.name] or KNOWN[argument.type]
end

-- An argument without a value would be left out, and those behind it would move up.
local function without_value(argument, said)
  local may_miss = argument.optional or argument.many and argument.many.min == 0
  if not (is_sent(argument, said) or may_miss) then
    return ('nothing says which value the argument "%s" of %s has; write args = { %s = ... }')
      :format(argument.name, said.script, argument.name)
  end
end

local function wrong_one(argument, value)
  if type(value) == 'table' then
    return 'is one text or number, no table'
  end
  return domain.why(argument, domain.text(value))
end

local function wrong_list(argument, values)
  local many = argument.many
  if type(values) ~= 'table' then
    return 'is a list of values: { "one", "two" }'
  elseif #values < many.min or #values > many.max then
    return ('has %d to %d values'):format(many.min, many.max)
  end
  for _, value in ipairs(values) do
    local wrong = wrong_one(argument, value)
    if wrong then
      return wrong
    end
  end
end

-- Longer ones have so many digits that no run comes to them.
local MOST_OWNER = 16

---How long the names of clients must be, for each script that takes one.
---@param scripts string[]
---@param header_of fun(script: string): table
---@return integer bytes at least
function agreement.owner_bytes(scripts, header_of)
  local least = 0
  for _, script in ipairs(scripts) do
    for _, argument in ipairs(header_of(script).argv) do
      least = argument.type == 'owner' and math.max(least, argument.min or 0) or least
    end
  end
  return least
end

-- A value that is written out; clients of a lock have no other.
local function wrong_value(argument, said)
  local value = said.values[argument.name]
  if value == nil and argument.type == 'ms' and not argument.many then
    local wrong = domain.why(argument, domain.text(said.lease))
    return wrong and ('the argument "%s" of %s %s, and the lease is %.0f; write limits = '
      .. '{ lease = ... }'):format(argument.name, said.script, wrong, said.lease), 'limits'
  elseif value == nil and argument.type == 'owner' and argument.max < MOST_OWNER then
    return ('the argument "%s" of %s has %.0f to %.0f bytes, and names of clients up to %d; write '
      .. 'args = { %s = ... }'):format(argument.name, said.script, argument.min, argument.max,
      MOST_OWNER, argument.name), argument.name
  elseif value == nil and argument.form then
    return depends(argument, said, 'channel')
  elseif value == nil or type(value) == 'function' and not said.fixed then
    return nil
  end
  local wrong = type(value) == 'function'
    and 'is a text or a number: clients of a lock compute none'
    or (argument.many and wrong_list or wrong_one)(argument, value)
  return wrong and ('the argument "%s" of %s %s'):format(argument.name, said.script, wrong),
    argument.name
end

local function wrong_values(said, header)
  local left_out
  for _, argument in ipairs(header.argv) do
    local wrong, word = without_value(argument, said), nil
    if not wrong and left_out and is_sent(argument, said) then
      wrong, word = ('the argument "%s" of %s would come to the place of "%s", which has no value')
        :format(argument.name, said.script, left_out), argument.name
    elseif not wrong then
      wrong, word = wrong_value(argument, said)
    end
    if wrong then
      return wrong, word
    end
    left_out = left_out or not is_sent(argument, said) and argument.name or nil
  end
  for _, key in ipairs(header.keys) do
    if key.form.kind == 'slot' then
      return ('the key "%s" of %s is chosen by the caller, {slot}; write the form that it has for '
        .. 'these clients into the contract'):format(key.name, said.script)
    end
  end
end

-- An argument of some of the scripts.
local function of_none(said, _, header_of)
  for _, script in ipairs(said.scripts) do
    if has(header_of(script).argv, 'name', said.name) then
      return nil
    end
  end
  return ('no script of the lock has an argument "%s"'):format(said.name)
end

local CHECKS = { key = unread_key, channel = without_channel, values = wrong_values,
  somewhere = of_none }

---@param model table `names` has what its file says of scripts: { script, kind = "key", "argument"
---  or "reply", name, where }; kind "channel": it publishes on one; kind "values": `given` has the
---  arguments that have a value, `values` what is written out, `lease` what others of the type ms
---  are, and `fixed` is true where nothing is computed; kind "somewhere": one of `scripts` has it
---@param header_of fun(script: string): table
---@return string|nil wrong the first mistake, with the file and its line
function agreement.wrong(model, header_of)
  local lines = false
  for _, said in ipairs(model.names or {}) do
    local wrong, word = (CHECKS[said.kind] or missing)(said, header_of(said.script), header_of)
    if wrong then
      lines = lines or utils.readlines(model.file) or {}
      local from = said.line or line_of(lines, said.script, 1)
      return ('%s:%d: %s: %s'):format(model.file,
        said.line or line_of(lines, word or said.name, from), said.where, wrong)
    end
  end
end

return agreement

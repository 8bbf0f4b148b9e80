-- SPDX-License-Identifier: Apache-2.0
-- Do a model file and the contracts of its scripts speak of the same things? A name or a shape that
-- only one of them has would otherwise show as a mistake of the scripts.
local utils = require('pl.utils')

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

-- Waiters that are woken by messages need a channel to listen on.
local function without_channel(said, header)
  if #header.channels == 0 and not has(header.argv, 'type', 'channel') then
    return ('the contract of %s names no channel, neither as an argument nor under "channels:"; '
      .. 'where nothing is published, waits = "polling"'):format(said.script)
  end
end

-- Types whose values clients know whatever the argument is called.
local KNOWN = { owner = true, ms = true, channel = true, verb = true }

-- An argument without a value would be left out, and those behind it would move up.
local function without_value(said, header)
  for _, argument in ipairs(header.argv) do
    local may_miss = argument.optional or argument.many and argument.many.min == 0
    if not (said.given[argument.name] or KNOWN[argument.type] or may_miss) then
      return ('nothing says which value the argument "%s" of %s has; write args = { %s = ... }')
        :format(argument.name, said.script, argument.name)
    end
  end
end

local OTHERS = { channel = without_channel, values = without_value }

---@param model table `names` has what its file says of scripts: { script, kind = "key", "argument"
---  or "reply", name, where }; kind "channel": it publishes on one; kind "values": `given` has the
---  arguments that have a value
---@param header_of fun(script: string): table
---@return string|nil wrong the first mistake, with the file and its line
function agreement.wrong(model, header_of)
  local lines = false
  for _, said in ipairs(model.names or {}) do
    local check = OTHERS[said.kind] or missing
    local wrong = check(said, header_of(said.script))
    if wrong then
      lines = lines or utils.readlines(model.file) or {}
      local from = said.line or line_of(lines, said.script, 1)
      return ('%s:%d: %s: %s'):format(model.file,
        said.line or line_of(lines, said.name, from), said.where, wrong)
    end
  end
end

return agreement

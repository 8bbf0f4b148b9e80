-- SPDX-License-Identifier: Apache-2.0
-- What differs between two sets of scripts, and whether their versions say so: text is a patch,
-- what old callers need not know a minor, all else a major.
local path = require('pl.path')
local tablex = require('pl.tablex')
local utils = require('pl.utils')

local ledger = require('latchkey.script.ledger')
local whole_file = require('latchkey.whole_file')

local changes = {}

local LEVELS = { patch = 1, minor = 2, major = 3 }

local function equal(a, b)
  if type(a) ~= 'table' or type(b) ~= 'table' then
    return a == b
  end
  for key, value in pairs(a) do
    if not equal(value, b[key]) then
      return false
    end
  end
  for key in pairs(b) do
    if a[key] == nil then
      return false
    end
  end
  return true
end

local function without_text(row)
  local copy = {}
  for name, value in pairs(row) do
    copy[name] = name ~= 'text' and value or nil
  end
  return copy
end

local function same_rows(a, b)
  if #a ~= #b then
    return false
  end
  for i, row in ipairs(a) do
    if not equal(without_text(row), without_text(b[i])) then
      return false
    end
  end
  return true
end

-- Were optional arguments added behind those that were there?
local function only_adds_optional(old, new)
  for i, argument in ipairs(new) do
    local before = old[i]
    if before and not equal(without_text(before), without_text(argument))
      or not before and not argument.optional then
      return false
    end
  end
  return #new > #old
end

-- At most how many commands; more cost than before is no finding, it is a new text.
local function worst(cost)
  return cost.max or cost.base
end

---What the header alone says of a change: the least step of the version, and for what. The code may
---need a higher one.
---@param old table header
---@param new table header
---@return 'patch'|'minor'|'major' level
---@return string reason
function changes.level(old, new)
  for _, list in ipairs({ 'keys', 'derived', 'channels', 'returns', 'errors' }) do
    if not same_rows(old[list], new[list]) then
      return 'major', list .. ' differ'
    end
  end
  for _, field in ipairs({ 'message', 'repeat_', 'dynamic' }) do
    if not equal(old[field], new[field]) then
      return 'major', ('"%s" differs'):format(field:gsub('_$', ''))
    end
  end
  if not same_rows(old.argv, new.argv) then
    if only_adds_optional(old.argv, new.argv) then
      return 'minor', 'optional arguments were added'
    end
    return 'major', 'arguments differ'
  elseif not equal(old.flags, new.flags) then
    return 'minor', 'flags differ'
  elseif worst(new.cost) < worst(old.cost) then
    return 'minor', 'it takes fewer commands'
  end
  return 'patch', 'the bytes differ'
end

-- How far the version went, in whichever direction.
local function step(a, b)
  local from, to = { a:match('(%d+)%.(%d+)%.(%d+)') }, { b:match('(%d+)%.(%d+)%.(%d+)') }
  for place, level in ipairs({ 'major', 'minor', 'patch' }) do
    if from[place] ~= to[place] then
      return level
    end
  end
end

-- Why the versions do not say what changed; nil if they do.
local function breach(change)
  local is_back = ledger.above(change.old, change.new)
  local older, newer = change.before, change.after
  if is_back then
    older, newer = newer, older
  end
  local needed, reason = changes.level(older.header, newer.header)
  local gone = step(change.old, change.new)
  if not gone then
    return ('the bytes differ, but both are %s; needs a %s step: %s'):format(change.old, needed,
      reason)
  elseif LEVELS[gone] < LEVELS[needed] then
    return ('%s to %s is a %s step; needs a %s one: %s'):format(change.old, change.new, gone,
      needed, reason)
  end
end

---@param before table[] scripts as of catalog.read
---@param after table[]
---@return table[] list { name, kind: added|removed|changed, old, new, finding, before, after }
function changes.between(before, after)
  local by_name, list = {}, {}
  for side, scripts in pairs({ before = before, after = after }) do
    for _, script in ipairs(scripts) do
      by_name[script.name] = by_name[script.name] or { name = script.name }
      by_name[script.name][side] = script
    end
  end
  for _, change in tablex.sort(by_name) do
    local old, new = change.before, change.after
    change.old, change.new = old and old.header.version, new and new.header.version
    if not old or not new then
      change.kind = old and 'removed' or 'added'
      list[#list + 1] = change
    elseif old.source ~= new.source or old.contract ~= new.contract then
      change.kind = 'changed'
      change.finding = breach(change)
      list[#list + 1] = change
    end
  end
  return list
end

-- What diff -u says of one part of both scripts, their texts or their contracts; "" where it is the
-- same, or where neither has one.
local function difference(change, part, suffix)
  local words, copies = { 'diff', '-u' }, {}
  for i, side in ipairs({ 'before', 'after' }) do
    local script = change[side]
    local text = script and script[part]
    copies[i] = path.tmpname()
    local written, why = whole_file.write(copies[i], text or '')
    if not written then
      return nil, why
    end
    local label = text and ('%s%s %s'):format(script.name, suffix, script.header.version)
      or '/dev/null'
    table.insert(words, '--label ' .. utils.quote_arg(label))
  end
  words[#words + 1] = utils.quote_arg(copies[1]) .. ' ' .. utils.quote_arg(copies[2])
  local _, code, out, err = utils.executeex(table.concat(words, ' '), true)
  os.remove(copies[1])
  os.remove(copies[2])
  if code > 1 then
    return nil, err
  end
  return out
end

---The text of a change as diff -u shows it, and behind it that of the contract.
---@param change table of changes.between
---@return string|nil text
---@return string|nil why
function changes.text(change)
  local text, why = difference(change, 'source', '.lua')
  local contract = text
  if text then
    contract, why = difference(change, 'contract', '.contract')
  end
  return contract and text .. contract, why
end

---A change without the scripts themselves, for programs.
---@param change table
---@return table
function changes.plain(change)
  return { name = change.name, change = change.kind, old = change.old, new = change.new,
    finding = change.finding, old_sha1 = change.before and change.before.sha1,
    new_sha1 = change.after and change.after.sha1 }
end

return changes

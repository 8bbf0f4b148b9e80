-- SPDX-License-Identifier: Apache-2.0
-- The page of the commands that the mock has, made of its own table.
local commands = require('latchkey.mock.commands')

local known = {}

local HEAD = [[
# Commands of the mock

The commands of Redis 7.0 that scripts can run on [the mock](../explanation/mock.md), and those that
it refuses by name. `tools/fidelity --commands` makes this page of the mock's own table.

]]

local GROUPS = {
  { 'keys', 'Keys and expiry' }, { 'scans', 'Going through keys and values' },
  { 'strings', 'Strings' }, { 'bytes', 'Bytes and bits of strings' }, { 'hashes', 'Hashes' },
  { 'lists', 'Lists' }, { 'sets', 'Sets' }, { 'zsets', 'Sorted sets' },
  { 'zranges', 'Ranges of sorted sets' }, { 'streams', 'Streams' }, { 'pubsub', 'Messages' },
  { 'server', 'The server' }, { 'scripting', 'Scripts' }, { 'functions', 'Functions' },
}

-- The names of a group, with their second words where only some of these are there.
local function names_of(group, is_wanted, in_area)
  local names = {}
  for name in pairs(require('latchkey.mock.commands.' .. group)) do
    local command = commands[name]
    if is_wanted(command) and (not in_area or in_area(name)) then
      names[#names + 1] = name
    end
    for word, inner in pairs(command.subcommands or {}) do
      if is_wanted(inner) then
        names[#names + 1] = name .. ' ' .. word
      end
    end
  end
  table.sort(names)
  return #names > 0 and '`' .. table.concat(names, '`, `') .. '`' or ''
end

local function runs(command)
  return command.run ~= nil
end

local function is_refused(command)
  return not command.run and not command.subcommands and not command.noscript
end

local function starts(...)
  local beginnings = { ... }
  return function(name)
    for _, beginning in ipairs(beginnings) do
      if name:sub(1, #beginning) == beginning then
        return true
      end
    end
    return false
  end
end

local of_streams, of_places = starts('X'), starts('GEO', 'PF')
local of_values = starts('Z', 'H', 'L', 'BZ', 'BL', 'BIT', 'INCR')

local REFUSED = {
  { 'groups of streams', of_streams }, { 'places, and counts that are estimated', of_places },
  { 'values', function(name)
    return of_values(name) and name ~= 'LATENCY' and name ~= 'LASTSAVE' and name ~= 'LOLWUT'
  end },
  { 'others', function(name)
    return not of_streams(name) and not of_places(name)
      and (not of_values(name) or name == 'LATENCY' or name == 'LASTSAVE' or name == 'LOLWUT')
  end },
}

---@return string the whole page
function known.page()
  local lines = { '| group | commands |', '|---|---|' }
  for _, group in ipairs(GROUPS) do
    lines[#lines + 1] = ('| %s | %s |'):format(group[2], names_of(group[1], runs))
  end
  for _, area in ipairs(REFUSED) do
    lines[#lines + 1] = ('| refused: %s | %s |'):format(area[1],
      names_of('unmodelled', is_refused, area[2]))
  end
  return HEAD .. table.concat(lines, '\n') .. '\n'
end

---The groups that the page has, and that the mock has.
function known.groups()
  local listed = { unmodelled = true }
  for _, group in ipairs(GROUPS) do
    listed[group[1]] = true
  end
  return listed
end

return known

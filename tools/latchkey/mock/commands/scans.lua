-- SPDX-License-Identifier: Apache-2.0
-- What goes through keys, fields or members. All of them come in one page, as small values do on a
-- server; of keys a server makes several pages, in an order of its own.
local arrays = require('latchkey.mock.arrays')
local choice = require('latchkey.mock.choice')
local glob = require('latchkey.mock.glob')
local integers = require('latchkey.mock.integers')
local scores = require('latchkey.mock.scores')

local ONE_KEY = { 1, 1, 1 }

local function keys(world, argv)
  local found = {}
  for _, name in ipairs(world.store:names()) do
    if glob.match(argv[2], name) then
      found[#found + 1] = name
    end
  end
  return found
end

local function read_options(argv, first, has_type)
  local pattern, kind = '*', nil
  for i = first, #argv, 2 do
    local word, value = argv[i]:upper(), argv[i + 1]
    if not value then
      return nil, nil, arrays.SYNTAX
    elseif word == 'MATCH' then
      pattern = value
    elseif word == 'TYPE' and has_type then
      kind = value:lower()
    elseif word == 'COUNT' then
      local count = integers.parse(value)
      if not count or count < 1 then
        return nil, nil, count and arrays.SYNTAX or integers.NOT_AN_INTEGER
      end
    else
      return nil, nil, arrays.SYNTAX
    end
  end
  return pattern, kind
end

-- As C's strtoul reads it.
local function is_cursor(text)
  return text == '' or text:find('^[+-]?%d+$') ~= nil
end

local function scan(world, argv)
  if not is_cursor(argv[2]) then
    return nil, 'ERR invalid cursor'
  end
  local pattern, kind, bad = read_options(argv, 3, true)
  if bad then
    return nil, bad
  end
  local store, found = world.store, {}
  for _, name in ipairs(tonumber(argv[2] == '' and 0 or argv[2]) == 0 and store:names() or {}) do
    if glob.match(pattern, name) and (not kind or store:get(name).type == kind) then
      found[#found + 1] = name
    end
  end
  return { '0', found }
end

-- Of a value: its elements as { name, what goes with it }.
local ELEMENTS = {
  hash = function(fields)
    local list = {}
    for i = 1, #fields, 2 do
      list[#list + 1] = { fields[i], fields[i + 1] }
    end
    return list
  end,
  set = function(members)
    local list = {}
    for i, member in ipairs(members) do
      list[i] = { member }
    end
    return list
  end,
  zset = function(entries)
    local list = {}
    for i, entry in ipairs(entries) do
      list[i] = { entry[1], scores.text(entry[2]) }
    end
    return list
  end,
}

-- The cursor of a small value does not matter: all of it is one page.
local function scan_value(kind)
  return function(world, argv)
    if not is_cursor(argv[3]) then
      return nil, 'ERR invalid cursor'
    end
    local value, wrong = arrays.read(world, argv[2], kind)
    if wrong then
      return nil, wrong
    elseif not world.store:get(argv[2]) then
      return { '0', {} }
    end
    local pattern, _, bad = read_options(argv, 4, false)
    if bad then
      return nil, bad
    end
    local found = {}
    for _, element in ipairs(ELEMENTS[kind](value)) do
      if glob.match(pattern, element[1]) then
        found[#found + 1] = element[1]
        found[#found + 1] = element[2]
      end
    end
    return { '0', found }
  end
end

local function random_key(world)
  local names = world.store:names()
  return choice.of(names, nil)
end

return {
  KEYS = { arity = 2, flags = 'readonly', run = keys },
  SCAN = { arity = -2, flags = 'readonly', run = scan },
  HSCAN = { arity = -3, flags = 'readonly', keys = ONE_KEY, run = scan_value('hash') },
  SSCAN = { arity = -3, flags = 'readonly', keys = ONE_KEY, run = scan_value('set') },
  ZSCAN = { arity = -3, flags = 'readonly', keys = ONE_KEY, run = scan_value('zset') },
  DBSIZE = { arity = 1, flags = 'readonly', run = function(world)
    return #world.store:names()
  end },
  RANDOMKEY = { arity = 1, flags = 'readonly', run = random_key },
}

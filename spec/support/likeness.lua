-- SPDX-License-Identifier: Apache-2.0
-- What a script must do alike with other names, and with numbers of other sizes: how it is held to
-- that by comparing runs with each other, since nobody writes out what each of them leaves.
local World = require('latchkey.mock.world')
local cases = require('support.cases')
local helper = require('helper')
local renamed = require('support.renamed')

local likeness = {}

-- Names that a careless comparison takes for one another: bytes at which texts are cut by mistake,
-- and an owner whose name begins like another's.
likeness.NAMES = {
  { what = 'any bytes in the name', from = cases.OWNER, to = 'lk-\0 ann:1' },
  { what = 'a name that begins like the holder\'s', from = cases.OWNER, to = 'lk-bob:12' },
  { what = 'a holder whose name begins like its own', from = 'lk-bob:1', to = 'lk-ann:12' },
  { what = 'any bytes in an id', from = cases.ID, to = ('\1'):rep(7) .. '\0 ' .. ('\1'):rep(7) },
}

local worlds, empty = {}, {}

-- A run on an empty world: the reply, the keys that are left, and the messages.
local function run(script, keys, args, records, is_strict)
  is_strict = is_strict ~= false
  local world = worlds[is_strict]
  if not world then
    -- Not one that is watched: what that does is done here.
    world = World.new({ scripts = helper.scripts, strict = is_strict })
    worlds[is_strict], empty[is_strict] = world, world:snapshot()
  end
  world:restore(empty[is_strict])
  helper.fill(world, records)
  local reply, err = world:eval(script.name, keys, args)
  return { reply = reply, code = err and err.code, keys = helper.dump(world),
    messages = world:messages() }
end

---The outcome of a script's usual call on a state.
function likeness.usual(script, state)
  local keys, args = cases.call(script.header)
  return run(script, keys, args, cases.records(script.header, state))
end

---The same with another name, whose outcome has the usual name again.
---@param name table of `likeness.NAMES`
function likeness.with_name(script, state, name)
  local keys, args = cases.call(script.header)
  local records = cases.records(script.header, state)
  return renamed(run(script, renamed(keys, name.from, name.to), renamed(args, name.from, name.to),
    renamed(records, name.from, name.to)), name.to, name.from)
end

-- With one brace a name has no tag, and is yet formed as one that has: its keys have two slots,
-- which only a server that is no cluster allows.
local ONE_BRACE = 'jo{b'

local function with_brace(value)
  return renamed(renamed(value, '{' .. cases.NAME .. '}', ONE_BRACE), cases.NAME, ONE_BRACE)
end

---The outcomes of a script's usual call: as if its name had one brace, and where it has.
function likeness.brace(script, state)
  local keys, args = cases.call(script.header)
  local records = cases.records(script.header, state)
  return with_brace(run(script, keys, args, records, false)),
    run(script, with_brace(keys), with_brace(args), with_brace(records), false)
end

---What a script says to a sharded channel where its name has one brace.
function likeness.sharded_brace(script)
  local keys, args = cases.call(script.header)
  for place, argument in ipairs(script.header.argv) do
    args[place] = argument.type == 'verb' and 'SPUBLISH' or args[place]
  end
  return run(script, with_brace(keys), args, {}, false)
end

---Has a script a channel whose name has a tag of its own, besides that of the lock?
---@return boolean
function likeness.has_own_tag(script)
  for _, argument in ipairs(script.header.argv) do
    if argument.form and argument.form.kind == 'braces' then
      return true
    end
  end
  return false
end

-- What a number one higher changes: place -> by how much; and whatever is no number.
local function changes(before, after, path, found)
  found = found or {}
  if type(before) == 'table' and type(after) == 'table' then
    local keys = {}
    for key in pairs(before) do
      keys[key] = true
    end
    for key in pairs(after) do
      keys[key] = true
    end
    for key in pairs(keys) do
      changes(before[key], after[key], (path or '') .. '.' .. tostring(key), found)
    end
    return found
  end
  before, after = tonumber(before) or before, tonumber(after) or after
  if type(before) == 'number' and type(after) == 'number' then
    found[path] = after ~= before and after - before or nil
  elseif before ~= after then
    found[path] = 'other'
  end
  return found
end

-- Where the greatest are another matter.
local OWN_BOUNDS = {
  ['semaphore/add count'] = 'the sum has a bound, too, and is refused above it',
  ['semaphore/release count'] = 'the sum has a bound, too, and is refused above it',
  ['period/mark every'] = 'half of it counts, in whole milliseconds',
  ['period/mark at'] = 'of a moment to come, the present counts',
}

---Is an argument a number whose bound is its own?
---@return boolean
function likeness.has_bound(script, argument)
  return argument.kind == 'integer' and argument.max > 1000
    and not OWN_BOUNDS[('%s %s'):format(script.name, argument.name)]
end

-- Where ten and seven are on two sides of something.
local OWN_DIGITS = {}

---Has an argument numbers of one digit and of two?
---@return boolean
function likeness.has_digits(script, argument)
  return argument.kind == 'integer' and argument.min <= 6 and argument.max >= 10
    and not OWN_DIGITS[('%s %s'):format(script.name, argument.name)]
end

---A number that is not near a bound of the argument, and ends in another digit than bounds do.
function likeness.middle(argument)
  return argument.type == 'ms' and math.min(90005, argument.max - 5) or argument.min + 15
end

---Ways to call a script: as usual; with the next count of each other argument, as where levels
---remain; without what may be left out.
---@param place integer of the argument that is looked at
---@return string[][] args
function likeness.variants(script, place)
  local h = script.header
  local usual = select(2, cases.call(h))
  local more, list = { unpack(usual) }, { usual }
  for i, argument in ipairs(h.argv) do
    if i ~= place and argument.type == 'count' then
      more[i] = ('%.0f'):format(argument.min + 1)
      list[2] = more
    end
  end
  local last = h.argv[#h.argv]
  if last and last.optional and place < #h.argv then
    list[#list + 1] = { unpack(usual, 1, #h.argv - 1) }
  end
  return list
end

---What it changes that an argument is one higher.
---@param args string[] of the call
---@param place integer of the argument
---@param value integer the higher one
---@return table changes
function likeness.step(script, state, args, place, value)
  local keys, records = cases.call(script.header), cases.records(script.header, state)
  local function with(number)
    return run(script, keys, cases.with(args, place, ('%.0f'):format(number)), records)
  end
  return changes(with(value - 1), with(value))
end

return likeness

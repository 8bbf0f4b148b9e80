-- SPDX-License-Identifier: Apache-2.0
-- What to call a script with, made from its header: keys and what they hold, arguments within and
-- beyond their limits.
local names = require('latchkey.script.names')

local helper = require('helper')

local cases = { NAME = 'job', OWNER = 'lk-ann:1', WRITER = 'lk-ann:1:write',
  NEW_OWNER = 'lk-ann:2', ID = ('\1'):rep(16) }

local LEASE_MS = 60000
local CHANNEL_MAX = 1024
local ANY_BYTES = '\0\r\n{}%s"\255'

local function decimal(number)
  return ('%.0f'):format(number)
end

-- A fencing token that was drawn before, above the clock: the next one is not taken from there.
local COUNTER = helper.string('4000000000000000')

-- What keys hold, by their name or else their type in the header. A level is the caller's first.
cases.states = {
  { what = 'a free lock', keys = { counter = COUNTER } },
  { what = 'a lock that the caller holds', keys = {
    counter = COUNTER,
    string = helper.string(cases.OWNER, LEASE_MS),
    hash = helper.hash({ [cases.OWNER] = '1' }, LEASE_MS),
    list = helper.list({ cases.OWNER }, LEASE_MS),
    zset = helper.zset({ { cases.OWNER, 1 } }, LEASE_MS),
    rwlock = helper.hash({ mode = 'write', [cases.OWNER] = '1', [cases.WRITER] = '1' }, LEASE_MS),
    level = helper.string('1', LEASE_MS),
    permits = helper.string('2'), latch = helper.string('2'),
    leases = helper.zset({ { cases.ID, '@+60000' } }) } },
  { what = 'a lock that another holds', keys = {
    counter = COUNTER,
    string = helper.string('lk-bob:1', LEASE_MS),
    hash = helper.hash({ ['lk-bob:1'] = '1' }, LEASE_MS),
    list = helper.list({ 'lk-bob:1' }, LEASE_MS),
    zset = helper.zset({ { 'lk-bob:1', 1 } }, LEASE_MS),
    rwlock = helper.hash({ mode = 'read', ['lk-bob:1'] = '1' }, LEASE_MS),
    permits = helper.string('0', LEASE_MS), latch = helper.string('1', LEASE_MS),
    leases = helper.zset({ { ('\2'):rep(16), '@+60000' } }, LEASE_MS) } },
  { what = 'a lock without a lease', keys = {
    counter = COUNTER,
    string = helper.string(cases.OWNER),
    hash = helper.hash({ [cases.OWNER] = '2' }),
    list = helper.list({ cases.OWNER }),
    zset = helper.zset({ { cases.OWNER, 1 } }),
    rwlock = helper.hash({ mode = 'write', [cases.OWNER] = '2', [cases.WRITER] = '2' }),
    level = helper.string('1'),
    permits = helper.string('-1'), latch = helper.string('0'),
    leases = helper.zset({ { cases.ID, 922337203685477 } }) } },
  { what = 'a key of another type', keys = {
    string = helper.hash({ field = 'value' }, LEASE_MS),
    hash = helper.string('value', LEASE_MS),
    list = helper.string('value', LEASE_MS),
    zset = helper.string('value', LEASE_MS) } },
  { what = 'a lock that the caller waits for, and counts of two digits', keys = {
    counter = COUNTER, string = helper.string('lk-bob:1', LEASE_MS),
    lock = helper.hash({ ['lk-bob:1'] = '12' }, LEASE_MS),
    rwlock = helper.hash({ mode = 'write', ['lk-bob:1:write'] = '12' }, LEASE_MS),
    queue = helper.list({ cases.OWNER, 'lk-cat:1' }, LEASE_MS),
    timeouts = helper.zset({ { cases.OWNER, '@+50000' }, { 'lk-cat:1', '@+70000' } }, LEASE_MS),
    fair = helper.hash({ [cases.OWNER] = '@+20000 70000 9000 1 lk-ann',
      ['lk-cat:1'] = '@+25000 70000 9000 1 lk-cat' }, LEASE_MS),
    waiters = helper.zset({ { cases.WRITER, '@+20000' } }, LEASE_MS),
    permits = helper.string('23', LEASE_MS), latch = helper.string('23', LEASE_MS),
    fence = helper.hash({ token = '21', owner = 'lk-bob:1', seq = '12' }),
    leases = helper.zset({ { ('\2'):rep(16), '@+60000' }, { ('\3'):rep(16), '@+61000' } },
      LEASE_MS) } },
}
cases.FREE, cases.HELD, cases.WRONG = cases.states[1], cases.states[2], cases.states[5]
cases.OTHERS, cases.WAITED = cases.states[3], cases.states[6]

local VALID = {
  integer = function(argument)
    return argument.type == 'ms' and '30000' or decimal(argument.min)
  end,
  text = function(argument)
    return argument.type == 'id' and cases.ID
      or argument.name == 'new_owner' and cases.NEW_OWNER or cases.OWNER
  end,
  channel = function(argument)
    return names.form(argument.form, cases.NAME)
  end,
  choice = function(argument)
    return argument.values[1]
  end,
  command = function(_, h)
    return h.dynamic[1]
  end,
  reader = function()
    return cases.OWNER
  end,
  writer = function()
    return cases.WRITER
  end,
}

local TAKEN = {
  integer = function(argument)
    return {
      { what = 'the least', value = decimal(argument.min) },
      { what = 'the greatest', value = decimal(argument.max) },
    }
  end,
  text = function(argument)
    return {
      { what = argument.min == 0 and 'nothing' or 'one byte', value = ('x'):rep(argument.min) },
      { what = 'the longest', value = ('x'):rep(argument.max) },
      { what = 'any bytes', value = ANY_BYTES .. ('x'):rep(argument.min - #ANY_BYTES) },
    }
  end,
  channel = function(argument)
    return {
      { what = 'the shortest', value = 'x' },
      { what = 'that of a long name', value = names.form(argument.form, ('x'):rep(names.MAX)) },
      { what = 'the longest', value = ('x'):rep(CHANNEL_MAX) },
    }
  end,
  choice = function(argument)
    local list = {}
    for i, value in ipairs(argument.values) do
      list[i] = { what = value, value = value }
    end
    return list
  end,
  command = function()
    return {}
  end,
  writer = function(argument)
    return {
      { what = argument.min == 0 and 'nothing' or 'one byte before ":write"',
        value = argument.min == 0 and '' or 'x:write' },
      { what = 'the longest', value = ('x'):rep(argument.max - #':write') .. ':write' },
      { what = 'any bytes before ":write"', value = ANY_BYTES .. ':write' },
    }
  end,
}
TAKEN.reader = TAKEN.text

local REFUSED = {
  integer = function(argument)
    local least = decimal(math.max(argument.min, 1))
    local list = {
      { what = 'nothing', value = '' },
      { what = 'a word', value = 'many' },
      { what = 'not a number', value = 'nan' },
      { what = 'infinity', value = 'inf' },
      { what = 'a negative number', value = '-' .. least },
      { what = 'a plus sign', value = '+' .. least },
      { what = 'a leading zero', value = '0' .. least },
      { what = 'a fraction', value = least .. '.5' },
      { what = 'a whole number with a point', value = least .. '.0' },
      { what = 'an exponent', value = '1e2' },
      { what = 'a hexadecimal number', value = '0x64' },
      { what = 'a space before', value = ' ' .. least },
      { what = 'a space behind', value = least .. ' ' },
      { what = 'a line end behind', value = least .. '\n' },
      { what = 'a NUL behind', value = least .. '\0' },
      { what = 'twenty digits', value = ('9'):rep(20) },
      { what = 'one past the greatest', value = decimal(argument.max + 1) },
      { what = 'one below the least', value = decimal(argument.min - 1) },
    }
    if argument.min > 1 then
      table.insert(list, { what = 'zero', value = '0' })
    end
    return list
  end,
  text = function(argument)
    local list = { { what = 'one byte too many', value = ('x'):rep(argument.max + 1) } }
    if argument.min > 0 then
      table.insert(list, { what = 'nothing', value = '' })
    end
    if argument.min > 1 then
      table.insert(list, { what = 'one byte too few', value = ('x'):rep(argument.min - 1) })
    end
    return list
  end,
  channel = function()
    return {
      { what = 'nothing', value = '' },
      { what = 'one byte too many', value = ('x'):rep(CHANNEL_MAX + 1) },
    }
  end,
  choice = function(argument)
    return {
      { what = 'nothing', value = '' },
      { what = 'another word', value = 'SUBSCRIBE' },
      { what = 'lower case', value = argument.values[1]:lower() },
      { what = 'a space behind', value = argument.values[1] .. ' ' },
    }
  end,
  command = function()
    return {
      { what = 'nothing', value = '' },
      { what = 'a command that is not listed', value = 'FLUSHALL' },
      { what = 'lower case', value = 'set' },
    }
  end,
  writer = function(argument)
    return {
      { what = 'the name of a read hold', value = cases.OWNER },
      { what = 'the end alone', value = ':write' },
      { what = 'one byte too many', value = ('x'):rep(argument.max - 5) .. ':write' },
    }
  end,
}

function REFUSED.reader(argument)
  local list = REFUSED.text(argument)
  table.insert(list, { what = 'the name of a write hold', value = cases.WRITER })
  table.insert(list, { what = 'the field of the mode', value = 'mode' })
  return list
end

---@return table[] values { what, value } that the script takes for the argument
function cases.taken(argument)
  return TAKEN[argument.kind](argument)
end

---@return table[] values { what, value } that the script refuses for the argument
function cases.refused(argument)
  return REFUSED[argument.kind](argument)
end

---@return string[] keys
---@return string[] args valid ones
function cases.call(h)
  local keys, args, by_name = {}, {}, {}
  for i, argument in ipairs(h.argv) do
    args[i] = VALID[argument.kind](argument, h)
    by_name[argument.name] = args[i]
  end
  for i, key in ipairs(h.keys) do
    keys[i] = key.form.kind == 'slot' and ('{%s}:%s'):format(cases.NAME, key.name)
      or names.form(key.form, cases.NAME, by_name)
  end
  return keys, args
end

---The arguments, and one more than the script takes.
function cases.too_many(h, args)
  local many = h.argv[#h.argv] and h.argv[#h.argv].many
  local more = { unpack(args) }
  for place = #args + 1, #h.argv + (many and many.max or 1) do
    more[place] = 'more'
  end
  return more
end

---As many arguments as a script takes whose last one stands for many; nil for others, and where
---there must be as many as there are keys.
function cases.most(h, args)
  local many = h.argv[#h.argv] and h.argv[#h.argv].many
  if not many or h.keys[#h.keys].many then
    return nil
  end
  local most = { unpack(args) }
  for place = #args + 1, #h.argv - 1 + many.max do
    most[place] = args[#h.argv] or 'more'
  end
  return most
end

---The keys, and one more than the script takes.
function cases.too_many_keys(h, keys)
  local many = h.keys[#h.keys] and h.keys[#h.keys].many
  local more = { unpack(keys) }
  for place = #keys + 1, #h.keys + (many and many.max or 1) do
    more[place] = ('{%s}:more%d'):format(cases.NAME, place)
  end
  return more
end

---The arguments with another one at this place.
function cases.with(args, place, value)
  local changed = { unpack(args) }
  changed[place] = value
  return changed
end

---What a key of another type than the header's holds.
function cases.wrong(key)
  return cases.WRONG.keys[key.type]
end

-- The records of calls stay empty: what they hold says which call was made before.
local function content(key, state)
  if key.form.text ~= 'latchkey_seq' or state == cases.WRONG then
    local record = state.keys[key.name]
    local fits = record and (key.type == 'any' or key.type == record.type)
    return fits and record or state.keys[key.type]
  end
end

---What a script's keys hold in a state.
---@return table keys as `assert.left` takes them
function cases.records(h, state)
  local keys, records = cases.call(h), {}
  for i, key in ipairs(h.keys) do
    records[keys[i]] = content(key, state)
  end
  for _, key in ipairs(h.derived) do
    local formed = names.form(key.form, cases.NAME)
    records[formed:gsub('%*', cases.OWNER, 1):gsub('%*', '1')] = state.keys[key.name]
  end
  return records
end

---Puts a script's keys into a state.
---@return table keys as `assert.left` takes them
function cases.fill(world, h, state)
  local records = cases.records(h, state)
  helper.fill(world, records)
  return records
end

return cases

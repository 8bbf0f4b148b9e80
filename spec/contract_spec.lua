-- SPDX-License-Identifier: Apache-2.0
-- What every script's header promises in the same words: its arguments and their limits, its
-- replies, its flags, and how it takes being called twice. The cases are made from the headers.
local splitlines = require('pl.stringx').splitlines

local catalog = require('lib.catalog')
local header = require('lib.header')
local names = require('lib.names')

local helper = require('helper')

local NAME, OWNER, LEASE_MS = 'job', 'lk-ann:1', 60000
local CHANNEL_MAX = 1024

-- What a key holds when the caller holds the lock, and a value that no script takes for it.
local HELD = {
  string = helper.string(OWNER, LEASE_MS),
  hash = helper.hash({ [OWNER] = '1' }, LEASE_MS),
}
local WRONG = {
  string = helper.hash({ field = 'value' }, LEASE_MS),
  hash = helper.string('value', LEASE_MS),
}

local VALID = {
  integer = function(argument)
    return tostring(math.min(math.max(argument.min, 30000), argument.max))
  end,
  text = function() return OWNER end,
  channel = function(argument) return names.form(argument.form, NAME) end,
  choice = function(argument) return argument.values[1] end,
}

local function decimal(number)
  return ('%.0f'):format(number)
end

-- Each maker gives { what, value } pairs: what the script takes, and what it refuses.
local TAKEN = {
  integer = function(argument)
    return { { 'the least', decimal(argument.min) }, { 'the greatest', decimal(argument.max) } }
  end,
  text = function(argument)
    return { { 'one byte', 'x' }, { 'the longest', ('x'):rep(argument.max) },
      { 'any bytes', '\0\r\n{}%s"\255' } }
  end,
  channel = function(argument)
    return { { 'the longest name', names.form(argument.form, ('x'):rep(names.MAX)) },
      { 'the longest', ('x'):rep(CHANNEL_MAX) } }
  end,
  choice = function(argument)
    local pairs_ = {}
    for i, value in ipairs(argument.values) do
      pairs_[i] = { value, value }
    end
    return pairs_
  end,
}

local REFUSED = {
  integer = function(argument)
    local least = decimal(math.max(argument.min, 1))
    local pairs_ = {
      { 'nothing', '' }, { 'a word', 'many' }, { 'not a number', 'nan' }, { 'infinity', 'inf' },
      { 'a negative number', '-' .. least }, { 'a plus sign', '+' .. least },
      { 'a leading zero', '0' .. least }, { 'a fraction', least .. '.5' },
      { 'a whole number with a point', least .. '.0' }, { 'an exponent', '1e2' },
      { 'a hexadecimal number', '0x64' }, { 'a space before', ' ' .. least },
      { 'a space behind', least .. ' ' }, { 'a line end behind', least .. '\n' },
      { 'a NUL behind', least .. '\0' }, { 'twenty digits', ('9'):rep(20) },
      { 'one past the greatest', decimal(argument.max + 1) },
      { 'one below the least', decimal(argument.min - 1) },
    }
    if argument.min > 1 then
      table.insert(pairs_, { 'zero', '0' })
    end
    return pairs_
  end,
  text = function(argument)
    return { { 'nothing', '' }, { 'one byte too many', ('x'):rep(argument.max + 1) } }
  end,
  channel = function()
    return { { 'nothing', '' }, { 'one byte too many', ('x'):rep(CHANNEL_MAX + 1) } }
  end,
  choice = function(argument)
    return { { 'nothing', '' }, { 'another word', 'SUBSCRIBE' },
      { 'lower case', argument.values[1]:lower() }, { 'a space behind', argument.values[1] .. ' ' } }
  end,
}

local function has_flag(h, ...)
  for _, flag in ipairs(h.flags) do
    for _, wanted in ipairs({ ... }) do
      if flag == wanted then
        return true
      end
    end
  end
  return false
end

local function describe_script(script)
  local h = script.header
  local keys, args = {}, {}
  local world, held

  for i, key in ipairs(h.keys) do
    keys[i] = names.form(key.form, NAME)
  end
  for i, argument in ipairs(h.argv) do
    args[i] = VALID[argument.kind](argument)
  end

  local function args_with(place, value)
    local changed = { unpack(args) }
    changed[place] = value
    return changed
  end

  local function fill(records)
    local filled = {}
    for i, key in ipairs(h.keys) do
      filled[keys[i]] = records[key.type]
    end
    world = helper.world()
    helper.fill(world, filled)
    return filled
  end

  local function assert_runs(reply, err)
    assert.is_nil(err)
    assert.is_string(header.reply_shape(h, reply))
  end

  -- Both for a caller that holds the lock and where there is none: nothing is written.
  local function assert_refuses(word, wrong_keys, wrong_args)
    for _, records in ipairs({ {}, HELD }) do
      local before = fill(records)

      assert.refused('LKARG', word, world:eval(script.name, wrong_keys, wrong_args))
      assert.left(world, before)
    end
  end

  for place, argument in ipairs(h.argv) do
    for _, case in ipairs(TAKEN[argument.kind](argument)) do
      it(('takes as %s %s'):format(argument.name, case[1]), function()
        fill(HELD)

        assert_runs(world:eval(script.name, keys, args_with(place, case[2])))
      end)
    end

    for _, case in ipairs(REFUSED[argument.kind](argument)) do
      it(('refuses as %s %s'):format(argument.name, case[1]), function()
        assert_refuses(argument.name, keys, args_with(place, case[2]))
      end)
    end

    it(('refuses to run without %s'):format(argument.name), function()
      assert_refuses(script.name .. ' takes ', keys, { unpack(args, 1, place - 1) })
    end)
  end

  it('refuses one argument too many', function()
    assert_refuses(script.name .. ' takes ', keys, args_with(#args + 1, 'more'))
  end)

  it('refuses to run without a key', function()
    assert_refuses(script.name .. ' takes ', {}, args)
  end)

  it('refuses one key too many', function()
    local more = { unpack(keys) }
    more[#more + 1] = '{' .. NAME .. '}:more'

    assert_refuses(script.name .. ' takes ', more, args)
  end)

  it('reports a key of another type with script and line', function()
    local before = fill(WRONG)

    local reply, err = world:eval(script.name, keys, args)

    assert.refused('WRONGTYPE', 'wrong kind of value', reply, err)
    assert.equal(script.name, err.script)
    assert.matches('redis.call', splitlines(script.source)[err.line], 1, true)
    assert.left(world, before)
  end)

  if has_flag(h, 'allow-oom', 'no-writes') then
    it('runs on a full server', function()
      held = fill(HELD)
      world:set_oom(true)

      assert_runs(world:eval(script.name, keys, args))
    end)
  else
    it('is refused by a full server, and writes nothing', function()
      held = fill(HELD)
      world:set_oom(true)

      assert.refused('OOM', 'maxmemory', world:eval(script.name, keys, args))
      assert.left(world, held)
    end)
  end

  if has_flag(h, 'no-writes') then
    it('runs on a read-only replica', function()
      held = fill(HELD)
      world:set_readonly(true)

      assert_runs(world:eval(script.name, keys, args))
      assert.left(world, held)
    end)
  else
    it('is refused by a read-only replica', function()
      held = fill(HELD)
      world:set_readonly(true)

      assert.refused('READONLY', 'read only', world:eval(script.name, keys, args))
      assert.left(world, held)
    end)
  end

  if h.repeat_ ~= 'no' then
    for _, case in ipairs({ { 'a lock that the caller holds', HELD }, { 'a free lock', {} } }) do
      it('sent twice, leaves the state and the messages of one call on ' .. case[1], function()
        fill(case[2])
        assert_runs(world:eval(script.name, keys, args))
        local once, told = world:dump(), world:messages()

        fill(case[2])
        assert_runs(world:eval(script.name, keys, args))
        assert_runs(world:eval(script.name, keys, args))

        assert.left(world, once, told)
      end)
    end
  end
end

for _, script in ipairs(assert(catalog.read(helper.scripts))) do
  describe(script.name, function()
    describe_script(script)
  end)
end

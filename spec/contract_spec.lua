-- SPDX-License-Identifier: Apache-2.0
-- What every script's header promises in the same words: its arguments and their limits, its
-- replies, its flags, and how it takes being called twice. The cases are made from the headers.
local splitlines = require('pl.stringx').splitlines

local catalog = require('latchkey.script.catalog')
local header = require('latchkey.script.header')

local cases = require('support.cases')
local helper = require('helper')
local sorted = require('latchkey.sorted')
local likeness = require('support.likeness')
local lint_script = require('latchkey.lint.script')

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

local function assert_reply_of(h, reply, err)
  assert.is_nil(err)
  assert.is_string(header.reply_shape(h, reply))
end

local function describe_script(script)
  local h = script.header
  local keys, args = cases.call(h)
  local world, before

  local function start(state)
    world = helper.world()
    before = cases.fill(world, h, state)
  end


  local function assert_refuses(word, wrong_keys, wrong_args)
    for _, state in ipairs(cases.states) do
      start(state)

      assert.refused('LKARG', word, world:eval(script.name, wrong_keys, wrong_args))
      assert.left(world, before)
    end
  end

  for place, argument in ipairs(h.argv) do
    for _, case in ipairs(cases.taken(argument)) do
      it(('takes as %s %s'):format(argument.name, case.what), function()
        start(cases.HELD)

        assert_reply_of(h, world:eval(script.name, keys, cases.with(args, place, case.value)))
      end)
    end

    for _, case in ipairs(cases.refused(argument)) do
      it(('refuses as %s %s, and writes nothing'):format(argument.name, case.what), function()
        assert_refuses(argument.name, keys, cases.with(args, place, case.value))
      end)
    end

    -- Owners are fields there, and so is the mode of a read-write lock.
    if argument.type == 'owner' and h.keys[1].type == 'hash' and h.keys[1].name:find('lock') then
      it(('refuses as %s the field mode, and writes nothing'):format(argument.name), function()
        assert_refuses(argument.name, keys, cases.with(args, place, 'mode'))
      end)
    end

    if argument.optional then
      it(('runs without %s'):format(argument.name), function()
        start(cases.HELD)

        assert_reply_of(h, world:eval(script.name, keys, { unpack(args, 1, place - 1) }))
      end)
    elseif not argument.many or argument.many.min > 0 then
      it(('refuses to run without %s'):format(argument.name), function()
        assert_refuses(script.name .. ' takes ', keys, { unpack(args, 1, place - 1) })
      end)
    end
  end

  local most = cases.most(h, args)
  if most and #h.dynamic == 0 then
    it(('takes %d arguments'):format(#most), function()
      start(cases.HELD)

      assert_reply_of(h, world:eval(script.name, keys, most))
    end)
  end

  it('refuses one argument too many', function()
    assert_refuses(script.name .. ' takes ', keys, cases.too_many(h, args))
  end)

  it('refuses to run without a key', function()
    assert_refuses(script.name .. ' takes ', {}, args)
  end)

  it('refuses one key too many', function()
    assert_refuses(script.name .. ' takes ', cases.too_many_keys(h, keys), args)
  end)

  it('reports a key of another type with script and line, and writes nothing', function()
    start(cases.WRONG)

    local reply, err = world:eval(script.name, keys, args)

    assert.refused('WRONGTYPE', 'wrong kind of value', reply, err)
    assert.equal(script.name, err.script)
    assert.matches('redis.call', splitlines(script.source)[err.line], 1, true)
    assert.left(world, before)
  end)

  for place, key in ipairs(h.keys) do
    it(('writes nothing when it fails for %s, alone of another type'):format(key.name), function()
      for _, state in ipairs(key.type ~= 'any' and cases.states or {}) do
        start(state)
        world:command('DEL', keys[place])
        helper.fill(world, { [keys[place]] = cases.wrong(key) })
        before = helper.dump(world)

        local _, err = world:eval(script.name, keys, args)

        if err then
          assert.equal('WRONGTYPE', err.code)
          assert.left(world, before)
        end
        world:messages()
      end
    end)
  end

  if has_flag(h, 'allow-oom', 'no-writes') then
    it('runs on a full server', function()
      start(cases.HELD)
      world:set_oom(true)

      assert_reply_of(h, world:eval(script.name, keys, args))
    end)
  else
    it('is refused by a full server, and writes nothing', function()
      start(cases.HELD)
      world:set_oom(true)

      assert.refused('OOM', 'maxmemory', world:eval(script.name, keys, args))
      assert.left(world, before)
    end)
  end

  if has_flag(h, 'no-writes') then
    it('runs on a read-only replica', function()
      start(cases.HELD)
      world:set_readonly(true)

      assert_reply_of(h, world:eval(script.name, keys, args))
      assert.left(world, before)
    end)
  else
    it('is refused by a read-only replica, and writes nothing', function()
      start(cases.HELD)
      world:set_readonly(true)

      assert.refused('READONLY', 'read only', world:eval(script.name, keys, args))
      assert.left(world, before)
    end)
  end

  for _, state in ipairs(h.repeat_ == 'no' and {} or cases.states) do
    if state ~= cases.WRONG then
      it('sent twice, leaves the state and the messages of one call on ' .. state.what, function()
        start(state)
        assert_reply_of(h, world:eval(script.name, keys, args))
        local once, told = helper.dump(world), world:messages()

        start(state)
        assert_reply_of(h, world:eval(script.name, keys, args))
        assert_reply_of(h, world:eval(script.name, keys, args))

        assert.left(world, once, told)
      end)
    end
  end
end

-- What a script calls, and a header lets it call.
local function commands_of(script)
  local names = {}
  for _, call in ipairs((lint_script.read(script.path, script.source)).calls) do
    names[call.name or false] = true
  end
  for _, name in ipairs(script.header.dynamic) do
    names[name] = true
  end
  names[false] = nil
  return sorted(names)
end

-- What a script has written stays when the server refuses the next command, to a user without it or
-- because it has another name there.
local function describe_denied(script)
  local h = script.header
  local keys, args = cases.call(h)
  local may_stay = {}
  for i, key in ipairs(h.keys) do
    may_stay[keys[i]] = key.marks and (key.marks.shared or key.marks.permanent)
  end

  local function call(state, ...)
    local world = helper.world()
    local before = cases.fill(world, h, state)
    world:set_denied(...)
    local _, err = world:eval(script.name, keys, args)
    world:set_denied()
    return world, before, err
  end

  local function assert_bears(state, command, key)
    local usual = call(state):dump()
    local world, before, err = call(state, command, key)
    assert(not err or err.message:lower():find('user', 1, true), err and err.message)
    for name, record in pairs(world:dump()) do
      local ends = record.pttl ~= -1 or may_stay[name]
        or before[name] and before[name].pttl == -1 or usual[name] and usual[name].pttl == -1
      assert(ends, ('%s never ends on %s: %s'):format(name, state.what,
        err and err.message or 'no error'))
    end
    -- A sum that was changed is so once, and a message may be missing.
    local is_whole = err and (err.code == 'NOPERM' or h.repeat_ == 'seq' or h.repeat_ == 'id')
    if is_whole and not command:find('PUBLISH') then
      assert.left(world, before)
    end
    world:messages()
  end

  for _, command in ipairs(commands_of(script)) do
    it(('leaves nothing half done for a user without %s'):format(command), function()
      for _, state in ipairs(cases.states) do
        if state ~= cases.WRONG then
          assert_bears(state, command)
        end
        for _, key in ipairs(state ~= cases.WRONG and not helper.is_live and keys or {}) do
          assert_bears(state, command, key)
        end
      end
    end)
  end
end

-- The greatest number of a call, or of a hold, is not cut.
local function describe_greatest(script, place, argument)
  it(('answers a copy with the greatest %s as before, and does nothing'):format(argument.name),
    function()
      local world = helper.world()
      local keys, args = cases.call(script.header)
      args[place] = ('%.0f'):format(argument.max)
      cases.fill(world, script.header, cases.HELD)
      local reply = world:eval(script.name, keys, args)
      assert_reply_of(script.header, reply)
      local once, told = helper.dump(world), world:messages()

      assert.same(reply, world:eval(script.name, keys, args))

      assert.left(world, once)
      assert.is_true(#told <= 1)
    end)
end

-- A call whose seq is less than the last one is late, and one whose seq is greater is not, whatever
-- their digits are; also where the last one was refused.
local function describe_seq(script, place)
  local h = script.header
  local keys, args = cases.call(h)

  local function call(world, seq)
    return world:eval(script.name, keys, cases.with(args, place, tostring(seq)))
  end

  for _, state in ipairs(cases.states) do
    if state ~= cases.WRONG then
      it('does nothing for seq 11 after 12 on ' .. state.what, function()
        local world = helper.world()
        cases.fill(world, h, state)
        local reply = call(world, 12)
        local once = helper.dump(world)
        world:messages()

        local late = call(world, 11)

        assert.left(world, once)
        assert.same(reply, call(world, 12))
        assert.is_true(late[1] < 0)
        assert.left(world, once)
      end)
    end
  end

  for i, key in ipairs(h.keys) do
    if key.form.text == 'latchkey_seq' then
      it('makes no other difference of seq 20 after 12 than of a first one', function()
        local world = helper.world()
        cases.fill(world, h, cases.HELD)
        call(world, 12)
        local record = helper.dump(world)[keys[i]]
        world = helper.world()
        cases.fill(world, h, cases.HELD)
        local reply = call(world, 20)
        local once, told = helper.dump(world), world:messages()

        world = helper.world()
        cases.fill(world, h, cases.HELD)
        helper.fill(world, { [keys[i]] = record })

        assert.same(reply, call(world, 20))
        assert.left(world, once, told)
      end)
    end
  end
end

-- Exact, so on the mock alone, whose clock stands still.
local function describe_likeness(script)
  for _, name in ipairs(likeness.NAMES) do
    it('does the same with ' .. name.what, function()
      for _, state in ipairs(cases.states) do
        assert.same(likeness.usual(script, state), likeness.with_name(script, state, name))
      end
    end)
  end

  it('takes a name with one brace for one with a tag', function()
    for _, state in ipairs(cases.states) do
      local expected, found = likeness.brace(script, state)
      assert.same(expected, found)
    end
  end)

  if likeness.has_own_tag(script) then
    it('refuses a sharded channel where the name has a brace', function()
      assert.equal('LKARG', likeness.sharded_brace(script).code)
    end)
  end

  for place, argument in ipairs(script.header.argv) do
    if likeness.has_bound(script, argument) then
      it(('makes no other difference of the greatest %s than of lesser ones'):format(
        argument.name), function()
        local waited = argument.type == 'ms' and cases.WAITED or nil
        for _, state in ipairs({ cases.FREE, cases.HELD, cases.OTHERS, waited }) do
          for _, args in ipairs(likeness.variants(script, place)) do
            assert.same(likeness.step(script, state, args, place, likeness.middle(argument)),
              likeness.step(script, state, args, place, argument.max))
          end
        end
      end)
    end
    if likeness.has_digits(script, argument) then
      it(('makes no other difference of ten %s than of seven'):format(argument.name), function()
        for _, state in ipairs({ cases.FREE, cases.HELD, cases.OTHERS, cases.WAITED }) do
          for _, args in ipairs(likeness.variants(script, place)) do
            assert.same(likeness.step(script, state, args, place, 7),
              likeness.step(script, state, args, place, 10))
          end
        end
      end)
    end
  end
end

for _, script in ipairs(assert(catalog.read(helper.scripts))) do
  describe(script.name, function()
    describe_script(script)
    for place, argument in ipairs(script.header.argv) do
      if argument.type == 'seq' or argument.type == 'token' then
        describe_greatest(script, place, argument)
      end
      if argument.type == 'seq' then
        describe_seq(script, place)
      end
    end
    describe_denied(script)
    if not helper.is_live then
      describe_likeness(script)
    end
  end)
end

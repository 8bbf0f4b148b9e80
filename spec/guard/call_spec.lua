-- SPDX-License-Identifier: Apache-2.0
local header = require('latchkey.script.header')
local utils = require('pl.utils')

local helper = require('helper')
local hash, list, string_, zset = helper.hash, helper.list, helper.string, helper.zset

describe('guard/call', function()
  local ann, bob = 'lk-ann:1', 'lk-bob:1'
  local record, target = 'latchkey_seq:{job}:c1', '{job}:target'
  local world

  before_each(function()
    world = helper.world()
    helper.fill(world, { job = hash({ [ann] = '1' }, 30000) })
  end)

  local function call(owner, seq, ...)
    return world:eval('guard/call', { 'job', record, target }, { owner, 'c1', seq, ... })
  end

  -- What is left beside the lock: the record of the last call, and the target.
  local function left(last, value)
    assert.left(world, { job = hash({ [ann] = '1' }, 30000),
      [record] = last and string_(last, 60000), [target] = value })
  end

  local function nothing_done(last)
    left(last, nil)
  end

  it('runs the command for the holder of the lock and answers its reply', function()
    assert.reply({ 1, 1 }, call(ann, 1, 'HSET', 'name', 'a'))

    left('1 number 1', hash({ name = 'a' }))
  end)

  -- The target before, the command, its reply, the record, and the target afterwards.
  local commands = {
    SET = { nil, { 'SET', 'a' }, 'OK', 'string OK', string_('a') },
    INCRBY = { string_('40'), { 'INCRBY', 2 }, 42, 'number 42', string_('42') },
    HSET = { nil, { 'HSET', 'x', 1, 'y', 2 }, 2, 'number 2', hash({ x = '1', y = '2' }) },
    HINCRBY = { nil, { 'HINCRBY', 'x', 7 }, 7, 'number 7', hash({ x = '7' }) },
    LPUSH = { list({ 'b' }), { 'LPUSH', 'a' }, 2, 'number 2', list({ 'a', 'b' }) },
    RPUSH = { list({ 'a' }), { 'RPUSH', 'b', 'c' }, 3, 'number 3', list({ 'a', 'b', 'c' }) },
    ZADD = { nil, { 'ZADD', 1, 'a' }, 1, 'number 1', zset({ { 'a', 1 } }) },
  }

  local source = utils.readfile(helper.scripts .. '/guard/call.lua', true)
  for _, name in ipairs(header.parse(source).dynamic) do
    it('runs ' .. name, function()
      local before, words, reply, recorded, after = unpack(commands[name], 1, 5)
      helper.fill(world, { [target] = before })

      assert.reply({ 1, reply }, call(ann, 1, unpack(words)))

      left('1 ' .. recorded, after)
    end)

    it('runs ' .. name .. ' once when the call runs twice', function()
      local before, words, reply, recorded, after = unpack(commands[name], 1, 5)
      helper.fill(world, { [target] = before })
      call(ann, 1, unpack(words))

      assert.reply({ 1, reply }, call(ann, 1, unpack(words)))

      left('1 ' .. recorded, after)
    end)
  end

  it('answers nothing where the command does, also when the call runs twice', function()
    helper.fill(world, { [target] = string_('a') })
    assert.reply({ 1, world.null }, call(ann, 1, 'SET', 'b', 'NX'))
    world:command('DEL', target)
    assert.reply({ 1, world.null }, call(ann, 1, 'SET', 'b', 'NX'))

    left('1 boolean ')
  end)

  it('answers any bytes again', function()
    local bytes = '\0 \r\n 7 %s \255'
    helper.fill(world, { [target] = string_(bytes) })
    assert.reply({ 1, bytes }, call(ann, 2, 'SET', 'a', 'GET'))

    assert.reply({ 1, bytes }, call(ann, 2, 'SET', 'a', 'GET'))

    left('2 string ' .. bytes, string_('a'))
  end)

  it('answers big numbers again', function()
    assert.reply({ 1, 9007199254740991 }, call(ann, 1, 'INCRBY', '9007199254740991'))

    assert.reply({ 1, 9007199254740991 }, call(ann, 1, 'INCRBY', '9007199254740991'))

    left('1 number 9007199254740991', string_('9007199254740991'))
  end)

  -- As a number of Lua, a sum near 2^63 had the other sign.
  for number, more in pairs({ ['9223372036854775800'] = 7, ['-9223372036854775800'] = -8,
    ['9007199254740991'] = 1, ['1'] = '9007199254740991' }) do
    it(('counts no further than it can answer: %s and %s'):format(number, more), function()
      helper.fill(world, { [target] = string_(number) })
      assert.refused('LKARG', '2^53', call(ann, 1, 'INCRBY', more))
      left(nil, string_(number))

      world:command('DEL', target)
      helper.fill(world, { [target] = hash({ x = number }) })
      assert.refused('LKARG', '2^53', call(ann, 1, 'HINCRBY', 'x', more))
      left(nil, hash({ x = number }))
    end)
  end

  it('counts to the last number that it can answer', function()
    helper.fill(world, { [target] = hash({ x = '-9007199254740990' }) })

    assert.reply({ 1, -9007199254740991 }, call(ann, 1, 'HINCRBY', 'x', -1))

    left('1 number -9007199254740991', hash({ x = '-9007199254740991' }))
  end)

  for _, words in ipairs({ { 'INCRBY', 'x' }, { 'HINCRBY', 'x', 'y' } }) do
    it('leaves it to the server what is no number: ' .. words[1], function()
      assert.refused('ERR', 'not an integer', call(ann, 1, unpack(words)))

      nothing_done()
    end)
  end

  it('leaves it to the server what is no number, also at the last one', function()
    helper.fill(world, { [target] = string_('9007199254740991') })

    assert.refused('ERR', 'not an integer', call(ann, 1, 'INCRBY', 'x'))

    left(nil, string_('9007199254740991'))
  end)

  for _, command in ipairs({ 'INCRBY', 'HINCRBY' }) do
    it('leaves it to the server that words are missing: ' .. command, function()
      assert.refused('ERR', 'rong number of arg', call(ann, 1, command))

      nothing_done()
    end)
  end

  describe('by a hold of a read-write lock', function()
    local level = '{job}:' .. ann .. ':rwlock_timeout:1'

    local function fill(mode, owner, has_level)
      world:command('DEL', 'job')
      helper.fill(world, { job = hash({ mode = mode, [owner] = '1' }, 30000),
        [level] = has_level and string_('1', 15000) or nil })
    end

    it('runs the command for a reader', function()
      fill('read', ann, true)

      assert.reply({ 1, 'OK' }, call(ann, 1, 'SET', 'a'))
    end)

    it('does nothing for a reader whose lease is over', function()
      fill('read', ann, false)

      assert.reply({ -1 }, call(ann, 1, 'SET', 'a'))

      assert.left(world, { job = hash({ mode = 'read', [ann] = '1' }, 30000),
        [record] = string_('1 refused ', 60000) })
    end)

    it('runs the command for a writer', function()
      fill('write', ann .. ':write', false)

      assert.reply({ 1, 'OK' }, call(ann .. ':write', 1, 'SET', 'a'))
    end)

    it('does nothing for who does not hold it', function()
      fill('write', ann .. ':write', true)

      assert.reply({ -1 }, call(ann, 1, 'SET', 'a'))
    end)
  end)

  it('passes on options, and sixteen words', function()
    assert.reply({ 1, 'OK' }, call(ann, 1, 'SET', 'a', 'NX', 'PX', 90000))
    assert.reply({ 1, world.null }, call(ann, 2, 'SET', 'b', 'NX', 'PX', 90000))
    left('2 boolean ', string_('a', 90000))

    world:command('DEL', target)
    assert.reply({ 1, 16 }, call(ann, 4, 'RPUSH', 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5, 6))
  end)

  it('does nothing when nobody holds the lock', function()
    world:advance(30001)

    assert.reply({ -1 }, call(ann, 1, 'SET', 'a'))

    assert.left(world, { [record] = string_('1 refused ', 60000) })
  end)

  it('does nothing when another owner holds the lock', function()
    assert.reply({ -1 }, call(bob, 1, 'SET', 'a'))

    nothing_done('1 refused ')
  end)

  it('does nothing for an earlier hold of the same client', function()
    assert.reply({ -1 }, call('lk-ann:0', 1, 'SET', 'a'))

    nothing_done('1 refused ')
  end)

  it('stays refused, also when a late acquire brings the hold back', function()
    world:command('DEL', 'job')
    call(ann, 1, 'SET', 'a')
    world:eval('lock/acquire', { 'job' }, { 30000, ann, 1 })

    assert.reply({ -1 }, call(ann, 1, 'SET', 'a'))

    nothing_done('1 refused ')
  end)

  it('answers a call that was done, also when the lock is lost since', function()
    call(ann, 1, 'INCRBY', 5)
    world:advance(30001)

    assert.reply({ 1, 5 }, call(ann, 1, 'INCRBY', 5))

    assert.left(world, { [record] = string_('1 number 5', 29999), [target] = string_('5') })
  end)

  it('does nothing late: the caller has sent a higher seq', function()
    call(ann, 9, 'SET', 'a')
    call(ann, 10, 'SET', 'b')

    assert.reply({ -2 }, call(ann, 9, 'SET', 'a'))

    left('10 string OK', string_('b'))
  end)

  it('counts the calls of each caller apart', function()
    call(ann, 7, 'SET', 'a')

    assert.reply({ 1, 'OK' }, world:eval('guard/call', { 'job', 'latchkey_seq:{job}:c2', target },
      { ann, 'c2', 1, 'SET', 'b' }))

    assert.left(world, { job = hash({ [ann] = '1' }, 30000), [target] = string_('b'),
      [record] = string_('7 string OK', 60000),
      ['latchkey_seq:{job}:c2'] = string_('1 string OK', 60000) })
  end)

  it('forgets a call after a minute: then a copy of it runs again', function()
    world:command('PERSIST', 'job')
    call(ann, 1, 'INCRBY', 5)
    world:advance(60001)

    assert.reply({ 1, 10 }, call(ann, 1, 'INCRBY', 5))

    assert.left(world, { job = hash({ [ann] = '1' }), [target] = string_('10'),
      [record] = string_('1 number 10', 60000) })
  end)

  for _, case in ipairs({
    { 'GET' }, { 'UNLINK' }, { 'LPOP' }, { 'HDEL', 'x' }, { 'FLUSHALL' },
    { 'EVAL', 'return 1', 0 }, { 'PUBLISH', 'a' }, { 'set', 'a' },
  }) do
    it(('refuses %s'):format(case[1]), function()
      assert.refused('LKARG', 'command', call(ann, 1, unpack(case)))

      nothing_done()
    end)
  end

  for _, case in ipairs({ { 'INCRBY', 1, 2 }, { 'HINCRBY', 'x', 1, 2 } }) do
    it(('refuses %s with %d words'):format(case[1], #case - 1), function()
      assert.refused('LKARG', 'command', call(ann, 1, unpack(case)))

      nothing_done()
    end)
  end

  it('refuses any word that is too long', function()
    assert.refused('LKARG', 'words', call(ann, 1, 'HSET', 'a', ('x'):rep(1048577)))

    nothing_done()
  end)

  for _, key in ipairs({ 'job', record }) do
    it('refuses a command on ' .. key, function()
      assert.refused('LKARG', 'target', world:eval('guard/call', { 'job', record, key },
        { ann, 'c1', 1, 'SET', 'a' }))

      nothing_done()
    end)
  end

  for _, value in ipairs({ 'x', '7', '-7 number 1', '99999999999999999 number 1' }) do
    it(('does nothing when the record holds "%s"'):format(value), function()
      helper.fill(world, { [record] = string_(value, 60000) })

      assert.refused('LKARG', 'record', call(ann, 1, 'SET', 'a'))

      left(value)
    end)
  end

  it('reports a command that fails, leaves nothing, and lets the seq be used again', function()
    helper.fill(world, { [target] = string_('a') })

    assert.refused('WRONGTYPE', 'wrong kind', call(ann, 1, 'HSET', 'x', 1))
    assert.refused('ERR', 'not an integer', call(ann, 1, 'INCRBY', 1))
    assert.refused('ERR', 'syntax error', call(ann, 1, 'SET', 'b', 'MAYBE'))

    assert.left(world, { job = hash({ [ann] = '1' }, 30000), [target] = string_('a') })
    assert.reply({ 1, 'OK' }, call(ann, 1, 'SET', 'b'))
  end)

  it('does nothing where the record holds a seq of 2^53', function()
    helper.fill(world, { [record] = string_('9007199254740992 number 1', 60000) })

    assert.refused('LKARG', 'record', call(ann, 1, 'SET', 'a'))

    left('9007199254740992 number 1')
  end)

  it('runs a later call of a caller that was refused before', function()
    assert.reply({ -1 }, call(bob, 1, 'SET', 'a'))

    assert.reply({ 1, 'OK' }, call(ann, 2, 'SET', 'b'))

    left('2 string OK', string_('b'))
  end)

  -- With as many words as may follow the key: the command, how many, and the reply.
  local longest = {
    { 'SET', 16, 'OK' }, { 'HSET', 16, 8 }, { 'LPUSH', 16, 16 }, { 'RPUSH', 16, 16 },
    { 'ZADD', 16, 8 }, { 'HINCRBY', 2, 16 },
  }

  for _, case in ipairs(longest) do
    it(('runs %s with %d words'):format(case[1], case[2]), function()
      local words = {}
      for place = 1, case[2] do
        words[place] = place > 1 and case[1] == 'SET' and 'KEEPTTL' or tostring(place + 14)
      end

      assert.reply({ 1, case[3] }, call(ann, 1, case[1], unpack(words)))
    end)
  end
end)

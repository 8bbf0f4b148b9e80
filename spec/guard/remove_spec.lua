-- SPDX-License-Identifier: Apache-2.0
local header = require('latchkey.script.header')
local utils = require('pl.utils')

local helper = require('helper')
local hash, list, string_, zset = helper.hash, helper.list, helper.string, helper.zset

describe('guard/remove', function()
  local ann, bob = 'lk-ann:1', 'lk-bob:1'
  local record, target = 'latchkey_seq:{job}:c1', '{job}:target'
  local world

  before_each(function()
    world = helper.world()
    helper.fill(world, { job = hash({ [ann] = '1' }, 30000) })
  end)

  local function remove(owner, seq, ...)
    return world:eval('guard/remove', { 'job', record, target }, { owner, 'c1', seq, ... })
  end

  local function call(owner, seq, ...)
    return world:eval('guard/call', { 'job', record, target }, { owner, 'c1', seq, ... })
  end

  -- What is left beside the lock: the record of the last call, and the target.
  local function left(last, value)
    assert.left(world, { job = hash({ [ann] = '1' }, 30000),
      [record] = last and string_(last, 60000), [target] = value })
  end

  -- The target before, the command, its reply, the record, and the target afterwards.
  local commands = {
    UNLINK = { string_('a'), { 'UNLINK' }, 1, 'number 1', nil },
    PEXPIRE = { string_('a'), { 'PEXPIRE', 90000 }, 1, 'number 1', string_('a', 90000) },
    HDEL = { hash({ x = '1', y = '2' }), { 'HDEL', 'x' }, 1, 'number 1', hash({ y = '2' }) },
    LPOP = { list({ 'a', 'b' }), { 'LPOP' }, 'a', 'string a', list({ 'b' }) },
    RPOP = { list({ 'a', 'b' }), { 'RPOP' }, 'b', 'string b', list({ 'a' }) },
    ZREM = { zset({ { 'a', 1 }, { 'b', 2 } }), { 'ZREM', 'a' }, 1, 'number 1',
      zset({ { 'b', 2 } }) },
  }

  local source = utils.readfile(helper.scripts .. '/guard/remove.lua', true)
  for _, name in ipairs(header.parse(source).dynamic) do
    local before, words, reply, recorded, after = unpack(commands[name], 1, 5)

    it(('runs %s, once when the call runs twice'):format(name), function()
      helper.fill(world, { [target] = before })

      assert.reply({ 1, reply }, remove(ann, 1, unpack(words)))
      left('1 ' .. recorded, after)
      assert.reply({ 1, reply }, remove(ann, 1, unpack(words)))

      left('1 ' .. recorded, after)
    end)

    -- It was refused with all the others: on a full server nobody could make room under a guard.
    it(('runs %s on a full server'):format(name), function()
      helper.fill(world, { [target] = before })
      world:set_oom(true)

      assert.reply({ 1, reply }, remove(ann, 1, unpack(words)))

      left('1 ' .. recorded, after)
    end)
  end

  it('takes nothing for a user without SET, who could not record it', function()
    helper.fill(world, { [target] = list({ 'a', 'b' }) })
    world:set_denied('SET')

    assert.refused('NOPERM', 'SET on the record', remove(ann, 1, 'LPOP'))

    world:set_denied()
    left(nil, list({ 'a', 'b' }))
  end)

  it('answers nothing where the command does, also when the call runs twice', function()
    assert.reply({ 1, world.null }, remove(ann, 1, 'LPOP'))
    helper.fill(world, { [target] = list({ 'a' }) })
    assert.reply({ 1, world.null }, remove(ann, 1, 'LPOP'))

    left('1 boolean ', list({ 'a' }))
  end)

  it('answers any bytes again', function()
    local bytes = '\0 \r\n 7 %s \255'
    helper.fill(world, { [target] = list({ bytes }) })
    assert.reply({ 1, bytes }, remove(ann, 2, 'LPOP'))

    assert.reply({ 1, bytes }, remove(ann, 2, 'LPOP'))

    left('2 string ' .. bytes)
  end)

  it('counts its calls with those of guard/call', function()
    assert.reply({ 1, 2 }, call(ann, 1, 'RPUSH', 'a', 'b'))
    assert.reply({ 1, 'a' }, remove(ann, 2, 'LPOP'))

    assert.reply({ -2 }, call(ann, 1, 'RPUSH', 'a', 'b'))
    assert.reply({ 1, 1 }, call(ann, 3, 'RPUSH', 'c') and remove(ann, 4, 'UNLINK'))
    assert.reply({ -2 }, remove(ann, 3, 'UNLINK'))

    left('4 number 1')
  end)

  it('answers what an earlier copy of another command was answered', function()
    call(ann, 1, 'SET', 'a')
    call(ann, 2, 'INCRBY', 1)
    world:command('DEL', record)
    helper.fill(world, { [record] = string_('3 number 9007199254740991', 60000) })

    assert.reply({ 1, 9007199254740991 }, remove(ann, 3, 'UNLINK'))
  end)

  describe('by a hold of a read-write lock', function()
    local level = '{job}:' .. ann .. ':rwlock_timeout:1'

    local function fill(mode, owner, has_level)
      world:command('DEL', 'job')
      helper.fill(world, { job = hash({ mode = mode, [owner] = '1' }, 30000),
        [level] = has_level and string_('1', 15000) or nil, [target] = string_('a') })
    end

    it('runs the command for a reader', function()
      fill('read', ann, true)

      assert.reply({ 1, 1 }, remove(ann, 1, 'UNLINK'))
    end)

    it('does nothing for a reader whose lease is over', function()
      fill('read', ann, false)

      assert.reply({ -1 }, remove(ann, 1, 'UNLINK'))

      assert.left(world, { job = hash({ mode = 'read', [ann] = '1' }, 30000),
        [record] = string_('1 refused ', 60000), [target] = string_('a') })
    end)

    it('runs the command for a writer', function()
      fill('write', ann .. ':write', false)

      assert.reply({ 1, 1 }, remove(ann .. ':write', 1, 'UNLINK'))
    end)

    it('does nothing for who does not hold it', function()
      fill('write', ann .. ':write', true)

      assert.reply({ -1 }, remove(ann, 1, 'UNLINK'))
    end)
  end)

  it('does nothing when nobody holds the lock', function()
    helper.fill(world, { [target] = string_('a') })
    world:advance(30001)

    assert.reply({ -1 }, remove(ann, 1, 'UNLINK'))

    assert.left(world, { [record] = string_('1 refused ', 60000), [target] = string_('a') })
  end)

  it('does nothing when another owner holds the lock', function()
    helper.fill(world, { [target] = string_('a') })

    assert.reply({ -1 }, remove(bob, 1, 'UNLINK'))

    left('1 refused ', string_('a'))
  end)

  it('refuses on a full server, too, who does not hold the lock', function()
    helper.fill(world, { [target] = string_('a') })
    world:set_oom(true)

    assert.reply({ -1 }, remove(bob, 1, 'UNLINK'))

    left('1 refused ', string_('a'))
  end)

  it('runs a later call of a caller that was refused before', function()
    helper.fill(world, { [target] = string_('a') })
    assert.reply({ -1 }, remove(bob, 1, 'UNLINK'))

    assert.reply({ 1, 1 }, remove(ann, 2, 'UNLINK'))

    left('2 number 1')
  end)

  it('stays refused, also when a late acquire brings the hold back', function()
    world:command('DEL', 'job')
    remove(ann, 1, 'UNLINK')
    world:eval('lock/acquire', { 'job' }, { 30000, ann, 1 })
    helper.fill(world, { [target] = string_('a') })

    assert.reply({ -1 }, remove(ann, 1, 'UNLINK'))

    left('1 refused ', string_('a'))
  end)

  it('answers a call that was done, also when the lock is lost since', function()
    helper.fill(world, { [target] = list({ 'a', 'b' }) })
    remove(ann, 1, 'LPOP')
    world:advance(30001)

    assert.reply({ 1, 'a' }, remove(ann, 1, 'LPOP'))

    assert.left(world, { [record] = string_('1 string a', 29999), [target] = list({ 'b' }) })
  end)

  for _, case in ipairs({
    { 'SET', 'a' }, { 'INCRBY', 1 }, { 'HSET', 'x', 1 }, { 'RPUSH', 'a' }, { 'ZADD', 1, 'a' },
    { 'FLUSHALL' }, { 'unlink' },
  }) do
    it(('refuses %s'):format(case[1]), function()
      assert.refused('LKARG', 'command', remove(ann, 1, unpack(case)))

      left()
    end)
  end

  for _, case in ipairs({ { 'UNLINK', 'job' }, { 'LPOP', 2 }, { 'RPOP', 2 },
    { 'PEXPIRE', 1, 'GT', 2 } }) do
    it(('refuses %s with %d words'):format(case[1], #case - 1), function()
      assert.refused('LKARG', 'command', remove(ann, 1, unpack(case)))

      left()
    end)
  end

  it('refuses any word that is too long', function()
    assert.refused('LKARG', 'words', remove(ann, 1, 'HDEL', 'a', ('x'):rep(1048577)))

    left()
  end)

  for _, key in ipairs({ 'job', record }) do
    it('refuses a command on ' .. key, function()
      assert.refused('LKARG', 'target', world:eval('guard/remove', { 'job', record, key },
        { ann, 'c1', 1, 'UNLINK' }))

      left()
    end)
  end

  for _, value in ipairs({ 'x', '7', '-7 number 1', '9007199254740992 number 1' }) do
    it(('does nothing when the record holds "%s"'):format(value), function()
      helper.fill(world, { [record] = string_(value, 60000) })

      assert.refused('LKARG', 'record', remove(ann, 1, 'UNLINK'))

      left(value)
    end)
  end

  it('reports a command that fails, leaves nothing, and lets the seq be used again', function()
    helper.fill(world, { [target] = string_('a') })

    assert.refused('WRONGTYPE', 'wrong kind', remove(ann, 1, 'HDEL', 'x'))
    assert.refused('ERR', 'not an integer', remove(ann, 1, 'PEXPIRE', 'x'))

    left(nil, string_('a'))
    assert.reply({ 1, 1 }, remove(ann, 1, 'UNLINK'))
  end)

  -- With as many words as may follow the key: the command, the target before, and the reply.
  for _, case in ipairs({ { 'HDEL', hash({ ['16'] = '1', y = '1' }) },
    { 'ZREM', zset({ { '16', 1 }, { 'y', 1 } }) } }) do
    it(('runs %s with sixteen words'):format(case[1]), function()
      helper.fill(world, { [target] = case[2] })

      assert.reply({ 1, 1 }, remove(ann, 1, case[1], 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13,
        14, 15, 16))
    end)
  end

  it('runs PEXPIRE with two words', function()
    helper.fill(world, { [target] = string_('a') })

    assert.reply({ 1, 1 }, remove(ann, 1, 'PEXPIRE', 60000, 'NX'))

    left('1 number 1', string_('a', 60000))
  end)
end)

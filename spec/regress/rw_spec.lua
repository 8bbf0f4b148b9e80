-- SPDX-License-Identifier: Apache-2.0
-- What was wrong with read-write locks once.
local Redisson = require('interop.player.rw')
local helper = require('helper')
local rw = require('support.rw')
local about = helper.about

describe('a read-write lock', function()
  local ann, eve = 'lk-ann:1', 'lk-eve:1:write'
  local world, java

  before_each(function()
    world = helper.world()
    java = Redisson:new(world)
  end)

  -- A pass of the watchdog, each 10 s, for as long as Redisson reads.
  local function renew_for(ms, age, names)
    for _ = 1, ms / 10000 do
      world:advance(10000)
      java:read_pass(age, names)
    end
  end

  -- Redisson 3.44 to 3.52 renews the levels of one name alone where a process reads more. The
  -- writer of latchkey, which looked at levels alone, had the lock after 30 s.
  it('is not written while a process of Redisson 3.44 reads it and another', function()
    Redisson:new(world, { name = 'other' }):read_lock()
    java:read_lock()

    renew_for(60000, '3.44+', { 'other', 'job' })

    assert.reply({ 0, about(30000) }, rw.write(world, eve))
    assert.equal(1, java:read_is_held())
    assert.equal(1, java:give_back('read_unlock'))
    assert.same(rw.told('0'), world:messages())
    assert.reply({ 1, 1 }, rw.write(world, eve))
  end)

  -- It renews no levels at all where somebody reads twice.
  it('is not written while a thread of Redisson 3.44 reads it twice', function()
    java:read_lock()
    java:read_lock()

    renew_for(60000, '3.44+', { 'job' })

    assert.reply({ 0, about(30000) }, rw.write(world, eve))
    assert.equal(2, java:read_hold_count())
  end)

  -- And that was so for all who read beside a reader of latchkey with two levels. When that one
  -- went, the hash went with it, and the next writer came, also Redisson's own.
  it('is not written while Redisson 3.44 reads it, which latchkey has read twice', function()
    java:read_lock()
    rw.read(world, ann)
    rw.read(world, ann, 2)

    for _ = 1, 6 do
      renew_for(10000, '3.44+', { 'job' })
      rw.read_renew(world, ann)
    end
    assert.is_truthy(world:dump()[rw.level(java.owner, 1)])
    rw.read_release(world, ann)

    assert.is_truthy(java:write_lock())
    assert.equal(0, rw.write(world, eve)[1])
    renew_for(30000, '3.44+', { 'job' })
    assert.reply({ 0, about(30000) }, rw.write(world, eve))
    assert.equal(1, java:give_back('read_unlock'))
    assert.reply({ 1, 1 }, rw.write(world, eve))
  end)

  -- Readers that look at the end of the lock, and prolong it, keep nobody who died.
  it('is written when Redisson\'s lease ends, though readers of latchkey came and went', function()
    java:read_lock()
    for turn = 1, 3 do
      rw.read(world, 'lk-ann:' .. turn)
      world:advance(9000)
      rw.read_renew(world, 'lk-ann:' .. turn)
      rw.read_release(world, 'lk-ann:' .. turn)
    end
    assert.reply({ 0, about(3000) }, rw.write(world, eve))

    world:advance(3001)

    assert.reply({ 1, 1 }, rw.write(world, eve))
  end)

  -- With a hundred fields they took its end, which they had set themselves, for Redisson's.
  it('is written when Redisson\'s lease ends, however many readers of latchkey came', function()
    java:read_lock()
    for turn = 1, 150 do
      rw.read(world, 'lk-ann:' .. turn, 1, { lease = 3600000 })
      if turn == 120 then
        world:advance(1500)
      end
    end
    for turn = 2, 150 do
      rw.read_release(world, 'lk-ann:' .. turn)
    end
    world:advance(27500)
    rw.read_renew(world, ann)
    rw.read_release(world, ann)
    assert.reply({ 0, about(1000) }, rw.write(world, eve))

    world:advance(1001)

    assert.reply({ 1, 1 }, rw.write(world, eve))
  end)

  -- Both renew in the same millisecond, with one lease: the end of the lock is the same.
  it('is not written while Redisson renews together with latchkey', function()
    java:read_lock()
    rw.read(world, ann)
    for _ = 1, 6 do
      world:advance(10000)
      rw.read_renew(world, ann)
      java:read_pass('3.44+', { 'other', 'job' })
    end
    rw.read_release(world, ann)

    assert.reply({ 0, about(30000) }, rw.write(world, eve))
  end)
end)

-- SPDX-License-Identifier: Apache-2.0
local helper = require('helper')
local about, hash = helper.about, helper.hash

describe('period/mark', function()
  local HOUR = 3600000
  local ann, bob, key = 'lk-ann:1', 'lk-bob:1', 'latchkey_period:{report}'
  local world

  before_each(function()
    world = helper.world()
  end)

  local function text(number)
    return ('%.0f'):format(number)
  end

  -- A run that began at this moment.
  local function mark(at_ms, owner, every, label)
    return world:eval('period/mark', { key }, { every or HOUR, text(at_ms), owner or ann,
      label or 'web1' })
  end

  -- What is left: distances from now, of the begin of the period and of the run, and of its end.
  local function record(begins, at, ended, owner, every, ttl)
    every = every or HOUR
    local function moment(distance)
      return ('@%+.0f'):format(distance)
    end
    return { [key] = hash({ every = text(every), begins = moment(begins), at = moment(at),
      ended = moment(ended), owner = owner or ann, label = 'web1' }, ttl or 2 * every) }
  end

  it('puts the first run in the middle of its period, and ends after two periods', function()
    assert.reply({ 1 }, mark(world:now_ms() - 60000))

    assert.left(world, record(-60000 - HOUR / 2, -60000, 0))
  end)

  it('answers a copy alike, and changes nothing', function()
    local at_ms = world:now_ms() - 60000
    mark(at_ms)
    world:advance(600000)
    at_ms = helper.is_live and at_ms - 600000 or at_ms

    assert.reply({ 1 }, mark(at_ms))

    assert.left(world, record(-660000 - HOUR / 2, -660000, -600000, ann, HOUR,
      2 * HOUR - 600000))
  end)

  it('lets the next period follow from the last, wherever in it the run began', function()
    helper.fill(world, record(-HOUR - 900000, -HOUR, -HOUR))

    assert.reply({ 1 }, mark(world:now_ms() - 60000, bob))

    assert.left(world, record(-900000, -60000, 0, bob))
  end)

  it('leaves out periods in which nothing ran', function()
    helper.fill(world, record(-4 * HOUR - 900000, -4 * HOUR, -4 * HOUR))

    assert.reply({ 1 }, mark(world:now_ms(), bob))

    assert.left(world, record(-900000, 0, 0, bob))
  end)

  it('refuses a second run of the same period, and says when the first was', function()
    helper.fill(world, record(-900000, -600000, -500000))

    local reply = mark(world:now_ms() - 60000, bob)

    assert.reply({ 0, about(600000) }, { 0, world:now_ms() - reply[2], n = 2 })
    assert.left(world, record(-900000, -600000, -500000))
  end)

  it('refuses a run of an earlier period that is late', function()
    helper.fill(world, record(-900000, -600000, -500000))

    local reply = mark(world:now_ms() - 2 * HOUR, bob)

    assert.reply({ 0, about(600000) }, { 0, world:now_ms() - reply[2], n = 2 })
    assert.left(world, record(-900000, -600000, -500000))
  end)

  it('takes another run for another one, though its moment or its owner is the same', function()
    local at_ms = world:now_ms() - 600000
    mark(at_ms)

    for _, other in ipairs({ bob, ann .. '2', ann:sub(1, -2) }) do
      assert.equal(0, mark(at_ms, other)[1])
    end
    assert.equal(0, mark(at_ms + 1, ann)[1])

    assert.left(world, record(-600000 - HOUR / 2, -600000, 0))
  end)

  it('begins anew where periods had another length, with the last run in the middle', function()
    helper.fill(world, record(-2 * HOUR, -2 * HOUR, -2 * HOUR))

    assert.reply({ 1 }, mark(world:now_ms() - 60000, bob, 2 * HOUR))
    assert.left(world, record(-HOUR, -60000, 0, bob, 2 * HOUR))

    assert.equal(0, mark(world:now_ms(), bob, 3 * HOUR)[1])
    assert.left(world, record(-HOUR, -60000, 0, bob, 2 * HOUR))
  end)

  it('goes then by when the run began, or by its end where the clock was set back', function()
    for _, moments in ipairs({ { -720000, -480000 }, { 720000, -720000 } }) do
      helper.fill(world, record(-3000000, moments[1], moments[2]))

      assert.reply({ 1 }, mark(world:now_ms(), bob, 1200000))
      assert.left(world, record(-120000, 0, 0, bob, 1200000))
    end
  end)

  it('halves a period of an odd length downwards', function()
    assert.reply({ 1 }, mark(world:now_ms() - 60000, ann, HOUR + 1))
    assert.left(world, record(-60000 - HOUR / 2, -60000, 0, ann, HOUR + 1))

    assert.reply({ 1 }, mark(world:now_ms() + 0, bob, 60001))
    assert.left(world, record(-29999, 0, 0, bob, 60001))
  end)

  describe('of the longest period', function()
    local LONGEST = 31622400000

    before_each(function()
      world = helper.mock_world() -- to the millisecond, and a server's clock goes on
    end)

    it('has its middle and its end', function()
      assert.reply({ 1 }, mark(world:now_ms() - 60000, ann, LONGEST))

      assert.left(world, record(-60000 - LONGEST / 2, -60000, 0, ann, LONGEST))
    end)

    for what, run in pairs({ ['follows from the last'] = record(-LONGEST, 0, 0, ann, LONGEST),
      ['had another length'] = record(0, -LONGEST / 2, -LONGEST / 2) }) do
      it('begins when the one before is over that ' .. what, function()
        helper.fill(world, run)

        assert.reply({ 1 }, mark(world:now_ms(), bob, LONGEST))

        assert.left(world, record(0, 0, 0, bob, LONGEST))
      end)
    end

    for _, begins in ipairs({ 1 - LONGEST, LONGEST }) do
      it(('is believed until its end, and before its begin: %.0f'):format(begins), function()
        helper.fill(world, record(begins, begins, begins, ann, LONGEST))

        assert.equal(0, mark(world:now_ms(), bob, LONGEST)[1])

        assert.left(world, record(begins, begins, begins, ann, LONGEST))
      end)
    end
  end)

  it('keeps the greatest moment as it was given', function()
    local expected = record(-HOUR / 2, 0, 0)
    expected[key].value.at = '9007199254740991'

    assert.reply({ 1 }, mark(9007199254740991))

    assert.left(world, expected)
  end)

  it('takes a run that is to begin for one that begins now: the clock was set back', function()
    assert.reply({ 1 }, mark(world:now_ms() + 5 * HOUR))

    assert.left(world, record(-HOUR / 2, 5 * HOUR, 0))
  end)

  it('forgets a period that is to come: the clock was set back', function()
    helper.fill(world, record(2 * HOUR, 3 * HOUR, 3 * HOUR))

    assert.reply({ 1 }, mark(world:now_ms() - 60000, bob))

    assert.left(world, record(-60000 - HOUR / 2, -60000, 0, bob))
  end)

  it('believes a period that is about to come, since clocks differ', function()
    helper.fill(world, record(HOUR, HOUR, HOUR))

    assert.equal(0, mark(world:now_ms() - 60000, bob)[1])

    assert.left(world, record(HOUR, HOUR, HOUR))
  end)

  it('is the mark that period/check finds', function()
    mark(world:now_ms() - 60000)

    assert.equal(0, world:eval('period/check', { key }, { HOUR, 0 })[1])
  end)
end)

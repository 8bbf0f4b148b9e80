-- SPDX-License-Identifier: Apache-2.0
local helper = require('helper')
local about, hash = helper.about, helper.hash

describe('period/check', function()
  local HOUR = 3600000
  local ann, key = 'lk-ann:1', 'latchkey_period:{report}'
  local world

  before_each(function()
    world = helper.world()
  end)

  -- `at`: how long ago the caller asked first; none: it asks now.
  local function check(at, every)
    return world:eval('period/check', { key },
      { every or HOUR, at and ('%.0f'):format(world:now_ms() - at) or 0 })
  end

  -- A run whose period began so long ago; it was in its middle.
  local function marked(ago, every)
    every = every or HOUR
    local middle = ago - every / 2
    return { [key] = hash({ every = ('%.0f'):format(every), begins = ('@%+.0f'):format(-ago),
      at = ('@%+.0f'):format(-middle), ended = ('@%+.0f'):format(60000 - middle), owner = ann,
      label = 'web1' }, 2 * every) }
  end

  -- One with other moments, as distances from now.
  local function record(at, ended)
    return { [key] = hash({ every = ('%.0f'):format(HOUR), begins = ('@%+.0f'):format(at - 1800000),
      at = ('@%+.0f'):format(at), ended = ('@%+.0f'):format(ended), owner = ann,
      label = 'web1' }, 2 * HOUR) }
  end

  -- The moment that a reply of "due" names is now; it is due, and nothing was written.
  local function assert_due(keys, reply, err)
    assert.is_nil(err)
    assert.equal(1, reply[1])
    assert.reply({ 1, about(0) }, { 1, math.abs(world:now_ms() - reply[2]), n = 2 })
    assert.left(world, keys)
  end

  local function assert_done(keys, ran_ago, reply, err)
    assert.is_nil(err)
    local now_ms = world:now_ms()
    assert.reply({ 0, about(0), about(0), ann, 'web1' },
      { 0, math.abs(now_ms - reply[2] - ran_ago), math.abs(now_ms - reply[3] + 60000 - ran_ago),
        reply[4], reply[5], n = 5 })
    assert.left(world, keys)
  end

  it('says that a job is due which has never run, and what the time is', function()
    assert_due({}, check())
  end)

  describe('of the longest period', function()
    local LONGEST = 31622400000

    before_each(function()
      world = helper.mock_world() -- to the millisecond, and a server's clock goes on
    end)

    -- A run of a period that began then, as distances from now.
    local function run(begins, at, every)
      return { [key] = hash({ every = ('%.0f'):format(every or LONGEST),
        begins = ('@%+.0f'):format(begins), at = ('@%+.0f'):format(at),
        ended = ('@%+.0f'):format(at), owner = ann, label = 'web1' }, 2 * LONGEST) }
    end

    for what, case in pairs({
      ['due when it is over'] = { 1, run(-LONGEST, -1000) },
      ['due when it is over, wherever in it the run began'] = { 1, run(-LONGEST - 5, -1000) },
      ['due when it is over, counted from one of another length'] =
        { 1, run(0, -LONGEST / 2, HOUR) },
      ['done until then'] = { 0, run(1 - LONGEST, -1000) },
      ['done where it is about to begin'] = { 0, run(LONGEST, -1000) },
    }) do
      it('says that a job is ' .. what, function()
        helper.fill(world, case[2])

        assert.equal(case[1], check(nil, LONGEST)[1])

        assert.left(world, case[2])
      end)
    end
  end)

  it('says that it has been done in this period, when and by whom', function()
    helper.fill(world, marked(2700000))

    assert_done(marked(2700000), 900000, check())
  end)

  it('says so to the end of the period, also when it is long over that the run was', function()
    helper.fill(world, marked(HOUR - 30000))

    assert_done(marked(HOUR - 30000), HOUR / 2 - 30000, check())
  end)

  it('says that it is due in the next period', function()
    helper.fill(world, marked(HOUR))

    assert_due(marked(HOUR), check())
  end)

  it('goes by when the caller asked, who may have waited into the next period', function()
    helper.fill(world, marked(HOUR + 60000))

    assert_done(marked(HOUR + 60000), HOUR / 2 + 60000, check(120000))
    assert_due(marked(HOUR + 60000), check(20000))
  end)

  it('takes a later period than the one in which the caller asked as well', function()
    helper.fill(world, marked(2700000))

    assert_done(marked(2700000), 900000, check(5 * HOUR))
  end)

  it('has the last run in the middle where periods had another length', function()
    helper.fill(world, marked(2700000))

    assert_done(marked(2700000), 900000, check(nil, 2 * HOUR))
    assert_due(marked(2700000), check(nil, 900000))

    helper.fill(world, marked(2100000)) -- its own period would be over: it ran 5 minutes ago
    assert_done(marked(2100000), 300000, check(nil, 1200000))
  end)

  it('goes then by when the run began, or by its end where the clock was set back', function()
    local began = record(-720000, -480000)
    helper.fill(world, began)
    assert_due(began, check(nil, 1200000))

    local ended = record(720000, -720000)
    helper.fill(world, ended)
    assert_due(ended, check(nil, 1200000))
  end)

  it('counts a period of an odd length to its last millisecond', function()
    local slack = helper.is_live and 60000 or 0
    helper.fill(world, record(slack - 600000, slack - 540000))

    assert.equal(0, check(nil, 1200001)[1])
  end)

  it('believes a period that is to come, since clocks differ, but no later one', function()
    local near, far = marked(-HOUR), marked(-HOUR - 60000)
    helper.fill(world, near)
    assert_done(near, -HOUR / 2 - HOUR, check())

    helper.fill(world, far)
    assert_due(far, check())
  end)

  it('has forgotten it when its record has ended', function()
    helper.fill(world, marked(2700000))
    world:advance(2 * HOUR + 1)

    assert_due({}, check())
  end)
end)

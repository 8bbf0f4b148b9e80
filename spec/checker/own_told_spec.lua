-- SPDX-License-Identifier: Apache-2.0
-- What a check of somebody's own scripts makes of what clients are told, and tell: each answer is
-- for the one who asked.
local dir = require('pl.dir')
local path = require('pl.path')
local utils = require('pl.utils')

local checker = require('latchkey.checker')
local own_lock = require('support.own_lock')
local words = require('latchkey.checker.words')

describe('a client of scripts of one\'s own', function()
  local folder

  before_each(function()
    folder = path.tmpname()
    os.remove(folder)
    dir.makepath(folder)
  end)

  after_each(function()
    dir.rmtree(folder)
  end)

  local function check(text)
    utils.writefile(folder .. '/model.lua', text)
    return own_lock.check(folder, assert(words.load(folder .. '/model.lua')))
  end

  -- Whoever comes first has it; the others are told who that is.
  local function add_holder()
    local key = { 'held  string  rw  held:{name}  who has it' }
    own_lock.add(folder, 'held/take', "local owner = redis.call('GET', KEYS[1]) or ARGV[1]\n"
      .. "redis.call('SET', KEYS[1], owner, 'PX', 1000)\nreturn owner\n",
      { keys = key, argv = { 'me  owner  1..64  who asks' }, returns = { 'text  who has it' } })
    own_lock.add(folder, 'held/drop', "if redis.call('GET', KEYS[1]) ~= ARGV[1] then\n"
      .. "  return 0\nend\nredis.call('DEL', KEYS[1])\nreturn 1\n",
      { keys = key, argv = { 'who  text  1..64  who has it' }, returns = { '1  yes', '0  no' } })
  end

  -- What follows the reply of held/take, and what is promised of held/drop.
  local HELD = [[return model.clients { first = 'take',
    steps = {
      take = { call = 'held/take', on = { text = function(mine, reply)
        mine.who = reply
        return %s
      end } },
      drop = { call = 'held/drop', args = { who = function(mine) return mine.who end },
        on = { [1] = 'done', [0] = 'done' } } },
    promises = { it = function(call, notes)
      if call.script == 'held/take' then
        notes[call.client] = call.reply
        return true
      end
      return %s, call.client .. ' drops ' .. call.args.who
    end }, runs = { { rounds = 1, faults = %d } } }]]

  it('says what it was told, and not what another in its place would be told', function()
    add_holder()

    local verdict = check(HELD:format("'drop'", 'call.args.who == notes[call.client]', 0))

    assert.same({}, verdict.findings)
    assert.is_true(verdict.complete)
  end)

  it('is not told of keys for good that its call did not touch', function()
    own_lock.add(folder, 'held/set', "local most = redis.call('GET', KEYS[2])\n"
      .. "redis.call('SET', KEYS[1], ARGV[1], 'PX', 200)\nreturn tonumber(most)\n",
      { keys = { 'last  string  w  held:{{name}}:last  who was last',
        'most  string  r  held:{{name}}:most  a setting, which operators write' },
        argv = { 'me  text  1..64  who asks' }, returns = { 'integer  the setting' } })

    local verdict = check([[return model.clients { first = 'set',
      keys = { ['held:{l}:most'] = { type = 'string', value = '3' } },
      steps = { set = { call = 'held/set', args = { me = 'x' }, on = { integer = 'done' } } },
      promises = { it = function(call) return call.reply == 3 end },
      runs = { { clients = 1, rounds = 2, faults = 0 } } }]])

    assert.same({}, verdict.findings)
    assert.is_true(verdict.complete)
  end)

  it('has a name that is as long as the contracts want it', function()
    for verb, least in pairs({ take = 8, drop = 20 }) do
      own_lock.add(folder, 'held/' .. verb, ("if #ARGV[1] < %d then\n"
        .. "  return redis.error_reply('BADARG me')\nend\nreturn #ARGV[1]\n"):format(least),
        { argv = { ('me  owner  %d..64  who asks'):format(least) },
          returns = { 'integer  how long that is' }, errors = { 'BADARG  too short' } })
    end
    local model = [[return model.clients { first = 'take',
      steps = { take = { call = 'held/take', on = { integer = 'drop' } },
        drop = { call = 'held/drop', on = { integer = 'done' } } },
      promises = { it = function(call) return call.reply == 20, call.args.owner end },
      runs = { { rounds = 2, faults = 0 } } }]]

    assert.same({}, check(model).findings)
    own_lock.add(folder, 'held/drop', 'return #ARGV[1]\n', { returns = { 'integer  its length' },
      argv = { 'me  owner  1..15  who asks' } })
    local why = checker.unreadable(folder .. '/model.lua', folder .. '/scripts')
    assert.truthy(why and why:find('the argument "me" of held/drop has 1 to 15 bytes, and names of '
      .. 'clients up to 16', 1, true), why)
  end)

  it('is found to drop what another has', function()
    add_holder()

    local finding = check(HELD:format("{ wait = 50, next = 'drop' }",
      "call.shape == '0' or call.args.who:sub(1, 4) == call.client", 1)).findings[1]

    assert.equal('P1', finding and finding.property)
  end)
end)

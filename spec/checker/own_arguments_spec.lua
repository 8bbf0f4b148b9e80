-- SPDX-License-Identifier: Apache-2.0
-- Arguments of somebody's scripts may have any name: a check comes to the same.
local dir = require('pl.dir')
local utils = require('pl.utils')

local checker = require('latchkey.checker')
local own_lock = require('support.own_lock')
local words = require('latchkey.checker.words')

-- What the checker calls things that it knows of a call, or of who holds.
local NAMES = { 'after', 'after_holders', 'again', 'args', 'before', 'before_holders', 'client',
  'derived', 'header', 'hold', 'keys', 'lease', 'letter', 'limits', 'longest', 'may_wait',
  'messages', 'mode', 'name', 'new_owner', 'now', 'outcome', 'owner', 'partner', 'reply', 'script',
  'shape', 'verb' }

local FAST = "args = { %s = 'fast' },\n  waits ="

describe('a lock whose acquire has an argument called', function()
  local folder

  before_each(function()
    folder = own_lock.folder()
  end)

  after_each(function()
    dir.rmtree(folder)
  end)

  local function check(name, source)
    own_lock.write(folder, 'acquire', source .. '\n', {
      ['  - token '] = ('  - %s  text  0..20  how\n  - token '):format(name) })
    local model = utils.readfile(folder .. '/acme.lua'):gsub('waits =', FAST:format(name))
    utils.writefile(folder .. '/acme.lua', model)
    return checker.check(assert(words.load(folder .. '/acme.lua')),
      { scripts = folder .. '/scripts', clients = 2, rounds = 1, faults = 0 })
  end

  for _, name in ipairs(NAMES) do
    it(name .. ' is one', function()
      local verdict = check(name, "return redis.call('set', KEYS[1], ARGV[2], 'NX', 'PX', ARGV[3])")

      assert.same({}, verdict.findings)
      assert.is_true(verdict.complete)
    end)

    it(name .. ' is none where it takes what others hold', function()
      local finding = check(name, "return redis.call('set', KEYS[1], ARGV[2], 'PX', ARGV[3])")
        .findings[1]

      assert.equal('G4', finding and finding.property)
    end)

    it(name .. ' is none where it has no end', function()
      local finding = check(name, "return redis.call('set', KEYS[1], ARGV[2], 'NX')").findings[1]

      assert.equal('G8', finding and finding.property)
    end)
  end
end)

describe('a step whose script has an argument called', function()
  local folder

  before_each(function()
    folder = own_lock.folder('docs/howto/audit-limiter-and-queue.md')
  end)

  after_each(function()
    dir.rmtree(folder)
  end)

  for _, name in ipairs(NAMES) do
    it(name .. ' is asked about that', function()
      own_lock.write(folder, 'limit/take', 'return 1\n', {
        ['  - id '] = ('  - %s  choice  fast|slow  how\n  - id '):format(name) })
      utils.writefile(folder .. '/model.lua', ([[return model.clients { first = 'take',
        steps = { take = { call = 'limit/take', args = { most = 1, window = 200, %s = 'fast' },
          on = { [1] = 'done', [0] = 'done' } } },
        promises = { ['it'] = function(call, notes)
          notes.calls = (notes.calls or 0) + 1
          return call.args.%s == 'fast' and call.shape == '1' and call.reply == 1
            and call.script == 'limit/take' and notes.calls < 2
        end } }]]):format(name, name))

      local verdict = checker.check(assert(words.load(folder .. '/model.lua')),
        { scripts = folder .. '/scripts', clients = 1, rounds = 2, faults = 0 })

      assert.equal('P1', verdict.findings[1] and verdict.findings[1].property)
      assert.equal('A:begin A.take A< A:begin A.take', table.concat(verdict.findings[1].trail, ' '))
    end)
  end
end)

describe('a step', function()
  local folder

  before_each(function()
    folder = own_lock.folder('docs/howto/audit-limiter-and-queue.md')
  end)

  after_each(function()
    dir.rmtree(folder)
  end)

  for _, name in ipairs({ 'acquire', 'renew', 'release', 'leave', 'transfer', 'break' }) do
    it('may be called ' .. name, function()
      own_lock.write(folder, 'limit/take', "redis.call('SET', KEYS[1], 1, 'PX', ARGV[2])\n"
        .. 'return 1\n', { ['taken  zset'] = 'taken  string', ['id      owner '] = 'id      text  ',
        ['cost: '] = 'repeat:   hold\ncost: ' })
      utils.writefile(folder .. '/model.lua', ([[return model.clients { first = '%s',
        steps = { ['%s'] = { call = 'limit/take', args = { most = 1, window = 200, id = 'x' },
          on = { [1] = 'done', [0] = 'done' } } },
        promises = { ['it'] = function() return true end } }]]):format(name, name))

      local verdict = checker.check(assert(words.load(folder .. '/model.lua')),
        { scripts = folder .. '/scripts', clients = 2, rounds = 1, faults = 0 })

      assert.same({}, verdict.findings)
    end)
  end
end)

-- SPDX-License-Identifier: Apache-2.0
-- The ready-made models say of the page's limiter, queue and permits what holds, and find mistakes.
local dir = require('pl.dir')
local utils = require('pl.utils')

local checker = require('latchkey.checker')
local own_lock = require('support.own_lock')
local words = require('latchkey.checker.words')
local texts = require('support.texts')

local PAGE = 'docs/howto/audit-limiter-and-queue.md'

local REFERENCE = 'docs/reference/model.md'

-- The example of a ready-made model in the reference.
local function shown(name)
  local text = assert(utils.readfile(REFERENCE))
  return assert(text:match('```lua\n(return model%.' .. name .. ' .-)```'))
end

describe('ready-made models', function()
  local folder

  before_each(function()
    folder = own_lock.folder(PAGE)
    utils.writefile(folder .. '/limit.lua', shown('limiter'))
    utils.writefile(folder .. '/jobs.lua', shown('queue'))
  end)

  after_each(function()
    dir.rmtree(folder)
  end)

  local function check(model)
    return own_lock.check(folder, assert(words.load(('%s/%s.lua'):format(folder, model))))
  end

  for _, model in ipairs({ 'limit', 'jobs', 'pool' }) do
    it('keep the promises of ' .. model, function()
      local verdict = check(model)

      assert.same({}, verdict.findings)
      assert.is_true(verdict.complete)
    end)
  end

  -- What it is, the script, what stands there and what in its place, the promise.
  for _, mistake in ipairs({
    { 'lets one too many in', 'limit/take', '>= tonumber', '> tonumber', 'P1' },
    { 'has a window that is too short', 'limit/take', '0, now - ARGV[2]', '0, now - 100', 'P1' },
    { 'takes a job whose lease goes on', 'jobs/take', "'-inf', now)", "'-inf', now + 50)", 'P1' },
    { 'takes a job without a lease', 'jobs/take',
      "redis.call('ZADD', KEYS[2], now + ARGV[1], job)", '', 'P2' },
    { 'refuses for ever who asks too often', 'limit/take', 'return 0',
      "redis.call('ZADD', KEYS[1], now, ARGV[3])\nredis.call('PEXPIRE', KEYS[1], ARGV[2])\n"
        .. 'return 0',
      'P2' },
    { 'lets one too few in', 'limit/take', '>= tonumber(ARGV[1])', '>= tonumber(ARGV[1]) - 1',
      'P2' },
    { 'ends no job', 'jobs/done', "redis.call('ZREM', KEYS[1], ARGV[1])", '1', 'P3' },
    { 'never gives the last job', 'jobs/take', "redis.call('LPOP', KEYS[1])",
      "redis.call('LLEN', KEYS[1]) > 1 and redis.call('LPOP', KEYS[1])", 'P4' },
    { 'gives one permit too many', 'pool/take', '>= tonumber', '> tonumber', 'P1' },
    { 'ends the holds of others', 'pool/give', "'ZREM', KEYS[1], ARGV[1]", "'DEL', KEYS[1]",
      'P2' },
    { 'ends holds that go on', 'pool/take', "'-inf', now)", "'-inf', now + 120)", 'P1' },
    { 'gives back what it does not find', 'pool/give', 'ARGV[1]', "ARGV[1] .. 'x'", 'P2' },
    { 'gives one permit too few', 'pool/take', '>= tonumber(ARGV[1])',
      '>= tonumber(ARGV[1]) - 1', 'P3' },
    { 'leaves its key for good', 'pool/take', "redis.call('PEXPIRE', KEYS[1], ARGV[3])", '',
      'G8' },
  }) do
    local what, name, old, new, property = unpack(mistake)
    it('find a script that ' .. what, function()
      local source = utils.readfile(('%s/scripts/%s.lua'):format(folder, name))
      own_lock.write(folder, name, texts.with(source, old, new))

      local finding = check(name:match('^%l+')).findings[1]

      assert.equal(property, finding and finding.property, finding and finding.message)
    end)
  end

  for _, jobs in ipairs({ "'one'", "'one', 'two'" }) do
    it('find a queue that gives no job again whose lease has ended, of ' .. jobs, function()
      local source, count = utils.readfile(folder .. '/scripts/jobs/take.lua')
        :gsub('\nfor _, job.-\nend\n', '\n')
      assert.equal(1, count)
      own_lock.write(folder, 'jobs/take', source)
      utils.writefile(folder .. '/jobs.lua', (shown('queue'):gsub("'one', 'two'", jobs)))

      local finding = check('jobs').findings[1]

      assert.equal('P4', finding and finding.property)
    end)
  end

  -- A word that says so, in the place of what stands in the model; what the script does.
  for _, case in ipairs({
    { 'limit', 'window_ms =', 'may_refuse = true, window_ms =', 'return 0',
      "redis.call('ZADD', KEYS[1], now, ARGV[3])\nredis.call('PEXPIRE', KEYS[1], ARGV[2])\n"
        .. 'return 0' },
    { 'jobs', "job = 'job'", "may_refuse = true, job = 'job'", "redis.call('LPOP', KEYS[1])",
      "redis.call('LLEN', KEYS[1]) > 1 and redis.call('LPOP', KEYS[1])" },
  }) do
    local model, word, words_then, old, new = unpack(case)
    it('let a script refuse more than it must where that is meant: ' .. model, function()
      local name = model .. '/take'
      local source = utils.readfile(('%s/scripts/%s.lua'):format(folder, name))
      own_lock.write(folder, name, texts.with(source, old, new), { ['at most '] = 'at most 1' })
      local file = ('%s/%s.lua'):format(folder, model)
      utils.writefile(file, texts.with(utils.readfile(file), word, words_then))

      local verdict = check(model)

      assert.same({}, verdict.findings)
      assert.is_true(verdict.complete)
    end)
  end

  for what, case in pairs({
    ['no window'] = { 'limiter { take = {}, most = 2 }', 'a limiter needs "window_ms"' },
    ['a word that there is none'] = {
      "limiter { take = { 'a/b' }, most = 2, window_ms = 9, x = 1 }", 'a limiter has no word "x"' },
    ['no script'] = { 'limiter { take = {}, most = 2, window_ms = 9 }', 'name its script first' },
    ['no meaning of a reply'] = {
      "limiter { take = { 'a/b', takes = 1 }, most = 2, window_ms = 9 }", '"refuses" says' },
    ['a meaning that there is none'] = {
      "limiter { take = { 'a/b', takes = 1, refuses = 0, lost = 2 }, most = 2, window_ms = 9 }",
      'no word "lost"' },
    ['a queue\'s meaning that there is none'] = {
      "queue { take = { 'a/b', gives = 'text', empty = 0 }, job = 'job', jobs = { 'x' },\n"
        .. "done = { 'a/c', ends = 1, lost = 0, takes = 2 }, waiting = 'w', taken = 't',\n"
        .. 'lease_ms = 99 }', 'a queue has no word "takes"' },
  }) do
    it('are refused with ' .. what, function()
      utils.writefile(folder .. '/wrong.lua', 'return model.' .. case[1])

      local model, why = words.load(folder .. '/wrong.lua')

      assert.is_nil(model)
      assert.truthy(why:find(case[2], 1, true), why)
    end)
  end
end)

describe('a lock whose owner stands in', function()
  local folder

  after_each(function()
    dir.rmtree(folder)
  end)

  -- acquire, renew, release of the lock of another page, on a key of another type.
  local SCRIPTS = {
    list = { acquire = "if redis.call('exists', KEYS[1]) == 1 then return false end\n"
      .. "redis.call('rpush', KEYS[1], ARGV[1]) redis.call('pexpire', KEYS[1], ARGV[2])\n"
      .. "return redis.status_reply('OK')",
      owns = "redis.call('lindex', KEYS[1], 0) == ARGV[1]", renew = '' },
    zset = { acquire = "local t = redis.call('time') local now = t[1] * 1000 + "
      .. "math.floor(t[2] / 1000)\nif redis.call('exists', KEYS[1]) == 1 then return false end\n"
      .. "redis.call('zadd', KEYS[1], now + ARGV[2], ARGV[1])\n"
      .. "redis.call('pexpire', KEYS[1], ARGV[2])\nreturn redis.status_reply('OK')",
      owns = "redis.call('zscore', KEYS[1], ARGV[1])",
      renew = "local t = redis.call('time') redis.call('zadd', KEYS[1], t[1] * 1000 + "
        .. 'math.floor(t[2] / 1000) + ARGV[2], ARGV[1])\n' },
  }

  -- The page's lock on a key of this type.
  local function made(kind, owns)
    local source_of = SCRIPTS[kind]
    local change = { ['lock  string'] = 'lock  ' .. kind,
      ['cost:     at most '] = 'cost:     at most 1' } -- and what stood there: 11 to 13
    folder = own_lock.folder()
    own_lock.write(folder, 'acquire', source_of.acquire .. '\n', change)
    own_lock.write(folder, 'renew', ('if %s then\n%s'
      .. "return redis.call('pexpire', KEYS[1], ARGV[2])\n"
      .. 'end\nreturn 0\n'):format(source_of.owns, source_of.renew), change)
    own_lock.write(folder, 'release', ("if %s then\nredis.call('del', KEYS[1])\n"
      .. "redis.call('publish', ARGV[2], 'free')\nreturn 1\nend\nreturn 0\n"):format(
      owns or source_of.owns), change)
    local model = utils.readfile(folder .. '/acme.lua'):gsub('model.string', 'model.' .. kind)
    utils.writefile(folder .. '/acme.lua', model)
    return checker.check(assert(words.load(folder .. '/acme.lua')),
      { scripts = folder .. '/scripts', clients = 2, rounds = 1 })
  end

  -- Members go with their scores: at that millisecond, after it, or before it.
  local LINE = { acquire = "redis.call('zremrangebyscore', KEYS[1], '-inf', %s)\n"
    .. "if redis.call('zcard', KEYS[1]) > 0 then return false end\n"
    .. "redis.call('zadd', KEYS[1], now + ARGV[2], ARGV[1])\n"
    .. "redis.call('pexpire', KEYS[1], 2 * ARGV[2])\nreturn redis.status_reply('OK')\n",
    renew = "redis.call('zremrangebyscore', KEYS[1], '-inf', %s)\n"
      .. "if not redis.call('zscore', KEYS[1], ARGV[1]) then return 0 end\n"
      .. "redis.call('zadd', KEYS[1], now + ARGV[2], ARGV[1])\n"
      .. "return redis.call('pexpire', KEYS[1], 2 * ARGV[2])\n",
    release = "redis.call('zremrangebyscore', KEYS[1], '-inf', %s)\n"
      .. "if redis.call('zrem', KEYS[1], ARGV[1]) == 0 then return 0 end\n"
      .. "redis.call('publish', ARGV[2], 'free')\nreturn 1\n" }

  -- What a run of these finds first.
  local function found_in_line(gone, number)
    folder = own_lock.folder()
    for verb, text in pairs(LINE) do
      own_lock.write(folder, verb, "local t = redis.call('time')\nlocal now = t[1] * 1000 + "
        .. 'math.floor(t[2] / 1000)\n' .. text:format(gone), { ['lock  string'] = 'lock  zset',
        ['cost:     at most '] = 'cost:     at most 1',
        ['  w  '] = verb == 'acquire' and '  rw  ' or nil })
    end
    utils.writefile(folder .. '/acme.lua', (utils.readfile(folder .. '/acme.lua')
      :gsub('model.string', 'model.zset')))
    local model = assert(words.load(folder .. '/acme.lua'))
    local options = checker.runs(model)[number]
    options.scripts = folder .. '/scripts'
    local verdict = checker.check(model, options)
    assert.is_true(verdict.complete or verdict.findings[1] ~= nil)
    return verdict.findings[1]
  end

  -- When members go, which of the default runs, and what it finds.
  for what, case in pairs({
    ['a zset is one, also where members go at the millisecond of their score'] = { 'now', 2 },
    ['a zset is one, also where members go after it'] = { "'(' .. now", 2 },
    ['a zset is none where members go before it'] = { 'now + 1', 2, 'G1 G4' },
    ['a zset is none where members stay too long'] = { "'(' .. (now - 1)", 1, 'G6' },
  }) do
    it(what, function()
      local finding = found_in_line(case[1], case[2])

      if not case[3] then
        assert.is_nil(finding, finding and finding.message)
      else
        assert.truthy(finding and case[3]:find(finding.property, 1, true),
          finding and finding.message)
      end
    end)
  end

  it('a zset is one in its default runs', function()
    made('zset')

    local verdict = own_lock.check(folder, assert(words.load(folder .. '/acme.lua')))

    assert.same({}, verdict.findings)
    assert.is_true(verdict.complete)
  end)

  for _, kind in ipairs({ 'list', 'zset' }) do
    it('a ' .. kind .. ' is one', function()
      local verdict = made(kind)

      assert.same({}, verdict.findings)
      assert.is_true(verdict.complete)
    end)

    it('a ' .. kind .. ' is none where anybody releases it', function()
      assert.equal('G4', made(kind, "redis.call('exists', KEYS[1]) == 1").findings[1].property)
    end)
  end
end)

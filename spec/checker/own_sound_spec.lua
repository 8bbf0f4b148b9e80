-- SPDX-License-Identifier: Apache-2.0
-- What a check of somebody's own scripts must not lose sight of: names that it might take for its
-- own, time that passes otherwise than in milliseconds, windows that follow one another, and states
-- that only look alike.
local dir = require('pl.dir')
local path = require('pl.path')
local utils = require('pl.utils')

local Client = require('latchkey.checker.client')
local Server = require('latchkey.checker.server')
local checker = require('latchkey.checker')
local matrix = require('latchkey.checker.matrix')
local own_lock = require('support.own_lock')
local parts = require('latchkey.checker.parts')
local regress = require('latchkey.checker.regress')
local words = require('latchkey.checker.words')
local texts = require('support.texts')

local PAGE = 'docs/howto/audit-limiter-and-queue.md'

local TIME = "local time = redis.call('TIME')\n"
  .. 'local now = time[1] * 1000 + math.floor(time[2] / 1000)\n'

describe('a check of clients by steps', function()
  local folder

  before_each(function()
    folder = own_lock.folder(PAGE)
  end)

  after_each(function()
    dir.rmtree(folder)
  end)

  local function loaded(text)
    utils.writefile(folder .. '/model.lua', text)
    return assert(words.load(folder .. '/model.lua'))
  end

  -- The first finding of the runs that `latchkey check` makes by default.
  local function found(model)
    local verdict = own_lock.check(folder, type(model) == 'string' and loaded(model) or model)
    assert.is_true(verdict.complete or verdict.findings[1] ~= nil)
    return verdict.findings[1]
  end

  local function clients(take, promise, more)
    return ([[return model.clients { first = 'take',
      steps = { take = { call = 'limit/take', args = { most = 2, window = 200 },
        on = { [1] = %s, [0] = 'done' } } },
      promises = { ['it'] = function(call, notes, keys) %s end }, %s }]]):format(take, promise,
      more or '')
  end

  for what, kinds in pairs({ ['alone'] = "'clock-back'",
    ['where it also gains'] = "'clock-back', 'clock'" }) do
    it('meets a clock that is set back, ' .. what, function()
      local source = TIME .. "if now < tonumber(redis.call('GET', KEYS[1]) or 0) then\n  return 0\n"
        .. "end\nredis.call('SET', KEYS[1], ('%.0f'):format(now), 'PX', 1000)\nreturn 1\n"
      own_lock.add(folder, 'clock/rises', source, { returns = { '1  later', '0  earlier' },
        keys = { 'last  string  rw  at:{name}  when it was called last' } })
      local model = loaded(([[return model.clients { first = 'call',
        steps = { call = { call = 'clock/rises', on = { [1] = 'done', [0] = 'done' } } },
        promises = { ['time rises'] = function(call) return call.shape == '1' end },
        faults = { %s } }]]):format(kinds))

      assert.equal('P1', (found(model) or {}).property)
      assert.same({}, checker.check(model, { scripts = folder .. '/scripts', kinds = { 'clock' } })
        .findings)
    end)
  end

  -- How the last time is kept where no key ends soon, and read.
  for what, case in pairs({
    ['in a key that stays for a minute'] = { "('%.0f'):format(now), 'PX', 60000", 'last' },
    ['in a key that stays for a day'] = { "('%.0f'):format(now), 'PX', 86400000", 'last' },
    ['in microseconds, in one that stays'] = { "time[1] .. ('%06d'):format(time[2])",
      'math.floor(last / 1000)', '  permanent' },
  }) do
    it('lets time pass for what is kept ' .. what, function()
      local function take(rest_ms)
        own_lock.add(folder, 'cool/take', TIME .. "local last = redis.call('GET', KEYS[1])\n"
          .. ('if last and now - %s < %d then\n  return 0\nend\n'):format(case[2], rest_ms)
          .. ("redis.call('SET', KEYS[1], %s)\nreturn 1\n"):format(case[1]),
          { keys = { ('last  string  rw  cool:{name}%s  when it was'):format(case[3] or '') },
            returns = { '1  taken', '0  too soon' } })
        return found([[return model.clients { first = 'take',
          steps = { take = { call = 'cool/take', on = { [1] = 'done', [0] = 'done' } } },
          promises = { ['300 ms lie between'] = function(call, notes)
            local last = notes.at
            notes.at = call.shape == '1' and call.now or last
            return call.shape ~= '1' or not last or call.now - last >= 300
          end } }]])
      end

      assert.is_nil(take(300))
      assert.equal('P1', (take(150) or {}).property)
    end)
  end

  it('keeps notes whatever they are called', function()
    local model = "notes._taken = (notes._taken or 0) + 1 return notes._taken < 2, 'twice'"

    assert.equal('P1', found(clients("'done'", model)).property)
  end)

  it('knows clients in notes when it takes them for one another', function()
    own_lock.write(folder, 'limit/take', 'if #ARGV > 9 then\n  return 0\nend\nreturn 1\n')
    local model = loaded(clients("'done'",
      'notes[call.client] = (notes[call.client] or 0) + 1 return notes[call.client] < 3'))
    local function states(symmetric)
      local verdict = checker.check(model, { scripts = folder .. '/scripts', symmetric = symmetric,
        faults = 0 })
      assert.same({}, verdict.findings)
      return verdict.states
    end

    assert.is_true(states(true) < states(false))
  end)

  it('keeps what a client has noted whatever it is called', function()
    local model = loaded([[return model.clients { first = 'take',
      steps = {
        take = { call = 'limit/take', args = { most = 2, window = 200 },
          on = { [0] = 'done', [1] = function(mine)
            mine._most = 9
            return { wait = 50, next = 'again' }
          end } },
        again = { call = 'limit/take', args = { most = function(mine) return mine._most end,
          window = 200 }, on = { [1] = 'done', [0] = 'done' } } },
      promises = { ['no nine'] = function(call) return call.args.most ~= 9 end } }]])

    assert.equal('P1', found(model).property)
  end)

  -- Who came in one millisecond stands there by name: from the second on, or from the third.
  for what, rank in pairs({ ['two'] = "redis.call('ZRANK', KEYS[1], ARGV[3]) == 1",
    ['three'] = "redis.call('ZCARD', KEYS[1]) == 3 and redis.call('ZRANK', KEYS[1], ARGV[3]) == 1"
      }) do
    it(('does not pass a line of %s in which names order equal moments'):format(what), function()
      own_lock.write(folder, 'limit/take', TIME .. "redis.call('ZADD', KEYS[1], now, ARGV[3])\n"
        .. "redis.call('PEXPIRE', KEYS[1], ARGV[2])\nreturn " .. rank .. ' and 1 or 0\n')
      local model = loaded(clients("'done'",
        "notes.n = (notes.n or 0) + (call.shape == '1' and 1 or 0) return notes.n < "
          .. (what == 'two' and 2 or 1), 'bounds = { clients = 3, rounds = 1, faults = 0 }'))
      local function found_where(symmetric)
        return checker.check(model, { scripts = folder .. '/scripts', symmetric = symmetric })
          .findings[1]
      end

      local finding = found_where(true)

      assert.equal('R2', finding and finding.property)
      assert.truthy(finding.message:find('--no-symmetry', 1, true), finding.message)
      assert.equal('P1', found_where(false).property)
    end)
  end

  it('passes a line in which equal moments change nothing', function()
    own_lock.write(folder, 'limit/take', TIME .. "redis.call('ZADD', KEYS[1], now, ARGV[3])\n"
      .. "redis.call('PEXPIRE', KEYS[1], ARGV[2])\n"
      .. "return redis.call('ZCARD', KEYS[1]) > 2 and 0 or 1\n")

    local verdict = checker.check(loaded(clients("'done'", 'return true')),
      { scripts = folder .. '/scripts', clients = 2, rounds = 3, faults = 0 })

    assert.same({}, verdict.findings)
    assert.is_true(verdict.complete)
  end)

  -- It looks at a job's list, or at an array that is the answer, as Lua is written.
  for what, look in pairs({
    ['keys'] = "local list = keys['{l}:jobs'] and keys['{l}:jobs'].value or {}\n"
      .. 'while table.remove(list) do end return true',
    ['its answer'] = "while call.shape == '{1, job...}' and table.remove(call.reply) do end "
      .. 'return true',
    ['its arguments'] = 'call.args.lease = nil return true',
  }) do
    it('is not changed by a promise that takes apart ' .. what, function()
      own_lock.write(folder, 'jobs/take', utils.readfile(folder .. '/scripts/jobs/take.lua')
        :gsub('return job', 'return job and { 1, job, job } or nil'), {
        ['text  the job'] = '{1, job...}  the job' })
      local function states(promise)
        local verdict = checker.check(loaded(([[return model.clients { first = 'take',
          keys = { ['{l}:jobs'] = { type = 'list', value = { 'one', 'two' } } },
          limits = { third = 120 },
          steps = { take = { call = 'jobs/take', args = { lease = 240 },
            on = { ['{1, job...}'] = function(mine, reply)
              mine.job = reply
              return 'done'
            end, ['nil'] = 'done' } } },
          promises = { ['a look'] = function(call, notes, keys) %s end,
            ['all are there'] = function(call, notes, keys)
              local waiting = keys['{l}:jobs'] and keys['{l}:jobs'].value or {}
              return call.args.lease == 240
                and #waiting + #keys['{l}:leases'].value == 2, #waiting
            end } }]]):format(promise)), { scripts = folder .. '/scripts' })
        assert.same({}, verdict.findings)
        return verdict.states
      end

      assert.equal(states('return true'), states(look))
    end)
  end

  it('says which argument of a step has no value', function()
    local model = loaded((clients("'done'", 'return true'):gsub('most = 2',
      'most = function() end')))

    local good, why = pcall(found, model)

    assert.is_false(good)
    assert.equal('MODEL the step "take": its argument "most" has no value', why)
  end)

  -- What no table of plain data can hold, and what is said of it.
  for what, case in pairs({
    ['true for a name'] = { '%s[true] = 1', 'has a name that is a boolean' },
    ['a table for a name'] = { '%s[{}] = 1', 'has a name that is a table' },
    ['a time for a name, which would not age'] = { '%s[1767225600876] = 1',
      'has a time for a name: times age only as values' },
    ['itself'] = { '%s.all = { %s }', '"all.1" has itself in it' },
    ['a function'] = { '%s.one = { two = print or type }', '"one.two" is a function' },
  }) do
    it('says which notes cannot be kept: ' .. what, function()
      local wrong = case[1]
      local noted, why = pcall(found, clients("'done'", wrong:gsub('%%s', 'notes')
        .. ' return true'))
      local kept, why_not = pcall(found, clients('function(mine) ' .. wrong:gsub('%%s', 'mine')
        .. " return 'done' end", 'return true'))

      assert.is_false(noted)
      assert.equal('MODEL the promise "it": what it noted ' .. case[2], why)
      assert.is_false(kept)
      assert.equal('MODEL the step "take": what it noted ' .. case[2], why_not)
    end)
  end

  it('says where a function of a model fails', function()
    local good, why = pcall(found, clients("'done'", 'return nil + 1'))

    assert.is_false(good)
    assert.truthy(why:find('^MODEL the promise "it": .*model%.lua:%d+: attempt to'), why)
  end)

  it('says where a function of a model does not end', function()
    local good, why = pcall(found, clients("'done'", 'while true do end'))

    assert.is_false(good)
    assert.truthy(why:find('^MODEL the promise "it": .*model%.lua:4: it does not end'), why)
  end)

  it('refuses a model that does not end', function()
    utils.writefile(folder .. '/model.lua', 'local n = 0\nrepeat n = n + 1 until n < 0\n')

    local model, why = words.load(folder .. '/model.lua')

    assert.is_nil(model)
    assert.truthy(why:find('model%.lua:2: it does not end'), why)
  end)

  for what, case in pairs({
    ['a fault that there is none'] = { "faults = { 'crsh' }", 'there is no fault "crsh"' },
    ['more clients than there are letters'] = { 'bounds = { clients = 7 }',
      'bounds: "clients" is a whole number from 1 to 6' },
    ['a bound that is no number'] = { "bounds = { rounds = 'x' }", '"rounds" is a whole number' },
    ['a bound that there is none'] = { 'bounds = { lease = 2 }', 'bounds have no "lease"' },
    ['a limit that there is none'] = { 'limits = { levels = 2 }', 'limits have no "levels"' },
    ['a past of no length'] = { 'past_ms = 0', '"past_ms" is a whole number' },
  }) do
    it('refuses ' .. what, function()
      utils.writefile(folder .. '/model.lua', clients("'done'", 'return true', case[1]))

      local model, why = words.load(folder .. '/model.lua')

      assert.is_nil(model)
      assert.truthy(why:find(case[2], 1, true), why)
    end)
  end

  it('refuses a model that gives an argument no value', function()
    local model = loaded((clients("'done'", 'return true'):gsub('most = 2, ', '')))

    local why = checker.unreadable(model, folder .. '/scripts')

    assert.truthy(why and why:find('the step "take": nothing says which value the argument "most" '
      .. 'of limit/take has', 1, true), why)
  end)

  local LIMITER = 'return model.limiter { take = { \'limit/take\', takes = 1, refuses = 0,\n'
    .. 'args = { most = %d, window = %d } }, most = %d, window_ms = %d }'

  local function limiter(most, window_ms)
    return LIMITER:format(most, window_ms, most, window_ms)
  end

  for _, window_ms in ipairs({ 450, 60000 }) do
    it(('finds nothing in a good limiter whose window is %d ms long'):format(window_ms), function()
      assert.is_nil(found((limiter(2, window_ms):gsub('most = 2, window_ms',
        'bounds = { clients = 2, rounds = 2, faults = 0 }, %0'))))
    end)
  end

  -- What it is, its text, the promise, the type of its key.
  for _, case in ipairs({
    { 'a counter that begins anew with each window',
      "local n = redis.call('INCR', KEYS[1])\nif n == 1 then\n"
      .. "  redis.call('PEXPIRE', KEYS[1], ARGV[2])\nend\n"
      .. 'if n > tonumber(ARGV[1]) then\n  return 0\nend\nreturn 1\n', 'P1', 'string' },
    { 'a window that is a millisecond short', TIME
      .. "redis.call('ZREMRANGEBYSCORE', KEYS[1], 0, now - ARGV[2] + 1)\n"
      .. "if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[1]) then\n  return 0\nend\n"
      .. "redis.call('ZADD', KEYS[1], now, ARGV[3])\n"
      .. "redis.call('PEXPIRE', KEYS[1], ARGV[2])\nreturn 1\n", 'P1', 'zset' },
    { 'a counter for each second', "local second = redis.call('TIME')[1]\n"
      .. "if redis.call('HGET', KEYS[1], 'second') ~= second then\n"
      .. "  redis.call('DEL', KEYS[1])\n  redis.call('HSET', KEYS[1], 'second', second)\n"
      .. "  redis.call('PEXPIRE', KEYS[1], 2000)\nend\n"
      .. "return redis.call('HINCRBY', KEYS[1], 'n', 1) > tonumber(ARGV[1]) and 0 or 1\n",
      'R2', 'hash' },
    { 'a counter for each window of the clock', TIME
      .. "local turn = ('%.0f'):format(math.floor(now / ARGV[2]))\n"
      .. "if redis.call('HGET', KEYS[1], 'turn') ~= turn then\n"
      .. "  redis.call('DEL', KEYS[1])\n  redis.call('HSET', KEYS[1], 'turn', turn)\n"
      .. "  redis.call('PEXPIRE', KEYS[1], 2000)\nend\n"
      .. "return redis.call('HINCRBY', KEYS[1], 'n', 1) > tonumber(ARGV[1]) and 0 or 1\n",
      'R2', 'hash' },
    { 'one in which the hour decides', TIME .. "if math.floor(time[1] / 3600) % 24 < 8 then\n"
      .. "  return 1\nend\nif redis.call('EXISTS', KEYS[1]) == 1 then\n  return 0\nend\n"
      .. "redis.call('SET', KEYS[1], now, 'PX', ARGV[2])\nreturn 1\n", 'R2', 'string' },
    { 'one in which one hour of a week decides', TIME
      .. "if math.floor(time[1] / 3600) % 168 == 77 then\n"
      .. "  return 1\nend\nif redis.call('EXISTS', KEYS[1]) == 1 then\n  return 0\nend\n"
      .. "redis.call('SET', KEYS[1], now, 'PX', ARGV[2])\nreturn 1\n", 'R2', 'string' },
    { 'one that keeps a digest of who took', 'local id = redis.sha1hex(ARGV[3])\n'
      .. "if redis.call('SCARD', KEYS[1]) >= tonumber(ARGV[1]) then\n  return 0\nend\n"
      .. "redis.call('SADD', KEYS[1], id)\nredis.call('PEXPIRE', KEYS[1], ARGV[2])\nreturn 1\n",
      'R2', 'set' },
    { 'one that looks further back than is said', TIME
      .. "redis.call('ZREMRANGEBYSCORE', KEYS[1], 0, now - 5 * ARGV[2])\n"
      .. "if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[1]) then\n  return 0\nend\n"
      .. "redis.call('ZADD', KEYS[1], now, ARGV[3])\n"
      .. "redis.call('PEXPIRE', KEYS[1], 5 * ARGV[2])\nreturn 1\n", 'R2', 'zset' },
  }) do
    local what, source, property, kind = unpack(case)
    it('does not pass ' .. what, function()
      own_lock.write(folder, 'limit/take', source, { ['taken  zset'] = 'taken  ' .. kind,
        ['at most 5'] = 'at most 9' })

      -- Some of them refuse too much as well.
      local finding = found((limiter(2, 200):gsub('window_ms =', 'may_refuse = true, window_ms =')))

      assert.equal(property, finding and finding.property, finding and finding.message)
    end)
  end

  it('says which reply never came, without which nothing was tried', function()
    own_lock.write(folder, 'limit/take', 'if #KEYS == 1 then\n  return 0\nend\nreturn 1\n')
    loaded(limiter(2, 200))
    local file = folder .. '/model.lua'

    local outcome = matrix.run({ file }, { scripts = folder .. '/scripts', workers = 1 })

    assert.same({ 'limit/take never answers 1' }, outcome.models[file].unmet)
  end)

  it('tries what its default runs do also where a limit is set', function()
    own_lock.write(folder, 'limit/take', (utils.readfile(folder .. '/scripts/limit/take.lua')
      :gsub('now %- ARGV%[2%]', '%0 + 1')))
    loaded(limiter(2, 200))

    local run = matrix.run({ folder .. '/model.lua' }, { scripts = folder .. '/scripts',
      workers = 1, limits = { drift = 5 } }).runs[1]

    assert.equal('P1', (run.findings[1] or {}).property)
  end)

  it('refuses a reply to be reached that nothing answers', function()
    utils.writefile(folder .. '/model.lua', clients("'done'", 'return true',
      "reaches = { ['jobs/take'] = 1 }"))
    local _, of_no_step = words.load(folder .. '/model.lua')
    local model = loaded(clients("'done'", 'return true', "reaches = { ['limit/take'] = 2 }"))

    assert.truthy(of_no_step:find('reaches: no step calls "jobs/take"', 1, true), of_no_step)
    assert.truthy(checker.unreadable(model, folder .. '/scripts'):find(
      'reaches: limit/take has no reply "2"', 1, true))
  end)

  it('finds one too many of many', function()
    assert.equal('P1', found((limiter(4, 200):gsub('most = 4,', 'most = 5,', 1))).property)
  end)

  it('finds a short window, and one that begins anew, also for many, in few states', function()
    local good = loaded(limiter(8, 200))
    local run = checker.runs(good)[2]
    run.scripts = folder .. '/scripts'
    local verdict = checker.check(good, run)
    assert.same({}, verdict.findings)
    assert.is_true(verdict.complete and verdict.states < 5000, verdict.states)
    for _, source in ipairs({ "redis.call('ZREMRANGEBYSCORE', KEYS[1], 0, now - ARGV[2] + 1)\n",
      "if redis.call('PTTL', KEYS[1]) == 1 then\n  redis.call('DEL', KEYS[1])\nend\n" }) do
      own_lock.write(folder, 'limit/take', TIME .. source
        .. "if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[1]) then\n  return 0\nend\n"
        .. "redis.call('ZADD', KEYS[1], now, ARGV[3])\n"
        .. "redis.call('PEXPIRE', KEYS[1], ARGV[2])\nreturn 1\n",
        { ['cost:     at most '] = 'cost:     at most 1' })

      assert.equal('P1', found(good).property)
    end
  end)

  it('has names for any number of owners, which are no moments', function()
    local serial, seen = 0, {}
    for _ = 1, 30 do
      serial = parts.next_serial(serial)
      assert.is_true(serial < 1e12 and not seen[serial])
      seen[serial] = true
    end
  end)

  it('refuses more permits than clients could take', function()
    utils.writefile(folder .. '/model.lua', (utils.readfile(folder .. '/pool.lua'):gsub(
      'most = 2,', 'most = 6,')))

    local model, why = words.load(folder .. '/model.lua')

    assert.is_nil(model)
    assert.truthy(why:find('"most" is a whole number from 1 to 5', 1, true), why)
  end)

  -- What it is, the script, what stands there and what in its place.
  for _, case in ipairs({
    { 'a permit that ends a millisecond early', 'pool/take', "'-inf', now)", "'-inf', now + 1)" },
    { 'a lease that is a millisecond short', 'pool/take', 'now + ARGV[3]', 'now + ARGV[3] - 1' },
    { 'permits that end with the first one', 'pool/take', "'PEXPIRE', KEYS[1], ARGV[3]",
      "'PEXPIRE', KEYS[1], ARGV[3], 'NX'" },
    { 'a job that comes back a millisecond early', 'jobs/take', "'-inf', now)",
      "'-inf', now + 1)" },
  }) do
    local what, name, old, new = unpack(case)
    it('does not pass ' .. what, function()
      local source = utils.readfile(('%s/scripts/%s.lua'):format(folder, name))
      own_lock.write(folder, name, texts.with(source, old, new))

      assert.truthy(found(assert(words.load(('%s/%s.lua'):format(folder, name:match('^%l+'))))))
    end)
  end
end)

describe('a check of a lock', function()
  local folder

  before_each(function()
    folder = own_lock.folder()
  end)

  after_each(function()
    dir.rmtree(folder)
  end)

  local function check(options)
    options = options or {}
    options.scripts, options.clients, options.rounds = folder .. '/scripts', 2, 1
    return checker.check(assert(words.load(folder .. '/acme.lua')), options)
  end

  it('sees keys that begin with an underscore', function()
    for _, verb in ipairs({ 'acquire', 'renew', 'release' }) do
      own_lock.write(folder, verb, utils.readfile(('%s/scripts/acme/%s.lua'):format(folder, verb)),
        { ['acme:{name}:lock'] = '_acme:{name}' })
    end

    local verdict = check()

    assert.same({}, verdict.findings)
    assert.is_true(verdict.complete)
  end)

  -- The owner in full, and a digest of it that renew and release compare.
  local function digested()
    local change = { ['lock  string'] = 'lock  hash', ['  w  '] = '  rw  ',
      ['cost:     at most '] = 'cost:     at most 1' }
    own_lock.write(folder, 'acquire', "if redis.call('exists', KEYS[1]) == 1 then\n"
      .. "  return false\nend\n"
      .. "redis.call('hset', KEYS[1], 'owner', ARGV[1], 'mark', redis.sha1hex(ARGV[1]))\n"
      .. "redis.call('pexpire', KEYS[1], ARGV[2])\nreturn redis.status_reply('OK')\n", change)
    change['  w  '] = nil
    for verb, rest in pairs({ renew = "  return redis.call('pexpire', KEYS[1], ARGV[2])\n",
      release = "  redis.call('del', KEYS[1])\n  redis.call('publish', ARGV[2], 'free')\n"
        .. '  return 1\n' }) do
      own_lock.write(folder, verb, "if redis.call('hget', KEYS[1], 'mark') == "
        .. 'redis.sha1hex(ARGV[1]) then\n' .. rest .. 'end\nreturn 0\n', change)
    end
    utils.writefile(folder .. '/acme.lua', (utils.readfile(folder .. '/acme.lua')
      :gsub("model.string%('lock'%)", "model.field('lock', 'owner')")))
  end

  it('takes no clients for one another where a digest of their names is kept', function()
    digested()

    local finding = check().findings[1]
    local verdict = check({ symmetric = false })

    assert.equal('R2', finding.property)
    assert.truthy(finding.message:find('--no-symmetry', 1, true), finding.message)
    assert.same({}, verdict.findings)
    assert.is_true(verdict.complete)
  end)

  it('finds a caller that is refused and has the lock', function()
    own_lock.write(folder, 'acquire', "redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])\n"
      .. 'return false\n')

    assert.equal('lk-A:1 was refused, but holds the lock', check().findings[1].message)
  end)

  it('follows one whose lease is in seconds', function()
    local in_seconds = { ['ms     50..86400000'] = 'count  1..86400' }
    local release = "if redis.call('get', KEYS[1]) == ARGV[1] then\n"
    own_lock.write(folder, 'acquire', "return redis.call('set', KEYS[1], ARGV[1], 'NX', 'EX', "
      .. 'ARGV[2])\n', in_seconds)
    own_lock.write(folder, 'renew', release .. "  return redis.call('expire', KEYS[1], ARGV[2])\n"
      .. 'end\nreturn 0\n', in_seconds)
    local file = folder .. '/acme.lua'
    utils.writefile(file, (utils.readfile(file):gsub('waits =',
      'args = { ttl = 1 }, limits = { lease = 1000 },\n  waits =')))

    local right = check()
    own_lock.write(folder, 'renew', "return redis.call('expire', KEYS[1], ARGV[2])\n")

    assert.same({}, right.findings)
    assert.is_true(right.complete)
    assert.equal('G4', check().findings[1].property)
  end)

  it('sends further arguments that the model has values for', function()
    own_lock.write(folder, 'acquire', 'if ARGV[2] ~= \'fast\' then\n  return 7\nend\n'
      .. "return redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[3])\n",
      { ['  - ttl '] = '  - mode   choice  fast|slow  how\n  - ttl ' })
    local file = folder .. '/acme.lua'
    local text = utils.readfile(file)

    local why = checker.unreadable(words.load(file), folder .. '/scripts')
    utils.writefile(file, (text:gsub('waits =', "args = { mode = 'fast' },\n  waits =")))
    local verdict = check()

    assert.truthy(why and why:find('acquire: nothing says which value the argument "mode" of '
      .. 'acme/acquire has; write args = { mode = ... }', 1, true), why)
    assert.same({}, verdict.findings)
  end)
end)

describe('the checker', function()
  it('keeps keyspaces apart whose bytes only look alike', function()
    local server = Server.new({ scripts = 'scripts', pool = parts.pool() })
    local function list(...)
      return server:keyspace({ k = { type = 'list', value = { ... } } })
    end

    assert.equal(list('a', 'b'), list('a', 'b'))
    assert.is_not.equal(list('a\3b'), list('a', 'b'))
    assert.is_not.equal(list('\4{1="a",}'), list('a'))
    local function text(value)
      return { type = 'string', value = value }
    end
    assert.is_not.equal(server:keyspace({ ['k\1string\3\3v\2l'] = text('') }),
      server:keyspace({ k = text('v'), l = text('') }))
    assert.is_not.equal(parts.text({ 'a",2="b' }), parts.text({ 'a', 'b' }))
  end)

  it('keeps a keyspace with a stream', function()
    local server = Server.new({ scripts = 'scripts', pool = parts.pool() })
    local function stream(text)
      return server:keyspace({ s = { type = 'stream', value = { { 1, 0, { 'f', text } },
        last = { 1, 0 } } } })
    end

    assert.equal(stream('a'), stream('a'))
    assert.is_not.equal(stream('a'), stream('b'))
  end)

  it('writes a spec that is read, whatever a model is called and a finding says', function()
    local folder = path.tmpname()
    os.remove(folder)
    local verdict = { model = "it's.lua", bounds = { clients = 2, rounds = 1, faults = 0 },
      kinds = {}, symmetric = false, only = { 'G1', 'P1' } }
    local finding = { property = 'P1', message = 'a\r\nerror()', trail = { 'A:begin', 'A.take' } }

    local text = utils.readfile(regress.write(folder, verdict, finding))
    dir.rmtree(folder)

    assert.truthy(loadstring(text))
    assert.truthy(text:find('Found by latchkey check: a  error().', 1, true), text)
    assert.truthy(text:find("checker.replay('it\\'s.lua',", 1, true), text)
    assert.truthy(text:find('symmetric = false,', 1, true), text)
    assert.truthy(text:find("only = { 'G1', 'P1' },", 1, true), text)
  end)

  it('keeps late copies apart whose arguments have blanks', function()
    local client = Client.draft(Client.new('r'), {}, 1)

    client:leave_late({ script = 'a/b', args = { 'x y', 'z' } })
    client:leave_late({ script = 'a/b', args = { 'x', 'y z' } })
    client:leave_late({ script = 'a/b', args = { 'x', 'y z' } })

    assert.equal(2, #client.late)
  end)
end)

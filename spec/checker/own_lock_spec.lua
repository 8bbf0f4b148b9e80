-- SPDX-License-Identifier: Apache-2.0
-- A lock that is not latchkey's: it passes, and each mistake in it is found, by lint or by the
-- checker, with the line.
local dir = require('pl.dir')
local utils = require('pl.utils')

local checker = require('latchkey.checker')
local lint = require('latchkey.lint')
local own_lock = require('support.own_lock')
local story = require('latchkey.checker.show.story')
local words = require('latchkey.checker.words')
local texts = require('support.texts')

describe('a lock of somebody\'s own', function()
  local folder

  before_each(function()
    folder = own_lock.folder()
  end)

  after_each(function()
    dir.rmtree(folder)
  end)

  local function check(options)
    options = options or {}
    options.scripts = folder .. '/scripts'
    return checker.check(assert(words.load(folder .. '/acme.lua')), options)
  end

  it('passes every order of its calls, and says what was reached', function()
    local verdict = check({ clients = 2, rounds = 1 })

    assert.same({}, verdict.findings)
    assert.is_true(verdict.complete)
    assert.same({ ['acme/acquire'] = { OK = true, ['nil'] = true },
      ['acme/renew'] = { ['0'] = true, ['1'] = true },
      ['acme/release'] = { ['0'] = true, ['1'] = true } }, verdict.covered)
    assert.same({}, (lint.run({ folder .. '/scripts' })))
  end)

  -- What it is, the script, its text, the promise, and the line that is shown.
  local MISTAKES = {
    { 'a release that does not ask whose lock it is', 'release',
      "local n = redis.call('del', KEYS[1])\nredis.call('publish', ARGV[2], 'free')\nreturn n",
      'G4', 1 },
    { 'an acquire without an end', 'acquire', "return redis.call('set', KEYS[1], ARGV[1], 'NX')",
      'G8', 1 },
    { 'a renewal of what another has', 'renew',
      "if redis.call('exists', KEYS[1]) == 1 then\n"
      .. "  return redis.call('pexpire', KEYS[1], ARGV[2])\nend\nreturn 0", 'G4', 2 },
    { 'an acquire that steals', 'acquire',
      "return redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2])", 'G4', 1 },
    { 'a release that comes twice and frees the next hold', 'release',
      "local function client(text)\n  return string.match(text or '', '^[^:]+')\nend\n"
      .. "if client(redis.call('get', KEYS[1])) == client(ARGV[1]) then\n"
      .. "  redis.call('del', KEYS[1])\n  redis.call('publish', ARGV[2], 'free')\n  return 1\nend\n"
      .. 'return 0', 'G4', 5, { rounds = 2, clients = 1, kinds = { 'late' } } },
    { 'a release that looks only at how names begin', 'release',
      "if string.sub(redis.call('get', KEYS[1]) or '', 1, #ARGV[1]) == ARGV[1] then\n"
      .. "  redis.call('del', KEYS[1])\n  redis.call('publish', ARGV[2], 'free')\n  return 1\nend\n"
      .. 'return 0', 'G4', 2, { rounds = 2, clients = 1, kinds = { 'late' } } },
    { 'a message before the write', 'release',
      "if redis.call('get', KEYS[1]) == ARGV[1] then\n  redis.call('publish', ARGV[2], 'free')\n"
      .. "  redis.call('del', KEYS[1])\n  return 1\nend\nreturn 0", 'G10', 3 },
    { 'a renewal that shortens the lease', 'renew',
      "if redis.call('get', KEYS[1]) == ARGV[1] then\n"
      .. "  return redis.call('pexpire', KEYS[1], math.floor(ARGV[2] / 2))\nend\nreturn 0",
      'G1', 2 },
    { 'a lease that is one millisecond short', 'acquire',
      "return redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2] - 1)", 'G1', 1 },
    { 'a key that is another one', 'release',
      "if redis.call('get', KEYS[1]) == ARGV[1] then\n  redis.call('del', KEYS[1] .. ':lock')\n"
      .. "  redis.call('publish', ARGV[2], 'free')\n  return 1\nend\nreturn 0", 'G10', 2 },
    { 'a channel on which nobody listens', 'release',
      "if redis.call('get', KEYS[1]) == ARGV[1] then\n  redis.call('del', KEYS[1])\n"
      .. "  redis.call('publish', KEYS[1], ARGV[2])\n  return 1\nend\nreturn 0", 'G6', 3 },
  }
  for _, mistake in ipairs(MISTAKES) do
    local what, verb, source, property, line, options = unpack(mistake)
    it('is not one with ' .. what, function()
      own_lock.write(folder, verb, source .. '\n')
      options = options or { clients = 2, rounds = 1 }
      local started = os.clock()

      local verdict = check(options)

      local finding = verdict.findings[1]
      -- Found at once on a machine that does nothing else, and by few steps on any.
      assert.is_true(os.clock() - started < 5)
      assert.is_true(verdict.states <= 2000, verdict.states)
      assert.equal(property, finding.property, finding.message)
      local model = words.load(folder .. '/acme.lua')
      local run, _, steps = checker.run(model, table.concat(finding.trail, ' '), options)
      local blame = story.of(steps, run).blame
      assert.same({ 'acme/' .. verb, line }, { blame.script, blame.line })
    end)
  end

  describe('whose release forms its channel itself', function()
    local SOURCE = "if redis.call('get', KEYS[1]) == ARGV[1] then\n  redis.call('del', KEYS[1])\n"
      .. "  redis.call('publish', string.gsub(KEYS[1], ':lock$', ':free'), 'free')\n"
      .. '  return 1\nend\nreturn 0\n'
    local BELL = '  - bell   channel  acme:{name}:free  told when the lock is free\n'

    local function write(source, channels)
      own_lock.write(folder, 'release', source, { [BELL] = '', ['argv:\n'] = channels .. 'argv:\n',
        [channels == '' and 'message:  value\n' or 'cost: '] = channels == '' and '' or 'cost: ' })
    end

    it('passes, and its waiters are woken', function()
      write(SOURCE, 'channels:\n  - bell  acme:{name}:free  told when the lock is free\n')

      local verdict = check({ clients = 2, rounds = 1 })

      assert.same({}, verdict.findings)
      assert.is_true(verdict.complete)
      assert.same({}, (lint.run({ folder .. '/scripts' })))
    end)

    it('is not one where that is another channel', function()
      write(SOURCE:gsub(':free', ':fre'),
        'channels:\n  - bell  acme:{name}:free  told when the lock is free\n')

      assert.equal('G6', check({ clients = 2, rounds = 1 }).findings[1].property)
    end)

    it('is told that no message wakes anybody where the contract has no channel', function()
      write(SOURCE, '')

      local why = checker.unreadable(assert(words.load(folder .. '/acme.lua')),
        folder .. '/scripts')

      assert.truthy(why and why:find('acme.lua:6: waits: the contract of acme/release names no '
        .. 'channel', 1, true), why)
    end)
  end)

  it('is told who is recorded where the caller is not', function()
    own_lock.write(folder, 'acquire',
      "return redis.call('set', KEYS[1], ARGV[1] .. 'x', 'NX', 'PX', ARGV[2])")

    assert.equal('lk-A:1 was told that it holds the lock, but it is not recorded; '
      .. 'recorded: lk-A:1x', check({ clients = 1, rounds = 1, faults = 0 }).findings[1].message)
  end)

  it('is not looked at when a reply has no meaning', function()
    own_lock.write(folder, 'release', 'return redis.call("exists", KEYS[1]) + 7 + #ARGV[1] * 0\n',
      { ['  - 1  free now\n'] = '  - integer  free now\n', ['- bell'] = '- bell' })

    local finding = check({ clients = 1, rounds = 1, faults = 0 }).findings[1]

    assert.equal('G10', finding.property)
    assert.matches('the model gives integer no meaning', finding.message)
  end)

  it('is shown with the replies that its scripts gave, and no others', function()
    own_lock.write(folder, 'release', 'return nil\n', { ['  - 0  the'] = '  - nil  the' })
    utils.writefile(folder .. '/acme.lua', (utils.readfile(folder .. '/acme.lua')
      :gsub("frees = 1, lost = 0", "frees = 1, lost = 'nil'")))
    local model = assert(words.load(folder .. '/acme.lua'))
    local options = { scripts = folder .. '/scripts', clients = 2, rounds = 1 }

    local run, _, steps = checker.run(model, 'A.acq B.acq A.rel', options)

    local answers = {}
    for _, row in ipairs(story.of(steps, run).rows) do
      answers[#answers + 1] = row.answer
    end
    assert.same({ 'OK', 'nil', 'nil' }, answers)
  end)

  it('is shown with the conditions and writes beside the line to look at first', function()
    own_lock.write(folder, 'renew', "if redis.call('exists', KEYS[1]) == 1 then\n"
      .. "  return redis.call('pexpire', KEYS[1], ARGV[2])\nend\nreturn 0\n")
    local finding = check({ clients = 2, rounds = 1 }).findings[1]
    local run, _, steps = checker.run(words.load(folder .. '/acme.lua'),
      table.concat(finding.trail, ' '), { scripts = folder .. '/scripts' })

    assert.same({ { line = 1, what = 'decided' } }, story.of(steps, run).blame.others)
  end)

  -- What is said, what in its place, and what is told.
  for _, case in ipairs({
    { "'lock'", "'lok'", 'acme.lua:5: holders: acme/acquire has no key "lok"; the keys of its '
      .. 'contract are lock' },
    { "takes = 'OK'", "takes = 'YES'", 'acme.lua:2: acquire: acme/acquire has no reply "YES"; '
      .. 'the replies of its contract are OK, nil' },
    { 'lost = 0 },\n  rel', 'lost = 2 },\n  rel',
      'acme.lua:3: renew: acme/renew has no reply "2"' },
    { "waits = 'message'", "args = { tokn = 'x' }", 'acme.lua:6: args: no script of the lock has '
      .. 'an argument "tokn"' },
    { "waits = 'message'", 'args = { ttl = 49 }', 'acme.lua:6: acquire: the argument "ttl" of '
      .. 'acme/acquire is 50 to 86400000' },
    { "waits = 'message'", 'args = { ttl = type }', 'the argument "ttl" of acme/acquire is a text '
      .. 'or a number: clients of a lock compute none' },
    { "waits = 'message'", 'limits = { lease = 49 }', 'acme.lua:6: acquire: the argument "ttl" of '
      .. 'acme/acquire is 50 to 86400000, and the lease is 49' },
  }) do
    local old, new, message = unpack(case)
    it('is told where its model and its contracts differ: ' .. new:match('^[^\n]*'), function()
      local file = folder .. '/acme.lua'
      utils.writefile(file, texts.with(utils.readfile(file), old, new))

      local why = checker.unreadable(assert(words.load(file)), folder .. '/scripts')

      assert.truthy(why and why:find(message, 1, true), why)
    end)
  end

  -- The script, what stands in its contract and what in its place, what is said.
  for _, case in ipairs({
    { 'acquire', 'acme:{name}:lock', 'acme:{name}:lock+token', 'acme.lua:5: holders: the key '
      .. '"lock" of acme/acquire depends on the argument "token"' },
    { 'acquire', 'acme:{name}:lock', '{slot}', 'acme.lua:5: holders: the key "lock" of '
      .. 'acme/acquire depends on the caller' },
    { 'release', 'acme:{name}:lock', '{slot}', 'acme.lua:4: release: the key "lock" of '
      .. 'acme/release is chosen by the caller, {slot}' },
    { 'release', 'acme:{name}:free', 'acme:{name}:free+token', 'acme.lua:4: release: the channel '
      .. '"bell" of acme/release depends on the argument "token"' },
  }) do
    local name, old, new, message = unpack(case)
    it(('is told that no client can form the %s of %s'):format(new, name), function()
      local source = utils.readfile(('%s/scripts/acme/%s.lua'):format(folder, name))
      own_lock.write(folder, name, source, { [old] = new })

      local model = assert(words.load(folder .. '/acme.lua'))
      local why = checker.unreadable(model, folder .. '/scripts')

      assert.truthy(why and why:find(message, 1, true), why)
    end)
  end

  it('tries the promises of holds, and says which it does not try', function()
    local model = assert(words.load(folder .. '/acme.lua'))
    local function untried(ids)
      local found = {}
      for i, promise in ipairs(checker.untried(model, { scripts = folder .. '/scripts',
        only = ids })) do
        found[i] = promise.id
      end
      return found
    end

    assert.same({}, untried({ 'G1', 'G2', 'G4', 'G5', 'G6', 'G8', 'G10', 'R1' }))
    assert.same({ 'G3', 'G7', 'G9', 'G11', 'G12', 'G13', 'P1' },
      untried({ 'G3', 'G7', 'G9', 'G11', 'G12', 'G13', 'P1' }))
    own_lock.write(folder, 'release', utils.readfile(folder .. '/scripts/acme/release.lua'),
      { ['message:  value\n'] = 'message:  value\nrepeat:   pure\n' })
    assert.same({}, untried({ 'G9' }))
  end)

  for what, case in pairs({
    ['a call without its script'] = { "return model.lock { acquire = { takes = 'OK' } }",
      'name its script first' },
    ['a call without a meaning'] = { "return model.lock { acquire = { 'a/b', takes = 'OK' } }",
      '"busy" says which reply means that' },
    ['a word that there is none'] = { 'return model.lock { aquire = {} }', 'no word "aquire"' },
    ['no holders'] = { "return model.lock { acquire = { 'a/b', takes = 1, busy = 0 }, "
      .. "release = { 'a/c', frees = 1, lost = 0 } }", '"holders" says where' },
    ['nothing'] = { 'return 7', 'a model file returns a model' },
    ['an error'] = { 'return io.open("x")', "global 'io'" },
    ['no Lua'] = { 'return return', 'unexpected symbol' },
  }) do
    it('is told what is wrong with a model that has ' .. what, function()
      local file = folder .. '/wrong.lua'
      utils.writefile(file, case[1])

      local model, why = words.load(file)

      assert.is_nil(model)
      assert.truthy(why:find(case[2], 1, true), why)
    end)
  end
end)

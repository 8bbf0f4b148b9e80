-- SPDX-License-Identifier: Apache-2.0
-- The limiter and the queue of docs/howto/audit-limiter-and-queue.md keep their promises, and each
-- mistake in them is found.
local dir = require('pl.dir')
local utils = require('pl.utils')

local checker = require('latchkey.checker')
local lint = require('latchkey.lint')
local own_lock = require('support.own_lock')
local story = require('latchkey.checker.show.story')
local words = require('latchkey.checker.words')
local texts = require('support.texts')

local PAGE = 'docs/howto/audit-limiter-and-queue.md'

describe('clients by steps', function()
  local folder

  before_each(function()
    folder = own_lock.folder(PAGE)
  end)

  after_each(function()
    dir.rmtree(folder)
  end)

  local function check(model)
    return own_lock.check(folder, assert(words.load(('%s/%s.lua'):format(folder, model))))
  end

  -- The lines that the story of a finding has, as a set.
  local function lines_shown(model, verdict)
    local run, _, steps = checker.run(assert(words.load(('%s/%s.lua'):format(folder, model))),
      table.concat(verdict.findings[1].trail, ' '), verdict.options)
    local blame = story.of(steps, run).blame
    local lines = { [blame.line] = true }
    for _, other in ipairs(blame.others) do
      lines[other.line] = true
    end
    return lines
  end

  for _, model in ipairs({ 'limit', 'jobs' }) do
    it('keep the promises of ' .. model, function()
      local verdict = check(model)

      assert.same({}, verdict.findings)
      assert.is_true(verdict.complete)
      assert.same({}, (lint.run({ folder .. '/scripts' })))
    end)
  end

  -- What it is, the script, what stands there and what in its place, the promise.
  for _, mistake in ipairs({
    { 'counts calls of one millisecond once', 'limit/take', 'now, ARGV[3]', 'now, now', 'P1' },
    { 'counts one too few', 'limit/take', '>= tonumber', '> tonumber', 'P1' },
    { 'has a window that is too short', 'limit/take', '0, now - ARGV[2]', '0, now - 100', 'P1' },
    { 'forgets the window too soon', 'limit/take', "'PEXPIRE', KEYS[1], ARGV[2]",
      "'PEXPIRE', KEYS[1], 100", 'P1' },
    { 'leaves its key for good', 'limit/take', "redis.call('PEXPIRE', KEYS[1], ARGV[2])\n", '',
      'G8' },
    { 'takes a job without a lease', 'jobs/take', "redis.call('ZADD', KEYS[2], now + ARGV[1], job)",
      '', 'P2' },
    { 'takes a job whose lease goes on', 'jobs/take', "'-inf', now)", "'-inf', now + 50)", 'P1' },
    { 'drops a job that comes back', 'jobs/take', "redis.call('RPUSH', KEYS[1], job)", '', 'P2' },
    { 'ends the leases of all', 'jobs/done', "'ZREM', KEYS[1], ARGV[1]", "'DEL', KEYS[1]", 'P2' },
  }) do
    local what, name, old, new, property = unpack(mistake)
    it('find a script that ' .. what, function()
      local source = utils.readfile(('%s/scripts/%s.lua'):format(folder, name))
      local first = assert(source:find(old, 1, true))
      own_lock.write(folder, name, texts.with(source, old, new))

      local verdict = check(name:match('^%l+'))

      assert.is_true(verdict.states < 5000)
      assert.equal(property, verdict.findings[1] and verdict.findings[1].property)
      -- What was put in is among the lines that are shown; what is left out stands nowhere.
      local wrong = select(2, source:sub(1, first):gsub('\n', '')) + 1
      assert.is_true(new == '' or lines_shown(name:match('^%l+'), verdict)[wrong] or false)
    end)
  end

  describe('of a script that refuses with an error', function()
    -- The limiter of the page, which answered 0.
    local function write(limit)
      local source = utils.readfile(folder .. '/scripts/limit/take.lua')
      own_lock.write(folder, 'limit/take', (source:gsub('return 0',
        "return redis.error_reply('RATE wait')"):gsub('>= tonumber', limit .. ' tonumber')),
        { ['  - 0  too many\n'] = 'errors:\n  - RATE  too many\n' })
    end

    local function check_with(refuses)
      utils.writefile(folder .. '/limit.lua', ([[return model.limiter {
        take = { 'limit/take', takes = 1, refuses = %s, args = { most = 2, window = 200 } },
        most = 2, window_ms = 200 }]]):format(refuses))
      local model = assert(words.load(folder .. '/limit.lua'))
      local why = checker.unreadable(model, folder .. '/scripts')
      return not why and check('limit'), why
    end

    it('take its code for an answer', function()
      write('>=')

      local verdict = check_with("'RATE'")

      assert.same({}, verdict.findings)
      assert.is_true(verdict.complete)
      assert.same({ ['1'] = true, RATE = true }, verdict.covered['limit/take'])
    end)

    it('find what it lets in', function()
      write('>')

      assert.equal('P1', check_with("'RATE'").findings[1].property)
    end)

    it('are told of an error that the model gives no meaning, or the contract has not', function()
      write('>=')

      local _, why = check_with("'SLOW'")
      assert.truthy(why and why:find('limit/take has no reply "SLOW"; the replies of its contract '
        .. 'are 1, its errors RATE', 1, true), why)
      utils.writefile(folder .. '/limit.lua', [[return model.clients { first = 'take',
        steps = { take = { call = 'limit/take', args = { most = 1, window = 200 },
          on = { [1] = 'done' } } },
        promises = { ['nothing'] = function() return true end } }]])
      local finding = check('limit').findings[1]
      assert.same({ 'G10', 'limit/take: the model gives RATE no meaning' },
        { finding.property, finding.message })
    end)

    it('keep what it had written before', function()
      local source = utils.readfile(folder .. '/scripts/limit/take.lua')
      own_lock.write(folder, 'limit/take', (source:gsub('return 0',
        "redis.call('DEL', KEYS[1]) return redis.error_reply('RATE wait')")),
        { ['  - 0  too many\n'] = 'errors:\n  - RATE  too many\n' })

      local finding = check_with("'RATE'").findings[1]

      assert.same({ 'P1', 'at most 2 in any 200 ms: 3 of them' },
        { finding.property, finding.message })
    end)
  end)

  for what, case in pairs({
    ['no first step'] = { "first = 'x', steps = {}, promises = { a = print }", '"first" names' },
    ['no promise'] = { "first = 'a', steps = { a = { call = 'a/b', on = { OK = 'done' } } }",
      'at least one function' },
    ['a step without a call'] = { "first = 'a', steps = { a = {} }, promises = { a = type }",
      'names its script' },
    ['a step that nothing follows'] = {
      "first = 'a', steps = { a = { call = 'a/b' } }, promises = { a = type }",
      'what follows from each reply' },
    ['a word that there is none'] = { 'promise = {}', 'no word "promise"' },
  }) do
    it('are refused with ' .. what, function()
      utils.writefile(folder .. '/wrong.lua', ('return model.clients { %s }'):format(case[1]))

      local model, why = words.load(folder .. '/wrong.lua')

      assert.is_nil(model)
      assert.truthy(why:find(case[2], 1, true), why)
    end)
  end

  -- Clients of the limiter of the page, with another step and further words.
  local function of_step(step, more)
    return ([[return model.clients { first = 'take', steps = { take = { call = 'limit/take',
      args = { most = 2, window = 200 }, on = { [1] = 'done', [0] = 'done' }, %s } },
      promises = { it = function() return true end }, %s }]]):format(step, more or '')
  end

  local ON = 'on = { [1] = %s, [0] = "done" }'
  local KEYS = "keys = { ['{l}:jobs'] = %s }"

  for _, case in ipairs({
    { of_step("unanswerd = 'take'"), 'the step "take" has no word "unanswerd"' },
    { of_step('arg = {}'), 'the step "take" has no word "arg"; there are args, call, on, unans' },
    { of_step("unanswered = 'give'"), 'the step "take": there is no step "give"' },
    { of_step(ON:format("{ waits = 100, next = 'take' }")), 'has no word "waits"' },
    { of_step(ON:format('{ wait = 100 }')), 'it has no "next"' },
    { of_step(ON:format("{ wait = -5, next = 'take' }")), '"wait" is a whole number' },
    { of_step(ON:format("{ wait = 0.5, next = 'take' }")), '"wait" is a whole number' },
    { of_step(ON:format("{ wait = '100', next = 'take' }")), '"wait" is a whole number' },
    { of_step(ON:format('7')), 'but by its name, which is a text' },
    { of_step("args = tostring('most')"), '"args" is a table, not "most"' },
    { of_step('', "keys = 'x'"), '"keys" is a table, not "x"' },
    { of_step('', KEYS:format("{ 'one', 'two' }")), "is written { type = 'list'" },
    { of_step('', KEYS:format("{ type = 'lst', value = {} }")), 'types are hash, list, set, str' },
    { of_step('', KEYS:format("{ type = 'list', value = 'one' }")), 'a list is a list of texts' },
    { of_step('', KEYS:format("{ type = 'list', value = { 1 } }")), 'a list is a list of texts' },
    { of_step('', KEYS:format("{ type = 'zset', value = { 'one', 1 } }")), 'a list of pairs' },
    { of_step('', KEYS:format("{ type = 'zset', value = { { 'a', '1' } } }")), 'a list of pairs' },
    { of_step('', KEYS:format("{ type = 'hash', value = { 'one' } }")), 'a flat list of texts' },
    { of_step('', KEYS:format("{ type = 'string', value = 5 }")), 'a string is a text' },
    { of_step('', KEYS:format("{ type = 'string', value = 'x', ttl = 5 }")), 'no word "ttl"' },
    { of_step('', 'runs = {}'), '"runs" has no run' },
    { of_step('', 'runs = 3'), '"runs" is a table, not a number' },
    { of_step('', 'runs = { 3 }'), 'each of "runs" is a table' },
    { of_step('', 'bounds = 3'), '"bounds" is a table' },
    { of_step('', "faults = 'crash'"), '"faults" is a table, not "crash"' },
    { of_step('', "reaches = 'x'"), '"reaches" is a table' },
    { of_step('', "reaches = { ['limit/take'] = true }"), 'reaches: "limit/take" has a reply' },
    { of_step('', 'past_ms = {}'), '"past_ms" is a number, not a table' },
    { of_step('', 'summary = 3'), '"summary" is a text' },
    { "return model.clients { first = 'a',\nsteps = { a = { call = 'a/b', on = { OK = 'done' } } "
      .. "},\npromises = { 'it' } }", '"promises" has functions' },
    { 'return model.clients()', 'model.clients takes a table' },
    { 'return model.lock()', 'model.lock takes a table' },
    { 'return model.queue(3)', 'model.queue takes a table' },
    { 'return model.family()', 'model.family takes a table' },
    { "return model.family { summary = 'x', roles = {}, clients = type, limits = {}, bounds = 3,\n"
      .. 'verbs = {} }', '"bounds" is a table, not a number' },
    { "return model.family { summary = 'x', roles = {}, clients = type, limits = {}, bounds = {},\n"
      .. 'verbs = {}, runs = {} }', '"runs" has no run' },
    { "return model.lock { acquire = 'acme/acquire' }", '"acquire" is a table, not "ac' },
    { "return model.lock { limits = 3 }", '"limits" is a table' },
    { "return model.lock { acquire = { 'a/b', takes = 1, busy = 0 },\n"
      .. "renew = { 'a/b', keeps = 1, lost = 0 }, release = { 'a/c', frees = 1, lost = 0 } }",
      '"acquire" and "renew" are both the script a/b' },
    { "return model.lock { holders = model.field('lock') }", 'takes the names of a key and of a' },
    { "return model.queue { take = { 'a/b', gives = 'text', empty = 'nil' }, job = 'job',\n"
      .. "done = { 'a/c', ends = 1, lost = 0 }, jobs = { 1, 2 }, waiting = 'w', taken = 't',\n"
      .. 'lease_ms = 99 }', '"jobs" is a list of texts' },
  }) do
    local text, wanted = unpack(case)
    it('are refused, and told: ' .. wanted, function()
      utils.writefile(folder .. '/wrong.lua', text)

      local model, why = words.load(folder .. '/wrong.lua')

      assert.is_nil(model)
      assert.truthy(why:find('/wrong.lua: ', 1, true), why)
      assert.truthy(why:find(wanted, 1, true), why)
    end)
  end

  for _, name in ipairs({ 'absent', 'dead', 'done', 'idle', 'relisten', 'sleep', 'wait' }) do
    it('are refused with a step that is called as clients themselves are: ' .. name, function()
      utils.writefile(folder .. '/wrong.lua', (of_step(''):gsub('take = {',
        ("%s = { call = 'limit/take', on = { [1] = 'done' } }, take = {"):format(name))))

      local model, why = words.load(folder .. '/wrong.lua')

      assert.is_nil(model)
      assert.truthy(why:find(('no step can be called "%s"'):format(name), 1, true), why)
    end)
  end

  -- Values of arguments that are compared with the contract: most is 1..1000, window 50..86400000.
  for values, wanted in pairs({
    ['most = 1001, window = 200'] = '"most" of limit/take is 1 to 1000',
    ['most = 2, window = 1 / 3'] = '"window" of limit/take is 50 to 86400000',
    ['most = 2, window = {}'] = '"window" of limit/take is one text or number, no table',
    ['most = "two", window = 200'] = '"most" of limit/take is 1 to 1000',
    ['most = 2, window = 200, id = ""'] = '"id" of limit/take has 1 to 256 bytes',
  }) do
    it('are told of a value that no contract allows: ' .. values, function()
      utils.writefile(folder .. '/wrong.lua', ('return model.clients { first = "take",\n'
        .. 'steps = { take = { call = "limit/take",\nargs = { %s },\n'
        .. 'on = { [1] = "done", [0] = "done" } } },\npromises = { it = type } }'):format(values))

      local why = checker.unreadable(folder .. '/wrong.lua', folder .. '/scripts')

      assert.truthy(why and why:find('wrong.lua:3: the step "take": the argument ' .. wanted, 1,
        true), why)
    end)
  end

  it('are told of an argument that would come to the place of one before it', function()
    own_lock.add(folder, 'say/it', 'return #ARGV\n', { returns = { 'integer  how many' },
      argv = { 'mode?  text  1..9  how', 'note?  text  1..9  why' } })
    local function why(file, args)
      utils.writefile(folder .. file, ('return model.clients { first = "say",\n'
        .. 'steps = { say = { call = "say/it",\nargs = { %s }, on = { integer = "done" } } },\n'
        .. 'promises = { it = type } }'):format(args))
      return checker.unreadable(folder .. file, folder .. '/scripts')
    end

    local wrong = why('/wrong.lua', 'note = "because"')
    assert.truthy(wrong and wrong:find('wrong.lua:3: the step "say": the argument "note" of say/it '
      .. 'would come to the place of "mode", which has no value', 1, true), wrong)
    assert.is_nil(why('/one.lua', 'mode = "soon"'))
    assert.is_nil(why('/both.lua', 'mode = "soon", note = "because"'))
  end)

  it('see all values of an argument that has several', function()
    own_lock.add(folder, 'say/all', 'return #ARGV\n', { returns = { 'integer  how many' },
      argv = { 'word  text  1..9  first', 'id*  text  1..9  1..4  which' } })
    utils.writefile(folder .. '/all.lua', [[return model.clients { first = 'say',
      steps = { say = { call = 'say/all', args = { word = 'a', id = { 'one', 'two' } },
        on = { integer = 'done' } } },
      promises = { ['all'] = function(call)
        return call.reply == 3 and call.args.word == 'a' and #call.args.id == 2
          and call.args.id[2] == 'two', tostring(call.args.id)
      end } }]])

    assert.same({}, check('all').findings)
  end)

  it('are told of a lease that the contract does not allow', function()
    utils.writefile(folder .. '/wrong.lua', 'return model.clients { first = "take",\n'
      .. 'steps = { take = { call = "limit/take",\nargs = { most = 2 },\n'
      .. 'on = { [1] = "done", [0] = "done" } } },\nlimits = { lease = 49 },\n'
      .. 'promises = { it = type } }')

    local why = checker.unreadable(folder .. '/wrong.lua', folder .. '/scripts')

    assert.truthy(why and why:find('wrong.lua:5: .*"window" of limit/take is 50 to 86400000, and '
      .. 'the lease is 49'), why)
  end)

  -- What the functions of a step may give, and what is said of it.
  for _, case in ipairs({
    { "args = { most = function() return {} end, window = 200 }", 'argument "most" is one value' },
    { "args = { most = function() return 1.5 end, window = 200 }", 'argument "most" is a whole' },
    { ON:format("function() return { wait = 0.5, next = 'take' } end"), '"wait" is a whole' },
    { ON:format("function() return { wait = 5 } end"), 'it has no "next"' },
    { ON:format("function() return 'give' end"), 'there is no step "give"' },
  }) do
    it('are told of what their functions give: ' .. case[2], function()
      utils.writefile(folder .. '/model.lua', of_step(case[1]))

      local good, why = pcall(check, 'model')

      assert.is_false(good)
      assert.truthy(why:find('the step "take": ', 1, true) and why:find(case[2], 1, true), why)
    end)
  end

  it('wait also where nothing follows', function()
    local function states(target)
      utils.writefile(folder .. '/model.lua', of_step(ON:format(target)))
      return check('model').states
    end

    assert.is_true(states("{ wait = 100, next = 'done' }") > states("'done'"))
  end)

  it('find sorted sets and sets as a server has them', function()
    utils.writefile(folder .. '/model.lua', of_step('', [[keys = {
      ['x'] = { type = 'zset', value = { { 'b', 2 }, { 'c', 1 }, { 'a', 2 } } },
      ['y'] = { type = 'set', value = { 'b', 'a' } } }]]))
    local model = assert(words.load(folder .. '/model.lua'))

    assert.same({ x = { type = 'zset', value = { { 'c', 1 }, { 'a', 2 }, { 'b', 2 } } },
      y = { type = 'set', value = { 'a', 'b' } } }, model.keys())
  end)

  it('are told of a step that there is none', function()
    utils.writefile(folder .. '/wrong.lua', [[return model.clients { first = 'take',
      steps = { take = { call = 'limit/take', args = { most = 2, window = 200 },
        on = { [1] = 'again', [0] = 'done' } } },
      promises = { ['nothing'] = function() return true end } }]])

    local model, why = words.load(folder .. '/wrong.lua')

    assert.is_nil(model)
    assert.truthy(why:find('there is no step "again"', 1, true), why)
  end)
end)

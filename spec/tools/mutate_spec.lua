-- SPDX-License-Identifier: Apache-2.0
local dir = require('pl.dir')
local path = require('pl.path')
local utils = require('pl.utils')

local catalog = require('latchkey.script.catalog')
local mutate = require('latchkey.mutate')
local mutants = require('latchkey.mutate.mutants')
local mutations = require('latchkey.mutate.mutations')
local own_lock = require('support.own_lock')
local processes = require('latchkey.processes')

local BUY = 'spec/tools/fixtures/lint/good/buy.lua'

-- Those of the project's scripts, which take a second to make, and how much each of them keeps.
local all, kib_each

local function all_mutants()
  if not all then
    collectgarbage()
    local before_kib = collectgarbage('count')
    all = mutants.of_all(assert(catalog.read('scripts')))
    collectgarbage()
    kib_each = (collectgarbage('count') - before_kib) / #all
  end
  return all
end

local function ids_of(list)
  local ids = {}
  for i, mutant in ipairs(list) do
    ids[i] = mutant.id
  end
  return ids
end

-- The mutants of a script with this code below its bind block.
local function of_code(code)
  local source = table.concat({ '#!lua', '--[[ latchkey-script', 'name:     a/b', 'version:  1.0.0',
    'summary:  Something.', 'keys:', '  - one  hash  rw  {name}  first',
    '  - two  hash  rw  suffix:x  second', 'argv:', '  - word  text  1..9  first',
    '  - other  text  1..9  second',
    '  - lease  ms  1..900  third', 'returns:', '  - {1}  done', '  - {0, left}  busy', 'errors:',
    '  - LKARG  wrong', 'cost:     at most 9 commands', 'cluster:  one slot', ']]',
    'local one = KEYS[1]', 'local two = KEYS[2]', 'local word = ARGV[1]', 'local other = ARGV[2]',
    'local lease = ARGV[3]',
    code, '' }, '\n')
  return mutants.of('a/b.lua', source)
end

local function texts_of(code, kind)
  local texts = {}
  for _, mutant in ipairs(of_code(code)) do
    if mutant.kind == kind then
      texts[#texts + 1] = mutant.after
    end
  end
  return texts
end

describe('the mutants of a script', function()
  local CASES = {
    { 'dropped-call', "redis.call('DEL', one)", { 'do end' } },
    { 'dropped-return', 'if word then\nreturn {1}\nend', { '' } },
    { 'never', 'if word then\nend', { 'if false then' } },
    { 'always', 'if word then\nend', { 'if true then' } },
    { 'boundary', 'local a = #word < #other', { 'local a = #word <= #other' } },
    { 'flipped', 'local a = word == other', { 'local a = word ~= other' } },
    { 'connective', 'local a = word and other', { 'local a = word or other' } },
    { 'dropped-operand', 'local a = word and other', { 'local a = word', 'local a = other' } },
    { 'dropped-not', 'local a = not word', { 'local a =  word' } },
    { 'number', 'local a = 7', { 'local a = 8', 'local a = 6' } },
    { 'arithmetic', 'local a = math.max(#word - 0, 0)',
      { 'local a = math.min(#word - 0, 0)', 'local a = math.max(#word + 0, 0)' } },
    { 'outcome', 'return {1}', { 'return {0}' } },
    { 'command', "redis.call('PEXPIRE', one, word)", { "redis.call('EXPIRE', one, word)" } },
    { 'option', "redis.call('PEXPIRE', one, word, 'GT')",
      { "redis.call('PEXPIRE', one, word, 'LT')", "redis.call('PEXPIRE', one, word)" } },
    { 'swapped-arguments', "redis.call('HSET', one, word, 1)",
      { "redis.call('HSET', one, 1, word)" } },
    { 'other-argument', "redis.call('HGET', one, word)",
      { "redis.call('HGET', two, word)", "redis.call('HGET', one, other)" } },
    { 'order', "redis.call('DEL', one)\ntell(word, other, '0')",
      { "tell(word, other, '0') redis.call('DEL', one)" } },
    { 'text', "local a = 'mode'", { 'local a = "modex"' } },
    { 'prefix', "local a = redis.call('GET', one) == word", {
      "local a = (string.sub(redis.call('GET', one) or '', 1, #word) == word)",
      "local a = (string.sub(word, 1, #(redis.call('GET', one) or '')) == "
        .. "redis.call('GET', one))" } },
    { 'bytes', "redis.call('HDEL', one, word)\nlocal a = string.match(one, '^a (.+)')", {
      "redis.call('HDEL', one, string.match(word, '^%Z*'))",
      "redis.call('HDEL', one, string.match(word, '^[^ ]*'))",
      'local a = string.match(one, "^a (%Z+)")', 'local a = string.match(one, "^a ([^ ]+)")' } },
    { 'digit', "redis.call('PEXPIRE', one, lease)\nlocal a = tonumber(string.match(one, '%d+'))\n"
      .. 'return {1, a}', {
      "redis.call('PEXPIRE', one, (lease % 10))",
      "local a = tonumber(string.sub(string.match(one, '%d+') or '', 1, 1))",
      "local a = tonumber(string.match(one, \"%d\"))", 'return {1, (a % 10)}' } },
    { 'bound', "redis.call('PEXPIRE', one, lease)",
      { "redis.call('PEXPIRE', one, math.min(lease, 899))" } },
    { 'exponent', "local a = string.format('%.0f', 7)", { 'local a = string.format("%.8g", 7)' } },
    { 'brace', "local a = string.find(one, '{', 1, true)",
      { 'local a = string.find(one, "}", 1, true)' } },
  }

  for _, case in ipairs(CASES) do
    it('are of the kind ' .. case[1], function()
      local found = texts_of(case[2], case[1])

      for i, text in ipairs(case[3]) do
        assert.equal(text:gsub('%s+', ' '), found[i])
      end
      assert.equal(#case[3], #found)
    end)
  end

  it('are of all kinds that are listed, and of no other', function()
    local known, seen = {}, {}
    for i, kind in ipairs(mutations.kinds) do
      known[kind.id] = true
      assert.equal(kind.id, CASES[i][1])
    end
    assert.equal(#mutations.kinds, #CASES)
    for _, mutant in ipairs(all_mutants()) do
      assert.is_true(known[mutant.kind])
      seen[mutant.kind] = true
    end
    assert.same(known, seen)
  end)

  it('leave messages of errors and the bind block alone', function()
    assert.same({}, texts_of("return redis.error_reply('LKARG no')", 'text'))
    assert.same({}, texts_of('', 'number'))
  end)

  it('are made of calls that a server refuses, too', function()
    assert.same({ "redis.call('SET', one, word, 'EX')", "redis.call('SET', one, word)" },
      texts_of("redis.call('SET', one, word, 'px')", 'option'))
    assert.same({}, texts_of('local a = math.min(#word).b', 'arithmetic'))
    assert.same({ "local a = math['max'](#word)" },
      texts_of("local a = math['min'](#word)", 'arithmetic'))
  end)

  it('each have a name of their own, and change what their name says', function()
    local list, seen = mutants.of(BUY, utils.readfile(BUY)), {}
    for _, mutant in ipairs(list) do
      assert.is_nil(seen[mutant.id])
      seen[mutant.id] = true
      assert.is_true(mutant.before ~= mutant.after)
      assert.is_function(loadstring((mutants.source_of(mutant.variants[1]):gsub('^#', '--'))))
    end
    assert.is_true(#list > 30)
  end)

  it('do not each hold the text of a script: it is made when it is asked for', function()
    local list = all_mutants()

    assert.is_true(#list > 2000)
    assert.is_true(kib_each < 4)
  end)

  it('keep their names when lines come before them', function()
    local source = utils.readfile(BUY)
    local longer, changes = source:gsub('\nlocal left', '\n-- a line\n\nlocal left', 1)
    assert.equal(1, changes)

    assert.same(ids_of(mutants.of(BUY, source)), ids_of(mutants.of(BUY, longer)))
  end)

  it('of a fragment stand in every script that has a copy', function()
    local users = {}
    for _, script in ipairs(assert(catalog.read('scripts'))) do
      if script.source:find('-->>> fragment tell', 1, true) then
        users[#users + 1] = script
      end
    end

    local list = mutants.of_fragment('tell', users)

    assert.is_true(#list >= 4)
    for _, mutant in ipairs(list) do
      assert.equal('_fragments/tell', mutant.script)
      assert.equal(#users, #mutant.variants)
      for i, variant in ipairs(mutant.variants) do
        assert.equal(users[i].name, variant.name)
        assert.equal(users[i].source, variant.original)
        assert.is_true(mutants.source_of(variant) ~= users[i].source)
      end
    end
  end)
end)

describe('mutants that nobody has the time or the memory to try', function()
  -- In processes of their own: what is read for mutants is remembered.
  local function fates(checker_s)
    local folder = own_lock.folder()
    local results = processes.map({ 1, 2 }, 2, function()
      local subject = { root = path.abspath('.'), scripts = folder .. '/scripts', is_own = false,
        specs = {}, models = { folder .. '/acme.lua' } }
      local list = mutate.list(subject, { ['acme/release'] = true })
      local told = 0
      assert(mutate.run({ list[1], list[2] }, { subject = subject, workers = 2, checker = true,
        checker_s = checker_s, tell = function()
          told = told + 1
        end }))
      return { list[1].fate, list[1].unknown, told }
    end)
    dir.rmtree(folder)
    return results[1]
  end

  it('are neither caught nor alive', function()
    assert.same({ 'unknown', 'checker: it took longer than 0 s', 0 }, fates(0))
  end)

  it('are caught where there is time', function()
    assert.equal('killed', fates()[1])
  end)
end)

describe('mutants that do no harm', function()
  it('are listed by the names of mutants that there are, with what they change and why', function()
    local known = {}
    for _, mutant in ipairs(all_mutants()) do
      known[mutant.id] = mutant
    end
    local lines, count = utils.readlines('tools/latchkey/mutate/equivalent.tsv'), 0
    assert.equal('# mutant\tchange\treason', lines[1])

    for i = 2, #lines do
      local id, change, reason = lines[i]:match('^([^\t]+)\t([^\t]+)\t([^\t]+)$')
      assert.is_not_nil(id, lines[i])
      assert.is_not_nil(known[id], id)
      assert.equal(known[id].after, change)
      assert.matches('%w+ %w+', reason)
      count = count + 1
    end

    local total = 0
    for _ in pairs(known) do
      total = total + 1
    end
    assert.is_true(total >= 200)
    assert.is_true(count <= total * 0.05)
  end)
end)

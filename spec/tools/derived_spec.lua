-- SPDX-License-Identifier: Apache-2.0
-- Keys that a script forms of its first one: mock, lint, the checker and the rule of `latchkey acl`
-- read their form alike.
local dir = require('pl.dir')
local path = require('pl.path')
local utils = require('pl.utils')

local World = require('latchkey.mock.world')
local acl = require('latchkey.locks.acl')
local catalog = require('latchkey.script.catalog')
local checker = require('latchkey.checker')
local digest = require('latchkey.digest')
local lint = require('latchkey.lint')
local names = require('latchkey.script.names')
local words = require('latchkey.checker.words')

local CONTRACT = [[
name:     elect/run
version:  1.0.0
sha1:     %s
summary:  Lead, or go on leading.
keys:
  - leader  string  rw  %s  who leads
derived:
  - epoch  string  rw  %s%s  counts leaders
argv:
  - me   owner  1..256        who
  - ttl  ms     50..86400000  the lease
returns:
  - {1, epoch}  leads
  - {0}         somebody else does
cost:     at most 3 commands
cluster:  one slot
]]

local SCRIPT = [[
local key = KEYS[1]
local leader = redis.call('GET', key)
if leader and leader ~= ARGV[1] then
  return {0}
end
redis.call('SET', key, ARGV[1], 'PX', ARGV[2])
return {1, redis.call('INCR', %s)}
]]

local MODEL = [[return model.clients { first = 'run',
  steps = { run = { call = 'elect/run', on = { ['{1, epoch}'] = 'done', ['{0}'] = 'done' } } },
  promises = { ['it'] = function() return true end } }
]]

describe('a derived key', function()
  local folder

  before_each(function()
    folder = path.tmpname()
    os.remove(folder)
    dir.makepath(folder .. '/scripts/elect')
    utils.writefile(folder .. '/model.lua', MODEL)
  end)

  after_each(function()
    dir.rmtree(folder)
  end)

  local function write(first, form, built, mark)
    local source = SCRIPT:format(built)
    utils.writefile(folder .. '/scripts/elect/run.lua', source)
    utils.writefile(folder .. '/scripts/elect/run.contract', CONTRACT:format(digest.sha1(source),
      first, form, mark and '  ' .. mark or ''))
  end

  -- What the first key of the lock `job` is called.
  local function first_key()
    local file = assert(catalog.read_file(folder .. '/scripts/elect/run.lua'))
    return names.form(file.header.keys[1].form, 'job')
  end

  local function run()
    local world = World.new({ scripts = folder .. '/scripts' })
    local reply, err = world:eval('elect/run', { first_key() }, { 'me', 1000 })
    return world, reply, err
  end

  -- The form of the first key, that of the other, what the script builds, the other key of the lock
  -- `job`, and the pattern of that in a rule.
  for _, case in ipairs({
    { 'elect:{{name}}', '{name}:epoch', "key .. ':epoch'", 'elect:{job}:epoch' },
    { 'elect:{{name}}', 'suffix:epoch', "key .. ':epoch'", 'elect:{job}:epoch' },
    { 'elect:{{name}}', 'prefix:epoch', "'epoch:' .. KEYS[1]", 'epoch:elect:{job}' },
    { 'elect:{{name}}', 'suffix:*:epoch', "KEYS[1] .. ':' .. ARGV[1] .. ':epoch'",
      'elect:{job}:me:epoch', 'elect:{job}:*:epoch' },
    { 'elect:{{name}}', '{name}:epoch+me', "KEYS[1] .. ':epoch:' .. ARGV[1]",
      'elect:{job}:epoch:me', 'elect:{job}:epoch:*' },
    { 'prefix:elect', 'suffix:epoch', "key .. ':epoch'", 'elect:{job}:epoch' },
    { 'suffix:elect', '{name}:epoch', "key .. ':epoch'", '{job}:elect:epoch' },
    { 'braces:elect', 'suffix:epoch', "key .. ':epoch'", 'elect{job}:epoch' },
    { '{name}', 'suffix:epoch', "'{' .. key .. '}:epoch'", '{job}:epoch' },
    { 'elect:{name}', 'suffix:epoch', "'{' .. KEYS[1] .. '}:epoch'", '{elect:job}:epoch' },
  }) do
    local first, form, built, other, pattern = unpack(case)
    it(('of %s is called by %s as %s'):format(first, form, built), function()
      write(first, form, built, 'permanent')

      local findings = lint.run({ folder .. '/scripts/elect' })
      local world, reply, err = run()
      local rule = acl.rule('.', { folder = folder .. '/scripts', names = { 'job' } })
      local verdict = checker.check(assert(words.load(folder .. '/model.lua')),
        { scripts = folder .. '/scripts', clients = 1, rounds = 1, faults = 0 })

      assert.same({}, findings)
      assert.same({ 1, 1, n = 2 }, reply, err and err.message)
      assert.equal('1', world:dump()[other].value)
      local expected = { first_key(), pattern or other }
      table.sort(expected)
      assert.same(expected, rule.keys)
      assert.same({}, verdict.findings)
    end)

    it(('of %s that is called by %s has an end, unless the contract says else'):format(first, form),
      function()
        write(first, form, built)

        local verdict = checker.check(assert(words.load(folder .. '/model.lua')),
          { scripts = folder .. '/scripts', clients = 1, rounds = 1, faults = 0 })

        assert.equal('G8', verdict.findings[1] and verdict.findings[1].property)
      end)
  end

  -- Forms that are not what the script builds.
  for _, case in ipairs({
    { 'elect:{{name}}', 'elect:{{name}}:epoch', "key .. ':epoch'" },
    { 'elect:{{name}}', '{name}:epoch', "key .. ':epoch:7'" },
    { 'elect:{{name}}', '{name}:epoch', "'x' .. key .. ':epoch'" },
    { 'elect:{name}', 'suffix:epoch', "key .. ':epoch'" },
  }) do
    local first, form, built = unpack(case)
    it(('of %s is not called by %s as %s'):format(first, form, built), function()
      write(first, form, built, 'permanent')

      local findings = lint.run({ folder .. '/scripts/elect' })
      local _, _, err = run()

      local rules = {}
      for _, finding in ipairs(findings) do
        rules[finding.rule] = true
      end
      assert.is_true(rules.derived)
      assert.truthy(err and err.message:find('touches the undeclared key', 1, true), err)
    end)
  end

  it('is allowed for all names, with and without tags of their own', function()
    write('elect:{name}', 'suffix:epoch', "'{' .. key .. '}:epoch'", 'permanent')

    assert.same({ 'elect:*', '{elect:*}:epoch' },
      acl.rule('.', { folder = folder .. '/scripts', names = { '*' } }).keys)
    write('{name}:elect', 'suffix:epoch', "'{' .. key .. '}:epoch'", 'permanent')
    assert.same({ '*:elect', '*:elect:epoch', '{*:elect}:epoch' },
      acl.rule('.', { folder = folder .. '/scripts', names = { '*' } }).keys)
  end)

  it('has a form of its own', function()
    write('elect:{{name}}', '{slot}', "key .. ':epoch'")

    local findings = lint.run({ folder .. '/scripts/elect' })

    assert.truthy(findings[1].message:find('{slot} is for keys that the caller names', 1, true),
      findings[1].message)
  end)
end)

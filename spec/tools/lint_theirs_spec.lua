-- SPDX-License-Identifier: Apache-2.0
local dir = require('pl.dir')
local utils = require('pl.utils')

local digest = require('latchkey.digest')
local lint = require('latchkey.lint')
local linting = require('support.linting')
local texts = require('support.texts')

local FIXTURES, rules_of = linting.FIXTURES, linting.rules_of

describe('lint of a script with a contract', function()
  -- A script of somebody else's, with the contract of one of the fixtures.
  local function their_findings(fixture, source, change)
    local folder = linting.folder()
    local family = fixture:match('^%l+')
    dir.makepath(folder .. '/' .. family)
    local contract = utils.readfile(FIXTURES .. fixture .. '.contract')
    contract = change and texts.with(contract, unpack(change)) or contract
    utils.writefile(('%s/%s.lua'):format(folder, fixture), source)
    utils.writefile(('%s/%s.contract'):format(folder, fixture), (contract:gsub('sha1: +%x+',
      'sha1:     ' .. digest.sha1(source))))
    local findings = lint.run({ folder })
    dir.rmtree(folder)
    return findings
  end

  it('takes an owner who is told to others alone for one that is not compared', function()
    local findings = lint.run({ FIXTURES .. 'told/release.lua' })

    assert.equal(1, #findings)
    assert.equal('owner', findings[1].rule)
  end)

  it('takes an owner that is compared with literals alone for one that is not compared', function()
    local findings = lint.run({ FIXTURES .. 'named/release.lua' })

    assert.same({ 'owner' }, rules_of(findings))
  end)

  -- What a release does with its owner, and whether that says whose lock it is.
  for _, case in ipairs({
    { "redis.log(redis.LOG_NOTICE, 'released by ' .. ARGV[1])", 'owner' },
    { 'assert(ARGV[1])', 'owner' },
    { "local len = string.len\nif len(ARGV[1]) == 0 then return 0 end", 'owner' },
    { "if type(ARGV[1]) == 'string' and #tostring(ARGV[1]) > 1e3 then return 0 end", 'owner' },
    { 'local function tell(who) redis.log(redis.LOG_NOTICE, who) end tell(ARGV[1])', 'owner' },
    { "local name = string.lower(ARGV[1])\nif redis.call('get', KEYS[1]) ~= name then return 0 end",
      '' },
    { "local name = 'by ' .. ARGV[1]\nif redis.call('get', KEYS[1]) ~= name then return 0 end",
      '' },
    { "if redis.call('get', KEYS[1]) ~= tostring(ARGV[1]) then return 0 end", '' },
    { "local function has(who) return redis.call('get', KEYS[1]) == who end\n"
      .. 'if not has(ARGV[1]) then return 0 end', '' },
    { "local owners = {}\nowners[redis.call('get', KEYS[1]) or ''] = true\n"
      .. 'if not owners[ARGV[1]] then return 0 end', '' },
    { "if not string.find(redis.call('get', KEYS[1]) or '', ARGV[1], 1, true) then return 0 end",
      '' },
    { "redis.call('set', KEYS[1], cjson.encode({ ARGV[1] }))", '' },
    { "local args = ARGV\nif redis.call('get', KEYS[1]) ~= args[1] then return 0 end", '' },
    { "redis.call('set', KEYS[1], unpack(ARGV))", '' },
  }) do
    local code, rules = unpack(case)
    it(('has "%s" for the rule owner with %s'):format(rules, texts.shown(code)), function()
      local findings = their_findings('named/release',
        code .. "\nredis.call('del', KEYS[1])\nreturn 1\n")
      local about = {}
      for _, finding in ipairs(findings) do
        about[#about + 1] = finding.rule == 'owner' and finding.rule or nil
      end

      assert.equal(rules, table.concat(about, ' '))
    end)
  end

  for _, loop in ipairs({ 'for i = 1, #KEYS do local key = KEYS[i]', 'for i = 1, #KEYS do',
    'for i, key in pairs(KEYS) do', 'for i in pairs(KEYS) do' }) do
    it('knows the keys in ' .. loop, function()
      local key = loop:find('key ', 1, true) and 'key' or 'KEYS[i]'

      assert.same({}, their_findings('theirs/obtain', ("if redis.call('exists', KEYS[1], KEYS[2]) "
        .. "== 2 then return 0 end\n%s\nredis.call('msetnx', %s, ARGV[1])\n"
        .. "redis.call('pexpire', %s, ARGV[2])\nend\nreturn 1\n"):format(loop, key, key)))
    end)
  end

  it('knows a key behind the last that has a line of its own', function()
    local code = 'local one = ARGV[1] == KEYS[1]\n'
      .. "redis.call('del', KEYS[1], KEYS[2], KEYS[3])\nreturn 1\n"

    local one = their_findings('named/release', code)
    local many = their_findings('named/release', code, { '  - lock  string  w  acme:lock:{name}',
      '  - lock  string  w  {{name}}  it\n  - rest*  any  w  {{name}}:2  1..9' })

    assert.truthy(table.concat(rules_of(one), ' '):find('keys', 1, true))
    assert.same({}, many)
  end)

  it('reads redis.call under another name, loops over KEYS, and what servers have', function()
    assert.same({}, (lint.run({ FIXTURES .. 'theirs' })))
  end)

  -- What stands in that script, what in its place, the rules that it breaks then.
  for _, case in ipairs({
    { 'writing it', 'writing\0it', 'bytes' },
    { 'return 1', 'taken = 1', 'answers globals' },
    { "error('", "foo.error('", 'library' },
    { "'mget', unpack(KEYS)", "'mget', unpack({ KEYS[1] })", 'unpack' },
    { '< 1 then', '< 1.5 then', 'numbers' },
    { "'msetnx'", "'blpop'", 'command' },
    { 'rcall(', 'rcall(verb, ', 'command keys library' },
    { "'pexpire', key", "'pexpire', key .. 'x'", 'keys' },
    { "'mget', unpack(KEYS)", "'mget', unpack(ARGV)", 'keys' },
    { 'local values', "redis.call('TIME', redis.call('TIME'))\nlocal values", 'cost time' },
    { "'pexpire', key, ms)", "'pexpire', key, rcall('get', key), rcall('ttl', key))", 'cost' },
    { "rcall('mget', unpack(KEYS))", "{ rcall('copy', KEYS[1], KEYS[1], ARGV[1]) }", '' },
  }) do
    local old, new, rules = unpack(case)
    it(('finds "%s" with %s'):format(rules, texts.shown(new)), function()
      local folder = linting.folder()
      dir.makepath(folder .. '/theirs')
      local source = texts.with(utils.readfile(FIXTURES .. 'theirs/obtain.lua'), old, new)
      local contract = utils.readfile(FIXTURES .. 'theirs/obtain.contract')
      utils.writefile(folder .. '/theirs/obtain.lua', source)
      utils.writefile(folder .. '/theirs/obtain.contract', (contract:gsub('sha1: +%x+',
        'sha1:     ' .. digest.sha1(source))))

      local findings = lint.run({ folder })
      dir.rmtree(folder)

      assert.equal(rules, table.concat(rules_of(findings), ' '))
    end)
  end

  -- What a script does with a name for redis.call, and the lines of what hides commands.
  for _, case in ipairs({
    { "call('DEL', KEYS[1])", {} },
    { "local again = call\nagain('DEL', KEYS[1])", {} },
    { "local unused, two = redis.pcall, call\ntwo('DEL', KEYS[1])", {} },
    { "\npcall(call, 'DEL', KEYS[1])", { 3 } },
    { "local again = call\npcall(again, 'DEL', KEYS[1])", { 3 } },
    { "local function run(f, ...) return f(...) end\nrun(call, 'DEL', KEYS[1])", { 3 } },
    { "local T = { call }\nT[1]('DEL', KEYS[1])", { 2 } },
    { "pcall(redis.call, 'DEL', KEYS[1])", { 2 } },
  }) do
    local code, wanted = unpack(case)
    it('says that commands are hidden in ' .. texts.shown(code), function()
      local findings = their_findings('named/release', "local call = redis.call\n" .. code
        .. "\ncall('DEL', KEYS[1])\nreturn 1\n")
      local lines = {}
      for _, finding in ipairs(findings) do
        lines[#lines + 1] = finding.message:find('hides commands') and finding.line or nil
      end

      assert.same(wanted, lines)
    end)
  end

  for _, code in ipairs({ 'local a (a) = 1', 'local a = {} a.b, tostring() = 1, 2',
    "local f = tostring\n('x'):rep(1)", ('local x '):rep(201),
    'return ' .. ('('):rep(300) .. '1' .. (')'):rep(300) }) do
    it('finds that no server compiles ' .. texts.shown(code), function()
      local findings = their_findings('named/release', code .. '\n')

      assert.equal('syntax', findings[1].rule)
      assert.matches('%.lua$', findings[1].file)
    end)
  end

  it('says of a sum of thousands that it cannot be looked at', function()
    local findings = their_findings('named/release', 'return ' .. ('1+'):rep(20000) .. '1\n')

    assert.equal(1, #findings)
    assert.matches('too many terms for lint', findings[1].message)
  end)

  it('reads the commands of a name that has it of another one', function()
    local findings = their_findings('named/release', "local call = redis.call\nlocal two = call\n"
      .. "two('DEL', 'another')\ncall('DEL', KEYS[1])\nreturn 1\n")
    local lines = {}
    for _, finding in ipairs(findings) do
      lines[#lines + 1] = finding.rule == 'keys' and finding.line or nil
    end

    assert.same({ 3 }, lines)
  end)

  it('knows a key from the place of one in a loop over them', function()
    local folder = linting.folder()
    dir.makepath(folder .. '/theirs')
    local source = "local locks = KEYS\nfor i in ipairs(locks) do\n  redis.call('DEL', locks[i])\n"
      .. "  redis.call('DEL', 'other' .. i)\nend\nreturn 1\n"
    local contract = utils.readfile(FIXTURES .. 'theirs/obtain.contract')
    utils.writefile(folder .. '/theirs/obtain.lua', source)
    utils.writefile(folder .. '/theirs/obtain.contract', (contract:gsub('sha1: +%x+',
      'sha1:     ' .. digest.sha1(source))))

    local findings = lint.run({ folder .. '/theirs/obtain.lua' })
    dir.rmtree(folder)

    local lines = {}
    for _, finding in ipairs(findings) do
      lines[#lines + 1] = finding.rule == 'keys' and finding.line or nil
    end
    assert.same({ 4 }, lines)
  end)

  it('tells of keys and arguments that only the contract has', function()
    local findings = lint.run({ FIXTURES .. 'unread/take.lua' })

    assert.same({ 'takes', 'takes' }, rules_of(findings))
    assert.matches('KEYS%[2%], "queue"', findings[1].message)
    assert.matches('ARGV%[2%], "ttl"', findings[2].message)
  end)

  -- Each takes two commands, of the one that the contract allows.
  for _, code in ipairs({ "pcall(function() call('GET', KEYS[1]) call('DEL', KEYS[1]) end)",
    "local function go() call('GET', KEYS[1]) call('DEL', KEYS[1]) end pcall(go)",
    "local a = (function() call('GET', KEYS[1]) return call('DEL', KEYS[1]) end)()",
    "local function go() call('GET', KEYS[1]) call('DEL', KEYS[1]) end go()" }) do
    it('counts the commands of ' .. texts.shown(code), function()
      local found = {}
      for _, finding in ipairs(their_findings('named/release', 'local call = redis.call\n' .. code
        .. '\nreturn 1\n')) do
        found[#found + 1] = finding.rule == 'cost' and finding.message:match('^%d+') or nil
      end

      assert.same({ '2' }, found)
    end)
  end

  -- What the contract lists of replies and errors, code, and what is said of it.
  local NONE = 'no line of "returns:" fits this reply, '
  local ENDS = 'the script may get to its end without a return: ' .. NONE .. 'nil; add one'
  for _, case in ipairs({
    { '- {1, left}', 'return {1, 2}' },
    { '- {1, left}', 'return {1, ARGV[2], 3}', NONE .. '{1, ...} of 3 elements; add one' },
    { '- {1, left}', 'return {2, 3}', NONE .. '{2, ...} of 2 elements; add one' },
    { '- {1, left}', 'return {1}', NONE .. '{1} of 1 element; add one' },
    { '- {1, left}', 'return {1, nil, 3}', NONE .. '{1} of 1 element; add one' },
    { '- {1, left}', 'return {1, unpack(ARGV)}' },
    { '- {1, left}', 'return {1, ("a"):gsub("a", "")}' },
    { '- {1, left}', 'return {1, 2, unpack(ARGV)}' },
    { '- {1, left}', 'return {1, 2, 3, unpack(ARGV)}', NONE .. '{1, ...} of 4 elements; add one' },
    { '- {1, left}', "return {1, 2, redis.call('GET', KEYS[1])}",
      NONE .. '{1, ...} of 3 elements; add one' },
    { '- {1, left}', 'return {1, 2, tonumber(ARGV[2])}',
      NONE .. '{1, ...} of 3 elements; add one' },
    { '- {1, name...}', 'return {1}' },
    { '- {1, name...}', 'return {1, 2, 3}' },
    { '- {1, left}', 'return {ARGV[2], 2, 3}' },
    { '- {1, left}', "return {'free', 2}", "this reply, {'free', ...}, does not begin with a "
      .. 'number, and no line of "returns:" can list it' },
    { '- {1, left}', 'return {}', 'this reply, {}, does not begin with a number, and no line of '
      .. '"returns:" can list it' },
    { '- 1', "return {ok = 'DONE'}", NONE .. 'DONE; add one' },
    { '- DONE', "return {ok = 'DONE'}" },
    { '- 1', "return {err = 'GONE it is'}", 'GONE is not under "errors:"; add it' },
    { '- 1', "return {err = 'FULL it is'}" },
    { '- 1', "return redis.error_reply('GONE it is')", 'GONE is not under "errors:"; add it' },
    { '- 1', "return redis.error_reply('-GONE it is')", 'GONE is not under "errors:"; add it' },
    { '- 1', "return redis.error_reply('FULL it is')" },
    { '- 1', "return redis.error_reply('FULL')", 'ERR is not under "errors:"; add it' },
    { '- 1', "return redis.error_reply('it is ' .. ARGV[2])",
      "an error starts with its code: 'LKARG what was wrong'" },
    { '- 1', "return redis.error_reply(ARGV[2] .. ' it is')" },
    { '- 1', 'local a = 1', ENDS },
    { '- 1', 'if ARGV[2] then return 1 end', ENDS },
    { '- 1', 'if ARGV[2] then return 1 else do return 1 end end' },
    { '- 1', "if ARGV[2] then return 1 else error('no') end" },
    { '- 1', 'while true do return 1 end' },
    { '- nil', 'local a = 1' },
    { '- 1', 'return ARGV[2] and 1 or 0', NONE .. '0; add one' },
    { '- 1', 'return (ARGV[2] and 2 or 1)', NONE .. '2; add one' },
    { '- 1', 'return ARGV[2] or nil', NONE .. 'nil; add one' },
    { '- 1', 'return nil and 1', NONE .. 'nil; add one' },
    { '- 1', 'return ARGV[2] == ARGV[3]', NONE .. 'nil; add one' },
    { '- 1', 'local left = 0\nreturn left', NONE .. '0; add one' },
    { '- 1', 'local left = 0\nleft = 1\nreturn left' },
    { '- 1', 'return 1.9' },
    { '- 0', 'return -0.9' },
    { '- 1', 'return #ARGV + 1' },
    { '- nil', 'return #ARGV + 1', NONE .. 'integer; add one' },
    { "- 'free'", 'return ARGV[2] .. 1' },
    { '- 1', 'return ARGV[2] .. 1', NONE .. 'text; add one' },
  }) do
    local listed, code, message = unpack(case)
    it(('says of a contract with %s and the code %s what is so'):format(listed, code), function()
      local findings = their_findings('named/release', code .. '\n', { '  - 0  nobody has it\n'
        .. '  - 1  released\n', ('  %s  it\nerrors:\n  - FULL  it\n'):format(listed) })
      local said = {}
      for _, finding in ipairs(findings) do
        said[#said + 1] = finding.rule == 'answers' and finding.message or nil
      end

      assert.same({ message }, said)
    end)
  end
end)

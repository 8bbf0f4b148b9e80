-- SPDX-License-Identifier: Apache-2.0
local cjson = require('cjson')
local dir = require('pl.dir')
local path = require('pl.path')
local utils = require('pl.utils')

local lint = require('latchkey.lint')
local lint_script = require('latchkey.lint.script')
local parser = require('latchkey.lua51.parser')
local command = require('support.command')
local linting = require('support.linting')
local texts = require('support.texts')

local FIXTURES, rules_of = linting.FIXTURES, linting.rules_of

describe('lint', function()
  it('finds nothing in the project\'s own scripts', function()
    local findings, checked = lint.run({ 'scripts' })

    assert.same({}, findings)
    assert.is_true(checked >= 10)
  end)

  it('finds nothing in scripts that use what the rules allow', function()
    assert.same({}, (lint.run({ FIXTURES .. 'good' })))
  end)

  for _, rule in ipairs(lint.rules) do
    -- These are about several files: they have specs of their own.
    if rule.id ~= 'file' and rule.id ~= 'ledger' and rule.id ~= 'forms' then
      it(('breaks the rule %s alone where a script does'):format(rule.id), function()
        local findings = lint.run({ FIXTURES .. 'bad/' .. rule.id .. '.lua' })

        assert.is_true(#findings > 0)
        for _, finding in ipairs(findings) do
          assert.equal(rule.id, finding.rule, finding.message)
        end
      end)
    end
  end

  it('has a rule for every bad script, each with what it wants', function()
    local known = {}
    for _, rule in ipairs(lint.rules) do
      known[rule.id] = true
      assert.matches('%w', rule.wants)
    end

    for _, file in ipairs(dir.getfiles(FIXTURES .. 'bad')) do
      assert.is_true(known[path.splitext(path.basename(file))], file)
    end
  end)

  it('checks a file once that is named twice', function()
    local file = FIXTURES .. 'theirs/obtain.lua'
    local findings, checked = lint.run({ file, FIXTURES .. 'theirs', './' .. file, file })

    assert.same({}, findings)
    assert.equal(1, checked)
  end)

  it('says that a file cannot be read', function()
    assert.same({ 'file' }, rules_of(lint.run({ FIXTURES .. 'none.lua' })))
  end)

  it('knows a script by any path to it', function()
    local folder = linting.folder()
    dir.makepath(folder .. '/good')
    dir.copyfile(FIXTURES .. 'good/ask.lua', folder .. '/good')
    dir.makepath(folder .. '/_fragments')
    for _, file in ipairs(dir.getfiles(FIXTURES .. '_fragments')) do
      dir.copyfile(file, folder .. '/_fragments')
    end
    local here, home = path.currentdir(), path.abspath('scripts')

    for _, case in ipairs({ { folder, 'good/ask.lua' }, { folder, '.' }, { folder, './good' },
      { folder .. '/good', 'ask.lua' }, { folder .. '/good', '../good' } }) do
      path.chdir(case[1])
      local findings, checked = lint.run({ case[2] }, home)
      path.chdir(here)

      assert.same({}, findings)
      assert.equal(1, checked)
    end
    dir.rmtree(folder)
  end)

  it('sorts findings by file and line', function()
    local findings = lint.run({ FIXTURES .. 'bad/width.lua', FIXTURES .. 'bad/dialect.lua' })

    assert.same({ 'dialect', 'dialect', 'width' }, rules_of(findings))
    assert.is_true(findings[1].line < findings[2].line)
  end)
end)

-- Each case changes one place of a good script, and names the rule and words of what is found.
describe('a text that lint reads', function()
  local function text_of(source)
    local block = assert(parser.parse('return ' .. source))
    return lint_script.text_of(block[1][1], {}, function() end)
  end

  it('is put together by dots, and by nothing else', function()
    assert.equal('ab', text_of("'a' .. ('b')"))
    for _, operator in ipairs({ '+', '*', '==', 'and', 'or' }) do
      assert.is_nil(text_of(("'1' %s '2'"):format(operator)), operator)
    end
  end)
end)

describe('lint of a changed script', function()
  local BUY, SUM = FIXTURES .. 'good/buy.lua', FIXTURES .. 'good/sum.lua'
  local ASK, AGAIN = FIXTURES .. 'good/ask.lua', FIXTURES .. 'good/again.lua'
  local SEATS = FIXTURES .. 'good/seats.lua'
  local folder

  before_each(function()
    folder = linting.folder()
    dir.makepath(folder .. '/good')
    dir.makepath(folder .. '/_fragments')
    for _, file in ipairs(dir.getfiles(FIXTURES .. '_fragments')) do
      dir.copyfile(file, folder .. '/_fragments')
    end
  end)

  after_each(function()
    dir.rmtree(folder)
  end)

  local cases = {
    { BUY, 'local buyer = ARGV[2]\n', 'local buyer = ARGV[2]\nlocal more = ARGV[2]\n', 'bind',
      'ARGV[2] is bound twice' },
    { BUY, 'local buyer = ARGV[2]\n', 'local buyer = ARGV[2]\nlocal more = ARGV[6]\n', 'bind',
      'ARGV[6] is not in the header' },
    { BUY, '  - left ', '  - rest ', 'bind', 'KEYS[1] is "rest" in the header, but bound to' },
    { BUY, 'note?    text     0..80               for the book',
      'note?    text     0..80               for the book\n  - why?     text     0..9', 'bind',
      'ARGV[6] is not bound' },
    { BUY, "'note', note or ''", "'note', ''", nil },
    { SUM, 'KEYS\n\nif', 'KEYS\nlocal all = KEYS\n\nif', 'bind', 'KEYS is bound twice' },
    { SUM, '#counters do', '#KEYS do', 'bind', 'KEYS outside of the bind block' },
    { SUM, 'local sum = 0', 'local sum = #ARGV', 'bind', 'ARGV outside of the bind block' },
    { BUY, '\nif #KEYS', '\nlocal function late()\n  return 1\nend\nif #KEYS', 'order',
      'a function below the bind block' },
    { BUY, 'local note = ARGV[5]\n', 'local all = amount\nlocal note = ARGV[5]\n', 'order',
      'a binding below the bind block' },
    { BUY, 'local left = KEYS[1]\nlocal book = KEYS[2]', 'local left, book = KEYS[1], KEYS[2]',
      'bind', 'KEYS outside of the bind block' },
    { BUY, "  tell(channel, publish, '0')\n", "  tell(channel, publish, '0')\nelse\n  there = 1\n",
      nil },
    { BUY, 'local book = KEYS[2]\n', '', 'bind', 'KEYS[2] is not bound' },
    { BUY, '#KEYS ~= 2 or ', '', 'count', '"#KEYS ~= 2"; add that' },
    { SUM, "return redis.error_reply('LK", "local _ = ('LK", 'count', '"#KEYS < 1"; add that' },
    { BUY, '#ARGV > 5', '#ARGV > 6', 'count', '"#ARGV > 5", not "#ARGV > 6"' },
    { SUM, '1..100  n', '1..50  n', 'count', '"#KEYS > 50", not "#KEYS > 100"' },
    { BUY, 'count    1..100 ', 'count    0..100 ', 'check', '"is_integer(amount, 0, 100)", not' },
    { BUY, 'owner    1..64 ', 'owner    1..65 ', 'check', '"#buyer > 65", not' },
    { BUY, 'owner    1..64 ', 'reader   0..64 ', 'check', '"is_reader(buyer, 64)", not' },
    { BUY, 'owner    1..64 ', 'writer   7..64 ', 'check', '"is_writer(buyer, 64)", not' },
    { BUY, '0..80', '0..90', 'check', '"#note > 90", not "#note > 80"' },
    { BUY, "return redis.error_reply('LKARG amount must", "local _ = ('LKARG amount must", 'check',
      '"is_integer(amount, 1, 100)"' },
    { BUY, '#channel < 1 or ', '', 'check', '"#channel < 1"' },
    { BUY, '#channel > 1024 or ', '', 'check', '"#channel > 1024"' },
    { BUY, 'PUBLISH|SPUBLISH', 'PUBLISH|SPUBLISH|BOTH', 'check', "\"publish ~= 'BOTH'\"" },
    { BUY, '  - {1, left}   ', '  - {1}   ', 'replies', 'fits this reply {1, ...}' },
    { BUY, '  - {1, left}   ', '  - {2}  never\n  - {1, left}   ', 'replies', 'never answers {2}' },
    { BUY, 'return {1, there - tonumber(amount)}', 'return there', 'replies', 'return one table' },
    { BUY, 'return {1, there', 'return {there, there', 'replies', 'a written integer' },
    { AGAIN, '  return reply\n', '  return last\n', 'replies', 'return one table' },
    { AGAIN, 'local last, reply = recall(record)', 'local reply, last = recall(record)', 'replies',
      'return one table' },
    { SUM, 'tonumber(seconds)}', 'unpack(counters, 1, 2)}', nil },
    { SUM, 'tonumber(seconds)}', 'seconds, 0, unpack(counters, 1, 2)}', 'replies', 'fits this' },
    { BUY, '{0, left, buyer...}', '{0, left, buyer, last}', nil },
    { BUY, 'local reply = {0, there}', 'local reply = {2, there}', 'replies',
      'fits this reply {2, ...}' },
    { SUM, 'return {1, sum, tonumber(seconds)}', 'if sum > 0 then\n  return {1, sum, seconds}\nend',
      'replies', 'ends without a return' },
    { BUY, '  - LKFULL  the buyer has a hundred\n', '', 'errors', 'LKFULL is not under' },
    { BUY, '  - LKFULL', '  - LKGONE  never\n  - LKFULL', 'errors', 'never answers LKGONE' },
    { BUY, "'LKFULL '", "'full '", 'errors', 'starts with its code' },
    { BUY, "'DECRBY'", "'decrby'", 'command', 'write DECRBY in capitals' },
    { BUY, "'HKEYS'", "'BLPOP'", 'command', 'BLPOP is no command' },
    { BUY, 'local there =', 'local call = redis.call\nlocal there =', 'command',
      'redis.call as a value' },
    { BUY, "'DECRBY', left", "'DECRBY', buyer", 'keys', 'is not one of the header' },
    { ASK, 'SET = true, GET', "['SET'] = 1, GET", nil },
    { ASK, 'SET = true, ', '', 'check', 'command one of GET SET", not "command one of GET"' },
    { ASK, 'SET = true, ', 'SET = true, DEL = true, ', 'check', 'not "command one of DEL GET' },
    { ASK, "{SET = true, GET = true}", "{'GET', 'SET'}", 'check', 'not "command one of ? ?"' },
    { ASK, '  - SET\n', '', 'check', 'needs "command one of GET"' },
    { ASK, '  - SET\n', '  - SHUTDOWN\n', 'command', 'SHUTDOWN is no command' },
    { ASK, 'redis.call(command', 'redis.call(answers', 'command', 'is not written out' },
    { ASK, 'any  rw', 'any  r ', 'keys', 'the command writes answers' },
    { ASK, 'command, answers', 'command, command', 'keys', 'the key of the command is not one of' },
    { ASK, '     1..3', '     1..4', 'count', '"#ARGV > 5", not "#ARGV > 4"' },
    { ASK, 'words = ARGV', 'words = ARGV[2]', 'bind', 'ARGV[2] is not in the header' },
    { BUY, "'DECRBY', left, amount", "'HDEL', left, amount", 'keys', 'HDEL is for a hash' },
    { BUY, "'HKEYS'", "'SMEMBERS'", 'keys', 'SMEMBERS is for a set, but book is a hash' },
    { BUY, 'fields_of(book)', 'fields_of(buyer)', 'keys', 'the key of HKEYS is not one of' },
    { BUY, 'fields_of(book)', 'fields_of()', 'keys', 'the key of HKEYS is not one of' },
    { BUY, '(fields_of(book)) do', '(fields_of(book)) do\n    fields_of(left)', 'keys',
      'the key of HKEYS is not one of' },
    { BUY, 'string   rw', 'string   r ', 'keys', 'DECRBY writes left' },
    { BUY, "redis.call('DECRBY', left, amount)\n", '', 'keys', 'but nothing writes it' },
    { SEATS, 'suffix:*:seat:*', 'suffix:*:chair:*', 'derived', 'the key of SET follows no form' },
    { SEATS, "':seat:' .. n", "':seats' .. n", 'derived', 'the key of PEXPIRE follows no form' },
    { SEATS, 'prefix .. guest .. \':seat:\'\n', 'guest', 'derived', 'the key of SET follows no' },
    { SEATS, 'prefix_of(guests)', 'guests', 'slot', 'the key of SET is built of a key without' },
    { SEATS, 'prefix_of(guests)', "'{' .. guests .. '}'", 'slot', 'built of a key without braces' },
    { SEATS, 'seat    string  rw', 'seat    string  r ', 'keys', 'SET writes seat' },
    { SEATS, 'seat    string', 'seat    hash  ', 'keys', 'SET is for a string, but seat is a' },
    { SEATS, '3 + 2 per seat, at most 23', '3 + 1 per seat, at most 23', 'cost',
      '2 commands in one turn of this loop; the header says 1 per seat' },
    { SEATS, '3 + 2 per seat, at most 23', '2 + 2 per seat, at most 23', 'cost',
      '3 commands on the longest way beside loops; the header says 2' },
    { SEATS, '3 + 2 per seat, at most 23', '3 + 2 per seat, at most 4', 'cost',
      'at most 4 is less than 3 + 2' },
    { SEATS, '3 + 2 per seat, at most 23', 'at most 23 commands', nil },
    { SEATS, '3 + 2 per seat, at most 23', 'at most 22 commands', 'cost', '23 commands on the' },
    { SEATS, 'for n = 1, 10 do', 'for n = 1, #guest do', nil },
    { SEATS, '  return {0}\nend', "  redis.call('PERSIST', guests)\n  return {0}\nend", nil },
    { SEATS, 'if not is_new then', 'if found then', nil },
    { SUM, '1 + 1 per counter, at most 101', 'at most 101 commands', 'cost',
      'commands in a loop; the header says how many' },
    { SUM, 'local sum = 0', "local sum = 0\nrepeat\n  sum = redis.call('TIME')\nuntil sum > 0",
      'time', 'a second TIME' },
    { BUY, 'cost:     at most 8', 'cost:     at most 5', 'cost', 'commands on the longest way' },
    { SUM, '#!lua flags=no-writes', '#!lua', 'flags', 'the script only reads' },
    { BUY, 'cost:', 'repeat:   pure\ncost:', 'flags', '"repeat: pure" is for scripts' },
    { BUY, "publish, '0')", "publish, '1')", 'publish', 'message: 0' },
    { BUY, "  tell(channel, publish, '0')\n", '', 'publish', 'calls tell' },
    { BUY, 'message:  0', 'message:  0 or 1', nil },
    { SUM, '1, 2)', '1, 1000)', nil },
    { SUM, '1, 2)', '1, 1001)', 'unpack', 'without a bound' },
    { SUM, "unpack(redis.call('TIME'), 1, 2)", 'unpack(counters, sum, sum * 2)', 'unpack',
      'without a bound' },
    { SUM, "unpack(redis.call('TIME'), 1, 2)", 'unpack(counters, sum, math.min(sum + 999, 9))',
      nil },
    { SUM, "unpack(redis.call('TIME'), 1, 2)", 'unpack(counters, sum, math.min(sum + 1000, sum))',
      'unpack', 'without a bound' },
    { SUM, "unpack(redis.call('TIME'), 1, 2)", 'unpack(counters)', 'unpack', 'without a bound' },
    { SUM, 'value.err then', 'value.ok then', 'pcall', 'is not checked; check it' },
    { SUM, 'sum + tonumber(value or 0)', 'sum + 0.5', 'numbers', '0.5 is no integer' },
    { SUM, 'sum + tonumber(value or 0)', '9007199254740992', 'numbers', 'no integer below 2^53' },
    { BUY, "'LKFULL ' .. buyer", "'LKFULL ' .. tonumber(buyer)", 'numbers', 'joined to text' },
    { SUM, 'tonumber(seconds)', 'tostring(seconds)', 'library', "string.format('%.0f', n)" },
    { SUM, 'tonumber(seconds)', 'table.unpack({seconds})', 'library', 'table.unpack is no local' },
    { SUM, 'tonumber(seconds)', 'math.random(9)', 'library', 'take random values as arguments' },
    { SUM, 'tonumber(seconds)', '#string', 'library', 'string as a value' },
    { SUM, 'return {-1}', "error('x')\n    return {-1}", 'library', 'redis.error_reply' },
    { SUM, 'local sum = 0', 'local sum = 0\nfunction twice() end', 'globals', 'twice is no local' },
    { BUY, '-->>> fragment integer', '-->>> fragment intger', 'fragment', 'closes here but' },
    { BUY, '--<<< fragment integer', '', 'fragment', 'opens inside' },
    { BUY, '--<<< fragment tell', '', 'fragment', 'is never closed' },
    { BUY, '-->>> fragment integer', '-->>> integer', 'fragment', 'a marker is' },
    { BUY, 'uses:     integer, tell', 'uses:     tell, integer', 'fragment',
      'make them agree' },
    { SUM, 'local sum', ('-->>> fragment a\n--<<< fragment a\n'):rep(8) .. 'local sum', 'fragment',
      '8 fragments, at most 7' },
    { SUM, 'return {1,', '-->>> fragment none\n--<<< fragment none\nreturn {1,', 'fragment',
      'there is no fragment none' },
    { SUM, 'local sum = 0', '-- \195\188' .. ('x'):rep(97) .. '\nlocal sum = 0', 'width', '101' },
    { SUM, 'local sum = 0', '-- ' .. ('\195\188'):rep(97) .. '\nlocal sum = 0', nil },
    { SUM, 'local sum', ('-- a\n'):rep(97) .. 'local sum', nil },
    { SUM, 'local sum', ('-- a\n'):rep(98) .. 'local sum', 'size', '131 lines' },
    { BUY, 'local there', ('-- a\n'):rep(58) .. 'local there', nil },
    { BUY, 'local there', ('-- a\n'):rep(59) .. 'local there', 'size', '131 lines beside' },
    { SUM, 'local sum = 0', 'local sum = 0 ', 'blanks', 'spaces at the end' },
    { SUM, 'tonumber(seconds)}\n', 'tonumber(seconds)}', 'blanks', 'has no end' },
    { SUM, 'return {-1}', 'return {-1, "it\'s"}', 'replies', 'fits this reply' },
    { SUM, 'local sum = 0', 'local sum = 0xFLL', 'dialect', '0xFLL is no number' },
    { SUM, "== 'table'", "== '\\x41'", 'dialect', 'no escape "\\x"' },
  }
  for _, case in ipairs(cases) do
    local file, old, new, rule, words = unpack(case, 1, 5)
    it(('%s: %s -> %s'):format(rule or 'nothing', texts.shown(old), texts.shown(new)), function()
      local changed = folder .. '/good/' .. path.basename(file)
      utils.writefile(changed, texts.with(utils.readfile(file), old, new))

      local findings = lint.run({ changed })

      local found = rule == nil and #findings == 0
      for _, finding in ipairs(findings) do
        found = found or finding.rule == rule and finding.message:find(words, 1, true)
      end
      assert.is_truthy(found, findings[1] and findings[1].message)
    end)
  end
end)

describe('lint of a ledger', function()
  local HEAD = '# name\tversion\tsha1\tsince\n'
  local SCRIPT = FIXTURES .. 'ledger/ticket/count.lua'
  local folder, sha1

  local function lint_with(rows)
    utils.writefile(folder .. '/released.tsv', HEAD .. rows)
    return lint.run({ folder })
  end

  local function git(command_line)
    local ok, _, _, why = utils.executeex(
      ('git -C %s -c user.name=x -c user.email=x %s'):format(folder, command_line))
    assert.is_true(ok, why)
  end

  local function set_version(version)
    local text = utils.readfile(SCRIPT)
    utils.writefile(folder .. '/ticket/count.lua', (text:gsub('1%.0%.0', version, 1)))
  end

  before_each(function()
    folder = linting.folder()
    dir.makepath(folder .. '/ticket')
    utils.writefile(folder .. '/ticket/count.lua', utils.readfile(SCRIPT))
    sha1 = require('latchkey.digest').sha1(utils.readfile(SCRIPT))
  end)

  after_each(function()
    dir.rmtree(folder)
  end)

  local function row(version, hash, name)
    return table.concat({ name or 'ticket/count', version, hash or sha1, '0.1.0' }, '\t') .. '\n'
  end

  local function only(findings, words)
    assert.equal(1, #findings, findings[2] and findings[2].message)
    assert.equal('ledger', findings[1].rule)
    assert.matches(words, findings[1].message, 1, true)
  end

  it('finds the script that was changed and kept its version', function()
    only(lint.run({ FIXTURES .. 'ledger' }), 'was released with other bytes')
  end)

  it('finds nothing where the released bytes are there, or a newer version', function()
    assert.same({}, lint_with(row('1.0.0')))
    set_version('1.0.10')
    assert.same({}, lint_with(row('1.0.0') .. row('1.0.9')))
  end)

  it('wants a version above the released one', function()
    set_version('1.2.0')

    only(lint_with(row('1.10.0')), '1.2.0 is below the released 1.10.0')
  end)

  it('wants 1.0.0 until the first release', function()
    set_version('1.1.0')

    only(lint_with(''), 'until then it stays 1.0.0')
  end)

  it('leaves a folder without a ledger alone', function()
    set_version('3.1.0')

    assert.same({}, lint.run({ folder }))
  end)

  it('checks the rows themselves', function()
    only(lint_with(row('1.0.0') .. row('1.0.0')), 'is released in line 2 already')
    only(lint_with(row('1.0.0') .. row('0.9.0', nil, 'a/b') .. row('0.8.0', nil, 'a/b')),
      'a/b 0.8.0 is not above the released 0.9.0')
    only(lint_with(row('1.0.0') .. row('1.0.0', 'abc', 'a/b')), 'a row is name')
    utils.writefile(folder .. '/released.tsv', 'name\n')
    only(lint.run({ folder }), 'starts with the line of its columns')
  end)

  it('refuses a row that changed or went since the newest tag', function()
    git('init -q')
    lint_with(row('1.0.0', ('a'):rep(40), 'a/b'))
    git('add .')
    git('commit -qm one')
    git('tag -a v1 -m one')
    only(lint_with(''), 'the ledger only grows')
    git('commit -qam two')

    only(lint_with(row('1.0.0', ('b'):rep(40), 'a/b')), 'the ledger only grows')
    assert.same({}, lint_with(row('1.0.0', ('a'):rep(40), 'a/b') .. row('1.0.0')))
  end)
end)

describe('latchkey lint', function()
  it('checks the project\'s own scripts unless told others', function()
    local code, out, err = command.run('lint')

    assert.equal(0, code)
    assert.equal('', out)
    assert.matches('^scripts checked: %d%d+, findings: 0\n$', err)
  end)

  it('writes one line for each finding and exits 1', function()
    local code, out = command.run('lint', FIXTURES .. 'bad/time.lua')

    assert.equal(1, code)
    assert.equal(FIXTURES .. 'bad/time.lua:18: time: a second TIME; keep the answer of line 17\n',
      out)
  end)

  it('writes one JSON document', function()
    local code, out = command.run('lint', '--json', FIXTURES .. 'bad/time.lua', FIXTURES .. 'good')

    assert.equal(1, code)
    local document = cjson.decode(out)
    assert.equal('latchkey/lint/1', document.schema)
    assert.equal(1 + #dir.getfiles(FIXTURES .. 'good'), document.checked)
    assert.same({ { file = FIXTURES .. 'bad/time.lua', line = 18, rule = 'time',
      message = 'a second TIME; keep the answer of line 17' } }, document.findings)
  end)

  it('exits 64 for a file that is not there', function()
    local code, _, err = command.run('lint', 'none.lua')

    assert.equal(64, code)
    assert.matches('there is no file or folder none.lua', err, 1, true)
  end)

  it('says of a folder that cannot be read that it is so, and checks the others', function()
    local folder = linting.folder()
    finally(function()
      utils.execute('rm -r ' .. folder)
    end)
    dir.makepath(folder .. '/base/good')
    dir.copyfile(FIXTURES .. 'good/ask.lua', folder .. '/base/good/ask.lua')
    dir.makepath(folder .. '/base/_fragments')
    for _, file in ipairs(dir.getfiles(FIXTURES .. '_fragments')) do
      dir.copyfile(file, folder .. '/base/_fragments')
    end
    -- To itself, to a folder on the way, and to one above all that is named.
    for name, to in pairs({ again = '.', back = '../base', up = '../..' }) do
      utils.execute(('ln -s %s %s/base/%s'):format(to, folder, name))
    end

    local code, out, err = command.run('lint', folder .. '/base')

    assert.equal(1, code)
    for _, name in ipairs({ 'again', 'back', 'up' }) do
      assert.matches(('%s:0: file: %s/base/%s: a link that leads back to '):format(folder
        .. '/base', folder, name), out, 1, true)
    end
    assert.matches('scripts checked: 1, findings: 3\n', err, 1, true)
  end)

  it('checks a folder beside whose scripts others are deep, and says what it passed over',
    function()
      local folder = linting.folder()
      finally(function()
        utils.execute('rm -r ' .. folder)
      end)
      dir.makepath(folder .. '/good')
      dir.copyfile(FIXTURES .. 'good/ask.lua', folder .. '/good/ask.lua')
      dir.makepath(folder .. '/_fragments')
      for _, file in ipairs(dir.getfiles(FIXTURES .. '_fragments')) do
        dir.copyfile(file, folder .. '/_fragments')
      end
      dir.makepath(folder .. '/src/main/java/org/acme/shop/stock/take/model/part')
      -- Links that lead elsewhere are followed, however often.
      utils.execute(('ln -s good %s/same && ln -s same %s/third'):format(folder, folder))

      local code, out, err = command.run('lint', folder)

      assert.same({ 0, '' }, { code, out })
      assert.matches('scripts checked: 1, findings: 0\n', err, 1, true)
      assert.matches(('passed over, since it is more than 8 folders deep: %s/src/main/java/org/'
        .. 'acme/shop/stock/take/model\n'):format(folder), err, 1, true)
      dir.makepath(folder .. '/src/main/java/org/acme/shop/stock/take/view/part')
      err = select(3, command.run('lint', folder))
      assert.matches('/take/model (and 1 more)\n', err, 1, true)
    end)

  it('lists its rules', function()
    local code, out = command.run('lint', '--rules')

    assert.equal(0, code)
    assert.matches('\ntime +TIME is read once', out)
    local _, json = command.run('lint', '--rules', '--json')
    assert.equal(#lint.rules, #cjson.decode(json).rules)
  end)

  it('compares copies with the project\'s fragments where a folder has none', function()
    local folder = linting.folder()
    dir.makepath(folder .. '/lock')
    utils.writefile(folder .. '/lock/renew.lua', utils.readfile('scripts/lock/renew.lua'))

    local code, out = command.run('lint', folder)
    dir.rmtree(folder)

    assert.equal(0, code, out)
  end)
end)

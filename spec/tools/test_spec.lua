-- SPDX-License-Identifier: Apache-2.0
-- tools/test itself, with sections that take no time.
local signal = require('posix.signal')

local workshop = require('support.workshop')

if not rawget(_G, 'jit') then
  return -- once is enough: it is a program of the shell's
end

local TABLE = 'section\tminutes\tlane\ttier\twhat\n'
  .. 'one\t1\talone\tevery run\tthe first\n'
  .. 'two\t1\tcomputes\tevery run\tthe second\n'
  .. 'three\t1\twaits\tevery run\tthe third\n'

describe('tools/test', function()
  local tree

  local function begin(below)
    tree = workshop.new(below)
    tree:copy('tools/test', 'tools/lib/quoted.sh', 'tools/lib/test/lanes.sh',
      'tools/lib/test/tap.sh')
    tree:write('tools/lib/test/sections.tsv', TABLE)
  end

  before_each(function()
    begin()
  end)

  after_each(function()
    tree:remove()
  end)

  local function sections(text)
    tree:write('tools/lib/test/sections.sh', text)
  end

  it('counts what passed, failed and was skipped, and says where', function()
    sections([[section_one() { check 'one passes' true; }
      section_two() { check 'two fails' false; check 'two passes' true; }
      section_three() { skip 'three' 'nothing is there'; }]])

    local code, said = tree:run('tools/test --no-setup')

    assert.equal(1, code)
    assert.matches('\nfailed:\n  two: two fails %(exit code 1%)\n', said)
    assert.matches('\n2 passed, 1 failed, 1 skipped\n$', said)
    assert.equal(0, (tree:run('tools/test --no-setup --only one --only three')))
  end)

  it('has installed what its sections need, and what --full alone needs', function()
    sections("section_one() { check 'it is there' test -e installed; }")
    tree:program('tools/setup', '#!/bin/sh\necho "$1" >installed\n')

    for words, tier in pairs({ [''] = 'test\n', [' --full'] = 'full\n' }) do
      assert.equal(0, (tree:run('rm -f installed && tools/test --only one' .. words)))
      assert.equal(tier, tree:read('installed'))
    end
    tree:program('tools/setup', '#!/bin/sh\nexit 69\n')
    assert.equal(69, (tree:run('tools/test --only one')))
  end)

  it('does not run twice in one folder', function()
    sections([[section_two() {
        check 'two passes' true
        until [ -e end ]; do sleep 0.05; done
        check 'two fails' false
      }]])
    local first = tree:start('tools/test --no-setup --only two')
    tree:await('build/test/two.log')

    local code, said = tree:run('tools/test --no-setup --only two')

    assert.equal(69, code, said)
    assert.matches('^test: another run is going on in build/test', said)
    tree:write('end', '')
    assert.same({ 'exited', 1 }, { tree:ended(first) })
    assert.matches('1 passed, 1 failed', tree:read('said'), 1, true)
  end)

  it('may run again though something that it started lives on', function()
    sections([[section_two() {
        check 'a server' sh -c 'setsid sleep 20 & echo $! >pid'
      }]])
    finally(function()
      signal.kill(tonumber(tree:read('pid')), signal.SIGKILL)
    end)

    assert.equal(0, (tree:run('tools/test --no-setup --only two')))
    assert.equal(0, (tree:run('tools/test --no-setup --only two')))
  end)

  -- A limit for the length of files is as a full disk: all can be made, and nothing be written.
  local FULL = "trap '' XFSZ; { %s exec tools/test --no-setup %s; } 2>&1 | cat; "
    .. 'exit ${PIPESTATUS[0]}'
  local function on_a_disk(command, arguments)
    return tree:run(('bash -c "%s"'):format(FULL:format(command, arguments):gsub('%$', '\\$')))
  end

  it('begins nothing where nothing can be written', function()
    sections([[section_one() { check 'one passes' true; }]])

    local code, said = on_a_disk('ulimit -f 0;', '--only one')

    assert.equal(69, code, said)
    assert.matches('test: nothing can be written into [^\n]*/build/test: ', said)
    tree:run('rm -r build; : >build')
    assert.equal(69, (tree:run('tools/test --no-setup --only one')))
  end)

  for _, case in ipairs({
    { 'the disk is full', 'prlimit --pid $$ --fsize=0' },
    { 'the folder is gone', 'rm -r "$LK_TEST_DIR" && : >"$LK_TEST_DIR"' },
  }) do
    it('fails all sections that come when ' .. case[1], function()
      sections(([[section_one() { check 'one passes' true; %s; }
        section_two() { check 'two fails' false; }
        section_three() { check 'three fails' false; }]]):format(case[2]))

      local code, said = on_a_disk('', '')

      assert.equal(1, code, said)
      for _, name in ipairs({ 'two', 'three' }) do
        assert.matches('\n  ' .. name .. ': was not run to its end', said)
      end
    end)
  end

  it('fails a section that wants the machine for itself, and fills the disk', function()
    sections([[section_one() {
        local pid=$BASHPID
        while [ "$pid" != $PPID ]; do
          prlimit --pid "$pid" --fsize=0
          read -r _ _ _ pid _ <"/proc/$pid/stat"
        done
        check 'one fails' false
      }]])

    local code, said = on_a_disk('', '--only one')

    assert.equal(1, code, said)
    assert.matches('\n  one: ', said)
  end)

  it('fails a section of a lane that there is not', function()
    tree:write('tools/lib/test/sections.tsv', TABLE:gsub('waits', 'sleeps'))
    sections([[section_three() { check 'three passes' true; }]])

    local code, said = tree:run('tools/test --no-setup --only three')

    assert.equal(1, code, said)
    assert.matches('\n  three: was not run', said)
  end)

  for _, case in ipairs({ { 'alone', 'one' }, { 'in a lane', 'two' } }) do
    it(('ends at once with what it started when Ctrl-C is typed, %s'):format(case[1]), function()
      sections(([[section_%s() {
        check 'it waits' sh -c 'echo $$ >pid.new && mv pid.new pid && sleep 40'
      }]]):format(case[2]))
      local pid = tree:start('exec tools/test --no-setup --only ' .. case[2])
      tree:await('pid')

      signal.kill(-pid, signal.SIGINT)

      assert.same({ 'exited', 130 }, { tree:ended(pid, 20) })
      assert.is_true(tree:has_gone(tonumber(tree:read('pid')), 20))
    end)
  end

  it('ends a function that hangs, and what it called', function()
    sections([[limit_s=2
      slow() { echo "${1-}" && sleep 20; }
      section_one() {
        check 'it ends' slow 'a  b'
        check_fails 'this, too' slow
        tap 'and this' slow
      }]])

    local code, said = tree:run('tools/test --no-setup --only one')

    assert.equal(1, code, said)
    assert.matches('it ends (exit code 124)', said, 1, true)
    assert.matches('this, too (exit code 124, 1 was due)', said, 1, true)
    assert.matches('and this: 0 tests planned, 0 run, exit code 124', said, 1, true)
    assert.equal('a  b\n', tree:read('build/test/one.log'):match('^[^\n]*\n'))
  end)

  -- In front of a search path it would be two folders: another server would be tested.
  it('refuses a clone below a folder with a colon', function()
    tree:remove()
    begin('a:b')
    sections([[section_one() { check 'one passes' true; }]])

    local code, said = tree:run('tools/test --no-setup --only one')

    assert.equal(69, code, said)
    assert.matches('^test: [^\n]+/a:b has a colon', said)
  end)

  it('knows sections by their names alone', function()
    sections('')

    for _, wrong in ipairs({ 'thre.', '', 'one\ntwo', 'section' }) do
      local code, said = tree:run("tools/test --no-setup --only '" .. wrong .. "'")

      assert.equal(64, code, wrong)
      assert.matches('^test: no section ', said)
    end
  end)

  describe('with another server', function()
    -- What a server says is what it was called by.
    local function server(name)
      return tree:program(name, '#!/bin/sh\necho "this is $0"\n')
    end

    before_each(function()
      sections([[section_one() { check 'the server' redis-server; }]])
    end)

    for _, locale in ipairs({ 'C', 'C.UTF-8' }) do
      it(('has it whatever it is called, in the locale %s'):format(locale), function()
        local name = "ü's $x/a redis\tserver"
        local program = server(name)

        local code, said = tree:run(('LC_ALL=%s tools/test --no-setup --only one --server "%s"')
          :format(locale, (name:gsub('%$', '\\$'))))

        assert.equal(0, code, said)
        assert.equal('this is ' .. program .. '\n', tree:read('build/test/one.log'))
      end)
    end

    it('looks for it where one stands', function()
      local program = server('elsewhere/server')

      local code, said = tree:run('cd elsewhere && ../tools/test --no-setup --only one '
        .. '--server ./server')

      assert.equal(0, code, said)
      assert.equal('this is ' .. program .. '\n', tree:read('build/test/one.log'))
    end)

    it('takes no folder for it', function()
      local code, said = tree:run('tools/test --no-setup --only one --server /tmp')

      assert.equal(64, code, said)
      assert.matches("^test: %-%-server needs a program, and '/tmp' is none\n", said)
    end)
  end)

  it('looks for the folder of the build where one stands', function()
    sections([[section_one() { check 'it is there' test -e "$LK_BUILD/it"; }]])
    tree:write('elsewhere/built/it', '')

    local code, said = tree:run('cd elsewhere && ../tools/test --no-setup --only one '
      .. '--build-dir built')

    assert.equal(0, code, said)
  end)
end)

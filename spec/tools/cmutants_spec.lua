-- SPDX-License-Identifier: Apache-2.0
-- tools/cmutants on a library of one function, with a simulator and a unit test of a few lines.
local workshop = require('support.workshop')

if not rawget(_G, 'jit') then
  return -- once is enough: it is a program of LuaJIT's
end

local lacks = workshop.lacks('cc', 'gcov')
local it = not lacks and it or function(title)
  pending(title .. ': ' .. lacks)
end

local LIBRARY = 'int sum(int a, int b);\nint sum(int a, int b) {\n  return a + b;\n}\n'
local SUM = 'int sum(int a, int b);\n'

-- A simulator that finds a sum that is not one, and one that finds nothing.
local FINDS = SUM .. '#include <stdio.h>\nint main(void) {\n'
  .. '  if (sum(2, 3) != 5) puts("OVERLAP: 2 and 3");\n  return sum(2, 3) != 5;\n}\n'
local FINDS_NOTHING = SUM .. 'int main(void) { return sum(0, 0); }\n'

local OBJECT = 'c/src/CMakeFiles/latchkey_objects.dir/locks/x.c.o'

describe('tools/cmutants', function()
  local tree

  -- Simulator and unit test, built of these texts.
  local function build(simulator, test)
    tree:write('c/src/locks/x.c', LIBRARY)
    tree:write('c/src/harness/empty.c', '')
    tree:write('c/tests/unit/test_x.c', test or FINDS_NOTHING)
    tree:write('build/sim.c', simulator)
    tree:write('build/' .. OBJECT, '')
    -- CMake quotes what needs it.
    local source = tree.root .. '/c/src/locks/x.c'
    local quoted = source:find(' ', 1, true) and ('\\"%s\\"'):format(source) or source
    tree:write('build/compile_commands.json', ([=[[{"file": "%s",
      "command": "cc -o %s -c %s"}]]=]):format(source, OBJECT, quoted))
    tree:write('build/cmutants.tsv', '# none\ntest_x\tc/src/locks/x.c\t3\t3\n')
    tree:program('bin/ninja', ([[#!/bin/sh
      program=${3#tests/}
      echo ": && cc %s $program.o -o tests/$program && :"
    ]]):format(OBJECT))
    local code, said = tree:run(([[cd build && mkdir -p tests && cc -o %s -c ../c/src/locks/x.c &&
      cc -o sim.o -c sim.c && cc -o test_x.o -c ../c/tests/unit/test_x.c &&
      cc %s sim.o -o tests/sim && cc %s test_x.o -o tests/test_x && touch cmutants.tsv]])
      :format(OBJECT, OBJECT, OBJECT))
    assert.equal(0, code, said)
  end

  local function run(arguments)
    return tree:run('PATH="$PWD/bin:$PATH" tools/cmutants --for 0 ' .. (arguments or ''))
  end

  local function begin(below)
    tree = workshop.new(below)
    tree:copy('tools/cmutants', 'tools/lib/cmutate.lua')
    tree:write('tools/lib/cmutants.tsv', '')
  end

  before_each(function()
    begin('sp ace/ü')
  end)

  after_each(function()
    tree:remove()
  end)

  for _, jobs in ipairs({ 1, 2 }) do
    it(('says what the simulator found, with %d jobs'):format(jobs), function()
      build(FINDS)

      local code, said = run('--jobs ' .. jobs)

      assert.equal(0, code, said)
      assert.matches('\tkilled\tsim: OVERLAP\t', said, 1, true)
      assert.matches('\n1 mutants: 1 killed, 0 alive (100 % killed)', said, 1, true)
    end)

    it(('fails where a file of the library does not compile, with %d jobs'):format(jobs), function()
      build(FINDS)
      tree:write('c/src/locks/x.c', LIBRARY .. 'no C\n')

      local code, said = run('--jobs ' .. jobs)

      assert.equal(jobs == 1 and 69 or 1, code, said)
      assert.is_nil(said:find('100 %', 1, true))
      assert.matches('c/src/locks/x.c does not compile', said, 1, true)
    end)
  end

  it('says what lives', function()
    build(FINDS_NOTHING)

    local code, said = run()

    assert.equal(1, code, said)
    assert.matches('\n1 mutants: 0 killed, 1 alive', said, 1, true)
  end)

  it('works in a folder without a blank, too', function()
    tree:remove()
    begin()
    build(FINDS)

    assert.matches('\tkilled\tsim: OVERLAP\t', select(2, run()), 1, true)
  end)

  it('says which unit test finds it', function()
    build(FINDS_NOTHING, FINDS)

    assert.matches('\tkilled\ttest_x\t', select(2, run()), 1, true)
  end)

  it('has the lines counted that a unit test runs', function()
    build(FINDS_NOTHING, FINDS)
    tree:run('rm build/cmutants.tsv')
    -- It configures nothing.
    tree:program('bin/cmake', ([[#!/bin/sh
      [ "$1" = --build ] || exit 0
      mkdir -p "$2/tests" "$2/$(dirname %s)" && cd "$2" &&
        cc --coverage -o %s -c ../../c/src/locks/x.c &&
        cc --coverage -o tests/test_x ../../c/tests/unit/test_x.c %s
    ]]):format(OBJECT, OBJECT, OBJECT))

    local code, said = run()

    assert.equal(0, code, said)
    assert.equal('# program\tfile\tlines that it runs\tlines that there are\n'
      .. 'test_x\tc/src/locks/x.c\t2,3\t2,3\n', tree:read('build/cmutants.tsv'))
    assert.matches('\tkilled\ttest_x\t', said, 1, true)
  end)

  for _, case in ipairs({
    { 'a simulator that finds something in the library itself', FINDS:gsub('5', '6'),
      FINDS_NOTHING, 'sim finds something' },
    { 'a simulator that does not run', 'int main(void) { return 127; }\n', FINDS_NOTHING,
      'sim ended with 127' },
    { 'a unit test that fails', FINDS_NOTHING, 'int main(void) { return 1; }\n',
      'test_x finds something' },
  }) do
    it('counts nothing as found by ' .. case[1], function()
      build(case[2], case[3])

      local code, said = run()

      assert.equal(69, code, said)
      assert.is_nil(said:find('\tkilled\t', 1, true))
      assert.matches(case[4], said, 1, true)
    end)
  end

  it('takes a world that cannot be made for no finding', function()
    build(SUM .. 'int main(void) { return sum(2, 3) != 5 ? 70 : 0; }\n')

    local code, said = run()

    assert.equal(1, code, said)
    assert.matches('1 alive', said, 1, true)
  end)

  for _, wrong in ipairs({ '--file nosuch', '--first 1000000', '--only 0,7', '--first=-3 --count=3',
    '--count 0' }) do
    it('refuses what leaves nothing to be changed: ' .. wrong, function()
      build(FINDS)

      local code, said = run(wrong)

      assert.equal(64, code, said)
      assert.matches('cmutants: none of the 1 places', said:gsub('the 0', 'the 1'), 1, true)
    end)
  end
end)

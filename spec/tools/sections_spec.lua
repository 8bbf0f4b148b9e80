-- SPDX-License-Identifier: Apache-2.0
-- Sections of tools/test, in a tree where only what a test is about is there; the others fail at
-- once.
local workshop = require('support.workshop')

if not rawget(_G, 'jit') then
  return -- once is enough: they are programs of the shell's
end

describe('the sections of tools/test', function()
  local tree

  before_each(function()
    tree = workshop.new('sp ace/ü, a')
    tree:copy('tools/test', 'tools/lib/quoted.sh')
    for _, name in ipairs({ 'lanes.sh', 'tap.sh', 'sections.sh', 'sections.tsv', 'matrix.sh',
      'with_terminals.sh' }) do
      tree:copy('tools/lib/test/' .. name)
    end
  end)

  after_each(function()
    tree:remove()
  end)

  local function built(folder)
    tree:write(folder .. '/CMakeCache.txt', 'CMOCKA_FOUND:INTERNAL=1\n')
  end

  -- Its lines of TAP.
  local function results_of(section)
    tree:run('PATH="$PWD/bin:$PATH" tools/test --no-setup --only ' .. section)
    return assert(tree:read('build/test/' .. section .. '.tap'))
  end

  for _, name in ipairs({ 'asan', 'tsan' }) do
    it(('run programs of a sanitizer whatever the folder is called: %s'):format(name), function()
      local lacks = workshop.lacks('gcc')
      if lacks then
        pending(lacks)
      end
      local flags = name == 'asan' and 'address,undefined' or 'thread'
      built('build/' .. name)
      tree:write('c/tests/unit/test_it.c', [[#include <stdio.h>
        #include <stdlib.h>
        int main(int argc, char **argv) {
          char *one = malloc(1);
          printf("1..1\nok 1 - it is run\n");
          fflush(stdout);
          (void)argv;
          return one[argc] < 0;
        }]])
      tree:program('tools/lib/build.sh', ('#!/bin/sh\nmkdir -p "$2/tests"\n'
        .. 'exec gcc -fsanitize=%s -o "$2/tests/test_it" c/tests/unit/test_it.c\n'):format(flags))

      local results = results_of(name)

      assert.matches(('ok - build (%s)\n1..1\nok 1 - it is run'):format(name), results, 1, true)
      if name == 'asan' then
        assert.matches('not ok - no reports (asan)', results, 1, true)
        assert.matches('heap-buffer-overflow', tree:read('build/test/asan.log'), 1, true)
      end
    end)
  end

  it('test the servers that are named, from where one stands', function()
    built('build')
    tree:program('bin/redis-server', '#!/bin/sh\necho "Redis server v=1 sha=0"\n')
    tree:program("elsewhere/ü's $x", '#!/bin/sh\necho "Valkey server v=2 sha=0"\n')
    tree:write('c/tests/live/test_it.c', '')
    tree:program('build/tests/test_it', '#!/bin/sh\necho 1..1\n'
      .. 'echo "ok 1 - it was $(redis-server --version)"\n')

    tree:run([[cd elsewhere && export LC_ALL=C PATH="$PWD/../bin:$PATH" &&
      LATCHKEY_SERVERS="./ü's \$x:nowhere:/tmp" ../tools/test --no-setup --only matrix]])

    local results = tree:read('build/test/matrix.tap')
    assert.matches('\nok 1 - Redis 1, standalone: it was Redis server v=1', results, 1, true)
    assert.matches('\nok 1 - Valkey 2, standalone: it was Valkey server v=2', results, 1, true)
    assert.matches('not ok - nowhere of LATCHKEY_SERVERS is no program\n', results, 1, true)
    assert.matches('not ok - /tmp of LATCHKEY_SERVERS is no program\n', results, 1, true)
  end)

  for _, case in ipairs({
    { 'cannot be got', 'exit 69', 'tools/servers ended with 69' },
    { 'are not even listed', 'exit 1', 'tools/servers ended with 1' },
    { 'are got in part', 'printf "some\\t-\\tno archive\\n"; exit 1', 'no archive', 'some' },
  }) do
    it('skip other servers that ' .. case[1], function()
      built('build')
      tree:program('bin/redis-server', '#!/bin/sh\necho "Redis server v=1 sha=0"\n')
      tree:program('tools/servers', '#!/bin/sh\n' .. case[2] .. '\n')
      local name = case[4] or 'other servers'

      assert.matches(('ok - %s # SKIP %s\n'):format(name, case[3]), results_of('matrix'), 1, true)
      assert.matches(('\n| %s | not run: %s |'):format(name, case[3]),
        tree:read('build/test/matrix.md'), 1, true)
    end)
  end

  for _, case in ipairs({
    { 'are made', '```build\nmkdir -p build/packages/packages\n'
      .. ': >build/packages/packages/it.deb\n```\n',
      'ok - the packages are made\n1..1\nok 1 - they are used' },
    { 'are made of words that make none', '```build\ntrue\n```\n',
      'not ok - the packages are made (exit code 1)\n' },
    { 'are made of a page without words', '# Install\n',
      'not ok - the packages are made (exit code 1)\n' },
  }) do
    it('test packages that ' .. case[1], function()
      for _, name in ipairs({ 'debootstrap', 'dpkg-shlibdeps', 'file', 'unshare' }) do
        tree:program('bin/' .. name, '#!/bin/sh\n')
      end
      tree:program('c/packaging/test', '#!/bin/sh\necho 1..1\necho ok 1 - they are used\n')
      tree:write('docs/howto/install.md', case[2])

      assert.matches(case[3], results_of('packages'), 1, true)
    end)
  end

  for _, case in ipairs({
    { 'are listed', 'in_c in_lua', 0, '\nok - fuzz in_c\nok - fuzz in_lua\n' },
    { 'are listed in part', 'in_c', 69,
      '\nnot ok - fuzz: the targets cannot be listed (exit code 69)\n' },
  }) do
    it('run targets of the fuzzer that ' .. case[1], function()
      tree:program('bin/clang', '#!/bin/sh\n')
      tree:program('tools/fuzz', ('#!/bin/sh\n[ "$1" = --list ] || exit 0\n'
        .. 'for name in %s; do echo $name; done\nexit %d\n'):format(case[2], case[3]))

      assert.matches(case[4], '\n' .. results_of('fuzz'), 1, true)
    end)
  end

  describe('compare the hashes of a seed:', function()
    local function worlds(hash, behind)
      return ('for n in 1 2 3 4 5 6; do echo "seed $n: 7 steps, 0 violations, hash %s"; done%s')
        :format(hash, behind or '')
    end
    for _, case in ipairs({
      { 'the same', worlds('1f'), true },
      { 'another elsewhere', worlds('$(pwd | cksum | cut -c -9)'), false },
      { 'another in one kind of world',
        worlds('1f$(test "$1" != --busy || pwd | cksum | cut -c -9)'), false },
      { 'none', 'exit 0', false },
      { 'a program that dies', worlds('1f', '; kill -9 $$'), false },
    }) do
      it(case[1], function()
        built('build')
        tree:program('build/tests/sim', '#!/bin/sh\n' .. case[2] .. '\n')

        assert.matches((case[3] and '\nok' or '\nnot ok') .. ' - one hash for each seed',
          results_of('sim'), 1, true)
      end)
    end
  end)
end)

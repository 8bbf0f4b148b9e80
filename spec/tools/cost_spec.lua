-- SPDX-License-Identifier: Apache-2.0
-- What c/tests/cost/run.sh makes of counts that are as wanted here, without a server.
local workshop = require('support.workshop')

local COST = 'c/tests/cost/'

-- As valgrind: 1,000 instructions each, or so many as are wanted, and a command that is a script.
local VALGRIND = [[#!/bin/sh
count=$5
each=1000
if [ "${6-}" = answering ]; then each=$ANSWERING; fi
echo "$count"
echo "$count" >>counted
echo "==1== Collected : $((1000000 + each * count))" >&2
]]

-- As strace: two calls for each pair, and a write for a hundred renewals, of a program that starts.
local STRACE = [[#!/bin/sh
while [ "$1" != -o ]; do
  case $1 in trace=*) name=${1#trace=} name=${name%%,*} ;; esac
  shift
done
made=$(($5 * 2))
if [ "$6" = renew ]; then made=$(($5 / 100)); fi
: >"$2"
"$3" "$4" "$5" "$6" && seq "$made" | sed "s/.*/1 $name(/" >"$2"
]]

local REDIS_CLI = [[#!/bin/sh
case $* in
*'info commandstats')
  awk '{ n += $1 } END { print "cmdstat_evalsha:calls=" n + 0 ",usec=1" }' counted
  ;;
*'config resetstat') : >counted ;;
esac
]]

local PAIRS = [[#!/bin/sh
case $3 in
idle*) echo "$((20000 * $2)) $2" ;;
*) exit "$STARTS" ;;
esac
]]

describe('the counts of what operations cost', function()
  local tree

  before_each(function()
    tree = workshop.new()
    tree:copy(COST .. 'run.sh', COST .. 'recorded.tsv', 'scripts/lock/acquire.lua',
      'scripts/lock/release.lua')
    tree:write('counted', '')
    tree:write('build/CMakeCache.txt', 'CMAKE_C_COMPILER:FILEPATH=/usr/bin/cc\n'
      .. 'CMAKE_BUILD_TYPE:STRING=Another\n')
    tree:program('build/tests/latchkey_pairs', PAIRS)
    tree:program('bin/cc', '#!/bin/sh\necho 12\n')
    tree:program('bin/redis-server', '#!/bin/sh\n')
    tree:program('bin/redis-cli', REDIS_CLI)
    tree:program('bin/valgrind', VALGRIND)
    tree:program('bin/strace', STRACE)
  end)

  after_each(function()
    tree:remove()
  end)

  local function count(settings)
    local _, said = tree:run(('%s PATH=$PWD/bin:$PATH %srun.sh build'):format(settings, COST))
    local failed = {}
    for title in said:gmatch('\nnot ok %d+ %- ([^\n]*)') do
      failed[#failed + 1] = title
    end
    local _, passed = said:gsub('\nok ', '')
    assert.equal(11, passed + #failed, said)
    return failed
  end

  it('are good where they are as they should be', function()
    assert.same({}, count('ANSWERING=1010 STARTS=0'))
  end)

  it('fail each time that a client which answers costs more', function()
    assert.same({ 'answers: 1500 instructions and 1 commands a pair, without 1000 and 1' },
      count('ANSWERING=1500 STARTS=0'))
  end)

  it('fail where a client which answers was not counted', function()
    assert.same({ 'answers: 0 instructions and 1 commands a pair, without 1000 and 1' },
      count('ANSWERING=0 STARTS=0'))
  end)

  it('fail where nothing was renewed', function()
    local failed = count('ANSWERING=1000 STARTS=1')

    assert.equal('0 writes for 2000 renewals, at most 100', table.concat(failed, '\n')
      :match('[^\n]*renewals[^\n]*'))
  end)
end)

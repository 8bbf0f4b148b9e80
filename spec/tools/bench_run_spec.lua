-- SPDX-License-Identifier: Apache-2.0
-- tools/bench/run with stand-ins for what it builds and measures.
local workshop = require('support.workshop')

local bench_rows = require('bench.rows')

local RUN = 'tools/bench/run --build build'

-- It listens on its socket; the port is another's.
local SERVER = [[#!/bin/sh
sleep 0.3
echo "port $2 is taken"
exit 1
]]

-- Whatever is asked at a port answers.
local CLI = [[#!/bin/sh
echo "$*" >>asked
case $* in -p*ping) echo PONG ;; *INFO*) echo redis_version:7.0.15 ;; esac
]]

describe('the tool that measures', function()
  local tree

  before_each(function()
    tree = workshop.new()
    tree:copy('tools/bench', 'tools/lib/build.sh', 'tools/lib/test/with_server.sh',
      'scripts/lock/acquire.lua', 'scripts/lock/release.lua')
    for _, name in ipairs({ 'cmake', 'npm', 'python3' }) do
      tree:program('bin/' .. name, '#!/bin/sh\nexit 1\n')
    end
    tree:program('bin/cmake', '#!/bin/sh\n')
    tree:program('bin/redis-server', SERVER)
    tree:program('bin/redis-cli', CLI)
    tree:program('bin/luajit', '#!/bin/sh\necho measured\n')
  end)

  after_each(function()
    tree:remove()
  end)

  local function run(words)
    return tree:run('PATH=$PWD/bin:$PATH ' .. RUN .. ' ' .. words)
  end

  it('takes no server for its own that has its port', function()
    local code, said = run('')

    assert.not_equal(0, code)
    assert.matches('port %d+ is taken', said)
    assert.is_nil(said:find('measured', 1, true))
    assert.is_nil(tree:read('asked'))
  end)

  it('knows all rows, and refuses others', function()
    local _, help = run('--help')
    local known = {}
    for _, row in ipairs(bench_rows) do
      known[#known + 1] = row.id
    end

    assert.truthy(help:find('only these: ' .. table.concat(known, ', ') .. '\n', 1, true), help)
    for _, words in ipairs({ '--rows ones', '--rows one,wait', '--rows "one eight"x' }) do
      local code, said = run(words)
      assert.equal(64, code, words)
      assert.matches('there is no row "', said)
    end
  end)

  it('replaces the page by no part of it', function()
    for _, words in ipairs({ '--full --rows one', '--rows one --full', '--full --out new' }) do
      local code, said = run(words)
      assert.equal(64, code, words)
      assert.matches('%-%-full writes the whole page', said)
    end
  end)

  local function measure(pairs_made)
    tree:run('rm bin/luajit')
    local function says(json)
      return "#!/bin/sh\necho '" .. json:format(pairs_made) .. "'\n"
    end
    tree:program('build/latchkey', says('{"pairs_per_s":%d}'))
    tree:program('build/bench/bench_pairs', says('{"pairs":%d,"seconds":1,"client_cpu_us":1}'))
    return tree:run('PATH=$PWD/bin:$PATH LATCHKEY_SPEC_URL=unix:///nowhere/s '
      .. 'LK_BENCH_CLI=redis-cli LK_BENCH_BUILD=build LK_BENCH_ROWS=eight LK_BENCH_OUT=build '
      .. 'LUA_PATH="tools/?.lua;;" luajit tools/bench/measure.lua')
  end

  it('fails where a run made nothing', function()
    local code, said = measure(0)

    assert.equal(1, code)
    assert.matches('this made no pair, or no hand%-off: build/latchkey bench ', said)
  end)

  it('says what runs made', function()
    local code, said = measure(40)

    assert.equal(0, code, said)
    assert.matches('| latchkey | 40 |', said, 1, true)
    assert.matches('server Redis 7.0.15 over', said, 1, true)
  end)
end)

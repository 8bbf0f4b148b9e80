-- SPDX-License-Identifier: Apache-2.0
-- Locks among very many other keys: LATCHKEY_SPEC_KEYS of them, 1,000,000 unless it says otherwise.
local program = require('cli.program')
local session = require('cli.session')

local CLIENT = 'lk-8743c9c0-0795-4907-87fd-6c719a6b4586'
local KEYS = tonumber(os.getenv('LATCHKEY_SPEC_KEYS') or 1000000)

-- What no command of a look may take from the server.
local LIMIT_US = 5000

-- Strings, hashes, a few of them large, and lists, in portions that keep the server answering.
local FILL = [[
for i = ARGV[1], ARGV[2] do
  if i % 20 == 0 then
    redis.call('HSET', 'user:' .. i, 'name', 'me', 'visits', i)
  elseif i % 20 == 1 then
    redis.call('RPUSH', 'list:' .. i, i)
  else
    redis.call('SET', 'text:' .. i, i)
  end
end]]
local LARGE = [[
redis.call('SET', 'page', string.rep('x', 50000000))
for i = 1, 100000 do
  redis.call('HSET', 'visits', 'user:' .. i, i)
end]]

local SLOW = [[
local list = {}
for _, entry in ipairs(redis.call('SLOWLOG', 'GET', '-1')) do
  list[#list + 1] = table.concat(entry[4], ' ')
end
return list]]

describe('latchkey among very many keys', function()
  local server

  setup(function()
    server = program.server('--slowlog-log-slower-than', tostring(LIMIT_US),
      '--slowlog-max-len', '10000')
    for first = 1, KEYS, 50000 do
      server:command('EVAL', FILL, '0', tostring(first), tostring(math.min(KEYS, first + 49999)))
    end
    server:command('EVAL', LARGE, '0')
    for i = 1, 3 do
      server:command('HSET', 'lock' .. i, CLIENT .. ':' .. i, '1')
      server:command('PEXPIRE', 'lock' .. i, '600000')
    end
  end)

  teardown(program.clean)

  local function slow_ones()
    local found = {}
    for line in (server:command('EVAL', SLOW, '0') .. '\n'):gmatch('([^\n]+)\n') do
      found[line] = true
    end
    return found
  end

  -- What took longer than the limit each time, since the same keys are read by the same commands. A
  -- server that is put aside by the system in the midst of a command is slow once.
  local function slow_commands(words)
    local always
    for _ = 1, 4 do
      server:command('SLOWLOG', 'RESET')
      assert.equal(0, program.run(words).code)
      local found = slow_ones()
      for line in pairs(always or {}) do
        always[line] = found[line]
      end
      always = always or found
      if next(always) == nil then
        break
      end
    end
    return always
  end

  it('finds the locks without a command that takes longer than 5 ms', function()
    assert.same({}, slow_commands({ 'ls', '--url', server.url }))
    assert.same({}, slow_commands({ 'ls', '--url', server.url, 'lock*', '--kind', 'lock' }))
    assert.same({}, slow_commands({ 'ls', '--url', server.url, 'page*', '--kind', 'mutex' }))
    assert.same({}, slow_commands({ 'top', '--url', server.url, '--once' }))
  end)

  it('finds them all', function()
    local document = program.decode(program.run({ 'ls', '--url', server.url, '--json' }).out)

    assert.is_true(document.complete)
    assert.equal(3, #document.locks)
    assert.equal('lock1', document.locks[1].name)
  end)

  it('shows on a terminal how far it is, and takes that away again', function()
    local screen = session.start({ 'ls', '--url', server.url })

    local result = screen:wait()
    local text = screen:text()
    screen:close()

    assert.equal(0, result.code)
    assert.truthy(screen.was_shown:find('\r%d+ %% of %d+ keys, %d locks?'))
    assert.truthy(text:find('^NAME +KIND +LEASE +WAITING +HOLDERS\nlock1 +lock '))
    assert.falsy(text:find('%', 1, true))
    assert.truthy(text:find('strings, which were not read among so many keys', 1, true))
  end)

  it('says nothing of it with --quiet, and not into a file', function()
    local screen = session.start({ 'ls', '--url', server.url, '--quiet' })
    screen:wait()
    local text = screen:text()
    screen:close()

    assert.truthy(text:find('^NAME'))
    assert.falsy(screen.was_shown:find('%', 1, true))
    assert.truthy(program.run({ 'ls', '--url', server.url }).err:find('^may be [^\n]+\n$'))
  end)

  it('is searched by top a piece at a time', function()
    local screen = session.start({ 'top', '--url', server.url, '--every', '100ms' })

    screen:shows('%d+ %% of %d+ keys searched')
    screen:shows('3 locks, 0 waiting')
    screen:press('q')
    local result = screen:wait()
    screen:close()

    assert.equal(0, result.code)
  end)
end)

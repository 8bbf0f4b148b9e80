-- SPDX-License-Identifier: Apache-2.0
local cjson = require('cjson')

local program = require('cli.program')

describe('latchkey exec --kind fenced', function()
  local server

  before_each(function()
    server = program.server()
  end)

  after_each(program.clean)

  local ECHO = { 'sh', '-c', 'echo "$LATCHKEY_TOKEN"' }
  local UNSET = { 'sh', '-c', 'echo "${LATCHKEY_TOKEN-none}"' }

  local function exec(options, command, settings)
    return program.run(program.exec(server, options, command), settings)
  end

  -- A shell in the outer exec shows its own token, then becomes the inner exec.
  local function nested(outer, inner, command)
    return exec(outer, { 'sh', '-c', 'echo "$LATCHKEY_TOKEN"; exec "$@"', 'sh', program.path,
      unpack(program.exec(server, inner, command)) })
  end

  local function counter(name)
    return server:command('GET', 'redisson_lock_token:{' .. name .. '}')
  end

  it('tells the command its token, which rises with each hold', function()
    local first = exec({ '--kind', 'fenced', 'job' }, ECHO)
    local second = exec({ '--kind', 'fenced', 'job' }, ECHO)

    assert.equal(0, first.code)
    assert.truthy(first.out:find('^%d+\n$'))
    assert.is_true(tonumber(second.out) > tonumber(first.out))
    assert.equal(counter('job') .. '\n', second.out)
    assert.is_true(server:is_free('job'))
  end)

  it('tells the tokens of several names in the order of the names', function()
    server:command('SET', 'redisson_lock_token:{b}', '9000000000000000')

    local result = exec({ '--kind', 'fenced', 'c', 'b', 'a' },
      { 'sh', '-c', 'echo "$LATCHKEY_LOCK"; echo "$LATCHKEY_TOKEN"' })

    assert.equal(('a\nb\nc\n%s\n9000000000000001\n%s\n'):format(counter('a'), counter('c')),
      result.out)
  end)

  it('exits 64 where the counter of tokens holds something else, and leaves it', function()
    server:command('SET', 'redisson_lock_token:{job}', 'text')

    local result = exec({ '--kind', 'fenced', 'job' }, ECHO)
    local among = exec({ '--kind', 'fenced', 'a', 'job' }, ECHO)

    for _, one in ipairs({ result, among }) do
      assert.equal(64, one.code)
      assert.equal('', one.out)
      assert.truthy(one.err:find('"job" is unsuitable: LKARG counter must hold', 1, true))
    end
    assert.equal('text', counter('job'))
    assert.is_true(server:is_free('job') and server:is_free('a'))
  end)

  it('replaces the token that it was started with, or removes it for kinds without one', function()
    local settings = { env = { LATCHKEY_TOKEN = '1' } }

    local own = exec({ '--kind', 'fenced', 'job' }, { 'env' }, settings).out

    local _, times = own:gsub('LATCHKEY_TOKEN=', '')
    assert.equal(1, times)
    assert.truthy(own:find('LATCHKEY_TOKEN=' .. counter('job') .. '\n', 1, true))
    for _, kind in ipairs({ 'lock', 'mutex' }) do
      assert.equal('none\n', exec({ '--kind', kind, 'other' }, UNSET, settings).out)
    end
  end)

  it('reports the token of each hold, null for kinds without one', function()
    local file = program.folder() .. '/report'

    exec({ '--kind', 'fenced', '--report', file, 'job' }, { 'true' })
    local fenced = program.json(file)
    exec({ '--report', file, 'other' }, { 'true' })

    assert.equal('fenced', fenced.kind)
    assert.equal(tonumber(counter('job')), fenced.holds[1].token)
    assert.equal(cjson.null, program.json(file).holds[1].token)
  end)

  it('keeps the token of the exec around it, beside those of its own names', function()
    local result = nested({ '--kind', 'fenced', 'job' }, { '--kind', 'fenced', 'job', 'other' },
      ECHO)

    local token = counter('job')
    assert.equal(0, result.code)
    assert.equal(('%s\n%s\n%s\n'):format(token, token, counter('other')), result.out)
  end)

  it('keeps the token through an exec of another kind, which has none itself', function()
    local innermost = program.exec(server, { '--kind', 'fenced', 'job' }, ECHO)
    local result = nested({ '--kind', 'fenced', 'job' }, { 'other' }, { 'sh', '-c',
      'echo "${LATCHKEY_TOKEN-none}"; exec "$@"', 'sh', program.path, unpack(innermost) })

    local token = counter('job')
    assert.equal(('%s\nnone\n%s\n'):format(token, token), result.out)
  end)

  it('reports the token of the exec around it', function()
    local file = program.folder() .. '/report'

    nested({ '--kind', 'fenced', 'job' }, { '--kind', 'fenced', '--report', file, 'job' },
      { 'true' })

    local hold = program.json(file).holds[1]
    assert.is_true(hold.nested)
    assert.equal(tonumber(counter('job')), hold.token)
  end)

  it('renews the hold of the exec around it, and learns that it was broken', function()
    local result = nested({ '--kind', 'fenced', '--lease', '1s', '--on-lost', 'warn', 'job' },
      { '--kind', 'fenced', '--lost-exit', '81', 'job' }, { 'sh', '-c',
      program.path .. ' break job --yes -q --url ' .. server.url .. ' >&2; exec sleep 60' })

    assert.equal(80, result.code)
    assert.truthy(result.err:find('the job was sent SIGTERM', 1, true))
  end)

  it('takes nothing where the counter is no token, and says so', function()
    server:command('SET', 'redisson_lock_token:{job}', 'many')

    local result = exec({ '--kind', 'fenced', 'job' }, { 'echo', 'ran' })

    assert.truthy(result.err:find('counter must hold an integer', 1, true))
    assert.equal('', result.out)
    assert.is_true(server:is_free('job'))
  end)
end)

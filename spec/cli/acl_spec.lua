-- SPDX-License-Identifier: Apache-2.0
local catalog = require('lib.catalog')
local latchkey = require('lib.latchkey')
local names = require('lib.names')
local program = require('cli.program')

local OWNER = 'lk-8743c9c0-0795-4907-87fd-6c719a6b4586:1'

-- Values that every script takes; numbers take the least that is allowed, but for the seq.
local VALUES = { lease = '1000', owner = OWNER, new_owner = OWNER:gsub(':1', ':2'), caller = 'me',
  client = 'me', command = 'SET', ids = '0123456789abcdef', reader = '', words = 'x' }

describe('latchkey acl', function()
  local server, scripts
  local seq = 0

  setup(function()
    server = program.server()
    scripts = assert(catalog.read(program.root .. '/scripts'))
  end)

  teardown(program.clean)

  local function rule(...)
    local result = program.run({ 'acl', 'app', ... })
    assert.equal(0, result.code, result.err)
    return result.out
  end

  -- The user that such a rule makes.
  local function user(...)
    server:command('ACL', 'DELUSER', 'app')
    local words = {}
    for word in rule(...):gmatch('%S+') do
      words[#words + 1] = word
    end
    words[#words + 1] = '>secret'
    assert.equal('OK', server:command(unpack(words)))
    return assert(latchkey.open(server.url, { user = 'app', password = 'secret', no_load = true }))
  end

  local function value_of(field, name)
    if field.form then
      return names.form(field.form, name)
    elseif field.name == 'seq' then
      seq = seq + 1
      return tostring(seq)
    elseif field.kind == 'writer' then
      return field.min == 0 and '' or OWNER .. ':write'
    elseif field.values then
      return field.values[1]
    end
    return VALUES[field.name] or field.kind == 'integer' and ('%.0f'):format(math.max(1, field.min))
      or 'x'
  end

  local function call(client, script, name)
    local keys, args, by_name = {}, {}, {}
    for _, field in ipairs(script.header.argv) do
      if not field.optional then
        by_name[field.name] = value_of(field, name)
        args[#args + 1] = by_name[field.name]
      end
    end
    for i, key in ipairs(script.header.keys) do
      keys[i] = key.form.kind == 'slot' and '{' .. name .. '}:target'
        or names.form(key.form, name, by_name)
    end
    return client:eval(script.name, keys, args)
  end

  it('prints one line for the server, and what is left to do on standard error', function()
    local result = program.run({ 'acl', 'app', '--names', 'orders:*', '--family', 'mutex' })
    local json = program.run({ 'acl', 'app', '--family', 'mutex', '--json' })

    assert.equal(0, result.code)
    assert.equal('ACL SETUSER app on clearselectors resetkeys resetchannels -@all '
      .. '+client|setname +del +evalsha +get +pexpire +ping +pttl +publish +script|load +select '
      .. '+set +subscribe +unsubscribe ~orders:* &latchkey_mutex:{orders:*}\n', result.out)
    assert.truthy(result.err:find('password', 1, true))
    local document = program.decode(json.out)
    assert.equal('latchkey/acl/1', document.schema)
    assert.same({ '*' }, document.keys)
    assert.same({ 'latchkey_mutex:*' }, document.channels)
  end)

  it('forms the names as the scripts do, with and without tags', function()
    local plain, tagged = rule('--names', 'a*', '--family', 'rw'),
      rule('--names', '{a}*', '--family', 'rw')

    assert.truthy(plain:find(' ~a* ~latchkey_rw_wait:{a*} ~{a*}:*:rwlock_timeout:* '
      .. '&redisson_rwlock:{a*}\n', 1, true))
    assert.truthy(tagged:find(' ~latchkey_rw_wait:{a}* ~{a}* &redisson_rwlock:{a}*\n', 1, true))
  end)

  it('includes the scripts of plain locks with fenced ones, and only them', function()
    local fenced = rule('--family', 'fenced', '--names', 'a')

    assert.truthy(fenced:find(' +hexists ', 1, true))
    assert.truthy(fenced:find(' ~a ~redisson_lock_token:{a} &redisson_lock__channel:{a}\n', 1,
      true))
    assert.falsy(fenced:find('zadd', 1, true))
  end)

  it('lets a user run every script on the names, and listen', function()
    local client = user('--names', 'orders:*', '--targets', '{orders:*}:target')

    for _, script in ipairs(scripts) do
      server:command('FLUSHALL')
      local reply, err = call(client, script, 'orders:1')

      assert.is_nil(err and err.message, script.name)
      assert.is_truthy(reply)
      for _, field in ipairs(script.header.argv) do
        if field.form then
          local channel = names.form(field.form, 'orders:1')
            .. (script.header.message == 'ticket' and ':' .. OWNER or '')
          assert(client:wait(channel)):close()
        end
      end
    end
    client:close()
  end)

  it('lets a user take and release locks with the program, and no others', function()
    user('--names', 'orders:*'):close()
    server:command('FLUSHALL')
    local function exec(kind, name)
      return program.run({ 'exec', '--url', 'unix://app@' .. server.socket, '--kind', kind, name,
        '--', 'true' }, { env = { LATCHKEY_PASSWORD = 'secret' } })
    end

    for _, kind in ipairs({ 'lock', 'fenced', 'mutex' }) do
      local result, other = exec(kind, 'orders:1'), exec(kind, 'users:1')

      assert.equal(0, result.code, result.err)
      assert.equal(69, other.code, other.err)
      server:command('FLUSHALL')
    end
  end)

  it('refuses every script on other names', function()
    local client = user('--names', 'orders:*')
    server:command('FLUSHALL')

    for _, script in ipairs(scripts) do
      local reply, err = call(client, script, 'users:1')

      assert.is_nil(reply, script.name)
      assert.equal('LK_DENIED', err.status, script.name .. ': ' .. err.message)
    end
    client:close()
    assert.equal('0', server:command('DBSIZE'))
  end)

  it('refuses scripts of other families, other keys and other channels', function()
    local client = user('--names', 'orders:*', '--family', 'lock')
    local function status_of(...)
      local _, err = client:command(...)
      return err and err.status
    end

    local _, other = call(client, scripts['mutex/acquire'], 'orders:1')
    local _, channel = client:wait('redisson_lock__channel:{users:1}')
    local _, all = client:wait('redisson_lock__channel:{orders:1}:x')

    assert.equal('LK_DENIED', other.status)
    assert.equal('LK_DENIED', channel.status)
    assert.equal('LK_DENIED', all.status)
    assert.equal('LK_DENIED', status_of('DEL', 'users:1'))
    assert.equal('LK_DENIED', status_of('PUBLISH', 'redisson_lock__channel:{users:1}', '0'))
    assert.is_nil(status_of('PUBLISH', 'redisson_lock__channel:{orders:1}', '0'))
    client:close()
  end)

  it('refuses every other command of the server', function()
    user('--names', 'orders:*', '--targets', '*'):close()
    local allowed = { auth = true, hello = true, quit = true, reset = true }
    for command in rule():gmatch('%+(%S+)') do
      allowed[command:match('^[^|]+')] = not command:find('|', 1, true)
    end
    local administrator = assert(latchkey.open(server.url, { no_load = true }))
    local all, refused = administrator:command('COMMAND'), 0

    for i = 1, all.n do
      local name, words = all[i][1], {}
      for j = 2, math.abs(all[i][2]) do
        words[j - 1] = 'orders:1'
      end
      local verdict, err = administrator:command('ACL', 'DRYRUN', 'app', name, unpack(words))
      if not allowed[name] then
        -- Of a container of commands and of such with a count of keys the arguments are wrong.
        assert.falsy(verdict and verdict.ok, name)
        refused = refused + (err and 0 or 1)
      end
    end
    administrator:close()

    assert.is_true(refused > 150)
  end)

  it('allows sharded channels when it is told to, and else not', function()
    local plain, sharded = rule(), rule('--sharded')

    assert.falsy(plain:find('+spublish', 1, true) or plain:find('+ssubscribe', 1, true))
    assert.truthy(sharded:find('+spublish +ssubscribe', 1, true))
  end)

  it('lets a user load scripts, or functions, when it is told to', function()
    local script, functions = rule('--load'), rule('--load', '--functions')
    for _, words in ipairs({ {}, { '--functions' } }) do
      user('--load', unpack(words)):close()
      local result = program.run({ 'load', '--url', 'unix://app@' .. server.socket, unpack(words) },
        { env = { LATCHKEY_PASSWORD = 'secret' } })

      assert.equal(0, result.code, result.err)
    end

    assert.truthy(script:find('+evalsha', 1, true) and script:find('+script|exists', 1, true))
    assert.falsy(script:find('+f', 1, true))
    assert.truthy(functions:find('+fcall +function|list +function|load', 1, true))
    assert.falsy(functions:find('+evalsha', 1, true) or functions:find('+script', 1, true))
  end)

  it('exits 64 for a user or a pattern that it cannot write down', function()
    for _, words in ipairs({ { 'a b' }, { 'app', '--names', 'a b' }, { 'app', '--names', 'a}b' },
      { 'app', '--names', '{}x' }, { 'app', '--targets', '' }, { 'app', '--family', 'none' } }) do
      assert.equal(64, program.run({ 'acl', unpack(words) }).code)
    end
  end)
end)

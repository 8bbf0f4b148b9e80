-- SPDX-License-Identifier: Apache-2.0
local dir = require('pl.dir')
local utils = require('pl.utils')

local catalog = require('latchkey.script.catalog')
local digest = require('latchkey.digest')
local names = require('latchkey.script.names')
local program = require('cli.program')
local own_lock = require('support.own_lock')

local OWNER = 'lk-8743c9c0-0795-4907-87fd-6c719a6b4586:1'

-- Values that every script takes; numbers take the least that is allowed, but for the seq.
local VALUES = { lease = '1000', owner = OWNER, new_owner = OWNER:gsub(':1', ':2'), caller = 'me',
  client = 'me', command = 'SET', ids = '0123456789abcdef', reader = '', words = 'x' }

-- What a guard is to run: a command of the script's own list that takes one word.
local COMMANDS = { ['guard/remove'] = 'HDEL' }

-- Every command of the server with the number of its words.
local ARITIES = [[
local list = {}
for _, info in ipairs(redis.call('COMMAND')) do
  list[#list + 1] = info[1] .. ' ' .. math.abs(info[2])
end
return list]]

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

  -- Makes the user of such a rule.
  local function user(...)
    server:command('ACL', 'DELUSER', 'app')
    local words = {}
    for word in rule(...):gmatch('%S+') do
      words[#words + 1] = word
    end
    words[#words + 1] = '>secret'
    assert.equal('OK', server:command(unpack(words)))
  end

  local function as_user(command, ...)
    return program.run({ command, '--url', 'unix://app@' .. server.socket, ... },
      { env = { LATCHKEY_PASSWORD = 'secret' } })
  end

  local function may(...)
    return server:command('ACL', 'DRYRUN', 'app', ...) == 'OK'
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

  -- Runs a script as the user; its reply, or the status of the error.
  local function call(script, name)
    local words, args, by_name = { '--json', '--', script.name }, {}, {}
    for _, field in ipairs(script.header.argv) do
      if not field.optional then
        by_name[field.name] = field.type == 'command' and COMMANDS[script.name]
          or value_of(field, name)
        args[#args + 1] = by_name[field.name]
      end
    end
    for _, key in ipairs(script.header.keys) do
      words[#words + 1] = key.form.kind == 'slot' and '{' .. name .. '}:target'
        or names.form(key.form, name, by_name)
    end
    words[#words + 1] = ','
    for _, value in ipairs(args) do
      words[#words + 1] = value
    end
    local document = program.decode(as_user('eval', unpack(words)).out)
    return document.reply, document.error and document.error.status
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

    assert.truthy(plain:find(' ~a* ~latchkey_rw_theirs:{a*} ~latchkey_rw_wait:{a*} '
      .. '~latchkey_rw_whole:{a*} ~{a*}:*:rwlock_timeout:* &redisson_rwlock:{a*} '
      .. '&redisson_rwlock:{a*}:latchkey\n', 1, true))
    assert.truthy(tagged:find(' ~latchkey_rw_theirs:{a}* ~latchkey_rw_wait:{a}* '
      .. '~latchkey_rw_whole:{a}* ~{a}* &redisson_rwlock:{a}*\n', 1, true))
  end)

  it('prints a line that redis-cli reads, whatever quotation marks a pattern has', function()
    local file = program.folder() .. '/line'
    for _, pattern in ipairs({ "it's", 'a"b', [[a\"b\*'c]], [["all"]] }) do
      assert(utils.writefile(file, rule('--names', pattern, '--family', 'mutex')))

      local said = program.start_any('redis-cli', { '-s', server.socket }, { input = file }):wait()

      assert.equal('OK\n', said.out, pattern)
      local user_is = server:command('ACL', 'GETUSER', 'app')
      assert.truthy(user_is:find('\nkeys\n~' .. pattern .. '\n', 1, true), user_is)
    end
  end)

  it('includes the scripts of plain locks with fenced ones, and only them', function()
    local fenced = rule('--family', 'fenced', '--names', 'a')

    assert.truthy(fenced:find(' +hexists ', 1, true))
    assert.truthy(fenced:find(' ~a ~redisson_lock_token:{a} &redisson_lock__channel:{a} '
      .. '&redisson_lock__channel:{a}:latchkey\n', 1, true))
    assert.falsy(fenced:find('zadd', 1, true))
  end)

  it('knows the families of somebody\'s own scripts', function()
    local folder = own_lock.folder()
    finally(function()
      dir.rmtree(folder)
    end)
    local function of_family(name)
      return program.run({ 'acl', 'app', '--dir', folder .. '/scripts', '--family', name })
    end

    local own, none = of_family('acme'), of_family('lock')

    assert.matches(' ~acme:*:lock &acme:*:free\n', own.out, 1, true)
    own_lock.write(folder, 'renew', "redis.call('PUBLISH', KEYS[1] .. ARGV[1], ARGV[2]) return 1",
      { ['argv:\n'] = 'channels:\n  - bell  bell:{name}  told\nargv:\n',
        ['cost: '] = 'message:  value\ncost: ' })
    assert.matches(' &acme:*:free &bell:*\n', of_family('acme').out, 1, true)
    assert.equal(64, none.code)
    assert.matches('there is no family "lock"; there are acme', none.err, 1, true)
  end)

  it('lets a user call somebody\'s own scripts as typed calls do', function()
    local folder = own_lock.folder()
    finally(function()
      dir.rmtree(folder)
    end)
    user('--dir', folder .. '/scripts', '--names', 'job')
    server:command('FLUSHALL')
    local function eval(verb, key, ...)
      return as_user('eval', '--dir', folder .. '/scripts', 'acme/' .. verb, key, ',', ...)
    end

    assert.equal('OK\n', eval('acquire', 'acme:job:lock', 'me', '60000').out)
    assert.equal('(integer) 1\n', eval('renew', 'acme:job:lock', 'me', '60000').out)
    assert.equal('(integer) 1\n', eval('release', 'acme:job:lock', 'me', 'acme:job:free').out)
    assert.matches('NOPERM', eval('acquire', 'acme:other:lock', 'me', '60000').err, 1, true)
  end)

  it('lets a user run a script that publishes to a sharded channel of itself', function()
    local folder = own_lock.folder()
    finally(function()
      dir.rmtree(folder)
    end)
    local release = assert(utils.readfile(folder .. '/scripts/acme/release.lua'))
    own_lock.write(folder, 'release', (release:gsub("'publish'", "'spublish'")))
    user('--dir', folder .. '/scripts', '--names', 'job')
    server:command('FLUSHALL')
    server:command('SET', 'acme:job:lock', 'me')

    local result = as_user('eval', '--dir', folder .. '/scripts', 'acme/release', '--name', 'job',
      '--token', 'me')

    assert.equal('(integer) 1\n', result.out, result.err)
    assert.equal('0', server:command('EXISTS', 'acme:job:lock'))
  end)

  it('lets a user run a script that forms a key of its first one', function()
    local folder = program.folder()
    dir.makepath(folder .. '/elect')
    local source = "return redis.call('INCR', KEYS[1] .. ':epoch')\n"
    utils.writefile(folder .. '/elect/run.lua', source)
    utils.writefile(folder .. '/elect/run.contract', ([[name:     elect/run
version:  1.0.0
sha1:     %s
summary:  Count.
keys:
  - leader  any  r  elect:{{name}}  who leads
derived:
  - epoch  string  rw  {name}:epoch  permanent  counts leaders
returns:
  - integer  the epoch
cost:     at most 1 commands
cluster:  one slot
]]):format(digest.sha1(source)))
    user('--dir', folder, '--names', 'job')
    server:command('FLUSHALL')

    local one = as_user('eval', '--dir', folder, 'elect/run', '--name', 'job')
    local other = as_user('eval', '--dir', folder, 'elect/run', '--name', 'jobs')

    assert.equal('(integer) 1\n', one.out, one.err)
    assert.matches('NOPERM', other.err, 1, true)
    assert.equal('1', server:command('GET', 'elect:{job}:epoch'))
  end)

  it('lets a user run every script on the names, and listen', function()
    user('--names', 'orders:*', '--targets', '{orders:*}:target')

    for _, script in ipairs(scripts) do
      server:command('FLUSHALL')
      local reply, status = call(script, 'orders:1')

      assert.is_nil(status, script.name)
      assert.is_table(reply, script.name)
      for _, field in ipairs(script.header.argv) do
        local channel = field.form and names.form(field.form, 'orders:1')
          .. (script.header.message == 'ticket' and ':' .. OWNER or '')
        assert.is_true(not channel or may('SUBSCRIBE', channel), channel)
      end
    end
  end)

  it('lets a user say on what it is eager, and ask who else listens', function()
    user('--names', 'orders:*', '--family', 'lock')
    local mark = 'redisson_lock__channel:{orders:1}:latchkey'

    assert.is_true(may('SUBSCRIBE', mark))
    assert.is_true(may('PUBSUB', 'NUMSUB', mark))
    assert.is_false(may('SUBSCRIBE', 'redisson_lock__channel:{orders:1}:other'))
  end)

  it('lets a user take and release locks with the program, and no others', function()
    user('--names', 'orders:*')
    server:command('FLUSHALL')
    local function exec(kind, name)
      return as_user('exec', '--kind', kind, name, '--', 'true')
    end

    for _, kind in ipairs({ 'lock', 'fenced', 'mutex' }) do
      local result, other = exec(kind, 'orders:1'), exec(kind, 'users:1')

      assert.equal(0, result.code, result.err)
      assert.equal(69, other.code, other.err)
      server:command('FLUSHALL')
    end
  end)

  it('refuses every script on other names', function()
    user('--names', 'orders:*')
    server:command('FLUSHALL')

    for _, script in ipairs(scripts) do
      local _, status = call(script, 'users:1')

      assert.equal('LK_DENIED', status, script.name)
    end
    assert.equal('0', server:command('DBSIZE'))
  end)

  it('refuses scripts of other families, other keys and other channels', function()
    user('--names', 'orders:*', '--family', 'lock')
    local _, other = call(scripts['mutex/acquire'], 'orders:1')

    assert.equal('LK_DENIED', other)
    assert.is_true(may('DEL', 'orders:1'))
    assert.is_false(may('DEL', 'users:1'))
    for _, command in ipairs({ 'PUBLISH', 'SUBSCRIBE' }) do
      local message = command == 'PUBLISH' and '0' or nil
      assert.is_true(may(command, 'redisson_lock__channel:{orders:1}', message))
      assert.is_false(may(command, 'redisson_lock__channel:{users:1}', message))
      assert.is_false(may(command, 'redisson_lock__channel:{orders:1}:x', message))
    end
  end)

  it('lets an operator use every tool that looks after locks, and an application none', function()
    server:command('FLUSHALL')
    user('--operator')
    server:command('HSET', 'orders:1', OWNER, '1')
    server:command('PEXPIRE', 'orders:1', '30000')
    local tools = { { 'ls' }, { 'top', '--once' }, { 'inspect', 'orders:1' }, { 'status' },
      { 'doctor' }, { 'break', '--yes', 'orders:1' } }

    for _, tool in ipairs(tools) do
      local result = as_user(unpack(tool))

      assert.falsy((result.out .. result.err):find('refused', 1, true), result.out .. result.err)
      assert.is_true(result.code < 2, tool[1])
    end
    user()
    assert.equal(69, as_user('ls').code)
  end)

  for _, family in ipairs({ 'lock', 'mutex', 'countdown' }) do
    it('lets an operator break a lock also where --family is ' .. family, function()
      server:command('FLUSHALL')
      user('--operator', '--family', family, '--names', 'orders:*')
      server:command('HSET', 'orders:1', OWNER, '1')
      server:command('SET', 'orders:2', OWNER)

      for _, name in ipairs({ 'orders:1', 'orders:2' }) do
        local result = as_user('break', '--yes', name)
        assert.equal(0, result.code, result.err)
      end
      assert.equal('0', server:command('DBSIZE'))
    end)
  end

  it('names CLIENT SETINFO only when it is told to, for servers that know it', function()
    assert.falsy(rule():find('setinfo', 1, true))
    assert.truthy(rule('--setinfo'):find(' +client|setinfo ', 1, true))
    for _, options in ipairs({ { '--sentinel' }, { '--sentinel', '--setinfo' } }) do
      local sentinels = rule(unpack(options)):match('\n([^\n]+)\n$')
      assert.equal(#options == 2, sentinels:find(' +client|setinfo ', 1, true) ~= nil, sentinels)
    end
  end)

  it('refuses every other command of the server', function()
    user('--names', 'orders:*', '--targets', '*')
    local allowed = { auth = true, hello = true, quit = true, reset = true }
    for command in rule():gmatch('%+(%S+)') do
      allowed[command:match('^[^|]+')] = not command:find('|', 1, true)
    end
    local commands, questions = {}, {}
    for line in (server:command('EVAL', ARITIES, '0') .. '\n'):gmatch('(.-)\n') do
      local name, arity = line:match('^(%S+) (%d+)$')
      commands[#commands + 1] = name
      questions[#questions + 1] = 'ACL DRYRUN app ' .. name .. (' orders:1'):rep(arity - 1) .. '\n'
    end
    local input = program.folder() .. '/questions'
    assert(utils.writefile(input, table.concat(questions)))

    local client = program.start_any('redis-cli', { '-s', server.socket }, { input = input })
    local answers = client:wait()

    local place, refused = 0, 0
    for answer in answers.out:gmatch('([^\n]+)\n+') do
      place = place + 1
      if not allowed[commands[place]] then
        assert.not_equal('OK', answer, commands[place])
        refused = refused + (answer:find('no permissions', 1, true) and 1 or 0)
      end
    end
    assert.equal(#commands, place)
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
      user('--load', unpack(words))
      local result = as_user('load', unpack(words))

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

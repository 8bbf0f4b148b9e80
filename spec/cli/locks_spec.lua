-- SPDX-License-Identifier: Apache-2.0
local fcntl = require('posix.fcntl')
local stdlib = require('posix.stdlib')
local unistd = require('posix.unistd')

local program = require('cli.program')

local REDISSON = '8743c9c0-0795-4907-87fd-6c719a6b4586:42'
local LATCHKEY = 'lk-8743c9c0-0795-4907-87fd-6c719a6b4586:7'
local TOKEN = 1763000000000001

describe('latchkey on the locks of a server', function()
  local server

  before_each(function()
    server = program.server()
  end)

  after_each(program.clean)

  local function run(command, ...)
    return program.run({ command, '--url', server.url, ... })
  end

  local function json(command, ...)
    local result = run(command, '--json', ...)
    return program.decode(result.out), result.code
  end

  local function lock(name, owner, count, lease_ms)
    server:command('HSET', name, owner, count or '1')
    server:command('PEXPIRE', name, lease_ms or '30000')
  end

  local function fenced(name, owner)
    lock(name, owner)
    server:command('SET', 'redisson_lock_token:{' .. name .. '}', ('%.0f'):format(TOKEN))
  end

  describe('ls', function()
    it('lists the locks of latchkey and of Redisson by name', function()
      lock('b', REDISSON, '2')
      lock('a', LATCHKEY)

      local document, code = json('ls')

      assert.equal(0, code)
      assert.is_true(document.complete)
      assert.equal(2, #document.locks)
      assert.equal('a', document.locks[1].name)
      assert.equal('lock', document.locks[1].kind)
      assert.same({ { owner = REDISSON, holds = 2 } }, document.locks[2].holders)
      assert.is_true(document.locks[2].lease_ms > 20000)
      assert.equal(0, document.locks[2].waiters)
    end)

    it('shows the lease of the permit that ends last, and none of what has none', function()
      local now_ms = server:command('TIME'):match('^%d+') * 1000
      for name, last_ms in pairs({ jobs = now_ms + 60000, theirs = 922337203685477 }) do
        server:command('SET', name, '3')
        server:command('ZADD', ('{%s}:timeout'):format(name), ('%.0f'):format(now_ms + 30000),
          ('a'):rep(16), ('%.0f'):format(last_ms), ('b'):rep(16))
      end
      local many = {}
      for i = 1, 101 do
        many[2 * i - 1], many[2 * i] = ('%.0f'):format(now_ms + 30000), ('%016d'):format(i)
      end
      server:command('SET', 'many', '1')
      server:command('ZADD', '{many}:timeout', unpack(many))
      server:command('SET', 'latch', '3')

      local permits, all = run('ls').out, run('ls', '--kind', 'countdown', 'latch').out

      assert.matches('\njobs +permit +[345]%d[.%d]* s ', permits)
      assert.matches('\nmany +permit +%- ', permits)
      assert.matches('\ntheirs +permit +endless ', permits)
      assert.matches('\nlatch +countdown +%- ', all)
      assert.matches('\njobs .*\nmany .*\ntheirs ', run('top', '--once').out)
      assert.matches('\njobs .*\n', run('top', '--once', '--sort', 'lease').out)
    end)

    it('lists mutexes and permits that are certain, and counts what else may be locks', function()
      server:command('SET', 'mutex', LATCHKEY, 'PX', '30000')
      server:command('SET', 'jobs', '3')
      server:command('ZADD', '{jobs}:timeout', '99999999999999', '0123456789abcdef')
      server:command('SET', '{tagged}jobs', '3')
      server:command('ZADD', '{tagged}jobs:timeout', '99999999999999', '0123456789abcdef')
      server:command('SET', 'count', '7')
      server:command('SET', 'text', ('x'):rep(50))
      server:command('HSET', 'profile', 'name', 'me')

      local document, shown = json('ls'), run('ls')

      local found = {}
      for i, one in ipairs(document.locks) do
        found[i] = one.name .. ' ' .. one.kind
      end
      assert.same({ 'jobs permit', 'mutex mutex', '{tagged}jobs permit' }, found)
      assert.same({ strings = 2, hashes = 1, strings_unread = false }, document.possible)
      assert.truthy(shown.err:find('locks, too: 2 strings (--kind mutex', 1, true), shown.err)
      assert.truthy(shown.err:find('1 hash (--kind lock', 1, true), shown.err)
      assert.equal(1, #json('ls', 'jo*').locks)
      assert.truthy(run('top', '--once').out:find('3 locks, 0 waiting, 3 more may be', 1, true))
    end)

    it('takes several kinds at once', function()
      server:command('SET', 'mutex', LATCHKEY, 'PX', '30000')
      server:command('SET', 'other', 'anything')
      lock('hash', LATCHKEY)

      local document = json('ls', '--kind', 'mutex', '--kind', 'lock')

      assert.equal(3, #document.locks)
      assert.equal('lock', document.locks[1].kind)
      assert.equal('mutex', document.locks[2].kind)
    end)

    it('says that there are none', function()
      local result = run('ls')

      assert.equal('', result.out)
      assert.equal('no locks\n', result.err)
      assert.equal('', run('ls', '--quiet').err)
      assert.truthy(run('top', '--once').out:find('\nno locks, 0 waiting\n'))
    end)

    describe('for a user who may not read all keys', function()
      local URL

      before_each(function()
        local words = {}
        local rule = program.run({ 'acl', 'ops', '--operator', '--names', 'a:*' }).out
        for word in rule:match('ACL SETUSER [^\n]*'):gmatch('%S+') do
          words[#words + 1] = word
        end
        words[#words + 1] = '>secret'
        server:command(unpack(words))
        URL = server.url:gsub('^unix://', 'unix://ops:secret@')
      end)

      local function as_ops(command, ...)
        return program.run({ command, '--url', URL, ... })
      end

      it('lists the others, and names what it leaves out', function()
        lock('a:1', LATCHKEY)
        lock('b:1', LATCHKEY)
        server:command('SET', 'b:2', LATCHKEY, 'PX', '30000')

        local result, document = as_ops('ls'), program.decode(as_ops('ls', '--json').out)
        local top, frame = as_ops('top', '--once'), program.decode(as_ops('top', '--once',
          '--json').out)

        assert.equal(2, result.code, result.err)
        assert.truthy(result.out:find('\na:1 +lock .*\n$'), result.out)
        assert.truthy(result.err:find('latchkey ls: 2 keys that this user may not read are left '
          .. 'out: b:1, b:2\n', 1, true), result.err)
        assert.truthy(result.err:find('NOPERM', 1, true), result.err)
        assert.equal(1, #document.locks)
        assert.is_false(document.complete)
        assert.equal(2, document.left_out.denied)
        assert.equal(0, document.left_out.moving)
        assert.equal('b:1', document.left_out.keys[1].name)
        assert.equal('LK_DENIED', document.left_out.keys[1].status)
        assert.equal(2, top.code)
        assert.truthy(top.out:find('\n1 lock, 0 waiting, 2 keys left out\n', 1, true), top.out)
        assert.equal(1, #frame.locks)
        assert.same({ false, 2 }, { frame.complete, frame.left_out.denied })
      end)

      it('says that there are no locks only where all keys were read', function()
        lock('b:1', LATCHKEY)

        local result, top = as_ops('ls'), as_ops('top', '--once')
        local narrow = as_ops('ls', 'a:*')

        assert.equal(2, result.code)
        assert.falsy(result.err:find('^no locks\n'), result.err)
        assert.truthy(result.err:find(' 1 key that this user may not read is left out: b:1\n', 1,
          true), result.err)
        assert.equal(2, top.code)
        assert.falsy(top.out:find('\nno locks,'), top.out)
        assert.same({ 0, 'no locks\n' }, { narrow.code, narrow.err })
      end)

      it('leaves out what only a script may not read, and names ten keys at most', function()
        for i = 1, 12 do
          lock('a:' .. i, LATCHKEY)
        end
        server:command('SET', 'a:mutex', LATCHKEY, 'PX', '30000')
        server:command('ACL', 'SETUSER', 'ops', 'resetkeys', '~a:*')

        local result, document = as_ops('ls'), program.decode(as_ops('ls', '--json').out)

        assert.equal(2, result.code, result.err)
        assert.same({ 12, 10 }, { document.left_out.denied, #document.left_out.keys })
        assert.same({ 1, 'a:mutex' }, { #document.locks, document.locks[1].name })
        assert.truthy(result.err:find(' 12 keys that this user may not read are left out: [^\n]+, '
          .. 'and 2 more\n'), result.err)
      end)

      it('ends where the user may not use a command for any key', function()
        lock('a:1', LATCHKEY)
        for _, command in ipairs({ 'hrandfield', 'evalsha', 'get', 'pubsub' }) do
          server:command('ACL', 'SETUSER', 'ops', '-' .. command)

          local result = as_ops('ls')

          assert.equal(69, result.code, command)
          assert.truthy(result.err:find(command, 1, true), result.err)
          server:command('ACL', 'SETUSER', 'ops', '+' .. command)
        end
      end)
    end)

    it('lists locks that are called as parts of others, and no parts', function()
      for _, name in ipairs({ 'payment:timeout', '{tagged}:timeout', 'redisson_lock_queue:mail',
        'redisson_lock_token:{mail}' }) do
        lock(name, LATCHKEY)
      end
      server:command('SET', 'latchkey_fence:mail', LATCHKEY, 'PX', '30000')
      for _, name in ipairs({ 'latchkey_fair:{a}', 'latchkey_rw_whole:{a}', 'latchkey_fair:x{a}y',
        'latchkey_period:{a}' }) do
        lock(name, LATCHKEY)
      end
      for _, name in ipairs({ 'redisson_lock_token:{a}', 'latchkey_seq:{a}:7',
        'latchkey_rw_theirs:{a}', '{a}:b:rwlock_timeout:1', 'redisson_unlock_latch:{a}:7' }) do
        server:command('SET', name, LATCHKEY, 'PX', '30000')
      end

      local names = {}
      for i, one in ipairs(json('ls').locks) do
        names[i] = one.name
      end

      assert.same({ 'latchkey_fence:mail', 'payment:timeout', 'redisson_lock_queue:mail',
        'redisson_lock_token:{mail}', '{tagged}:timeout' }, names)
    end)

    it('lists no hashes that are something else, and no strings', function()
      server:command('HSET', 'profile', 'name', 'me')
      server:command('HSET', 'half', LATCHKEY, '1', 'name', 'me')
      server:command('HSET', 'rw', 'mode', 'fast', LATCHKEY, '1')
      server:command('HSET', 'modes', 'mode', 'read', 'name', 'me')
      server:command('HSET', 'text', LATCHKEY, 'many')
      server:command('SET', 'string', LATCHKEY .. 'x')

      assert.same({}, json('ls').locks)
    end)

    it('lists what can be of a kind with --kind', function()
      server:command('SET', 'string', 'anything', 'PX', '30000')
      server:command('HSET', 'counts', 'me', '1')
      server:command('HSET', 'profile', 'name', 'me')

      local mutexes, locks = json('ls', '--kind', 'mutex').locks, json('ls', '--kind', 'lock').locks

      assert.equal(1, #mutexes)
      assert.equal('string', mutexes[1].name)
      assert.equal('anything', mutexes[1].holders[1].owner)
      assert.equal(1, #locks)
      assert.equal('counts', locks[1].name)
    end)

    it('lists a lock with a counter of tokens as fenced, with the last one', function()
      lock('a', LATCHKEY)
      fenced('b', LATCHKEY)
      server:command('RPUSH', 'redisson_lock_token:{a}', 'no counter')

      local document, all = json('ls'), run('ls', '--json')
      local only = json('ls', '--kind', 'fenced').locks

      assert.equal(2, #document.locks)
      assert.equal('lock', document.locks[1].kind)
      assert.is_nil(document.locks[1].token)
      assert.equal('fenced', document.locks[2].kind)
      assert.equal(TOKEN, document.locks[2].token)
      assert.truthy(all.out:find('"token":1763000000000001', 1, true))
      assert.equal(1, #only)
      assert.equal('b', only[1].name)
      assert.truthy(run('ls').out:find(LATCHKEY .. ' token 1763000000000001\n', 1, true))
    end)

    it('lists only the names of the pattern', function()
      lock('orders:1', LATCHKEY)
      lock('users:1', LATCHKEY)

      local document = json('ls', 'orders:*')

      assert.equal(1, #document.locks)
      assert.equal('orders:1', document.locks[1].name)
    end)

    it('finds a few among many keys, in steps', function()
      server:command('EVAL', 'for i = 1, 3000 do redis.call("SET", "k" .. i, i) end', '0')
      lock('a', LATCHKEY)

      assert.equal(1, #json('ls').locks)
      local stats = server:command('INFO', 'commandstats')
      assert.is_true(tonumber(stats:match('cmdstat_scan:calls=(%d+)')) > 9, stats)
      assert.is_nil(stats:match('cmdstat_keys:'))
    end)

    it('exits 2 when there are more than the limit', function()
      lock('a', LATCHKEY)
      lock('b', LATCHKEY)

      local document, code = json('ls', '--limit', '1')

      assert.equal(2, code)
      assert.is_false(document.complete)
      assert.equal(1, #document.locks)
      for _, limit in ipairs({ '0', '1.5', 'nan', 'inf', '-1', '1e3' }) do
        assert.equal(64, run('ls', '--limit', limit).code, limit)
      end
    end)

    it('writes JSON whatever a hold count and a name are', function()
      lock('many', LATCHKEY, ('9'):rep(400))
      lock('\237\160\128', LATCHKEY)

      local document, code = json('ls')

      assert.equal(0, code)
      assert.same({ 'many', '\\xed\\xa0\\x80' },
        { document.locks[1].name, document.locks[2].name })
      assert.equal(require('cjson').null, document.locks[1].holders[1].holds)
      assert.equal(0, select(2, json('inspect', 'many')))
    end)

    it('shows a hold count as it is, however large', function()
      lock('large', LATCHKEY, '1000000000000000')
      lock('many', LATCHKEY, ('9'):rep(400))

      local out = run('ls').out
      assert.matches(' x1000000000000000\n', out, 1, true)
      assert.matches(' xinf\n', out, 1, true)
      assert.matches(', 1000000000000000 holds\n', run('inspect', 'large').out, 1, true)
      assert.matches(', inf holds\n', run('inspect', 'many').out, 1, true)
    end)

    it('shows a table', function()
      lock('a', LATCHKEY, '3')

      local result = run('ls')

      assert.truthy(result.out:find('^NAME +KIND +LEASE +WAITING +HOLDERS\n'))
      assert.equal(LATCHKEY .. ' x3', result.out:match('\na +lock +%S+ s +0 +(.*)\n$'))
    end)
  end)

  describe('inspect', function()
    it('exits 3 for a lock that is free', function()
      local result = run('inspect', 'job')

      assert.equal(3, result.code)
      assert.equal('job is free.\n', result.out)
      assert.equal('free', json('inspect', 'job').state)
    end)

    it('says who holds it, how often, how long, and how many wait', function()
      lock('job', LATCHKEY, '2')
      local waiter = program.start(program.exec(server, { 'job' }, { 'true' }))
      program.eventually('somebody waits', function()
        return server:waiters('job') == 1
      end)

      local result = run('inspect', 'job')
      local document, code = json('inspect', 'job')
      server:command('DEL', 'job')
      server:command('PUBLISH', 'redisson_lock__channel:{job}', '0')
      waiter:wait()

      assert.equal(0, result.code)
      assert.truthy(result.out:find('job is held', 1, true))
      assert.truthy(result.out:find('lock (certain)', 1, true))
      assert.truthy(result.out:find(LATCHKEY .. ', 2 holds', 1, true))
      assert.truthy(result.out:find('ends in %d+%.%d s'))
      assert.truthy(result.out:find('1 client listens', 1, true))
      assert.equal(0, code)
      assert.equal('held', document.state)
      assert.equal(1, document.kinds[1].waiters)
      assert.is_true(document.kinds[1].certain)
    end)

    it('shows the token of a fenced lock', function()
      fenced('job', LATCHKEY)

      local result, held = run('inspect', 'job'), json('inspect', 'job').kinds[1]

      assert.equal(0, result.code)
      assert.truthy(result.out:find('fenced (certain)', 1, true))
      assert.truthy(result.out:find('token    1763000000000001', 1, true))
      assert.equal('fenced', held.kind)
      assert.equal(TOKEN, held.token)
      assert.is_true(held.certain)
    end)

    it('reads a fenced lock as a plain one, and the other way round, when it is told to', function()
      fenced('job', LATCHKEY)
      lock('plain', LATCHKEY)

      local as_lock = json('inspect', '--kind', 'lock', 'job').kinds[1]
      local as_fenced = json('inspect', '--kind', 'fenced', 'plain').kinds[1]

      assert.equal('lock', as_lock.kind)
      assert.is_nil(as_lock.token)
      assert.equal('fenced', as_fenced.kind)
      assert.is_false(as_fenced.certain)
    end)

    it('marks what is only possibly a lock', function()
      server:command('SET', 'string', 'anything')
      server:command('HSET', 'profile', 'visits', '3')

      assert.truthy(run('inspect', 'string').out:find('mutex (possible)', 1, true))
      assert.truthy(run('inspect', 'string').out:find('endless', 1, true))
      assert.truthy(run('inspect', 'profile').out:find('lock (possible)', 1, true))
    end)

    it('exits 64 for a hash that is no lock, however it is read', function()
      server:command('HSET', 'profile', 'name', 'me')
      local one = run('inspect', 'profile')
      server:command('HSET', 'profile', 'town', 'Bern')
      server:command('HSET', 'settings', 'mode', 'dark', 'size', '3')

      assert.truthy(one.err:find('latchkey inspect: profile is a hash, but no lock: it has 1 field '
        .. 'that is not an owner with counts\n', 1, true), one.err)
      for _, kind in ipairs({ 'lock', 'fenced', 'fair', 'rw' }) do
        local result = run('inspect', 'profile', '--kind', kind)
        assert.equal(64, result.code, result.out)
        assert.truthy(result.err:find('profile does not fit the kind ' .. kind, 1, true))
      end
      for _, name in ipairs({ 'profile', 'settings' }) do
        local result = run('inspect', name)
        assert.equal(64, result.code, result.out)
        assert.truthy(result.err:find('it has 2 fields that are not owners with counts', 1, true))
      end
    end)

    it('exits 64 for a string that is no lock, however it is read', function()
      server:command('SET', 'text', 'abc')
      server:command('SET', 'empty', '')
      server:command('SET', 'long', ('x'):rep(257))

      for _, kind in ipairs({ 'semaphore', 'permit', 'countdown' }) do
        local result = run('inspect', 'text', '--kind', kind)
        assert.equal(64, result.code, result.out)
        assert.truthy(result.err:find('text does not fit the kind ' .. kind, 1, true))
      end
      assert.equal(0, run('inspect', 'text', '--kind', 'mutex').code)
      assert.equal(64, run('inspect', 'empty', '--kind', 'mutex').code)
      assert.truthy(run('inspect', 'empty').err:find('empty is an empty string', 1, true))
      for _, words in ipairs({ { 'long' }, { 'long', '--kind', 'mutex' } }) do
        assert.truthy(run('inspect', unpack(words)).err:find('long is a string of 257 bytes', 1,
          true))
      end
    end)

    it('exits 64 for a key that is no lock of any kind, or not of the one that is named', function()
      server:command('RPUSH', 'list', 'a')
      lock('job', LATCHKEY)

      assert.equal(64, run('inspect', 'list').code)
      assert.equal(64, run('inspect', '--kind', 'mutex', 'job').code)
      assert.equal(64, run('inspect', 'a}b').code)
    end)

    it('shows nothing that a terminal obeys, also of what is no lock', function()
      local title = '\27]0;other title\7'
      server:command('HSET', title, 'mode', title)
      server:command('HSET', 'i', LATCHKEY, '1', '\194\1552J', '1')

      local hash, owners = run('inspect', title).err:gsub('\n', ''), run('inspect', 'i').out

      assert.truthy(hash:find('\\x1b]0;other title\\x07 is a hash', 1, true), hash)
      assert.truthy(owners:find('\\xc2\\x9b2J', 1, true), owners)
      assert.falsy((hash .. owners):find('[%z\1-\9\11-\31\127-\255]'))
    end)

    it('shows no name that turns or ends its line, by which it looks like another one', function()
      local name = 'pay\226\128\174yliad\226\128\168\226\128\143x'
      lock(name, LATCHKEY)

      local one, all = run('inspect', name).out, run('ls').out

      for _, out in ipairs({ one, all }) do
        assert.truthy(out:find('pay\\xe2\\x80\\xaeyliad\\xe2\\x80\\xa8\\xe2\\x80\\x8fx', 1, true),
          out)
        assert.falsy(out:find('\226', 1, true))
      end
    end)

    it('shows no contents of a hash that is far too large', function()
      server:command('EVAL', 'for i = 1, 200 do redis.call("HSET", "big", i, i) end', '0')

      assert.truthy(run('inspect', 'big').err:find('it has 200 fields', 1, true))
    end)
  end)

  describe('break', function()
    it('frees the lock and wakes who waits for it', function()
      lock('job', LATCHKEY)
      local waiter = program.start(program.exec(server, { '--wait', '15s', 'job' }, { 'true' }))
      program.eventually('somebody waits', function()
        return server:waiters('job') == 1
      end)

      local result = run('break', 'job', '--yes')

      assert.equal(0, result.code)
      assert.truthy(result.out:find(LATCHKEY, 1, true))
      assert.equal(0, waiter:wait().code)
    end)

    it('ends the command of an exec that held it', function()
      local gate = program.gate()
      local holder = program.start(program.exec(server, { '--lease', '300ms', 'job' },
        gate.command))
      gate.started()

      local document = json('break', 'job', '--yes')

      assert.equal('broken', document.outcome)
      assert.equal(80, holder:wait().code)
    end)

    it('moves the token of a fenced lock on', function()
      fenced('job', LATCHKEY)
      fenced('{tag}:job', LATCHKEY)
      server:command('RENAME', 'redisson_lock_token:{{tag}:job}', 'redisson_lock_token:{tag}:job')

      local document = json('break', 'job', '--yes')
      local counter = tonumber(server:command('GET', 'redisson_lock_token:{job}'))
      local tagged = run('break', '{tag}:job', '--yes')

      assert.equal('broken', document.outcome)
      assert.equal('fenced', document.kind)
      assert.is_true(document.token > TOKEN)
      assert.equal(counter, document.token)
      assert.is_true(server:is_free('job'))
      assert.equal(server:command('GET', 'redisson_lock_token:{tag}:job'),
        tagged.out:match('The token (%d+) is later'))
    end)

    it('draws a token for a lock without a counter when it is told that it is fenced', function()
      lock('job', LATCHKEY)

      local document = json('break', 'job', '--yes', '--kind', 'fenced')

      assert.equal('fenced', document.kind)
      assert.is_true(document.token > TOKEN)
      assert.is_true(server:is_free('job'))
    end)

    it('leaves the token of a lock that it is told is a plain one', function()
      fenced('job', LATCHKEY)

      assert.equal(0, run('break', 'job', '--yes', '--kind', 'lock').code)
      assert.equal(('%.0f'):format(TOKEN), server:command('GET', 'redisson_lock_token:{job}'))
    end)

    it('says so when nobody holds the lock', function()
      local result = run('break', 'job', '--yes')

      assert.equal(0, result.code)
      assert.truthy(result.out:find('nobody holds it', 1, true))
    end)

    it('does nothing when another owner holds it by now', function()
      lock('job', LATCHKEY)

      local document, code = json('break', 'job', '--yes', '--owner', REDISSON)

      assert.equal(1, code)
      assert.equal('another', document.outcome)
      assert.is_false(server:is_free('job'))
    end)

    it('breaks a mutex of latchkey\'s, and another client\'s only when it is told that it is one',
      function()
        server:command('SET', 'mine', LATCHKEY, 'PX', '30000')
        server:command('SET', 'other', 'anything', 'PX', '30000')

        local mine, unsure = run('break', 'mine', '--yes'), run('break', 'other', '--yes')
        local kept = not server:is_free('other')
        local told = run('break', 'other', '--yes', '--kind', 'mutex')

        assert.equal(0, mine.code)
        assert.equal(64, unsure.code)
        assert.is_true(kept)
        assert.equal(0, told.code)
        assert.is_true(server:is_free('other'))
      end)

    it('exits 64 for what is no lock, and leaves it', function()
      server:command('RPUSH', 'list', 'a')
      server:command('HSET', 'profile', 'name', 'me')
      lock('job', LATCHKEY)

      assert.equal(64, run('break', 'list', '--yes').code)
      assert.equal(64, run('break', 'profile', '--yes').code)
      assert.equal(64, run('break', 'profile', '--yes', '--kind', 'lock').code)
      assert.equal(64, run('break', 'job', '--yes', '--kind', 'mutex').code)
      assert.equal(64, run('break', 'profile', '--yes', '--kind', 'fenced').code)
      assert.equal(64, run('break', 'a}b', '--yes').code)
      assert.equal('3', server:command('DBSIZE'))
    end)

    it('says what to type next as one word for a shell', function()
      server:command('SET', 'x; id > "$HOME"', '3')

      local unsure = run('break', 'x; id > "$HOME"', '--yes')

      assert.equal(64, unsure.code)
      assert.truthy(unsure.err:find([[latchkey break 'x; id > "$HOME"' --kind ]], 1, true),
        unsure.err)
    end)

    it('tells of what was done also where the rest of it is refused', function()
      local mine = LATCHKEY:gsub('7$', '8')
      server:command('HSET', 'job', LATCHKEY, '1')
      server:command('RPUSH', 'redisson_lock_queue:{job}', mine)
      server:command('ACL', 'SETUSER', 'op', 'on', 'nopass', '~*', '+@all', 'resetchannels',
        '&redisson_lock__channel:{job}:*')
      local url = server.url:gsub('^unix://', 'unix://op@')

      local result = program.run({ 'break', 'job', '--yes', '--url', url })

      assert.equal(69, result.code)
      assert.truthy(result.out:find('^job is broken; it was held by ' .. LATCHKEY:gsub('%-', '%%-')
        .. '%.\n$'), result.out)
      assert.truthy(result.err:find('NOPERM', 1, true), result.err)
      assert.is_true(server:is_free('job'))
    end)

    it('does nothing unasked when nobody can be asked', function()
      lock('job', LATCHKEY)

      local result = run('break', 'job')

      assert.equal(64, result.code)
      assert.truthy(result.err:find('--yes', 1, true))
      assert.is_false(server:is_free('job'))
    end)

    it('asks on a terminal, and does as it is told', function()
      lock('job', LATCHKEY)
      local master = assert(stdlib.openpt(fcntl.O_RDWR + fcntl.O_NOCTTY))
      stdlib.grantpt(master)
      stdlib.unlockpt(master)
      local words = { 'break', 'job', '--url', server.url }
      local function answered(answer)
        unistd.write(master, answer .. '\n')
        return program.run(words, { input = stdlib.ptsname(master) })
      end

      local no = answered('n')
      local kept = not server:is_free('job')
      local yes = answered('y')
      unistd.close(master)

      assert.equal(1, no.code)
      assert.truthy(no.err:find('Break it? [y/N]', 1, true))
      assert.is_true(kept)
      assert.equal(0, yes.code)
      assert.is_true(server:is_free('job'))
    end)
  end)
end)

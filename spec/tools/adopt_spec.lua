-- SPDX-License-Identifier: Apache-2.0
local dir = require('pl.dir')
local path = require('pl.path')
local unistd = require('posix.unistd')
local utils = require('pl.utils')

local adopt = require('latchkey.lint.adopt')
local catalog = require('latchkey.script.catalog')
local command = require('support.command')
local digest = require('latchkey.digest')
local header = require('latchkey.script.header')
local own_lock = require('support.own_lock')

describe('latchkey adopt', function()
  local folder

  before_each(function()
    folder = path.tmpname()
    os.remove(folder)
    dir.makepath(folder .. '/shop')
  end)

  after_each(function()
    dir.rmtree(folder)
  end)

  -- What the contract of a text says, with what is to be decided decided.
  local function adopted(source)
    local contract = assert(adopt.contract(folder .. '/shop/take.lua', source, 'shop/take'))
    return assert(header.parse_contract(contract:gsub('no %? [^\n]*', 'no')
      :gsub(' %? ', ' the '), source,
      digest.sha1(source)))
  end

  local function shapes(source)
    local list = {}
    for i, reply in ipairs(adopted(source).returns) do
      list[i] = reply.shape
    end
    return list
  end

  it('writes a contract beside a script, which stays as it is', function()
    local lock = own_lock.folder()
    for _, file in ipairs(dir.getfiles(lock .. '/scripts/acme', '*.contract')) do
      os.remove(file)
    end
    local file = lock .. '/scripts/acme/acquire.lua'
    local before = utils.readfile(file)

    local code, out = command.run('adopt', file)

    assert.equal(0, code)
    assert.equal(lock .. '/scripts/acme/acquire.contract: 7 to decide, marked with "?"\n', out)
    assert.equal(before, utils.readfile(file))
    assert.equal('acme/acquire', assert(catalog.read_file(file)).name)
    dir.rmtree(lock)
  end)

  it('refuses a place that is further than a contract has any, with its line', function()
    for place, array in pairs({ [3000000] = 'KEYS', [33] = 'ARGV' }) do
      local contract, why, line = adopt.contract(folder .. '/shop/take.lua',
        ("local n = 1\nreturn redis.call('GET', %s[%d])\n"):format(array, place), 'shop/take')

      assert.is_nil(contract)
      assert.equal(('%s[%d] is beyond the 32 that a contract has'):format(array, place), why)
      assert.equal(2, line)
    end
    assert.equal(32, #adopted("return redis.call('GET', KEYS[32])\n").keys)
  end)

  it('knows an argument in a function of the script, and has no name twice', function()
    local contract = adopted('local function tell(channel, text)\n'
      .. "  redis.call('PUBLISH', channel, text)\nend\n"
      .. 'local lock, channel = KEYS[1], ARGV[1]\nlocal same = KEYS[1]\n'
      .. "redis.call('DEL', same)\ntell(channel, ARGV[2])\nreturn 1\n")
    local other = adopted("local channel = ARGV[1]\nredis.call('PUBLISH', KEYS[1] .. channel, 1)\n"
      .. 'return 1\n')

    local in_local = adopted("local put = function(key, who) redis.call('SET', key, who) end\n"
      .. 'put(KEYS[1], ARGV[1])\nreturn 1\n')

    assert.same({ 'string', 'owner' }, { in_local.keys[1].type, in_local.argv[1].type })
    assert.equal('lock', contract.keys[1].name)
    assert.same({ 'channel', 'channel' }, { contract.argv[1].name, contract.argv[1].type })
    assert.equal(0, #contract.channels)
    assert.same({ 'channel', 'channel2' }, { other.argv[1].name, other.channels[1].name })
  end)

  it('reads commands by another name, and forms no channel that a contract cannot have', function()
    local contract = adopted("local rcall = redis.call\nrcall('publish', KEYS[1] .. '?', 'x')\n"
      .. "return rcall('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])\n")

    assert.equal('{name}:told', contract.channels[1].form.text)
    assert.same({ 'owner', 'ms' }, { contract.argv[1].type, contract.argv[2].type })
    assert.equal(2, contract.cost.base)
  end)

  it('takes for an owner what SET writes, and nothing else', function()
    local kinds = {}
    for i, words in ipairs({ "'SET', KEYS[1], ARGV[1]", "'SET', KEYS[1], 'x', ARGV[1]",
      "'HDEL', KEYS[1], ARGV[1]" }) do
      kinds[i] = adopted(("return redis.call(%s)"):format(words)).argv[1].type == 'owner'
    end

    assert.same({ true, false, false }, kinds)
  end)

  it('calls no argument like an option of eval, which could not be given by it', function()
    local contract = adopted("local url, json = ARGV[1], ARGV[2]\n"
      .. "return redis.call('SET', KEYS[1], url .. json)")

    assert.same({ 'url2', 'json2' }, { contract.argv[1].name, contract.argv[2].name })
  end)

  it('reads functions that call each other and themselves', function()
    local contract = adopted('local function again(n)\n  return again(n)\nend\n'
      .. 'local function ping(a)\n  return pong(a)\nend\n'
      .. "return redis.call('GET', KEYS[1])\n")

    assert.equal(1, #contract.keys)
  end)

  it('lists no reply for the end of a script that is not reached', function()
    local both = "if redis.call('GET', KEYS[1]) then return 1 else return 0 end"
    local one = "if redis.call('GET', KEYS[1]) then return 1 elseif KEYS[2] then return 0 end"

    assert.same({ '1', '0' }, shapes(both))
    assert.same({ '1', '0', 'nil' }, shapes(one))
  end)

  it('reads off the text how a channel is formed', function()
    local forms = {}
    local texts = { "KEYS[1] .. ':released'", "'bell:' .. (KEYS[2] .. tail)", 'name(1)' }
    for i, text in ipairs(texts) do
      local source = "local tail = ':x'\nredis.call('DEL', KEYS[1], KEYS[2])\n"
        .. ("redis.call('PUBLISH', %s, 'free')\nreturn 1"):format(text)
      local contract = assert(adopt.contract(folder .. '/shop/take.lua', source, 'shop/take'))
      forms[i] = contract:match('\nchannels:\n  %- channel  (%S+)')
    end

    assert.same({ '{{name}}:released', 'bell:{{name}}:2:x', '{name}:told' }, forms)
  end)

  it('asks what a copy of a call does, and lint asks until it is decided', function()
    utils.writefile(folder .. '/shop/take.lua', 'return 1')
    command.run('adopt', folder .. '/shop/take.lua')

    local code, out = command.run('lint', folder)

    assert.equal(1, code)
    local contract = utils.readlines(folder .. '/shop/take.contract')
    local asked
    for number, line in ipairs(contract) do
      asked = line:find('^repeat: +no %? ') and number or asked
    end
    assert.truthy(out:find(('take.contract:%d: decide'):format(asked), 1, true), out)
  end)

  it('overwrites none, and wants none where there is a header', function()
    utils.writefile(folder .. '/shop/take.lua', 'return 1')
    utils.writefile(folder .. '/shop/give.lua', '#!lua\n--[[ latchkey-script\n]]')

    local first = command.run('adopt', folder .. '/shop/take.lua')
    local again, _, why = command.run('adopt', folder .. '/shop/take.lua')
    local forced = command.run('adopt', '--force', folder .. '/shop/take.lua')
    local needless, _, because = command.run('adopt', folder .. '/shop/give.lua')

    assert.same({ 0, 64, 0, 64 }, { first, again, forced, needless })
    assert.matches('has a contract', why)
    assert.matches('has a header', because)
  end)

  it('writes nothing where one of several files is wrong', function()
    utils.writefile(folder .. '/shop/give.lua', 'return 1')
    utils.writefile(folder .. '/shop/take.lua', 'return 1\nlocal x =')

    local code = command.run('adopt', folder .. '/shop/give.lua', folder .. '/shop/take.lua')

    assert.equal(64, code)
    assert.is_false(path.exists(folder .. '/shop/give.contract'))
  end)

  it('says when there was no room for what it wrote', function()
    utils.writefile(folder .. '/shop/take.lua', 'return 1')
    unistd.link('/dev/full', folder .. '/shop/take.contract', true)

    local code, _, why = command.run('adopt', '--force', folder .. '/shop/take.lua')

    assert.equal(64, code)
    assert.matches('take%.contract: No space left on device', why)
  end)

  it('says what cannot be read, and where', function()
    utils.writefile(folder .. '/shop/take.lua', 'return 1\nlocal x =')

    local code, _, why = command.run('adopt', folder .. '/shop/take.lua')

    assert.equal(64, code)
    assert.matches('take%.lua:2: ', why)
  end)

  it('reads keys off the commands', function()
    local h = adopted("local stock, log = KEYS[1], KEYS[2]\nredis.call('hget', stock, 'a')\n"
      .. "redis.call('RPUSH', log, 'x') redis.call('hset', stock, 'a', 1)\n"
      .. "return redis.call('EXISTS', KEYS[3])")

    local keys = {}
    for i, key in ipairs(h.keys) do
      keys[i] = table.concat({ key.name, key.type, key.access }, ' ')
    end
    assert.same({ 'stock hash rw', 'log list w', 'key3 any r' }, keys)
    assert.equal(4, h.cost.base)
  end)

  it('reads them off commands that the project has no use for itself', function()
    local h = adopted("redis.call('SPOP', KEYS[1])\nredis.call('MSET', KEYS[2], 'x', KEYS[3], 1)\n"
      .. "redis.call('ZUNIONSTORE', KEYS[4], 2, KEYS[5], KEYS[1])\nreturn 1\n")

    local keys = {}
    for i, key in ipairs(h.keys) do
      keys[i] = table.concat({ key.type, key.access }, ' ')
    end
    assert.same({ 'set rw', 'string w', 'string w', 'zset w', 'any r' }, keys)
  end)

  -- Each binds `stock` and `log`, `most` and `who`, which are KEYS and ARGV in that order.
  for _, bind in ipairs({
    'local stock, log, most, who = KEYS[1], KEYS[2], ARGV[1], ARGV[2]',
    'local keys, args = KEYS, ARGV local stock, log = keys[1], keys[2]\n'
      .. 'local most, who = args[1], args[2]',
    'local k = KEYS local keys = (k) local stock, log = (keys)[1], keys[2]\n'
      .. 'local most, who = (ARGV)[1], ARGV[2]',
    "local stock, log = KEYS[1] or 'x', assert(KEYS[2], 'no log')\n"
      .. "local most, who = tonumber(ARGV[1]) or 5, tostring(ARGV[2] or '')",
    'local stock, log = unpack(KEYS) local most, who = ARGV[1], unpack(ARGV, 2)',
    'local keys = KEYS local stock, log = unpack(keys, 1, 2) local most, who = unpack(ARGV)',
  }) do
    it('knows keys and arguments that are bound by ' .. bind:gsub('\n', ' '), function()
      local h = adopted(bind .. "\nif redis.call('HGET', stock, 'a') == who then return 0 end\n"
        .. "redis.call('SADD', log, who) redis.call('PEXPIRE', stock, most) return 1")

      local said = {}
      for i, key in ipairs(h.keys) do
        said[i] = ('%s %s %s %s'):format(key.name, key.type, key.access, tostring(key.many))
      end
      for i, argument in ipairs(h.argv) do
        said[#h.keys + i] = argument.name .. ' ' .. argument.type
      end
      assert.same({ 'stock hash rw nil', 'log set w nil', 'most ms', 'who owner' }, said)
    end)
  end

  it('counts what is unpacked also where it is not looked at, as far as a contract goes', function()
    local h = adopted("local a, b, c = unpack(KEYS) return redis.call('GET', a)")
    local far = adopted("local a = unpack(ARGV, 3000000) return redis.call('GET', KEYS[1])")

    assert.same({ 'a', 'b', 'c' }, { h.keys[1].name, h.keys[2].name, h.keys[3].name })
    assert.equal('arg', far.argv[1].name)
  end)

  it('sees KEYS that are gone through under another name', function()
    for _, loop in ipairs({ "for i = 1, #keys do redis.call('set', keys[i], 1) end",
      "for _, key in ipairs(keys) do redis.call('set', key, 1) end",
      "redis.call('DEL', unpack(keys))" }) do
      local keys = adopted('local keys = KEYS\n' .. loop .. ' return 1').keys

      assert.equal(1, #keys, loop)
      assert.same({ true, true }, { keys[1].many ~= nil, keys[1].access:find('w') ~= nil }, loop)
    end
  end)

  it('has one line for keys and for arguments that are gone through', function()
    local loops = { "for i = 1, #KEYS do redis.call('set', KEYS[i], 1) end",
      "for _, key in ipairs(KEYS) do redis.call('set', key, 1) end",
      "for i in pairs(KEYS) do redis.call('set', KEYS[i], 1) end",
      "redis.call('DEL', unpack(KEYS))" }
    for _, loop in ipairs(loops) do
      local h = adopted("if redis.call('get', KEYS[1]) then return 0 end\n" .. loop .. ' return 1')

      assert.equal(1, #h.keys, loop)
      assert.same({ 'key', 'string', 'rw', 1 },
        { h.keys[1].name, h.keys[1].type, h.keys[1].access, h.keys[1].many.min })
      assert.equal('key', h.cost.of)
    end
    local all = adopted("return redis.call('sadd', KEYS[1], unpack(ARGV))")
    local count = adopted("if #KEYS ~= 1 or #ARGV ~= 1 then return 0 end\n"
      .. "return redis.call('sadd', KEYS[1], ARGV[1])")

    assert.same({ 'arg', 1 }, { all.argv[1].name, all.argv[1].many.min })
    assert.is_nil(all.keys[1].many or all.cost.of)
    assert.is_nil(count.keys[1].many or count.argv[1].many)
  end)

  it('writes of keys that are gone through what lint finds right', function()
    local source = 'for i = 1, #KEYS do\n'
      .. "  redis.call('set', KEYS[i], ARGV[1], 'PX', ARGV[2])\nend\n"
      .. 'return 1\n'
    utils.writefile(folder .. '/shop/take.lua', source)
    command.run('adopt', folder .. '/shop/take.lua')
    local contract = utils.readfile(folder .. '/shop/take.contract')
    utils.writefile(folder .. '/shop/take.contract', (contract:gsub('no %? [^\n]*', 'no')
      :gsub(' %? ', ' the ')))

    local code, out = command.run('lint', folder)

    assert.equal(0, code, out)
  end)

  it('reads arguments off what is done with them', function()
    local h = adopted("local limit = tonumber(ARGV[3])\n"
      .. "if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('PEXPIRE', KEYS[1], ARGV[2]) "
      .. "redis.call('PUBLISH', ARGV[4], limit) end return redis.call('EXPIRE', KEYS[1], ARGV[5])")

    local types = {}
    for i, argument in ipairs(h.argv) do
      types[i] = argument.name .. ' ' .. argument.type
    end
    assert.same({ 'arg1 owner', 'arg2 ms', 'limit count', 'arg4 channel', 'arg5 count' }, types)
    assert.equal('value', h.message)
  end)

  it('finds that a script forms its channel itself', function()
    local h = adopted("redis.call('PUBLISH', KEYS[1] .. ':bell', 'x') return 1")

    assert.same({}, h.argv)
    assert.equal(1, #h.channels)
    assert.equal('value', h.message)
  end)

  it('reads replies off what is returned', function()
    assert.same({ 'OK', 'nil' }, shapes("return redis.call('SET', KEYS[1], 1, 'PX', 5, 'NX')"))
    assert.same({ 'OK' }, shapes("return redis.call('SET', KEYS[1], 1)"))
    assert.same({ '-1', 'text', '1' }, shapes(
      "if KEYS[2] then return -1 elseif KEYS[3] then return 'a' .. KEYS[1] end return true"))
    assert.same({ 'DONE', 'nil' }, shapes(
      "if KEYS[1] then return redis.status_reply('DONE') end"))
    assert.same({ 'integer' }, shapes("return redis.call('INCR', KEYS[1])"))
  end)

  it('reads them off what a variable is made of, and knows how many of one there are', function()
    assert.same({ '1', '0' }, shapes("local n = redis.call('DEL', KEYS[1])\nreturn n"))
    assert.same({ 'integer' }, shapes("return redis.call('DEL', KEYS[1], KEYS[2])"))
    assert.same({ 'integer' }, shapes("return redis.call('ZREM', KEYS[1], unpack(ARGV))"))
    assert.same({ '0', '1' }, shapes(
      "if KEYS[2] then return 0 end return redis.call('HDEL', KEYS[1], ARGV[1])"))
  end)

  it('takes for a number what is counted with', function()
    local h = adopted("local oldest = redis.call('LINDEX', KEYS[1], ARGV[1] - 1)\n"
      .. "return redis.call('SETEX', KEYS[1], 60 * ARGV[2], ARGV[3] .. oldest)")

    local types = {}
    for i, argument in ipairs(h.argv) do
      types[i] = argument.type
    end
    assert.same({ 'count', 'count', 'text' }, types)
  end)

  it('lists errors that are written out, in both ways', function()
    local h = adopted("if #KEYS ~= 1 then return redis.error_reply('EMPTY no key') end "
      .. "if #ARGV ~= 1 then return {err = 'FULL it is'} end return 1")

    assert.equal('EMPTY', h.errors[1].code)
    assert.equal('FULL', h.errors[2].code)
    assert.equal(1, #h.returns)
  end)

  it('lists arrays with the names of what is in them, and both sides of a choice', function()
    assert.same({ '{0}', '{1, left, value}' },
      shapes('local left = ARGV[1] if KEYS[2] then return {0} end return {1, left, 3}'))
    assert.same({ '{1, id, more...}' },
      shapes('local a = {} return {1, a.id, unpack(ARGV)}'))
    assert.same({ '1', '0' }, shapes('return ARGV[1] and 1 or 0'))
    assert.same({ '1', 'nil' }, shapes('return ARGV[1] == KEYS[1]'))
    assert.same({ 'DONE' }, shapes("return {ok = 'DONE'}"))
  end)
end)

-- SPDX-License-Identifier: Apache-2.0
-- What a server tolerates and the strict mock refuses. Every finding is there with the same script
-- on a tolerant mock beside it, which runs through.
local World = require('latchkey.mock.world')
local dir = require('pl.dir')
local file = require('pl.file')
local path = require('pl.path')

local HEADER = [[
#!lua
--[=[ latchkey-script
name:     toy/run
version:  1.0.0
summary:  A script to be found out.
keys:
  - lock   string   rw  {name}   a key
returns:
  - {1, text}     one
  - {2, rest...}  two
errors:
  - LKARG   an argument is wrong
cost:     at most 2 commands
cluster:  one slot
]=]
]]

-- The header's comment is level 0 in a real script.
HEADER = HEADER:gsub('%[=%[', '[['):gsub('%]=%]', ']]')

describe('a strict mock', function()
  local folder, header

  before_each(function()
    header = HEADER
    folder = path.tmpname()
    file.delete(folder)
    dir.makepath(folder .. '/toy')
  end)

  after_each(function()
    dir.rmtree(folder)
  end)

  local function run(code, strict)
    file.write(folder .. '/toy/run.lua', header .. code)
    return World.new({ scripts = folder, strict = strict }):eval('toy/run', { 'k' }, {})
  end

  -- The header has a derived key of this form.
  local function derive(form)
    header = HEADER:gsub('returns:', ('derived:\n  - extra  string  rw  %s  more\nreturns:')
      :format(form))
  end

  local function finds(text, code)
    local reply, err = run(code, true)
    assert.is_nil(reply)
    assert.equal('MOCK', err.code)
    assert.is_truthy(err.message:find(text, 1, true), err.message)
    local _, tolerated = run(code, false)
    assert.is_false(tolerated ~= nil and tolerated.code == 'MOCK')
  end

  it('lets a script through that does what its header says', function()
    assert.same({ 1, 'v', n = 2 }, run("redis.call('SET', KEYS[1], 'v') return {1, 'v'}", true))
    assert.same({ 2, n = 1 }, run('return {2}', true))
    assert.same({ 2, 3, 4, 5, n = 4 }, run('return {2, 3, 4, 5}', true))
    assert.equal('LKARG', select(2, run("return redis.error_reply('LKARG x')", true)).code)
  end)

  it('finds a write after a message', function()
    finds('SET after a message went out',
      "redis.call('PUBLISH', 'c', 'm') redis.call('SET', KEYS[1], 'v') return {2}")
  end)

  it('ends what it says before the place', function()
    local _, err = run("redis.call('PUBLISH', 'c', 'm') redis.call('DEL', KEYS[1])", true)

    assert.matches('^MOCK .* may look too early; script: %x+, on @user_script:%d+%.$', err.message)
    assert.equal(tonumber(err.message:match(':(%d+)%.$')), err.line)
  end)

  it('finds a key that is not declared', function()
    finds('GET touches the undeclared key "other"', "redis.call('GET', 'other') return {2}")
    finds('MSET touches the undeclared key "{k}2"',
      "redis.call('MSET', KEYS[1], 1, '{k}2', 2) return {2}")
    finds('DEL touches the undeclared key "{k}2"',
      "redis.call('DEL', KEYS[1], '{k}2') return {2}")
    finds('SMOVE touches the undeclared key "{k}2"',
      "redis.call('SMOVE', KEYS[1], '{k}2', 'v') return {2}")
  end)

  it('finds it even when the script looks away', function()
    finds('undeclared key', "pcall(redis.call, 'GET', 'other') return {2}")
  end)

  it('finds a number that is no exact integer', function()
    finds('the argument 0.5 is no exact integer', "redis.call('SET', KEYS[1], 1 / 2) return {2}")
    finds('is no exact integer', "redis.call('SET', KEYS[1], 2 ^ 53) return {2}")
    assert.same({ 2, n = 1 }, run("redis.call('SET', KEYS[1], 2 ^ 53 - 1) return {2}", true))
  end)

  it('finds a round number, which some servers write with an exponent', function()
    finds("hand on its digits, by string.format('%.0f', n)",
      "redis.call('SET', KEYS[1], 100000000) return {2}")
    finds('as -1767300000000 as 1e+8', "redis.call('SET', KEYS[1], -17673e8) return {2}")
    assert.same({ 2, n = 1 }, run("redis.call('SET', KEYS[1], 0) return {2}", true))
    assert.same({ 2, n = 1 }, run("redis.call('SET', KEYS[1], 100000001) return {2}", true))
    assert.same({ 2, n = 1 }, run("redis.call('SET', KEYS[1], '100000000') return {2}", true))
  end)

  it('lets scores be numbers of every size, and members not', function()
    local function gives(source)
      assert.same({ 2, n = 1 }, run(source .. ' return {2}', true))
    end
    gives("redis.call('ZADD', KEYS[1], 'GT', 17673e8, 'a', 1 / 2, 'b')")
    gives("redis.call('zincrby', KEYS[1], 1e8, 'a')")
    gives("redis.call('ZCOUNT', KEYS[1], 1e8, 2e8)")
    gives("redis.call('ZRANGEBYSCORE', KEYS[1], 1e8, 2e8)")
    gives("redis.call('ZREVRANGEBYSCORE', KEYS[1], 2e8, 1e8)")
    gives("redis.call('ZREMRANGEBYSCORE', KEYS[1], 1e8, 2e8)")
    gives("redis.call('ZRANGE', KEYS[1], 1e8, 2e8, 'byscore')")
    finds('as 100000000 as 1e+8', "redis.call('ZADD', KEYS[1], 1, 1e8) return {2}")
    finds('as 100000000 as 1e+8', "redis.call('ZADD', KEYS[1], 1, 1e8, 2, 'a') return {2}")
    finds('as 100000000 as 1e+8', "redis.call('ZINCRBY', KEYS[1], 1, 1e8) return {2}")
    finds('as 100000000 as 1e+8', "redis.call('ZRANGE', KEYS[1], 0, 1e8) return {2}")
    finds('as 100000000 as 1e+8', "redis.call('ZRANGE', KEYS[1], 0, 9, 'BYSCORE', 'LIMIT', 0, 1e8) "
      .. 'return {2}')
  end)

  it('finds a second TIME', function()
    finds('a second TIME', "redis.call('TIME') redis.call('time') return {2}")
  end)

  it('finds one command too many', function()
    finds('more than 2 commands',
      "for _ = 1, 3 do redis.call('GET', KEYS[1]) end return {2}")
  end)

  it('finds a channel in another slot', function()
    finds('two slots: "k" and "channel"', "redis.call('SPUBLISH', 'channel', '0') return {2}")
    assert.same({ 2, n = 1 }, run("redis.call('SPUBLISH', 'c:{k}', '0') return {2}", true))
    assert.same({ 2, n = 1 }, run("redis.call('PUBLISH', 'channel', '0') return {2}", true))
  end)

  it('finds keys of two slots before the script runs', function()
    local w = World.new()

    local reply, err = w:eval_source("redis.call('SET', KEYS[1], 1)", { 'a', 'b' }, {})

    assert.is_nil(reply)
    assert.equal('MOCK two slots: "a" and "b"', err.message)
    assert.same({}, w:dump())
    assert.is_nil(select(2, w:eval_source('return 1', { 'a', '{a}b' }, {})))
  end)

  it('finds rights that are asked for in too few words, and in too many', function()
    finds('MOCK Redis 8 refuses', "redis.acl_check_cmd('PEXPIRE', KEYS[1]) return {1, ''}")
    finds('MOCK Redis 8 refuses', "redis.acl_check_cmd('GET', KEYS[1], 1) return {1, ''}")
  end)

  it('finds replies that the header does not list', function()
    finds('no such reply: the number 1', 'return 1')
    finds('no such reply: the status OK', "return redis.status_reply('OK')")
    finds('no such reply: the string a', "return 'a'")
    finds('no such reply: nil', 'return false')
    finds('no such reply: an empty array', 'return {}')
    finds('no such reply: 1 elements, the first 1', 'return {1}')
    finds('no such reply: 3 elements, the first 1', 'return {1, 2, 3}')
    finds('no such reply: 1 elements, the first 3', 'return {3}')
    finds('no such reply: 1 elements, the first 1', 'return {1, nil}')
  end)

  it('finds errors that the header does not list', function()
    finds('the header lists no error LKX: LKX why', "return redis.error_reply('LKX why')")
  end)

  it('has nothing to say of replies and cost without a header', function()
    local w = World.new()

    assert.equal(9, w:eval_source(
      "local n for _ = 1, 9 do n = redis.call('INCR', KEYS[1]) end return n", { 'k' }, {}))
  end)

  it('knows derived keys by their form', function()
    derive('suffix:extra')

    assert.same({ 2, n = 1 }, run("redis.call('SET', '{k}:extra', 1) return {2}", true))
    finds('undeclared key "{k}:extra:7"', "redis.call('SET', '{k}:extra:7', 1) return {2}")
    finds('undeclared key "{k}:else"', "redis.call('SET', '{k}:else', 1) return {2}")
  end)

  it('takes a star in the name of a derived key for any text', function()
    derive('suffix:*:extra:*')

    assert.same({ 2, n = 1 }, run("redis.call('SET', '{k}:%:\\n:extra:7', 1) return {2}", true))
    finds('undeclared key "{k}:extra:7"', "redis.call('SET', '{k}:extra:7', 1) return {2}")
    finds('undeclared key "{k}:a:other:7"', "redis.call('SET', '{k}:a:other:7', 1) return {2}")
    finds('undeclared key "{K}:a:extra:7"', "redis.call('SET', '{K}:a:extra:7', 1) return {2}")
  end)
end)

-- SPDX-License-Identifier: Apache-2.0
-- What `latchkey bind lua` writes, used on the mock.
local World = require('latchkey.mock.world')
local bind_lua = require('latchkey.script.bind_lua')
local catalog = require('latchkey.script.catalog')
local headers = require('latchkey.script.header')
local helper = require('helper')
local names = require('latchkey.script.names')

local SCRIPT = [=[
#!lua
--[[ latchkey-script
name:     acme/step
version:  1.0.0
summary:  Count up to a limit
keys:
  - count    string   rw  acme:{name}:count  how many
argv:
  - by       count    1..5                   so many more
  - owner    owner    1..8                   who
  - mode     verb     UP|DOWN
  - channel  channel  prefix:acme            told
returns:
  - OK          counted
  - 0           nothing to count
  - integer     how many are too many
  - nil         another way
  - {1, owner}  who was the last
  - text        who asked
  - 'much'      one text of all
errors:
  - LKARG   argument missing or out of range
message:  0 or 1
cost:     at most 2 commands
cluster:  one slot
]]
local by = tonumber(ARGV[1])
if ARGV[3] == 'DOWN' then return false end
local now = redis.call('INCRBY', KEYS[1], by)
redis.call('PUBLISH', ARGV[4], now)
if now > 8 then return { 1, ARGV[2] } end
if now > 6 then return now end
if ARGV[2] == 'none' then return 0 end
if ARGV[2] == 'much' or ARGV[2] == 'many' then return ARGV[2] end
return redis.status_reply('OK')
]=]

local function script_of(source)
  return { name = 'acme/step', source = source, header = assert((headers.parse(source))),
    sha1 = require('latchkey.digest').sha1(source) }
end

local function module_of(scripts)
  local text, left = bind_lua.module(scripts)
  return assert(loadstring(text))(), left, text
end

describe('calls that latchkey bind lua writes', function()
  local world, calls

  before_each(function()
    world = World.new({ strict = false })
    calls = module_of({ script_of(SCRIPT) })
  end)

  it('form keys and channels, and say which reply came', function()
    assert.same({ is = 'OK', reply = { ok = 'OK' } },
      calls.acme_step(world, 'l', 3, 'ann', 'UP'))

    assert.same({ ['acme:l:count'] = helper.string('3') }, world:dump())
    assert.equal('acme:{l}', world:messages()[1].channel)
  end)

  it('tell exact replies from any of a kind', function()
    assert.equal('0', calls.acme_step(world, 'l', 1, 'none', 'UP').is)
    assert.equal('OK', calls.acme_step(world, 'l', 5, 'ann', 'UP').is)
    assert.equal('integer', calls.acme_step(world, 'l', 1, 'ann', 'UP').is)
    assert.equal('{1, owner}', calls.acme_step(world, 'l', 5, 'ann', 'UP').is)
    assert.equal('nil', calls.acme_step(world, 'l', 1, 'ann', 'DOWN').is)
    assert.equal("'much'", calls.acme_step(world, 'm', 1, 'much', 'UP').is)
    assert.equal('text', calls.acme_step(world, 'm', 1, 'many', 'UP').is)
  end)

  -- As of the binding, where no number of Lua is exactly it.
  it('know an integer of C, which is neither a text nor nothing', function()
    local is_there, ffi = pcall(require, 'ffi')
    local reply = is_there and ffi.new('int64_t', 2 ^ 53) + 1 or 2 ^ 53
    local client = { command = function() return reply end }

    local answer, err = calls.acme_step(client, 'l', 1, 'ann', 'UP')

    assert.is_nil(err)
    assert.equal('integer', answer.is)
    assert.equal(reply, answer.reply)
  end)

  it('tell an array of one length from one that stands for many', function()
    local text = SCRIPT:gsub('  %- {1, owner}  who was the last\n',
      '  - {1, owner...}  who were the last\n  - {1, owner}  who was the last\n')
      :gsub('return { 1, ARGV%[2%] }', "return { 1, 'x', ARGV[2] == 'bob' and 'y' or nil }")
    calls = module_of({ script_of(text) })
    world:command('SET', 'acme:l:count', '8')

    assert.equal('{1, owner}', calls.acme_step(world, 'l', 1, 'ann', 'UP').is)
    assert.equal('{1, owner...}', calls.acme_step(world, 'l', 1, 'bob', 'UP').is)
  end)

  it('refuse what is out of range, and send nothing', function()
    local function why(...)
      local answer, err = calls.acme_step(world, ...)
      assert.is_nil(answer)
      assert.equal('LK_INVALID', err.status)
      return err.message
    end

    assert.equal('by is 1 to 5', why('l', 0, 'ann', 'UP'))
    assert.equal('by is 1 to 5', why('l', 6, 'ann', 'UP'))
    assert.equal('by is 1 to 5', why('l', 1.5, 'ann', 'UP'))
    assert.equal('by is 1 to 5', why('l', '1', 'ann', 'UP'))
    assert.equal('owner has 1 to 8 bytes', why('l', 1, '', 'UP'))
    assert.equal('owner has 1 to 8 bytes', why('l', 1, 'too long!', 'UP'))
    assert.equal('mode is UP or DOWN', why('l', 1, 'ann', 'up'))
    for _, name in ipairs({ '', ('n'):rep(513), 'a}b', '{}x', 'a{b', 'a\0b' }) do
      assert.equal('the name has 1 to 512 bytes without NUL, and braces as one {tag} that is '
        .. 'closed and not empty', why(name, 1, 'ann', 'UP'))
    end
    assert.same({}, world:dump())
  end)

  it('take the names that the library takes', function()
    for _, name in ipairs({ '', 'l', ('n'):rep(512), ('n'):rep(513), '{a}b', 'a{b}', 'a}{b}',
      '}{a}', 'a{b}{', 'a}b', '{}x', '{}{a}', 'a{b', 'a\0b', 'a\0{b}' }) do
      assert.equal(names.check(name) ~= nil, calls.acme_step(world, name, 1, 'ann', 'UP') ~= nil,
        name)
    end
  end)

  it('send the text where the server has forgotten the script', function()
    assert.equal('OK', calls.acme_step(world, 'l', 1, 'ann', 'UP').is)
    world:script_flush()

    assert.equal('OK', calls.acme_step(world, 'l', 1, 'ann', 'UP').is)
  end)

  it('say of a reply that the contract does not list that it is none', function()
    local other = SCRIPT:gsub("status_reply%('OK'%)", "status_reply('NO')")
    calls = module_of({ script_of(other) })

    local _, err = calls.acme_step(world, 'l', 1, 'ann', 'UP')

    assert.equal('LK_SCRIPT', err.status)
  end)

  it('take no array for one whose first element is a number, where it is another value', function()
    for _, first in ipairs({ "'strange'", 'false', "'1'" }) do
      calls = module_of({ script_of((SCRIPT:gsub('return { 1,', 'return { ' .. first .. ','))) })

      local _, err = calls.acme_step(world, first, 4, 'ann', 'UP')
      assert.is_nil(err)
      _, err = calls.acme_step(world, first, 5, 'ann', 'UP')

      assert.equal('LK_SCRIPT', err and err.status, first)
    end
  end)

  it('have the text of a script that ends in a bracket', function()
    local script = script_of(SCRIPT)
    script.source = 'return ARGV[2]'
    script.sha1 = require('latchkey.digest').sha1(script.source)

    calls = module_of({ script })

    assert.equal('text', calls.acme_step(world, 'l', 1, 'ann', 'UP').is)
  end)

  it('form a channel of the name where there is no key', function()
    local text = SCRIPT:gsub('  %- count    string[^\n]*\n', ''):gsub('\nlocal by.*', '\n'
      .. "redis.call('PUBLISH', ARGV[4], '1')\nreturn redis.status_reply('OK')\n")
    calls = module_of({ script_of(text) })

    assert.equal('OK', calls.acme_step(world, 'l', 1, 'ann', 'UP').is)
    assert.equal('LK_INVALID', select(2, calls.acme_step(world, '', 1, 'ann', 'UP')).status)
  end)

  it('tell arguments apart whose names come to one', function()
    local _, _, text = module_of({ script_of((SCRIPT:gsub('%- owner    owner', '- end_     owner')
      :gsub('%- by       count', '- end      count'))) })

    assert.matches('function calls.acme_step(client, name, end_, end__, mode)', text, 1, true)
  end)

  it('tell replies apart where an argument is called as what they use', function()
    calls = module_of({ script_of((SCRIPT:gsub('%- owner    owner', '- type     owner'))) })

    assert.equal('OK', calls.acme_step(world, 'm', 5, 'ann', 'UP').is)
    assert.equal('integer', calls.acme_step(world, 'm', 2, 'ann', 'UP').is)
  end)

  it('hand on what the server refuses', function()
    world:command('SET', 'acme:l:count', 'x')

    local _, err = calls.acme_step(world, 'l', 1, 'ann', 'UP')

    assert.equal('ERR', err.code)
  end)
end)

describe('the shipped scripts', function()
  it('have calls, or a reason why not', function()
    local scripts = assert(catalog.read(helper.scripts))
    local calls, left = module_of(scripts)
    local count = 0
    for _ in pairs(calls) do
      count = count + 1
    end

    assert.equal(#scripts, count + #left)
    local world = World.new({ scripts = helper.scripts })
    local answer = assert(calls.mutex_acquire(world, 'job', 30000, 'lk-a:1'))
    assert.equal('lk-a:1', world:dump().job.value, answer.is)
  end)
end)

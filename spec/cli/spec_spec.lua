-- SPDX-License-Identifier: Apache-2.0
local dir = require('pl.dir')
local unistd = require('posix.unistd')
local utils = require('pl.utils')

local own_lock = require('support.own_lock')
local program = require('cli.program')

-- A script of somebody's own, with specs beside it.
local SCRIPT = [[
#!lua
--[=[ latchkey-script
name:     shop/take
version:  1.0.0
summary:  Take one of what is left.
keys:
  - left  string  rw  {name}  how many are left
returns:
  - {1, left}  one was taken
  - {0}        none is left
errors:
  - LKARG   wrong keys or arguments
cost:     at most 2 commands
cluster:  one slot
]=]

local left = KEYS[1]

if #KEYS ~= 1 or #ARGV ~= 0 then
  return redis.error_reply('LKARG shop/take takes 1 key')
end
if tonumber(redis.call('GET', left) or 0) < 1 then
  return {0}
end
return {1, redis.call('DECR', left)}
]]

local SPEC = [[
local helper = require('helper')

describe('shop/take', function()
  it('takes one', function()
    local world = helper.world()
    helper.fill(world, { nails = helper.string('%s', 60000) })

    assert.reply({ 1, 6 }, world:eval('shop/take', { 'nails' }, {}))
    assert.left(world, { nails = helper.string('6', 60000) })
  end)

  it('takes none where none is left', function()
    assert.reply({ 0 }, helper.world():eval('shop/take', { 'nails' }, {}))
  end)
end)
]]

describe('latchkey spec', function()
  local folder

  before_each(function()
    folder = program.folder()
    dir.makepath(folder .. '/scripts/shop')
    dir.makepath(folder .. '/specs')
    utils.writefile(folder .. '/scripts/shop/take.lua',
      (SCRIPT:gsub('%[=%[', '[['):gsub('%]=%]', ']]')))
    utils.writefile(folder .. '/specs/take_spec.lua', SPEC:format('7'))
  end)

  after_each(program.clean)

  local function run(...)
    return program.run({ 'spec', folder .. '/specs', '--dir', folder .. '/scripts', ... })
  end

  it('runs a folder of specs on the mock', function()
    local result = run()

    assert.matches('\n2 successes / 0 failures / 0 errors / 0 pending', result.out)
    assert.equal(0, result.code)
  end)

  it('takes statuses, texts and nil for what they are', function()
    local own = own_lock.folder()
    finally(function()
      dir.rmtree(own)
    end)
    utils.writefile(own .. '/specs/status_spec.lua', [[
      local world = require('helper').world()
      local function acquire()
        return world:eval('acme/acquire', { 'acme:job:lock' }, { 'me', 5000 })
      end
      it('is a status', function() assert.reply({ ok = 'OK' }, acquire()) end)
      it('is none', function() assert.reply(nil, acquire()) end)
      it('is no text', function()
        world:advance(6000)
        assert.reply('OK', acquire())
      end)
      it('is another status', function()
        world:advance(6000)
        assert.reply({ ok = 'FINE' }, acquire())
      end)
      it('is no array', function()
        world:advance(6000)
        assert.reply({}, acquire())
      end)]])

    local result = program.run({ 'spec', own .. '/specs/status_spec.lua', '--dir',
      own .. '/scripts' })

    assert.matches('\n2 successes / 3 failures / 0 errors / 0 pending', result.out)
  end)

  it('tells lists and errors apart, also those of a table that somebody wrote', function()
    utils.writefile(folder .. '/specs/take_spec.lua', [[
      local helper = require('helper')
      local function nested(code)
        return helper.world():eval_source("return {redis.error_reply('" .. code .. " why')}")
      end
      it('is that list', function() assert.reply({ 1, { 2 } }, { 1, { 2 } }) end)
      it('is that error', function() assert.reply({ { err = 'ONE why' } }, nested('ONE')) end)
      it('is another list', function() assert.reply({ 1, 2 }, { 3, 4 }) end)
      it('is a longer list', function() assert.reply({ 1 }, { 1, 2 }) end)
      it('is another list in a list', function() assert.reply({ 1, { 2 } }, { 1, { 3 } }) end)
      it('is another error', function() assert.reply({ { err = 'ONE why' } }, nested('TWO')) end)
      it('is no list', function() assert.reply({ { 1 } }, nested('ONE')) end)]])

    local result = run()

    assert.matches('\n2 successes / 5 failures / 0 errors / 0 pending', result.out)
  end)

  it('says what is wrong with a script, on a server as on the mock', function()
    local server = program.server()
    utils.writefile(folder .. '/scripts/shop/take.lua', 'return 1\n')

    for _, words in ipairs({ {}, { '--url', server.url } }) do
      local result = run(unpack(words))

      assert.equal(1, result.code)
      assert.matches('scripts/shop/take.lua:1: ', result.out, 1, true)
    end
  end)

  it('refuses folders without an end', function()
    assert(utils.execute(('ln -s .. %s/specs/up'):format(folder)))

    local result = run()

    assert.equal(64, result.code)
    assert.matches('/specs/up: a link that leads back to ', result.err, 1, true)
  end)

  it('runs the specs of a folder in which others are deep, and says what it passed over', function()
    local deep = '/specs/main/java/org/acme/shop/stock/take/model/part'
    dir.makepath(folder .. deep)

    local result = run()

    assert.equal(0, result.code, result.err)
    assert.matches('\n2 successes / 0 failures', result.out)
    assert.matches(('passed over, since it is more than 8 folders deep: %s%s\n'):format(folder,
      deep), result.err, 1, true)
  end)

  it('runs them on a server that keeps nothing', function()
    local server = program.server()

    local result = run('--url', server.url, '--json')

    assert.same({ schema = 'latchkey/spec/1', passed = 2, failed = 0, skipped = 0, failures = {} },
      program.decode(result.out))
    assert.equal(0, result.code)
  end)

  it('runs those of scripts with contracts there, too, and holds them to these', function()
    local lock = own_lock.folder()
    local server = program.server()
    local arguments = { 'spec', lock .. '/specs', '--dir', lock .. '/scripts', '--url', server.url,
      '--json' }

    local result = program.run(arguments)
    own_lock.write(lock, 'release', utils.readfile(lock .. '/scripts/acme/release.lua'),
      { ['  - 0  the'] = '  - 7  the' })
    local wrong = program.run(arguments)

    dir.rmtree(lock)
    assert.equal(0, result.code, result.out)
    assert.equal(3, program.decode(result.out).passed)
    assert.equal(1, wrong.code)
    assert.matches('acme/release: the contract lists no such reply', wrong.out, 1, true)
  end)

  it('runs them again on that server, which it leaves empty', function()
    local server = program.server()

    local first, second = run('--url', server.url), run('--url', server.url)

    assert.equal(0, first.code)
    assert.equal(0, second.code, second.err)
    assert.equal('0', server:command('DBSIZE'))
  end)

  it('refuses to empty a server that has keys, keeps its data, or is a replica', function()
    local keeper, cache, replica = program.server('--appendonly', 'yes'), program.server(),
      program.server()
    cache:command('SET', 'precious', '1')
    replica:command('REPLICAOF', '127.0.0.1', '1')

    for server, why in pairs({ [keeper] = 'keeps its data', [cache] = 'has keys',
      [replica] = 'is a replica' }) do
      local result = run('--url', server.url)

      assert.equal(64, result.code)
      assert.matches(why, result.err)
    end
    assert.equal('1', cache:command('GET', 'precious'))
  end)

  it('takes the same calls on the mock and on a server, whose socket may have a blank', function()
    local place = program.folder() .. '/a b'
    dir.makepath(place)
    assert(unistd.link(program.server().socket, place .. '/s', true))
    local url = ('unix://%s/s'):format(place:gsub(' ', '%%20'))
    utils.writefile(folder .. '/specs/take_spec.lua', [[
      local world = require('helper').world()
      it('has no list of keys', function() assert.equal(1, (world:eval_source('return 1'))) end)
      it('has no list of arguments', function()
        assert.reply({ 0 }, world:eval('shop/take', { 'nails' }))
      end)
      it('refuses', function() assert.refused('LKARG', 'takes 1', world:eval('shop/take')) end)
      it('refuses nothing', function() assert.refused('X', 'x', world:command('GET', 'k')) end)]])

    for _, result in ipairs({ run('--json'), run('--json', '--url', url) }) do
      local document = program.decode(result.out)
      assert.equal(3, document.passed, result.out .. result.err)
      assert.matches('another outcome', document.failures[1].message)
    end
  end)

  -- In LuaJIT until August 2026 a compiled loop over pairs() can end early: issues 827 and 1510.
  it('compiles nothing to machine code', function()
    utils.writefile(folder .. '/specs/take_spec.lua',
      "it('is interpreted', function() assert.is_false((require('jit').status())) end)")

    local result = run()

    assert.equal(0, result.code, result.out .. result.err)
  end)

  it('gives one document whatever specs print', function()
    utils.writefile(folder .. '/specs/take_spec.lua', "print('loud')\nit('is loud', function()\n"
      .. "  print('louder')\n  io.write('loudest\\n')\n  os.execute('echo child')\nend)")

    local result = run('--json')

    assert.equal(1, program.decode(result.out).passed)
    assert.matches('louder\nloudest\n', result.err, 1, true)
    assert.matches('child\n', run().out, 1, true)
  end)

  it('says which spec failed', function()
    utils.writefile(folder .. '/specs/take_spec.lua', SPEC:format('9'))

    local result = run('--json')

    local document = program.decode(result.out)
    assert.equal('shop/take takes one', document.failures[1].title)
    assert.matches('another reply', document.failures[1].message)
    assert.same({ 1, 1 }, { document.passed, document.failed })
    assert.equal(1, result.code)
  end)

  it('leaves names of modules to those whose specs these are', function()
    local names = { 'lib.names', 'mock', 'text', 'spec.helper' }
    dir.makepath(folder .. '/lib')
    dir.makepath(folder .. '/spec')
    local lines = { "it('finds its own', function()" }
    for _, name in ipairs(names) do
      utils.writefile(('%s/%s.lua'):format(folder, (name:gsub('%.', '/'))), 'return "own"')
      lines[#lines + 1] = ("assert.equal('own', require('%s'))"):format(name)
    end
    lines[#lines + 1] = 'end)'
    utils.writefile(folder .. '/specs/own_spec.lua', table.concat(lines, '\n'))
    local words = 'cd "$1" && shift && exec "$@"'

    local ours = program.start_any('sh', { '-c', words, 'sh', folder, program.path, 'spec', 'specs',
      '--dir', 'scripts' }):wait()
    local theirs = program.start_any('sh', { '-c', words, 'sh', folder, 'busted',
      'specs/own_spec.lua' }):wait()

    assert.equal(0, theirs.code, theirs.out)
    assert.equal(0, ours.code, ours.out)
    assert.matches('\n3 successes / 0 failures / 0 errors', ours.out)
  end)

  it('runs those whose title matches, and wants some', function()
    assert.matches('^%+\n1 success /', run('--filter', 'takes none').out)
    assert.equal(64, run('--filter', 'steals').code)
    assert.equal(64, program.run({ 'spec', folder .. '/scripts' }).code)
    assert.equal('there are no specs: files whose names end in _spec.lua',
      program.decode(program.run({ 'spec', folder .. '/scripts', '--json' }).out).error.message)
    utils.writefile(folder .. '/specs/take_spec.lua', '')
    assert.equal(64, run().code)
    assert.equal(64, program.run({ 'spec', '/nowhere' }).code)
  end)
end)

-- SPDX-License-Identifier: Apache-2.0
local dir = require('pl.dir')
local signal = require('posix.signal')
local utils = require('pl.utils')

local program = require('cli.program')
local own_lock = require('support.own_lock')

describe('latchkey mutate', function()
  after_each(program.clean)

  local function run(...)
    return program.run({ 'mutate', '--no-check', ... })
  end

  -- A tree of its own, copied and not linked: what is in it is removed at the end. Its specs see
  -- nothing.
  local function careless_home()
    local home = program.folder()
    dir.makepath(home .. '/scripts')
    dir.makepath(home .. '/spec/mutex')
    for from, to in pairs({ tools = '', ['scripts/mutex'] = 'scripts', ['spec/helper.lua'] = 'spec',
      ['scripts/_fragments'] = 'scripts', ['spec/support'] = 'spec' }) do
      assert(utils.executeex(('cp -RL %s/%s %s/%s'):format(program.root, from, home, to)))
    end
    local weak = "describe('x', function() it('y', function() assert.is_true(true) end) end)\n"
    utils.writefile(home .. '/spec/contract_spec.lua', weak)
    utils.writefile(home .. '/spec/mutex/renew_spec.lua', weak)
    return home
  end

  it('shows that the specs catch every mutant of a script', function()
    local result = run('mutex/renew', '--json')

    local document = program.decode(result.out)
    assert.equal('latchkey/mutate/1', document.schema)
    assert.is_true(document.mutants >= 10)
    assert.equal(document.mutants, document.killed + document.equivalent)
    assert.equal(0, document.alive)
    assert.equal(0, result.code)
  end)

  it('shows the line of a mutant that nothing catches', function()
    local result = program.run({ 'mutate', '--no-check', 'mutex/renew' },
      { env = { LATCHKEY_HOME = careless_home() } })

    assert.matches('alive mutex/renew:%S+  scripts/mutex/renew.lua:%d+\n  %- [^\n]+\n  %+ '
      .. '[^\n]+\n  missing: a spec %l', result.out)
    assert.matches('\nmutants: (%d+), killed: 0, equivalent: 0, alive: %1\n$', result.out)
    assert.equal(1, result.code)
  end)

  it('catches nothing by specs that fail without any change', function()
    local home = careless_home()
    utils.writefile(home .. '/spec/mutex/renew_spec.lua',
      "describe('x', function() it('y', function() assert.is_true(false) end) end)\n")

    local result = program.run({ 'mutate', '--no-check', 'mutex/renew' },
      { env = { LATCHKEY_HOME = home } })

    assert.matches('mutex/renew fails as it is: specs: x: y', result.err, 1, true)
    assert.equal('', result.out)
    assert.equal(1, result.code)
  end)

  describe('of scripts with contracts', function()
    local folder

    before_each(function()
      folder = own_lock.folder()
    end)

    after_each(function()
      dir.rmtree(folder)
    end)

    local function own(...)
      return program.run({ 'mutate', '--dir', folder .. '/scripts', ... })
    end

    it('has them caught by specs and by a model', function()
      local weak = own('--spec', folder .. '/specs/acme_spec.lua', '--json')
      local strong = own('--spec', folder .. '/specs', '--model', folder .. '/acme.lua', '--json')

      assert.equal(1, weak.code)
      assert.is_true(program.decode(weak.out).killed >= 5)
      assert.is_true(program.decode(weak.out).alive > 5)
      assert.equal(0, strong.code, strong.out)
      assert.equal(0, program.decode(strong.out).alive)
    end)

    it('lists what does no harm with its reason, and rows that are wrong', function()
      local list = folder .. '/equivalent.tsv'
      local text = '# mutant\tchange\treason\nacme/release:text:1060323c\tx\tnobody reads it\n'
      utils.writefile(list, text)
      local options = { '--spec', folder .. '/specs/acme_spec.lua', '--model',
        folder .. '/acme.lua', '--equivalent', list }

      local result = own(unpack(options))
      utils.writefile(list, text .. 'acme/release:always:e8b46b45\tx\tnone\n')
      local wrong = own(unpack(options))

      assert.equal(0, result.code, result.out)
      assert.matches('equivalent: 1, alive: 0', result.out, 1, true)
      assert.equal(1, wrong.code)
      assert.matches('/equivalent.tsv: acme/release:always:e8b46b45 is caught', wrong.out, 1, true)
    end)

    it('leaves no folder of its own, whatever ends it', function()
      local temporary = program.folder()
      for _, number in ipairs({ signal.SIGINT, signal.SIGKILL }) do
        local process = program.start({ 'mutate', '--dir', folder .. '/scripts', '--model',
          folder .. '/acme.lua' }, { env = { TMPDIR = temporary } })
        program.eventually('scripts are laid out', function()
          return #dir.getdirectories(temporary) > 0
        end)
        process:kill(number)
        process:wait()

        program.eventually('their folder is gone', function()
          return #dir.getdirectories(temporary) == 0
        end)
      end
    end)

    it('says where there is no folder for wrong scripts, and needs none without a model', function()
      local nowhere = { env = { TMPDIR = '/no/such/folder' } }
      local function at(...)
        return program.run({ 'mutate', '--dir', folder .. '/scripts', '--sample', '2', ... },
          nowhere)
      end

      local result = at('--model', folder .. '/acme.lua')
      local specs = at('--spec', folder .. '/specs')
      local ours = program.run({ 'mutate', 'mutex/renew', '--sample', '1' }, nowhere)

      for _, refused in ipairs({ result, ours }) do
        assert.equal(64, refused.code, refused.err)
        assert.truthy(refused.err:find('no folder for wrong scripts: /no/such/folder: No such', 1,
          true), refused.err)
        assert.truthy(refused.err:find('TMPDIR', 1, true), refused.err)
        assert.equal('', refused.out)
      end
      assert.matches('^mutants: 2, ', specs.out:match('mutants: .*$'))
    end)

    it('catches nothing by a model that fails without any change', function()
      own_lock.write(folder, 'acquire',
        "return redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2])\n")

      local result = own('--model', folder .. '/acme.lua')

      assert.equal(1, result.code)
      assert.matches('/acme.lua fails as it is: G', result.err, 1, true)
    end)

    -- Clients of the limiter of the page, as a ready-made model, or with a promise of their own.
    local function limiter(promise)
      dir.rmtree(folder)
      folder = own_lock.folder('docs/howto/audit-limiter-and-queue.md')
      utils.writefile(folder .. '/ready.lua', [[return model.limiter {
        take = { 'limit/take', takes = 1, refuses = 0, args = { most = 2, window = 200 } },
        most = 2, window_ms = 200, may_refuse = true,
        bounds = { clients = 3, rounds = 1, faults = 0 } }]])
      utils.writefile(folder .. '/steps.lua', ([[return model.clients { first = 'take',
        steps = { take = { call = 'limit/take', args = { most = 1, window = 200 },
          on = { [1] = 'done', [0] = 'done' } } }, bounds = { clients = 1, rounds = 1, faults = 0 },
        promises = { ['it has an end'] = function(call, notes, keys) %s end } }]]):format(
        promise or 'return true'))
    end

    it('counts as caught what a check fails for, though it finds nothing', function()
      limiter()

      local result = own('limit/take', '--model', folder .. '/ready.lua', '--kind', 'always')

      assert.equal(0, result.code, result.out .. result.err)
      assert.matches('mutants: 1, killed: 1,', result.out, 1, true)
    end)

    it('catches nothing by a model that is never answered without any change', function()
      limiter()
      local text = utils.readfile(folder .. '/steps.lua'):gsub('most = 1,', 'most = 1000,')
        :gsub("first = 'take',", "first = 'take', reaches = { ['limit/take'] = 0 },")
      utils.writefile(folder .. '/steps.lua', text)

      local result = own('limit/take', '--model', folder .. '/steps.lua')

      assert.equal(1, result.code)
      assert.matches('/steps.lua fails as it is: limit/take never answers 0', result.err, 1, true)
    end)

    it('counts as caught what makes a promise fail with an error, and goes on', function()
      limiter("return keys[next(keys)].expires_at > call.now")

      local result = own('limit/take', '--model', folder .. '/steps.lua', '--kind', 'dropped-call',
        '--json')
      local document = program.decode(result.out)

      assert.equal(3, document.mutants, result.out)
      assert.is_true(document.killed >= 2)
      assert.equal(document.mutants, document.killed + document.alive)
    end)

    it('says where the model fails with an error without any change', function()
      limiter("return keys.none.expires_at")

      local result = own('limit/take', '--model', folder .. '/steps.lua')

      assert.equal(1, result.code, result.err)
      assert.matches('steps.lua fails as it is: the promise "it has an end": ', result.err, 1, true)
    end)

    it('refuses specs that are none, and a list that it cannot read', function()
      local list = folder .. '/equivalent.tsv'
      utils.writefile(list, '# mutant\n\nacme/release:text:1060323c x nobody\n')
      dir.makepath(folder .. '/empty')
      local deep = program.folder()
      assert(utils.execute(('ln -s . %s/again'):format(deep)))
      for option, why in pairs({
        ['--spec ' .. folder .. '/empty'] = 'empty has no specs: files whose names end in',
        ['--spec ' .. deep] = '/again: a link that leads back to ' .. deep,
        ['--equivalent ' .. folder .. '/empty'] = 'empty is a folder; name a file in it',
        ['--equivalent ' .. list] = 'equivalent.tsv:3: a row is a mutant, what it changes and why',
      }) do
        local name, value = option:match('(%S+) (%S+)')

        local result = own('--model', folder .. '/acme.lua', '--sample', '1', name, value)

        assert.equal(64, result.code, result.err)
        assert.truthy(result.err:find(why, 1, true), result.err)
        assert.equal('', result.out)
      end
    end)

    it('refuses what it cannot do', function()
      for _, options in ipairs({ {}, { '--spec', folder .. '/none' },
        { '--spec', folder .. '/specs', '--equivalent', folder .. '/none' },
        { '--model', folder .. '/none.lua' }, { '--spec', folder .. '/specs', '--changed' },
        { '--spec', folder .. '/specs', 'acme/none' } }) do
        assert.equal(64, own(unpack(options)).code)
      end
      assert.equal(64, program.run({ 'mutate', '--spec', folder .. '/specs' }).code)
    end)
  end)

  it('lists those of the kinds that are named, and no other kind', function()
    local listed = program.decode(run('--kind', 'order', '--kind', 'option', '--list', '--json')
      .out)
    local seen = {}
    for _, mutant in ipairs(listed.list) do
      seen[mutant.kind] = true
    end

    assert.same({ order = true, option = true }, seen)
    local unknown = run('--kind', 'bracket')
    assert.equal(64, unknown.code)
    assert.matches('no mutants are of the kind "bracket"', unknown.err, 1, true)
  end)

  it('takes the same sample each time, and lists mutants and kinds', function()
    local first = program.decode(run('--sample', '5', '--list', '--json').out)

    assert.equal(5, first.mutants)
    assert.same(first, program.decode(run('--sample', '5', '--list', '--json').out))
    assert.is_true(#program.decode(run('--kinds', '--json').out).kinds >= 12)
  end)

  it('refuses what it cannot do', function()
    assert.equal(64, run('mutex/none').code)
    assert.equal(64, run('--sample', '0').code)
    assert.equal(64, run('--jobs', 'x').code)
  end)
end)

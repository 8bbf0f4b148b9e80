-- SPDX-License-Identifier: Apache-2.0
local dir = require('pl.dir')
local signal = require('posix.signal')
local tablex = require('pl.tablex')
local utils = require('pl.utils')

local own_lock = require('support.own_lock')
local program = require('cli.program')

describe('latchkey check', function()
  after_each(program.clean)

  local function run(...)
    return program.run({ 'check', ... })
  end

  -- The scripts of the lock, whose release gives up the lock before it asks whose it is.
  local function broken_scripts()
    local folder = program.folder()
    assert(utils.executeex(('cp -RL %s/scripts/lock %s/'):format(program.root, folder)))
    local file = folder .. '/lock/release.lua'
    local source, changes = utils.readfile(file):gsub(
      "if not redis.call%('HGET', lock, owner%) then", "if redis.call('DEL', lock) == 0 then")
    assert.equal(1, changes)
    utils.writefile(file, source)
    return folder
  end

  it('says within which bounds all holds', function()
    local result = run('lock', '--clients', '2', '--faults', '0')

    assert.equal(0, result.code)
    assert.is_truthy(result.out:find('exhaustive within clients=2 rounds=1 faults=0', 1, true))
  end)

  it('tells its default runs apart, by faults and limits', function()
    local result, seen, runs = run('batch'), {}, 0

    for within in result.out:gmatch('within (.-): %d+ states') do
      assert.is_nil(seen[within], result.out)
      seen[within], runs = true, runs + 1
    end
    assert.equal(3, runs, result.out)
    assert.is_true(seen['clients=3 rounds=1 faults=0 levels=1'], result.out)
  end)

  it('does not count what a limit keeps it from as found, and names it', function()
    local result = run('mutex', '--limit', 'renewals=0')

    assert.equal(0, result.code, result.err)
    assert.is_truthy(result.out:find('never: mutex/renew {1}', 1, true))
  end)

  it('shows how a broken script breaks, on the screen and on a page', function()
    local scripts = broken_scripts()
    local page = scripts .. '/page.html'

    local result = run('lock', '--scripts', scripts, '--clients', '2', '--no-spec', '--html', page)

    assert.equal(1, result.code)
    assert.is_truthy(result.out:find('violated', 1, true))
    assert.is_truthy(result.out:find('lock/release.lua:%d+:'))
    assert.is_truthy(utils.readfile(page):find('id="blame"', 1, true))
  end)

  it('writes one document where its page cannot be written', function()
    local result = run('lock', '--scripts', broken_scripts(), '--clients', '2', '--no-spec',
      '--json', '--html', '/nowhere/page.html')

    assert.equal(1, result.code)
    assert.is_false(program.decode(result.out).ok)
    assert.truthy(result.err:find('/nowhere/page.html: No such file', 1, true), result.err)
  end)

  it('says where it wrote a spec, and that it could not', function()
    local folder, scripts = program.folder(), broken_scripts()
    local function check()
      return program.start_any('sh', { '-c', 'cd "$1" && exec "$0" check lock --scripts "$2" '
        .. '--clients 2', program.path, folder, scripts }):wait()
    end

    local first = check()
    assert(os.rename(folder .. '/spec', folder .. '/old'))
    utils.writefile(folder .. '/spec', 'no folder')
    local second = check()

    local file = first.out:match('\nwritten: spec/([^\n]+)')
    assert.matches('Found by latchkey check', utils.readfile(folder .. '/old/' .. file), 1, true)
    assert.equal(1, second.code)
    assert.truthy(second.out:find('\ncould not be written: [^\n]+'), second.out)
    assert.is_nil(second.out:find('\nwritten: ', 1, true))
  end)

  it('replays what a person typed', function()
    local result = run('lock', '--scripts', broken_scripts(), '--replay', 'A.acq +300 B.acq A.rel')

    assert.equal(1, result.code)
    assert.is_truthy(result.out:find('G4 violated', 1, true))
  end)

  it('says which word of a replay cannot be there', function()
    local result = run('lock', '--replay', 'A.acq B.nothing')

    assert.equal(64, result.code)
    assert.is_truthy(result.err:find('word 2 of the replay, "B.nothing"', 1, true))
  end)

  it('claims nothing when its memory does not suffice', function()
    local result = run('lock', '--clients', '4', '--memory', '10')

    assert.equal(2, result.code)
    assert.is_truthy(result.out:find('out of memory', 1, true))
  end)

  it('says which script of a folder it cannot read', function()
    local scripts = broken_scripts()
    local renew = scripts .. '/lock/renew.lua'
    utils.writefile(renew, (utils.readfile(renew):gsub('\nname:', '\nnme:')))

    local header = run('lock', '--scripts', scripts)
    local missing = run('mutex', '--scripts', scripts)

    assert.equal(64, header.code)
    assert.is_truthy(header.err:find('lock/renew.lua:3: unknown field "nme"', 1, true))
    assert.equal(64, missing.code)
    assert.is_truthy(missing.err:find('mutex/acquire.lua: No such file', 1, true))
  end)

  for _, workers in ipairs({ '1', '2' }) do
    it('says what is wrong in a function of a model, with workers ' .. workers, function()
      local folder = own_lock.folder('docs/howto/audit-limiter-and-queue.md')
      local model = folder .. '/limit.lua'
      utils.writefile(model, (utils.readfile(model):gsub("if call.shape ~= '1' then",
        'if call.shap.x then')))

      local result = run('--model', model, '--dir', folder .. '/scripts', '--workers', workers)
      dir.rmtree(folder)

      assert.equal(64, result.code, result.err)
      assert.is_truthy(result.err:find('limit.lua: the promise "at most 2 in any 200 ms": ', 1,
        true), result.err)
      assert.is_nil(result.err:find('traceback', 1, true))
    end)
  end

  it('says how to run what it found again, with its folder', function()
    local scripts = broken_scripts()
    local result = run('lock', '--scripts', scripts, '--clients', '2', '--no-spec',
      '--no-symmetry', '--only', 'G1,G4')

    local again = result.out:match('again: latchkey (check [^\n]+)')
    local repeated = program.start_any('sh', { '-c', '"$0" ' .. again, program.path }):wait()

    assert.is_truthy(again:find(' --no-symmetry ', 1, true), again)
    assert.is_truthy(again:find(' --only G1,G4 ', 1, true), again)
    assert.equal(1, repeated.code, repeated.err)
    assert.is_truthy(repeated.out:find(result.out:match('(G%d+ violated: [^\n]+)'), 1, true))
  end)

  it('refuses promises that nothing would try, and says which models do not', function()
    local none, one = run('mutex', '--only', 'G3'), run('fenced', '--only', 'G3,G7')
    local all = run('--only', 'G13', '--clients', '2', '--rounds', '1', '--faults', '0')

    assert.equal(64, none.code)
    assert.is_truthy(none.err:find('G3 would not be tried: nothing in the model checks it', 1,
      true), none.err)
    assert.equal(64, one.code)
    assert.is_truthy(one.err:find('G7 would not be tried', 1, true))
    assert.equal(0, all.code, all.err)
    assert.is_truthy(all.out:find('period +exhaustive'))
    assert.is_truthy(all.out:find('mutex      not tried: G13', 1, true), all.out)
    assert.is_nil(all.out:find('mutex +exhaustive'))
  end)

  it('refuses lists of nothing, within which all would hold', function()
    for option, what in pairs({ ['--only'] = 'promises', ['--fault'] = 'faults' }) do
      for _, words in ipairs({ { 'mutex', option, '' }, { option, '' } }) do
        local result = run(unpack(words))

        assert.equal(64, result.code, result.out)
        assert.is_truthy(result.err:find(option .. ' names no ' .. what, 1, true), result.err)
      end
      assert.equal(64, run('mutex', option, ',').code)
    end
  end)

  it('refuses limits that a model does not have, which would change nothing', function()
    for text, why in pairs({ ['foo=1'] = 'no limit "foo" of fair', ['redisson=1'] = 'of fair',
      ['levels=many'] = 'not NAME=N', ['levels'] = 'not NAME=N',
      ['third=-1'] = 'is a whole number from 2', ['third=0'] = 'is a whole number from 2',
      ['lease=0.5'] = 'is a whole number from 1', ['levels=nan'] = 'is a whole number from 1',
      ['edges=1'] = 'is true or false' }) do
      local result = run('fair', '--limit', text)

      assert.equal(64, result.code)
      assert.is_truthy(result.err:find(why, 1, true), result.err)
    end
  end)

  describe('with faults', function()
    local folder

    before_each(function()
      folder = own_lock.folder()
    end)

    after_each(function()
      dir.rmtree(folder)
    end)

    local function own(model, ...)
      return run('--model', ('%s/%s.lua'):format(folder, model), '--dir', folder .. '/scripts',
        '--rounds', '1', '--no-spec', ...)
    end

    it('refuses those that can strike nowhere, and claims nothing', function()
      for _, kind in ipairs({ 'break', 'replicas' }) do
        local result = own('acme', '--fault', kind)

        assert.equal(64, result.code, result.out)
        assert.truthy(result.err:find(('"%s" can strike nowhere in the model'):format(kind), 1,
          true), result.err)
        assert.is_nil(result.out:find('exhaustive', 1, true))
      end
      assert.equal(64, own('acme', '--fault', 'crash,break').code)
      assert.equal(0, own('acme', '--fault', 'crash').code)
      assert.equal(0, own('acme', '--fault', 'drop').code)
      assert.equal(64, run('mutex', '--fault', 'replicas', '--clients', '2').code)
    end)

    it('names only those that can strike', function()
      local result = own('acme', '--workers', '2')

      assert.equal(0, result.code, result.err)
      for _, kind in ipairs({ 'break', 'replicas' }) do
        assert.is_nil(result.out:find(' of [%l,]*' .. kind), result.out)
      end
      assert.truthy(result.out:find('acme.lua +faults that can strike nowhere: break, '
        .. 'replicas\n'), result.out)
    end)

    it('sets the clock back for clients by steps, who get no messages', function()
      local steps = own_lock.folder('docs/howto/audit-limiter-and-queue.md')
      local function at(kind)
        return run('--model', steps .. '/limit.lua', '--dir', steps .. '/scripts', '--rounds', '1',
          '--no-spec', '--fault', kind)
      end
      local back, drop = at('clock-back'), at('drop')
      dir.rmtree(steps)

      assert.is_true(back.code < 2, back.err)
      assert.equal(64, drop.code)
    end)
  end)

  it('leaves no worker behind, whatever ends it', function()
    for _, name in ipairs({ 'SIGTERM', 'SIGINT', 'SIGHUP', 'SIGKILL' }) do
      local process = program.start({ 'check', '--no-spec', '--workers', '2' })
      local workers = program.eventually('two work', function()
        local children = tablex.keys(program.children(process.pid))
        return #children == 2 and children
      end)
      process:kill(signal[name])
      process:wait()

      for _, worker in ipairs(workers) do
        program.eventually('a worker ends by ' .. name, function()
          return program.is_gone(worker)
        end, 30)
      end
    end
  end)

  it('claims nothing of a trace without steps', function()
    local folder = program.folder()
    utils.writefile(folder .. '/empty', '')

    local empty, none = run('--trace', folder .. '/empty'), run('--trace', folder)

    assert.equal(64, empty.code)
    assert.is_truthy(empty.err:find('has no steps', 1, true))
    assert.equal(64, none.code)
    assert.is_truthy(none.err:find('is a folder', 1, true))
  end)

  it('refuses a line of a trace that is no event, and says which', function()
    local file = program.folder() .. '/trace'
    utils.writefile(file, '{"e":"trace","t":1,"client":"c1","version":1,"recheck_ms":1,'
      .. '"command_ms":1}\n{"e":"begin","t":1,"client":"c1","op":"acquire"}\n')

    local result = run('--trace', file)

    assert.equal(64, result.code)
    assert.is_truthy(result.err:find(file .. ':2: "begin" has no member "lock"', 1, true),
      result.err)
  end)

  it('refuses what it does not know', function()
    for _, arguments in ipairs({ { 'nothing' }, { 'lock', '--fault', 'earthquake' },
      { 'lock', '--only', 'G99' }, { 'lock', '--clients', '-1' }, { 'lock', '--clients', 'two' },
      { 'lock', '--scripts', '/nowhere' }, { '--replay', 'A.acq' }, { 'lock', '--replay', '' } }) do
      assert.equal(64, run(unpack(arguments)).code)
    end
  end)
end)

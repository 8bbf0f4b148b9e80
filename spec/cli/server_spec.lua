-- SPDX-License-Identifier: Apache-2.0
local dir = require('pl.dir')
local utils = require('pl.utils')

local program = require('cli.program')

describe('latchkey on a server\'s scripts', function()
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

  describe('status', function()
    it('exits 1 when the server lacks scripts, and loads none by looking', function()
      local document, code = json('status')
      local again = json('status')

      assert.equal(1, code)
      assert.equal('latchkey/status/1', document.schema)
      assert.equal('master', document.nodes[1].role)
      local loaded = {}
      for _, script in ipairs(document.nodes[1].scripts) do
        loaded[script.name] = script.loaded
      end
      assert.is_false(loaded['lock/acquire'])
      assert.same(document, again)
    end)

    it('shows for each script its version, digest and whether it is there', function()
      run('load')

      local result = run('status', '-v')

      assert.equal(0, result.code)
      assert.truthy(result.out:find('lock/acquire +1%.0%.0 +%x+  loaded'))
      assert.falsy(result.out:find('missing', 1, true))
    end)

    it('says in a line what a server has or lacks', function()
      local none = run('status').out
      run('eval', '--name', 'job', 'lock/inspect')
      local few = run('status').out
      run('load')
      local all = run('status').out

      assert.truthy(none:find('^unix:%S+ %(master%), version %S+: has none of the %d+ scripts; '),
        none)
      assert.truthy(few:find(': lacks %d+ of %d+ scripts: countdown/count_down [^\n]+\n$'), few)
      assert.falsy(few:find('lock/inspect', 1, true))
      assert.truthy(all:find(': has all %d+ scripts\n$'), all)
    end)

    it('shows function libraries, and with --functions counts those that lack', function()
      run('load')

      local without = run('status', '--functions')
      run('load', '--functions')
      local with = run('status', '--functions', '-v')

      assert.equal(1, without.code)
      assert.equal(0, with.code)
      assert.truthy(with.out:find('lock/acquire +1%.0%.0 +function lock_acquire_1\n'))
    end)

    it('with --functions counts libraries that have other bytes, whatever they say they are',
      function()
        run('load', '--functions')
        local sha1
        for _, library in ipairs(json('status', '--functions').nodes[1].functions) do
          sha1 = library.library == 'lock_acquire_1' and library.sha1 or sha1
        end

        server:command('FUNCTION', 'LOAD', 'REPLACE', ("#!lua name=lock_acquire_1\n"
          .. "redis.register_function{function_name='lock_acquire_1', "
          .. "description='lock/acquire 1.0.0 %s', callback=function() return {1} end}"):format(
          sha1))
        local result = run('status', '--functions', '-v')

        assert.equal(1, result.code)
        assert.truthy(result.out:find(': lacks or has otherwise 1 of %d+ functions: '
          .. 'lock/acquire\n'), result.out)
        assert.truthy(result.out:find('function lock_acquire_1, not this program\'s\n', 1, true))
      end)

    it('with --functions names two scripts that would be one function', function()
      local folder = program.folder()
      local source = assert(utils.readfile(program.root .. '/scripts/semaphore/inspect.lua'))
      for _, name in ipairs({ 'a/b_c', 'a_b/c' }) do
        assert(dir.makepath(folder .. '/' .. name:match('^[^/]+')))
        assert(utils.writefile(('%s/%s.lua'):format(folder, name),
          (source:gsub('name:     semaphore/inspect', 'name:     ' .. name))))
      end

      local result = run('status', '--functions', '--dir', folder)

      assert.equal(64, result.code)
      assert.truthy(result.err:find('would be one function, a_b_c_1', 1, true), result.err)
    end)

    it('goes on with the others when a server cannot be asked, and exits 2', function()
      run('load')

      local some = program.run({ 'status', '--url', 'unix:///nowhere/s ' .. server.url })
      local none = program.run({ 'status', '--url', 'unix:///nowhere/s unix:///nowhere/t' })

      assert.equal(2, some.code)
      assert.truthy(some.err:find('unix:///nowhere/s', 1, true))
      assert.truthy(some.out:find(': has all %d+ scripts\n$'))
      assert.equal(69, none.code)
    end)
  end)

  describe('load', function()
    it('loads each script under the digest of its file', function()
      local result = run('load')

      local file = program.root .. '/scripts/lock/acquire.lua'
      local digest = program.start_any('sha1sum', { file }):wait().out:match('^%x+')
      assert.equal(0, result.code)
      assert.equal('1', server:command('SCRIPT', 'EXISTS', digest))
    end)

    it('repairs what SCRIPT FLUSH took', function()
      run('load')
      server:command('SCRIPT', 'FLUSH')

      local document, code = json('load')

      assert.equal(0, code)
      assert.equal('latchkey/load/1', document.schema)
      assert.equal(#document.nodes[1].new, document.nodes[1].loaded)
      assert.equal(0, run('status').code)
    end)

    it('leaves what is there, so that loading again goes on where it ended', function()
      local file = program.root .. '/scripts/lock/acquire.lua'
      program.start_any('sh', { '-c', 'exec redis-cli -s "$1" -x SCRIPT LOAD <"$2"', 'sh',
        server.socket, file }):wait()

      local first = json('load').nodes[1]
      local second = json('load').nodes[1]

      assert.equal(1, first.stays)
      assert.is_true(first.loaded > 10)
      assert.same({ loaded = 0, stays = first.loaded + 1 },
        { loaded = second.loaded, stays = second.stays })
    end)

    it('only looks with --dry-run, and says what is new, what stays and what would go', function()
      local document, code = json('load', '--dry-run')
      local shown = run('load', '--dry-run').out

      assert.equal(0, code)
      assert.is_true(#document.nodes[1].new > 0)
      assert.equal(0, document.nodes[1].loaded)
      assert.truthy(shown:find('\n  new +%d+  countdown/count_down '))
      assert.truthy(shown:find('\n  stays +0\n  goes +0\n'))
      assert.equal(1, run('status').code)
    end)

    it('loads several servers, names one that fails, and exits 2', function()
      local other = program.server()
      local urls = server.url .. ' unix:///nowhere/s ' .. other.url

      local result = program.run({ 'load', '--url', urls })

      assert.equal(2, result.code)
      assert.truthy(result.err:find('latchkey load: unix:///nowhere/s', 1, true))
      assert.equal(0, program.run({ 'status', '--url', server.url .. ' ' .. other.url }).code)
    end)
  end)
end)

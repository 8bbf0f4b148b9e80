-- SPDX-License-Identifier: Apache-2.0
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
      local loaded = {}
      for _, script in ipairs(document.nodes[1].scripts) do
        loaded[script.name] = script.loaded
      end
      assert.is_false(loaded['lock/acquire'])
      assert.same(document, again)
    end)

    it('shows for each script its version, digest and whether it is there', function()
      run('load')

      local result = run('status')

      assert.equal(0, result.code)
      assert.truthy(result.out:find('lock/acquire +1%.0%.0 +%x+  loaded'))
      assert.falsy(result.out:find('missing', 1, true))
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
      assert.equal(#document.missing, document.loaded)
      assert.equal(0, run('status').code)
    end)

    it('only looks with --dry-run', function()
      local document, code = json('load', '--dry-run')

      assert.equal(0, code)
      assert.is_true(#document.missing > 0)
      assert.equal(0, document.loaded)
      assert.equal(1, run('status').code)
    end)
  end)
end)

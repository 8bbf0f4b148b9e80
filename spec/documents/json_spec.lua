-- SPDX-License-Identifier: Apache-2.0
-- The page of the commands' JSON against what they write.
local utils = require('pl.utils')

local program = require('cli.program')

-- A call of each command, in an order in which they find what they need. FOLDER stands for one.
local CALLS = {
  { 'bundle', program.root .. '/scripts', '--name', 'b', '--set-version', '1.0.0', '-o',
    'FOLDER/b.tar.gz' },
  { 'verify', 'FOLDER/b.tar.gz', '--allow-unsigned' },
  { 'diff', 'FOLDER/b.tar.gz', program.root .. '/scripts' },
  { 'docs', 'lock/renew' }, { 'explain', 'busy' }, { 'fragments' },
  { 'check', 'mutex', '--clients', '1', '--rounds', '1', '--no-spec' },
  { 'lint', program.root .. '/scripts/mutex' },
  { 'lint', '--rules' }, { 'load', '--url', 'local:' },
  { 'load', '--url', 'local:', '--bundle', 'FOLDER/b.tar.gz', '--allow-unsigned' },
  { 'status', '--url', 'local:' },
  { 'eval', '--url', 'local:', 'lock/inspect', '--name', 'job' },
  { 'local', 'status' }, { 'local', 'stop' },
  { 'spec', 'FOLDER/specs' },
  { 'adopt', 'FOLDER/specs/one.lua' },
  { 'new', 'script', 'shop/take', '--dir', 'FOLDER/begun' },
  { 'mutate', 'mutex/inspect', '--sample', '1', '--no-check' },
  { 'bind', 'c', '--dir', program.root .. '/scripts', '-o', 'FOLDER/calls.h' },
}

describe('the page of the JSON', function()
  teardown(program.clean)

  it('has the members that commands write', function()
    local folder, shown = program.folder(), {}
    local page = assert(utils.readfile(program.root .. '/docs/reference/json.md'))
    for command, cell in page:gmatch('\n| `(%l+)` | ([^\n]*) |') do
      shown[command] = cell
    end
    assert(utils.execute(('mkdir "%s/specs"'):format(folder)))
    utils.writefile(folder .. '/specs/a_spec.lua', 'it("is true", function() end)\n')
    utils.writefile(folder .. '/specs/one.lua', 'return 1\n')
    local env = { LATCHKEY_LOCAL_DIR = folder .. '/local' }
    for _, call in ipairs(CALLS) do
      local arguments = { '--json' }
      for i, word in ipairs(call) do
        table.insert(arguments, i, (word:gsub('FOLDER', folder)))
      end
      local result = program.start(arguments, { env = env }):wait(240)
      local document = program.decode(result.out)

      assert.equal(('latchkey/%s/1'):format(call[1]), document.schema, result.err)
      for member in pairs(document) do
        assert.truthy(member == 'schema' or (shown[call[1]] or ''):find('`' .. member .. '`', 1,
          true), ('%s writes %s'):format(call[1], member))
      end
      shown[call[1]] = shown[call[1]] .. ' seen'
    end
    for command, cell in pairs(shown) do
      assert.truthy(cell:find(' seen', 1, true), command .. ' was not called')
    end
  end)
end)

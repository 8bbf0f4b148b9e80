-- SPDX-License-Identifier: Apache-2.0
-- What answers at an address is no server of Redis: that is an error, and the others go on.
local path = require('pl.path')

local program = require('cli.program')

-- What some commands may make of it: none of the scripts is there; the name is of a type "OK".
local UNDERSTOOD = { ['*0 status'] = 1, ['*0 status --functions'] = 1, ['+OK inspect job'] = 64,
  ['+OK break job --yes'] = 64 }

describe('an odd reply', function()
  after_each(program.clean)

  local function odd_server(reply)
    local at = program.folder() .. '/o'
    program.start_any('luajit', { program.root .. '/spec/cli/odd_server.lua', at, reply })
    program.eventually('it listens', function()
      return path.exists(at)
    end)
    return 'unix://' .. at
  end

  for _, reply in ipairs({ '$-1', ':5', '*0', '+OK' }) do
    it(('is an error of the server that gave it, and the next one is loaded: %s'):format(reply),
      function()
        local odd, other = odd_server(reply), program.server()

        for _, words in ipairs({ { 'load' }, { 'load', '--functions' } }) do
          words[#words + 1] = '--url'
          words[#words + 1] = odd .. ' ' .. other.url
          local result = program.run(words)

          assert.equal(2, result.code, result.err)
          assert.truthy(result.err:find(('latchkey load: %s?db=0: the answer to '):format(odd), 1,
            true), result.err)
          assert.truthy(result.out:find(other.url, 1, true), result.out)
        end
      end)

    it(('ends no command as a defect of the program: %s'):format(reply), function()
      local url = odd_server(reply)

      for _, words in ipairs({ { 'load' }, { 'load', '--functions' }, { 'status' },
        { 'status', '--functions' }, { 'ls' }, { 'ls', '--kind', 'permit' }, { 'inspect', 'job' },
        { 'inspect', 'job', '--kind', 'fair' }, { 'break', 'job', '--yes' }, { 'blame' },
        { 'doctor' }, { 'doctor', '--user', 'app' }, { 'doctor', '--family', 'rw' },
        { 'exec', 'job', '--', 'true' }, { 'bench', '--seconds', '1' } }) do
        local case = reply .. ' ' .. table.concat(words, ' ')
        table.insert(words, 2, '--url')
        table.insert(words, 3, url)
        local result = program.run(words)

        assert.is_nil((result.err:find('traceback', 1, true)), result.err)
        assert.equal(UNDERSTOOD[case] or 69, result.code, case .. ': ' .. result.out .. result.err)
      end
    end)
  end
end)

-- SPDX-License-Identifier: Apache-2.0
-- Blanks and line feeds around a URL, as a file of settings or a variable of YAML leaves them:
-- every command takes what stands between.
local program = require('cli.program')

local AROUND = { ' %s', '%s ', '%s\n', '\n%s', '\t%s\r\n' }
local COMMANDS = { 'ls --json', 'inspect job', 'break job --yes', 'blame', 'doctor', 'status',
  'load', 'top --once', 'eval lock/inspect --name job', 'bench --seconds 1 --threads 1 --json',
  'exec job -- true', 'acl --json job' }

describe('a URL with white space around it', function()
  local server

  setup(function()
    server = program.server()
  end)

  teardown(program.clean)

  local function words_of(line)
    local words = {}
    for word in line:gmatch('%S+') do
      words[#words + 1] = word
    end
    return words
  end

  for _, line in ipairs(COMMANDS) do
    it('is taken by latchkey ' .. line, function()
      local plain = program.run(words_of(line), { env = { LATCHKEY_URL = server.url } })
      assert.truthy(plain.code == 0 or plain.code == 1 or plain.code == 3, plain.err)
      for i, around in ipairs(AROUND) do
        local words, env = words_of(line), { LATCHKEY_URL = around:format(server.url) }
        if i % 2 == 0 then
          table.insert(words, 2, '--url=' .. env.LATCHKEY_URL)
          env = nil
        end

        local result = program.run(words, { env = env })

        assert.same({ i, plain.code, plain.err }, { i, result.code, result.err })
      end
    end)
  end

  for _, line in ipairs({ 'ls', 'doctor', 'exec job -- true' }) do
    it('is refused by latchkey ' .. line .. ' where there is nothing else', function()
      local result = program.run(words_of(line), { env = { LATCHKEY_URL = ' \n' } })

      assert.same({ 64, '' }, { result.code, result.out })
      assert.truthy(result.err:find('no server is named', 1, true), result.err)
    end)
  end

  it('separates the servers of a majority, too', function()
    local urls = ('%s\n%s\n%s\n'):format(server.url, program.server().url, program.server().url)
    for line, code in pairs({ ['ls --json'] = 0, ['exec job -- true'] = 0, ['inspect job'] = 3 }) do
      local result = program.run(words_of(line), { env = { LATCHKEY_URL = urls } })

      assert.same({ line, code, '' }, { line, result.code, result.err })
    end
  end)
end)

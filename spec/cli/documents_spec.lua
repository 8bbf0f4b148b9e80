-- SPDX-License-Identifier: Apache-2.0
local document = require('cli.document')
local program = require('cli.program')

local DOCS = program.root .. '/docs/'

-- No variable of the machine reaches the commands.
local function clean_env(more)
  local env = { LATCHKEY_URL = false, LATCHKEY_PASSWORD = false, LATCHKEY_HOME = false,
    LATCHKEY_LIB = false, LATCHKEY_SPEC_URL = false, LATCHKEY_SPEC_SCRIPTS = false }
  for name, value in pairs(more) do
    env[name] = value
  end
  return env
end

describe('a document', function()
  after_each(program.clean)

  it('on a script of one\'s own shows what happens', function()
    local env = clean_env({ LATCHKEY_LOCAL_DIR = program.folder() .. '/local' })
    finally(function()
      program.start_any(program.path, { 'local', 'stop' }, { env = env }):wait()
    end)

    assert.is_nil(document.follow(DOCS .. 'tutorial/own-script.md', { env = env }))
  end)

  it('on deploying scripts shows what happens', function()
    local first, second = program.server(), program.server()
    local home = program.folder()
    program.start_any('sh', { '-c', 'mkdir -m 700 "$1/.ssh" && '
      .. 'ssh-keygen -q -t ed25519 -N "" -C release -f "$1/.ssh/release_key"', 'sh', home }):wait()

    assert.is_nil(document.follow(DOCS .. 'howto/deploy-scripts.md', {
      env = clean_env({ HOME = home }),
      replace = { ['redis://db1:6379'] = first.url, ['redis://db2:6379'] = second.url },
    }))
  end)

  it('on a lock that is stuck shows what happens', function()
    local server = program.server()

    assert.is_nil(document.follow(DOCS .. 'howto/stuck-lock.md', {
      env = clean_env({}), replace = { ['local:'] = server.url },
    }))
  end)

  it('on acl shows what it prints', function()
    assert.is_nil(document.follow(DOCS .. 'reference/acl.md', { env = clean_env({}) }))
  end)
end)

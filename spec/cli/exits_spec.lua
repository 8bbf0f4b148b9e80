-- SPDX-License-Identifier: Apache-2.0
-- The exit codes of the commands for scripts: --help and the page list the same, and each of them
-- is what its command ends with. A missing busted and defects are left out.
local dir = require('pl.dir')
local utils = require('pl.utils')

local own_lock = require('support.own_lock')
local program = require('cli.program')

local COMMANDS = { 'adopt', 'bind', 'bundle', 'check', 'debug', 'eval', 'lint', 'mutate', 'new',
  'repl', 'spec' }
local NOBODY = 'redis://127.0.0.1:1'

-- FOLDER stands for the folder of the page's scripts; what is typed stands behind "<".
local CASES = {
  adopt = { [0] = 'FOLDER/new/acme/get.lua', [64] = 'FOLDER/scripts/acme/renew.lua' },
  lint = { [0] = 'FOLDER/scripts', [1] = 'FOLDER/wrong', [64] = 'FOLDER/nowhere' },
  spec = { [0] = 'FOLDER/specs --dir FOLDER/scripts', [1] = 'FOLDER/specs --dir FOLDER/wrong',
    [64] = 'FOLDER/scripts', [69] = 'FOLDER/specs --url ' .. NOBODY },
  check = { [0] = '--model FOLDER/acme.lua --dir FOLDER/scripts --clients 2 --rounds 1',
    [1] = '--model FOLDER/acme.lua --dir FOLDER/wrong --no-spec --clients 2 --rounds 1',
    [2] = '--model FOLDER/acme.lua --dir FOLDER/scripts --clients 3 --rounds 2 --memory 1',
    [64] = 'nothing' },
  mutate = { [0] = '--dir FOLDER/scripts --spec FOLDER/specs --kind text',
    [1] = '--dir FOLDER/scripts --spec FOLDER/specs/acme_spec.lua --kind text',
    [64] = '--dir FOLDER/nowhere --spec FOLDER/specs' },
  bind = { [0] = 'c --dir FOLDER/scripts', [64] = 'c --dir FOLDER/specs' },
  new = { [0] = 'lock begun --dir FOLDER/begun', [64] = 'lock lock --dir FOLDER/begun' },
  debug = { [0] = '--dir FOLDER/scripts acme/renew --name job --token me --ttl 5s < quit',
    [1] = '--dir FOLDER/scripts acme/renew --name job --token me --ttl 5s < nonsense',
    [64] = '--dir FOLDER/scripts acme/nothing' },
  bundle = { [0] = 'FOLDER/scripts --name a --set-version 1.0.0 -o FOLDER/b',
    [1] = 'FOLDER/open --name a --set-version 1.0.0 -o FOLDER/b', [64] = 'FOLDER/scripts' },
  eval = { [0] = '--mock --dir FOLDER/scripts acme/renew --name job --token me --ttl 5s',
    [1] = '--mock lock/acquire job', [64] = '--mock --dir FOLDER/scripts acme/nothing',
    [69] = '--url ' .. NOBODY .. ' lock/acquire job , 30000 me 1' },
  repl = { [0] = '--dir FOLDER/scripts < dump()', [1] = '--dir FOLDER/scripts < nonsense(',
    [64] = '--dir FOLDER/nowhere', [69] = '--url ' .. NOBODY },
}

-- "code meaning" of each row of the page.
local function rows_of_page(command)
  local rows = {}
  local page = assert(utils.readfile('docs/reference/commands-scripts.md'))
  for code, meaning in page:gmatch('\n| `' .. command .. '` | (%d+) | ([^\n]-) |') do
    rows[#rows + 1] = code .. ' ' .. meaning
  end
  return rows
end

local function rows_of_help(command)
  local rows = {}
  local text = program.run({ command, '--help' }).out:match('\nExit codes:\n(.*)$') or ''
  for line in text:gmatch('[^\n]+') do
    local code, meaning = line:match('^  (%d+) +(.*)$')
    if code then
      rows[#rows + 1] = code .. ' ' .. meaning
    else
      rows[#rows] = rows[#rows] .. ' ' .. line:gsub('^ +', '')
    end
  end
  return rows
end

describe('the exit codes of', function()
  local folder

  setup(function()
    folder = own_lock.folder()
    local wrong = own_lock.folder()
    own_lock.write(wrong, 'release',
      "redis.call('publish', ARGV[2], 'free') return redis.call('del', KEYS[1])\n")
    assert(dir.movefile(wrong .. '/scripts', folder .. '/wrong'))
    dir.rmtree(wrong)
    for _, name in ipairs({ 'new', 'open' }) do
      assert(dir.makepath(('%s/%s/acme'):format(folder, name)))
      assert(utils.writefile(('%s/%s/acme/get.lua'):format(folder, name),
        "return redis.call('GET', KEYS[1])\n"))
    end
    assert.equal(0, program.run({ 'adopt', folder .. '/open/acme/get.lua' }).code)
  end)

  teardown(function()
    dir.rmtree(folder)
    program.clean()
  end)

  local function run(command, words)
    words = words:gsub('FOLDER', folder)
    local call, typed = words:match('^(.-) *< (.*)$')
    local input = program.folder() .. '/input'
    assert(utils.writefile(input, (typed or '') .. '\n'))
    return program.run({ command, unpack(utils.split(call or words)) }, { input = input })
  end

  for _, command in ipairs(COMMANDS) do
    it(command .. ' are in --help and on the page', function()
      local rows = rows_of_page(command)

      assert.is_true(#rows >= 2)
      assert.same(rows, rows_of_help(command))
    end)

    it(command .. ' are those that it ends with', function()
      local tried = {}
      for _, row in ipairs(rows_of_page(command)) do
        local code = tonumber(row:match('^%d+'))
        local words = CASES[command][code]
        if words then
          local result = run(command, words)
          assert.equal(code, result.code, words .. '\n' .. result.err)
          tried[#tried + 1] = code
        end
      end
      for code in pairs(CASES[command]) do
        assert.is_truthy(require('pl.tablex').find(tried, code), ('%s: %d'):format(command, code))
      end
    end)
  end
end)

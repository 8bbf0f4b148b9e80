-- SPDX-License-Identifier: Apache-2.0
local Oracle = require('mock.oracle')
local commands = require('latchkey.mock.commands')

-- Flags that COMMAND INFO tells.
local FLAGS = { 'write', 'readonly', 'denyoom', 'noscript' }

-- Every command and every modelled subcommand, by full name.
local function all()
  local names, by_name = {}, {}
  local function add(list)
    for _, command in pairs(list) do
      names[#names + 1] = command.name
      by_name[command.name] = command
      add(command.subcommands or {})
    end
  end
  add(commands)
  table.sort(names)
  return names, by_name
end

describe('the table of commands agrees with a Redis 7.0 server', function()
  local oracle, missing

  setup(function()
    oracle, missing = Oracle.start()
    if oracle and not oracle.is_model then
      oracle:stop()
      oracle, missing = nil, 'the table is that of Redis 7.0, the server is another'
    end
  end)

  teardown(function()
    if oracle then
      oracle:stop()
    end
  end)

  it('on the names of all commands', function()
    if not oracle then
      return pending(missing)
    end

    local server_has = {}
    for _, name in ipairs(oracle:command('COMMAND', 'LIST')) do
      server_has[name:upper()] = true
      assert.is_true(name:find('|', 1, true) ~= nil or commands[name:upper()] ~= nil, name)
    end
    for _, name in ipairs(all()) do
      assert.is_true(server_has[name], name)
    end
  end)

  it('on arity, flags and key positions', function()
    if not oracle then
      return pending(missing)
    end
    local names, by_name = all()
    for _, name in ipairs(names) do
      local command = by_name[name]

      local info = oracle:command('COMMAND', 'INFO', name)[1]

      assert.equal(info[2], command.arity, name)
      local flags = {}
      for _, flag in ipairs(info[3]) do
        flags[flag.ok] = true
      end
      local positions = command.keys or command.slots or { 0, 0, 0 }
      for _, flag in ipairs(command.run and FLAGS or { 'noscript' }) do
        assert.equal(flags[flag], command[flag], name .. ' ' .. flag)
      end
      if command.run then
        assert.same({ info[4], info[5], info[6] }, positions, name)
      end
    end
  end)
end)

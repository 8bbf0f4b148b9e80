-- SPDX-License-Identifier: Apache-2.0
-- The keys of commands in scripts that have a contract.
local dir = require('pl.dir')
local path = require('pl.path')

local commands = require('latchkey.redis.commands')
local key_places = require('latchkey.redis.key_places')
local lint = require('latchkey.lint')
local other_commands = require('latchkey.redis.other_commands')
local own_lock = require('support.own_lock')
local server_commands = require('latchkey.mock.commands')

describe('the keys of a script with a contract', function()
  local folder

  before_each(function()
    folder = path.tmpname()
    os.remove(folder)
    dir.makepath(folder)
  end)

  after_each(function()
    dir.rmtree(folder)
  end)

  -- What lint finds, as "1: message" of the script and ": message" of the contract.
  local function findings(source, keys, derived)
    own_lock.add(folder, 'acme/run', source .. '\nreturn 1\n',
      { keys = keys, derived = derived, returns = { '1  one' } })
    local list = {}
    for i, finding in ipairs((lint.run({ folder .. '/scripts' }))) do
      local line = finding.file:find('%.lua$') and finding.line or ''
      list[i] = ('%s: %s: %s'):format(line, finding.rule, finding.message)
    end
    return list
  end

  local UNDECLARED = ': keys: the key of %s is not one of the header; declare and bind it'

  -- A command, its arguments with the first key of a contract for `k` and the second for `l`, and
  -- the access of both by a right contract.
  for _, case in ipairs({
    { "'SPOP', k", 'set  rw' },
    { "'spop', k, 2", 'set  rw' },
    { "'INCRBYFLOAT', k, '1.5'", 'string  rw' },
    { "'MSET', k, 'x', l, 'y'", 'string  rw', 'string  rw' },
    { "'BITOP', 'AND', k, l", 'string  w', 'string  r' },
    { "'SINTERSTORE', k, l", 'set  w', 'set  r' },
    { "'ZUNIONSTORE', k, 1, l, 'WEIGHTS', 2", 'zset  w', 'set  r' },
    { "'ZUNION', 2, k, l, 'WITHSCORES'", 'zset  r', 'set  r' },
    { "'ZUNION', #KEYS, k, l, 'WITHSCORES'", 'zset  r', 'set  r' },
    { "'ZRANGESTORE', k, l, 0, -1", 'zset  w', 'zset  r' },
    { "'LMPOP', 1, k, 'LEFT'", 'list  rw' },
    { "'SORT', k, 'BY', 'nosort', 'STORE', l", 'list  r', 'list  w' },
    { "'COPY', k, l", 'string  r', 'string  w' },
    { "'XREAD', 'COUNT', 1, 'STREAMS', k, l, '0', '0'", 'stream  r', 'stream  r' },
    { "'XGROUP', 'CREATE', k, 'all', '$'", 'stream  w' },
    { "'OBJECT', 'ENCODING', k", 'any  r' },
  }) do
    local words, first, second = unpack(case)
    local name = words:match("^'(%w+)'"):upper()

    it(('are known of redis.call(%s)'):format(words), function()
      local own = words:gsub('%f[%w]k%f[%W]', 'KEYS[1]'):gsub('%f[%w]l%f[%W]', 'KEYS[2]')
      local keys = { ('k  %s  {{name}}    said'):format(first),
        second and ('l  %s  {{name}}:2  said'):format(second) }
      local right = findings(('redis.call(%s)'):format(own), keys)

      local one = own:gsub(second and 'KEYS%[2%]' or 'KEYS%[1%]', "'another'", 1)
      local touch = "redis.call('EXISTS', unpack(KEYS)) redis.call('DEL', unpack(KEYS)) "
      local wrong = findings(touch .. ('redis.call(%s)'):format(one),
        { 'k*  any  rw  {name}  1..9  said' })

      assert.same({}, right)
      assert.same({ '1' .. UNDECLARED:format(name) }, wrong)
    end)
  end

  it('are where the server has them', function()
    local arguments = { {}, { tag = 'String', value = 'X' } }
    for i = 3, 12 do
      arguments[i] = { tag = 'String', value = ('k%d'):format(i) }
    end
    local function places(name)
      local row, list = commands[name] or other_commands[name] or { keys = 'none' }, {}
      for i, place in ipairs(key_places.of({ node = arguments, command = row })) do
        list[i] = place.node.value
      end
      return table.concat(list, ' ')
    end
    local function positions(command)
      local list = {}
      for i = command.keys[1], command.keys[2] < 0 and 10 or command.keys[2], command.keys[3] do
        list[#list + 1] = arguments[i + 2].value
      end
      return table.concat(list, ' ')
    end

    local checked = 0
    for name, command in pairs(server_commands) do
      if command.keys and not command.noscript then
        checked = checked + 1
        assert.equal(positions(command), places(name), name)
        assert.equal(command.write or false,
          (commands[name] or other_commands[name]).access == 'w', name)
      elseif command.counted then
        assert.equal('counted', other_commands[name].keys)
      end
    end
    assert.is_true(checked > 60)
  end)
end)

-- SPDX-License-Identifier: Apache-2.0
-- The keys of commands in scripts that have a contract.
local dir = require('pl.dir')
local path = require('pl.path')
local utils = require('pl.utils')

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

  -- What lint finds, but for the cost: "1: message" of the script, ": message" of the contract.
  local function findings(source, keys, derived)
    own_lock.add(folder, 'acme/run', source .. '\nreturn 1\n',
      { keys = keys, derived = derived, returns = { '1  one' } })
    local list = {}
    for _, finding in ipairs((lint.run({ folder .. '/scripts' }))) do
      local line = finding.file:find('%.lua$') and finding.line or ''
      list[#list + 1] = finding.rule ~= 'cost'
        and ('%s: %s: %s'):format(line, finding.rule, finding.message) or nil
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
    { "'MIGRATE', 'h', 6379, k, 0, 10, 'COPY'", 'any  rw' },
    { "'migrate', 'h', 6379, '', 0, 10, 'AUTH2', 'x', 'keys', 'KEYS', k, l", 'any  rw', 'any  w' },
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

  local FIRST_AND_SECOND = { 'k  string  rw  {{name}}    said', 'l  any  r  {{name}}:2  said' }

  -- What a script with a right contract does; `k` is its first key, and `l` its second.
  for _, source in ipairs({
    'local keys, args = KEYS, ARGV local k, l = keys[1], keys[2]',
    'local keys keys = KEYS local k, l = keys[1], keys[2]',
    'local k, l k = KEYS[1] l = KEYS[2]',
    'local k = nil local l if not k then k, l = KEYS[1], KEYS[2] end',
    'local k, l = (KEYS[1]), ((KEYS)[2])',
    "local k, l = KEYS[1] or 'x', assert(KEYS[2], 'no key')",
    'local k, l = tostring(KEYS[1]), KEYS[2]',
    'local both = { k = KEYS[1], l = KEYS[2] } local k, l = both.k, both.l',
    'local both = { KEYS[1], KEYS[2] } local k, l = unpack(both, 1, 2)',
    'local both = {} both.k, both.l = KEYS[1], KEYS[2] local k, l = both.k, both.l',
    'local k, l = unpack(KEYS)',
    'local k, l = KEYS[1], unpack(KEYS, 2)',
    "local function of(i) return KEYS[i] end local k, l = of(1), of(2)",
    "local function mine() return KEYS[1] end local k, l = mine(), KEYS[2]",
    'local many = KEYS[2] ~= nil local k, l = KEYS[1], many and KEYS[2] or KEYS[1]',
    "local k, l = KEYS[1], KEYS[2] if redis.call('GET', k) then k = KEYS[1] end",
  }) do
    it('are seen through ' .. source, function()
      assert.same({}, findings(source .. " redis.call('GET', l) redis.call('DEL', k)",
        FIRST_AND_SECOND))
    end)
  end

  -- The same, where a function or a loop touches both.
  for _, source in ipairs({
    "local function get(k) return redis.call('GET', k) end get(KEYS[1]) get(KEYS[2])\n"
      .. "redis.call('DEL', KEYS[1])",
    "local T = { del = function(k) redis.call('DEL', k) end } T.del(KEYS[1])\n"
      .. "redis.call('GET', KEYS[2])",
    "local function del(k) redis.call('DEL', k) end pcall(del, KEYS[1]) redis.call('GET', KEYS[2])",
    "for i = 1, #KEYS do redis.call('GET', KEYS[i]) end redis.call('DEL', KEYS[1])",
    "for _, k in ipairs(KEYS) do redis.call('GET', k) end redis.call('DEL', KEYS[1])",
    "for i, k in ipairs({ KEYS[1], KEYS[2] }) do if i == 1 then redis.call('DEL', k) end end",
    "redis.call('MGET', unpack(KEYS)) redis.call('DEL', KEYS[1])",
    "local function run(k, ...) return redis.call('SET', k, ...) end run(KEYS[1], 'x', 'NX')\n"
      .. "redis.call('GET', KEYS[2])",
  }) do
    it('are seen in ' .. source:gsub('\n', ' '), function()
      assert.same({}, findings(source, FIRST_AND_SECOND))
    end)
  end

  -- What no contract of these keys is right for.
  for _, source in ipairs({
    "redis.call('DEL', 'another')",
    "local k = 'another' redis.call('DEL', k)",
    "local k if KEYS[2] then k = 'one' else k = 'another' end redis.call('DEL', k)",
    "redis.call('DEL', ('another'))",
    "redis.call('DEL', KEYS[1] .. ':x')",
    "redis.call('DEL', 'acme:' .. ARGV[1])",
    "local args = ARGV redis.call('DEL', args[1])",
    "redis.call('DEL', redis.call('GET', KEYS[2]))",
    "for _, k in ipairs(redis.call('LRANGE', KEYS[2], 0, -1)) do redis.call('DEL', k) end",
    "for i = 1, 9 do redis.call('DEL', 'another' .. i) end",
    "local function del(k) redis.call('DEL', k) end del('another') del(KEYS[1])",
    "local function of(k) return k .. ':x' end redis.call('DEL', of(KEYS[1]))",
    "redis.call('DEL', string.format('acme:%s', ARGV[1]))",
    "redis.call('DEL', KEYS[3])",
    "redis.call('DEL', KEYS[2] and 'another' or KEYS[1])",
    "redis.call('DEL', unpack(ARGV))",
    "redis.call('DEL', KEYS[1], 'another')",
  }) do
    it('are not seen in ' .. source, function()
      local found = findings("redis.call('GET', KEYS[2]) redis.call('SET', KEYS[1], 'x') "
        .. source, FIRST_AND_SECOND)
      local about = {}
      for i, line in ipairs(found) do
        about[#about + 1] = line:find('keys:', 1, true) and i or nil
      end

      assert.equal(1, #about, table.concat(found, '\n'))
      assert.truthy(found[about[1]]:find(UNDECLARED:format('DEL'), 1, true))
    end)
  end

  it('are held to the access and type of one that they may be', function()
    local function one_of(command)
      return findings(("local k = ARGV and KEYS[1] or KEYS[2] redis.call(%s, k)\n"):format(command)
        .. "redis.call('SET', KEYS[1], 'x') redis.call('GET', KEYS[2])",
        { FIRST_AND_SECOND[1], 'l  string  r  {{name}}:2  said' })
    end

    assert.same({}, one_of("'DEL'"))
    assert.same({ '1: keys: LLEN is for a list, but k is a string in the header' },
      one_of("'LLEN'"))
  end)

  it('are said to be written by nothing only where that is known', function()
    local keys = { 'k  string  rw  {{name}}  said' }
    local UNWRITTEN = ': keys: the header calls k "rw", but nothing writes it'

    assert.same({ UNWRITTEN }, findings("redis.call('GET', KEYS[1])", keys))
    assert.same({ UNWRITTEN }, findings("local t = { KEYS[1] } redis.call('GET', t[1])", keys))
    assert.same({}, findings("local t = { KEYS[1] } redis.call('DEL', t[1])", keys))
  end)

  it('may have forms, of whatever the first one is seen through', function()
    local keys = { 'k  string  rw  acme:{{name}}  said' }
    local derived = { 'tail  string  rw  {name}:tail  said' }
    local function about(source)
      return findings("redis.call('SET', KEYS[1], 'x') " .. source, keys, derived)
    end

    for _, name in ipairs({ "keys[1] .. ':tail'", "t.k .. ':tail'", "of(KEYS[1])", "of(t.k)",
      "tostring(KEYS[1]) .. ':tail'", "(KEYS[1] .. ':') .. 'tail'", 'redis.call("GET", KEYS[1])',
      "t.tail" }) do
      assert.same({}, about("local keys, t = KEYS, { k = KEYS[1], tail = KEYS[1] .. ':tail' }\n"
        .. "local function of(k) return k .. ':tail' end redis.call('DEL', " .. name .. ')'), name)
    end
    for _, name in ipairs({ "KEYS[1] .. ':head'", "'another'", "of(KEYS[1])",
      "ARGV[1] .. ':tail'" }) do
      local found = about("local function of(k) return k .. ':head' end\n"
        .. "redis.call('DEL', " .. name .. ') redis.call("DEL", KEYS[1] .. ":tail")')
      assert.truthy(table.concat(found, '\n'):find('2: derived: the key of DEL follows no form', 1,
        true), name)
    end
  end)

  it('are not followed for ever', function()
    for _, form in ipairs({ 'math.max(%s, math.floor(%s))', '%s .. %s' }) do
      local lines, last = { 'local a0 = ARGV[1]' }, 'a0'
      for i = 1, 60 do
        lines[i + 1], last = ('local a%d = ' .. form):format(i, last, last), 'a' .. i
      end
      lines[#lines + 1] = ("redis.call('SET', KEYS[1] .. ':tail', 1) redis.call('SET', KEYS[1], 1)"
        .. " redis.call('GET', KEYS[1] .. %s) redis.call('GET', tostring(%s))"):format(last, last)

      findings(table.concat(lines, '\n'), { 'k  string  rw  {name}  said' },
        { 'tail  string  rw  {name}:tail  said' })
    end
  end)

  it('are those of a command that the caller chooses', function()
    own_lock.add(folder, 'acme/run', "local verb, k = ARGV[1], KEYS[1]\nredis.call(verb, k, 1)\n"
      .. 'redis.call(ARGV[1], KEYS[1], 1)\nreturn 1\n', { keys = { 'k  any  w  {name}  said' },
      argv = { 'verb  command  dynamic  said' }, returns = { '1  one' } })
    local file = folder .. '/scripts/acme/run.contract'
    local text = utils.readfile(file)
    utils.writefile(file, (text:gsub('cluster:', 'dynamic:\n  - DECRBY\n  - INCRBY\n%0')))

    assert.same({}, (lint.run({ folder .. '/scripts' })))
  end)

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

-- SPDX-License-Identifier: Apache-2.0
-- Many worlds are many children of one process, and few of them are long enough for machine code to pay. So the process
-- makes it once, before they are: they inherit it.
local Front = require('latchkey.mock.front')
local World = require('latchkey.mock.world')
local names = require('latchkey.script.names')

local ROUNDS = 60
local NAME, OWNER = 'warm', 'lk-warm:1'

local VALUE = {
  integer = function(argument)
    return argument.type == 'ms' and '30000' or ('%.0f'):format(argument.min)
  end,
  text = function(argument)
    return argument.type == 'id' and ('\1'):rep(16) or OWNER
  end,
  channel = function(argument)
    return names.form(argument.form, NAME)
  end,
  choice = function(argument)
    return argument.values[1]
  end,
  command = function(_, header)
    return header.dynamic[1]
  end,
  reader = function()
    return OWNER
  end,
  writer = function()
    return OWNER .. ':write'
  end,
}

local function command(...)
  local words = { ... }
  for i, word in ipairs(words) do
    words[i] = ('$%d\r\n%s\r\n'):format(#word, word)
  end
  return ('*%d\r\n%s'):format(#words, table.concat(words))
end

-- A call within the limits of its header, as a client sends it.
local function call(script)
  local header, words, by_name = script.header, {}, {}
  for i, argument in ipairs(header.argv) do
    words[i] = VALUE[argument.kind](argument, header)
    by_name[argument.name] = words[i]
  end
  for i, key in ipairs(header.keys) do
    table.insert(words, i, key.form.kind == 'slot' and ('{%s}:%s'):format(NAME, key.name)
      or names.form(key.form, NAME, by_name))
  end
  return command('EVALSHA', script.sha1, tostring(#header.keys), unpack(words))
end

---@param scripts table[] of a catalog
return function(scripts)
  local front = Front.new({ world = World.new({ strict = false, time = 'frozen' }), control = false,
    journal = 0 })
  local conn, calls = front:connect(), {}
  for i, script in ipairs(scripts) do
    conn:feed(command('SCRIPT', 'LOAD', script.source))
    calls[i] = call(script)
  end
  for _ = 1, ROUNDS do
    for _, bytes in ipairs(calls) do
      conn:feed(bytes)
      front:advance(1)
    end
  end
  collectgarbage()
end

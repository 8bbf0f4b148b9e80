-- SPDX-License-Identifier: Apache-2.0
-- What a story tells of servers: commands, scripts by their names, and what became of the keys.
local Journal = require('latchkey.mock.front.journal')

local told = {}

local WORDS_MOST, WORD_MOST = 14, 48

local function shorten(word)
  word = tostring(word):gsub('[%c]', ' ')
  return #word > WORD_MOST and word:sub(1, WORD_MOST) .. '...' or word
end

-- What comes with every connection, and says nothing of the case.
local function is_greeting(command)
  return command.name:find('^CLIENT|SET') or command.name == 'SCRIPT|LOAD'
end

---For the gate of a front: nothing is refused by it.
function told.command(number)
  return function(front, conn, command, argv)
    if is_greeting(command) then
      return
    end
    local title = Journal.title(front.world, command, argv)
    local words = { title or argv[1] }
    for i = title and 4 or 2, math.min(#argv, WORDS_MOST) do
      words[#words + 1] = shorten(argv[i])
    end
    story_of_server(('%d connection %d: %s'):format(number, conn.number, table.concat(words, ' ')))
  end
end

---From now on a server knows which keys were written.
function told.follow(server)
  local store = server.world.store
  local put = store.put
  server.written = {}
  function store:put(key, record)
    server.written[key] = true
    return put(self, key, record)
  end
end

local function show(value)
  if type(value) ~= 'table' then
    return shorten(value)
  end
  local list = {}
  for i, element in ipairs(value) do
    list[i] = show(element)
  end
  return table.concat(list, ' ')
end

---What has become of the keys that were written since the last time.
function told.keys(server, number)
  local names = {}
  for key in pairs(server.written) do
    names[#names + 1] = key
  end
  server.written = {}
  table.sort(names)
  for _, key in ipairs(names) do
    local record = server.world.store.keys[key]
    local lease = record and record.expires_at
      and (' (%d ms)'):format(record.expires_at - server.world:now_ms()) or ''
    local value = record and show(record.value) or 'gone'
    story_of_keys(('%d  %s = %s%s'):format(number, key, value, lease))
  end
end

return told

-- SPDX-License-Identifier: Apache-2.0
-- Which arguments of a command, as a script writes it, are its keys, and what it does with each.
--
-- In `keys` of a command:
--   none first second two all   those, behind the name
--   copied    the first is read, the second is written; `ranged`: the other way round
--   stored    the first is written; from the second on they are read
--   pairs     every second one
--   operated  as `stored`, behind a word
--   counted   so many as the number before them says, that is the first argument; `counted2`: the
--             second one
--   combined  the first is written; `counted2` are read
--   streams   the first half of what stands behind STREAMS
--   migrated  the third; where that is the empty text, what stands behind KEYS
--   sorted    the first is read, and what stands behind a word such as STORE is written
local text = require('latchkey.text')

local key_places = {}

-- A guess is no key, perhaps, as where what stands last unpacks.
local function add(list, node, access, kind, is_guess)
  if node then
    list[#list + 1] = { node = node, access = access, type = kind, is_guess = is_guess }
  end
end

-- The first argument stands at 3, behind what is called and the name.
local function row(first, last, step)
  return function(list, node, command)
    for i = first, math.min(last, #node), step or 1 do
      add(list, node[i], command.access, command.type)
    end
  end
end

local function stored(first)
  return function(list, node, command)
    for i = first, #node do
      add(list, node[i], i == first and command.access or 'r', command.type)
    end
  end
end

local function word_of(node)
  return node.tag == 'String' and node.value:upper() or nil
end

-- What follows keys that were counted.
local OPTIONS = text.set('AGGREGATE COUNT LEFT LIMIT MAX MIN RIGHT WEIGHTS WITHSCORES')

-- Where the count is not written out, the first option ends them.
local function counted(place)
  return function(list, node, command, access)
    local count = node[place] and node[place].tag == 'Number' and node[place].value
    for i = place + 1, math.min(place + (count or #node), #node) do
      if not count and OPTIONS[word_of(node[i]) or false] then
        return
      end
      add(list, node[i], access or command.access, command.type)
    end
  end
end

-- Passwords and users, which may be called anything.
local SECRETS = { AUTH = 1, AUTH2 = 2 }

-- Where the keys of MIGRATE begin behind its options; nil: there are none.
local function behind_keys(node)
  local at = 8
  while node[at] do
    local word = word_of(node[at])
    if word == 'KEYS' then
      return at + 1
    end
    at = at + 1 + (SECRETS[word or false] or 0)
  end
end

local WRITTEN_BEHIND = text.set('STORE STOREDIST')

local ROWS = {
  none = function() end,
  first = row(3, 3),
  second = row(4, 4),
  two = row(3, 4),
  all = row(3, math.huge),
  pairs = row(3, math.huge, 2),
  stored = stored(3),
  operated = stored(4),
  counted = counted(3),
  counted2 = counted(4),
  combined = function(list, node, command)
    add(list, node[3], command.access, command.type)
    counted(4)(list, node, { type = 'any' }, 'r')
  end,
  copied = function(list, node, command)
    add(list, node[3], 'r', command.type)
    add(list, node[4], command.access, command.type)
  end,
  ranged = function(list, node, command)
    add(list, node[3], command.access, command.type)
    add(list, node[4], 'r', command.type)
  end,
  streams = function(list, node, command)
    local from
    for i = 3, #node do
      from = from or word_of(node[i]) == 'STREAMS' and i + 1
    end
    local last = node[#node].tag
    local is_whole = last ~= 'Call' and last ~= 'Vararg'
    for i = from or #node + 1, from and is_whole and from - 1 + (#node - from + 1) / 2 or #node do
      add(list, node[i], command.access, command.type, not is_whole)
    end
  end,
  migrated = function(list, node, command)
    local from = behind_keys(node)
    if not from or node[5].tag ~= 'String' or node[5].value ~= '' then
      add(list, node[5], command.access, command.type)
    end
    row(from or #node + 1, math.huge)(list, node, command)
  end,
  sorted = function(list, node, command)
    add(list, node[3], 'r', command.type)
    for i = 4, #node - 1 do
      if WRITTEN_BEHIND[word_of(node[i]) or false] then
        add(list, node[i + 1], 'w', 'any')
      end
    end
  end,
}

---@param call table of lint.script, with a command
---@return table[] places { node, access, type, is_guess }; the last: perhaps it is no key
function key_places.of(call)
  local list = {}
  ROWS[call.command.keys](list, call.node, call.command)
  return list
end

return key_places

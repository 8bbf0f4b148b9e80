-- SPDX-License-Identifier: Apache-2.0
-- The value of a sorted set: an array of entries { member, score } in their order. An entry is
-- never changed, only replaced.
local arrays = require('latchkey.mock.arrays')
local scores = require('latchkey.mock.scores')

local zset = {}

---@return table|nil entries empty if there is no such key
---@return string|nil err
function zset.read(world, key)
  return arrays.read(world, key, 'zset')
end

---@param entries table are the store's from now on
function zset.write(world, key, entries)
  arrays.write(world, key, 'zset', entries)
end

---@return integer|nil
function zset.place(entries, member)
  for i = 1, #entries do
    if entries[i][1] == member then
      return i
    end
  end
  return nil
end

---@return number|nil
function zset.score(entries, member)
  local place = zset.place(entries, member)
  return place and entries[place][2]
end

---@return table<string, number> scores by member, where those of many are asked for
function zset.scores(entries)
  local by_member = {}
  for i = 1, #entries do
    by_member[entries[i][1]] = entries[i][2]
  end
  return by_member
end

local function is_before(entry, member, score)
  return entry[2] < score or (entry[2] == score and entry[1] < member)
end

---Changes the array: the member has this score. A server keeps no minus zero in a small set.
---@param is_new boolean the array does not have the member yet
---@return number score that is kept
function zset.set(entries, member, score, is_new)
  if not is_new then
    table.remove(entries, zset.place(entries, member))
  end
  local place, last = 1, #entries
  while place <= last do
    local middle = math.floor((place + last) / 2)
    if is_before(entries[middle], member, score) then
      place = middle + 1
    else
      last = middle - 1
    end
  end
  local kept = score == 0 and 0 or score
  table.insert(entries, place, { member, kept })
  return kept
end

---A reply: members, each followed by its score where asked for.
function zset.reply(entries, with_scores)
  local reply = {}
  for _, entry in ipairs(entries) do
    reply[#reply + 1] = entry[1]
    if with_scores then
      reply[#reply + 1] = scores.text(entry[2])
    end
  end
  return reply
end

return zset

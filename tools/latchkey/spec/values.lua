-- SPDX-License-Identifier: Apache-2.0
-- A key's value as `world:dump()` shows it, from what a server answers.
local values = {}

---What reads a whole value, by its type: a command, and what follows its key.
values.READ = {
  string = { 'GET' },
  hash = { 'HGETALL' },
  list = { 'LRANGE', 0, -1 },
  zset = { 'ZRANGE', 0, -1, 'WITHSCORES' },
  set = { 'SMEMBERS' },
  stream = { 'XRANGE', '-', '+' },
}

---From the reply to the value, by its type.
values.DECODE = {
  string = function(text)
    return text
  end,
  hash = function(pairs_)
    local fields = {}
    for i = 1, pairs_.n, 2 do
      fields[pairs_[i]] = pairs_[i + 1]
    end
    return fields
  end,
  list = function(elements)
    local list = {}
    for i = 1, elements.n do
      list[i] = elements[i]
    end
    return list
  end,
  zset = function(pairs_)
    local entries = {}
    for i = 1, pairs_.n, 2 do
      table.insert(entries, { pairs_[i], tonumber(pairs_[i + 1]) })
    end
    return entries
  end,
  set = function(members)
    local sorted = values.DECODE.list(members)
    table.sort(sorted)
    return sorted
  end,
  stream = function(entries)
    local list = {}
    for i = 1, entries.n do
      list[i] = { entries[i][1], unpack(entries[i][2], 1, entries[i][2].n) }
    end
    return list
  end,
}

return values

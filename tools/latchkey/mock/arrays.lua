-- SPDX-License-Identifier: Apache-2.0
-- Values that are arrays: hashes, lists and sorted sets. A key whose last element goes is gone.
local integers = require('latchkey.mock.integers')

local arrays = {}

local EMPTY = {}

arrays.WRONGTYPE = 'WRONGTYPE Operation against a key holding the wrong kind of value'
arrays.SYNTAX = 'ERR syntax error'

---Each command asks for itself whether that went wrong, and there is no wrapper that does it before
---all of them: whether a server looks at the type, at the count of arguments or at numbers first
---differs from command to command, and the mock answers with the same error.
---@param kind string as TYPE names it
---@return table|nil array empty if there is no such key
---@return string|nil err
function arrays.read(world, key, kind)
  local record = world.store:get(key)
  if not record then
    return EMPTY
  elseif record.type ~= kind then
    return nil, arrays.WRONGTYPE
  end
  return record.value
end

---@param array table is the store's from now on
function arrays.write(world, key, kind, array)
  if #array == 0 then
    world.store:put(key, nil)
    return
  end
  local old = world.store:get(key)
  world.store:put(key, { type = kind, value = array, expires_at = old and old.expires_at })
end

---@param first? integer
---@param last? integer
function arrays.copy(array, first, last)
  local new, n = {}, 0
  for i = first or 1, last or #array do
    n = n + 1
    new[n] = array[i]
  end
  return new
end

function arrays.reverse(array)
  local new, n = {}, #array
  for i = 1, n do
    new[i] = array[n + 1 - i]
  end
  return new
end

---The array without its elements from `first` to `last`.
function arrays.without(array, first, last)
  local left, n = {}, 0
  for i = 1, #array do
    if i < first or i > last then
      n = n + 1
      left[n] = array[i]
    end
  end
  return left
end

---A count of elements.
---@param refusal? string the error text if it is none
---@return integer|nil
---@return string|nil err
function arrays.read_count(text, refusal)
  local count, bad = integers.parse(text)
  if bad == integers.TOO_BIG or (count and count >= 0) then
    return count, bad
  end
  return nil, refusal or 'ERR value is out of range, must be positive'
end

---The two ends of a range, counted from 0, or from the end of the array where negative.
---@return table|nil range
---@return string|nil err
function arrays.read_range(start, stop)
  local first, bad_first = integers.parse(start)
  if bad_first then
    return nil, bad_first
  end
  local last, bad_last = integers.parse(stop)
  return last and { first, last }, bad_last
end

---@return integer first
---@return integer last less than the first if there is nothing in the range
function arrays.places(range, n)
  local first, last = range[1], range[2]
  first = math.max(first < 0 and first + n or first, 0)
  last = math.min(last < 0 and last + n or last, n - 1)
  return first + 1, last + 1
end

return arrays

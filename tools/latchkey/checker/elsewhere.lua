-- SPDX-License-Identifier: Apache-2.0
-- The same call at other times of day, for clients of other names, and where the past is further
-- away: what scripts that are not latchkey's must do alike there, or states that only look alike
-- would be taken for one.
local parts = require('latchkey.checker.parts')

local elsewhere = {}

-- Other times of day, which are no whole number of seconds, minutes or hours away: one, and so many
-- in hours of a week, with each call others, until all of these have come WEEKS times; then one.
-- Between neighbours are a day and an hour.
local ELSEWHEN_MS, ODD_MS = 127123457, 2237343
local HOUR_MS, HOURS, STRIDE, EACH, WEEKS = 3600000, 7 * 24, 25, 12, 4

-- Other names for all clients, which none has, and these back. In one way all of them are in the
-- opposite order; that is every order of two. In the other, two of more are.
local function renaming(letters)
  local names = {}
  for place = 1, #letters do
    local name, other = 'lk-' .. string.char(64 + place), 'lk-' .. letters:sub(place, place)
    names[name], names[other] = other, name
  end
  return names
end

local OPPOSITE, OTHERWISE = renaming('PONMLKJI'), renaming('JIKLMNOP')
local OF_THREE = 'lk%-[C-H]'

-- What is looked for wherever a call is tried, as text.
local function said_by(result)
  local text = result.text
  if not text then
    text = { answer = parts.text({ result.raw }), messages = parts.text(result.messages) }
    result.text = text
  end
  return text
end

-- Does a call do the same with other data, so much later?
---@param there fun(data: table): table the data as it is there
---@param back fun(data: table): table the opposite
local function does_same(server, keyspace, call, result, there, back, ms)
  local world = server:world_of(call)
  world:replace(there(keyspace.data))
  world:advance(ms)
  local reply, err = world:eval(call.script, there(result.keys), there(result.args))
  local wrote = #world.store.undo > 0
  local after = wrote and server:keyspace(back(world:keys())) or keyspace
  -- An error may be an answer that the model gives a meaning.
  local answer = err and err.message or server.plain(reply, world.null)
  local said = said_by(result)
  return wrote == result.wrote and after == result.after
    and parts.text(back({ answer })) == said.answer
    and parts.text(back(world:messages())) == said.messages
end

local function is_moved(server, keyspace, call, result, ms)
  return not does_same(server, keyspace, call, result, function(data)
    return parts.moved(data, ms)
  end, function(data)
    return parts.moved(data, -ms)
  end, ms)
end

-- Members of equal scores in the order of their names, as a server has them. The moments of the
-- distant past only look equal: these stay in the order in which they were.
local function sort(entries, past)
  for i = 2, #entries do
    local entry, place = entries[i], i
    while place > 1 and entry[2] == entries[place - 1][2] and entry[2] ~= past
      and entry[1] < entries[place - 1][1] do
      entries[place] = entries[place - 1]
      place = place - 1
    end
    entries[place] = entry
  end
end

local function in_order(records, past)
  for _, record in pairs(records) do
    if type(record) == 'table' and record.type == 'zset' then
      sort(record.value, past)
    end
  end
  return records
end

local function knows_names(server, keyspace, call, result)
  local past = parts.START_MS - server.pool.past_ms
  local function does_otherwise(names)
    local function renamed(data)
      return in_order(parts.moved(data, 0, names), past)
    end
    return not does_same(server, keyspace, call, result, renamed, renamed, 0)
  end
  local are_more = keyspace.text:find(OF_THREE) or table.concat(result.args, ' '):find(OF_THREE)
  return does_otherwise(OPPOSITE) or are_more and does_otherwise(OTHERWISE)
end

local function looks_far_back(server, keyspace, call, result)
  local past_ms = server.pool.past_ms
  local oldest = ('%.0f'):format(parts.START_MS - past_ms)
  if not keyspace.text:find(oldest, 1, true) then
    return false
  end
  return not does_same(server, keyspace, call, result, function(data)
    return parts.older(data, past_ms)
  end, function(data)
    return parts.no_older(data, past_ms)
  end, 0)
end

local function follows_the_clock(server, keyspace, call, result)
  local turn = server.turns[call.script] or 0
  local count = server.each_hour and HOURS or turn < WEEKS * HOURS and EACH or 1
  server.turns[call.script] = turn + count
  local found = is_moved(server, keyspace, call, result, ELSEWHEN_MS)
  for i = turn, turn + count - 1 do
    local hour = i * STRIDE % HOURS
    found = found or is_moved(server, keyspace, call, result, ODD_MS + hour * HOUR_MS)
  end
  return found
end

-- States that differ by absolute time alone are one, and so are those that differ by the names of
-- interchangeable clients, or by what is long past. That is right for scripts that do the same.
---@param result table of the run here
---@return string|nil why states are not one for this call that the checker takes for one
function elsewhere.why(server, keyspace, call, result)
  if follows_the_clock(server, keyspace, call, result) then
    return ('%s does something else at another time of day: it counts in seconds, or rounds the '
      .. 'time; what it does later cannot be checked'):format(call.script)
  elseif server.symmetric and knows_names(server, keyspace, call, result) then
    return ('%s does something else for clients of other names: it keeps a part or a digest of a '
      .. 'name, or their order decides, as that of equal scores; --no-symmetry takes no client for '
      .. 'another'):format(call.script)
  elseif looks_far_back(server, keyspace, call, result) then
    return ('%s depends on moments that are more than %d ms ago; past_ms in the model says how '
      .. 'long they count'):format(call.script, server.pool.past_ms)
  end
end

return elsewhere

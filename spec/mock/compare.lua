-- SPDX-License-Identifier: Apache-2.0
-- What it means that a mock and a server agree, although the server's clock goes on.
local World = require('latchkey.mock.world')
local pretty = require('pl.pretty')
local tablex = require('pl.tablex')

local compare = {}

-- Two readings of one lease may be this far apart.
compare.LATE = 10000

---A reply without the counts of its arrays.
function compare.plain(reply)
  if type(reply) ~= 'table' then
    return reply
  end
  local plain = { ok = reply.ok, err = reply.err }
  for i = 1, reply.n or 0 do
    plain[i] = compare.plain(reply[i])
  end
  return plain
end

---A mock at the server's time: absolute deadlines mean the same to both.
function compare.mock_beside(oracle, strict)
  local mock = World.new({ strict = strict })
  mock:advance(oracle:now_ms() - mock:now_ms())
  return mock
end

local function near(a, b)
  return a == b or (a >= 0 and b >= 0 and math.abs(a - b) <= compare.LATE)
end

-- Times that scripts keep in values, since 1970: 13 digits are milliseconds, 16 microseconds.
local UNITS = { [13] = 1, [16] = 1000 }

local function take_times(text)
  local times = {}
  local rest = text:gsub('%d+', function(digits)
    if UNITS[#digits] then
      table.insert(times, digits / UNITS[#digits])
      return '@'
    end
  end)
  return rest, times
end

local function same_text(expected, actual)
  local rest, times = take_times(expected)
  local other_rest, other_times = take_times(actual)
  for i, time in ipairs(times) do
    if not near(time, other_times[i] or -1) then
      return false
    end
  end
  return rest == other_rest
end

local function code_of(message)
  return message:match('^%u+ ') or message
end

-- Newer servers have other words for the same errors, and write fractions in fewer digits.
local function means_the_same(a, b)
  return code_of(a) == code_of(b) and code_of(a) ~= a
    or a:find('[.e]') and tonumber(a) ~= nil and tonumber(a) == tonumber(b)
end

-- Leases and times are large and late by a little; everything else is small.
local function same_value(expected, actual, loose)
  if type(expected) ~= type(actual) then
    return false
  elseif type(expected) == 'number' and expected > compare.LATE then
    return near(expected, actual) or same_text(('%.0f'):format(expected), ('%.0f'):format(actual))
  elseif type(expected) == 'string' then
    return same_text(expected, actual)
      or loose and means_the_same(expected, actual)
  elseif type(expected) ~= 'table' then
    return expected == actual
  end
  for key, value in pairs(expected) do
    if not same_value(value, actual[key], loose) then
      return false
    end
  end
  return tablex.size(expected) == tablex.size(actual)
end

---@return string|nil difference
function compare.keys(expected, actual)
  for key, record in pairs(expected) do
    local other = actual[key]
    if not other or record.type ~= other.type or not same_value(record.value, other.value)
      or not near(record.pttl, other.pttl) then
      return ('%s: expected %s, found %s'):format(key, pretty.write(record), pretty.write(other))
    end
  end
  for key, record in pairs(actual) do
    if not expected[key] then
      return ('%s: expected nothing, found %s'):format(key, pretty.write(record))
    end
  end
end

-- What answers a set's members, which servers have in an order of their own.
local UNORDERED = { SMEMBERS = true, SUNION = true, SINTER = true, SDIFF = true, SSCAN = true,
  SRANDMEMBER = true, SPOP = true }

---@param argv string[] a command, or an EVAL of which it is the arguments
function compare.is_unordered(argv)
  return UNORDERED[argv[1] == 'EVAL' and argv[4] or argv[1]] or false
end

---A reply with the elements of its arrays in order of their texts.
function compare.sorted(reply)
  if type(reply) ~= 'table' or not reply.n then
    return reply
  end
  local elements = { n = reply.n }
  for i = 1, reply.n do
    elements[i] = compare.sorted(reply[i])
  end
  table.sort(elements, function(a, b)
    return pretty.write(a, '') < pretty.write(b, '')
  end)
  return elements
end

---Two outcomes, each { reply, err }.
---@param loose? boolean of errors, only the code must be the same
---@return string|nil difference
function compare.outcomes(expected, actual, loose)
  local message, other = expected.err and expected.err.message, actual.err and actual.err.message
  local same = message == other
    or loose and message and other and means_the_same(message, other)
  if not same or not same_value(expected.reply, actual.reply, loose) then
    return ('expected %s, found %s'):format(message or pretty.write(expected.reply),
      other or pretty.write(actual.reply))
  end
end

return compare

-- SPDX-License-Identifier: Apache-2.0
-- Functions that LuaJIT has with further arguments, other roundings or fewer refusals than the
-- server's Lua 5.1: as they are there. Under Lua 5.1 itself nothing is to be replaced but what
-- brings some builds of it down. `text` and `number` are its tostring and tonumber.
local lua51 = { string = {}, math = {}, base = {}, table = {}, text = tostring, number = tonumber }

-- C's cast of a number to int, by way of 64 bits.
local function as_int(number)
  if number ~= number or math.abs(number) >= 2 ^ 63 then
    return 0
  end
  local rest = (number - math.fmod(number, 1)) % 2 ^ 32
  return rest >= 2 ^ 31 and rest - 2 ^ 32 or rest
end

local jit = rawget(_G, 'jit')
if not jit then
  local RESULTS_MAX = 2 ^ 20

  local function read_place(place, value)
    local number = tonumber(value)
    if value ~= nil and not number then
      error(("bad argument #%d to 'unpack' (number expected, got %s)"):format(place,
        type(value)), 3)
    end
    return number
  end

  -- The library's own count of results overflows where the places are far apart. What is wrong is
  -- wrong where this is called.
  function lua51.base.unpack(...)
    local list, first, last = ...
    if type(list) ~= 'table' then
      error(("bad argument #1 to 'unpack' (table expected, got %s)")
        :format(select('#', ...) == 0 and 'no value' or type(list)), 2)
    end
    local from, to = read_place(2, first), read_place(3, last)
    if from and to and as_int(to) - as_int(from) > RESULTS_MAX then
      error('too many results to unpack', 2)
    end
    return unpack(list, from, to)
  end
  return lua51
end

local ffi = require('ffi')

local nesting = require('latchkey.mock.nesting')

-- Not as methods, which are the script's while it runs: those that are made here.
local find, gsub, match, sub = string.find, string.gsub, string.match, string.sub

pcall(ffi.cdef, 'int snprintf(char *buffer, size_t size, const char *format, ...);')
pcall(ffi.cdef, 'unsigned long long strtoull(const char *text, char **end, int base);')

local SIZE = 512
local FAR = 2 ^ 31 - 1
local buffer = ffi.new('char[?]', SIZE)

local function printed(format, value)
  local length = ffi.C.snprintf(buffer, SIZE, format, ffi.new('double', value))
  return ffi.string(buffer, length)
end

-- A number as Lua 5.1 spells it: with 14 digits, of which LuaJIT rounds the last one otherwise
-- where the rest is exactly half.
local function spelled(number)
  return printed('%.14g', number)
end

local function type_name(list, place)
  return place > list.n and 'no value' or type(list[place])
end

-- The error is of who called the function, so many levels above.
local function wrong(place, name, expected, got, level)
  error(("bad argument #%d to '%s' (%s expected, got %s)"):format(place, name, expected, got),
    level)
end

local QUOTED = { ['"'] = '\\"', ['\\'] = '\\\\', ['\n'] = '\\\n', ['\r'] = '\\r',
  ['\0'] = '\\000' }

local FLOATS = { e = true, E = true, f = true, g = true, G = true }
local UNSIGNED = { o = true, u = true, x = true, X = true }
local INTEGERS = { c = true, d = true, i = true, o = true, u = true, x = true, X = true }

-- What only LuaJIT takes for a number.
local function is_of_jit(text)
  return find(text, '^%s*[-+]?0[bB]')
end

-- A number as C reads it: a NaN has the sign of its text, which LuaJIT drops.
local MINUS_NAN = 0 / 0
local function signed(text, number)
  if number == number then
    return number
  end
  return find(text, '^%s*%-') and MINUS_NAN or -MINUS_NAN
end

-- An exponent beyond those that LuaJIT reads.
local function far(text)
  local sign, digits, minus = match(text, '^%s*([-+]?)(%d*%.?%d*)[eE]([-+]?)%d+%s*$')
  if not digits or not find(digits, '%d') then
    return nil
  end
  local value = find(digits, '[1-9]') and minus ~= '-' and math.huge or 0
  return sign == '-' and -value or value
end

-- Most texts are integers, which need no second look. 14 digits are exact.
local function is_plain_text(value)
  return type(value) == 'string' and #value <= 14 and find(value, '^[1-9]%d*$')
end

local function number_of_text(value)
  local number = not is_of_jit(value) and (tonumber(value) or far(value))
  return number and signed(value, number) or nil
end

local function number_of_base(value, base)
  if type(value) ~= 'string' and type(value) ~= 'number' then
    wrong(1, 'tonumber', 'string', type(value), 4)
  elseif base < 2 or base > 36 then
    error("bad argument #2 to 'tonumber' (base out of range)", 3)
  end
  local number = tonumber(value, base)
  -- C's strtoul: what is negative comes round from the other side; what is too much stays there.
  if number and number < 0 then
    return tonumber(ffi.C.strtoull(tostring(value), nil, base))
  end
  return number and number + 0
end

function lua51.base.tonumber(...)
  local value, base = ...
  if base == nil and (type(value) == 'number' or is_plain_text(value)) then
    return tonumber(value)
  elseif type(value) == 'string' then
    value = match(value, '^%Z*') -- C's text ends at its first NUL
  end
  if base ~= nil then
    base = as_int(lua51.base.tonumber(base) or wrong(2, 'tonumber', 'number', type(base), 3))
  end
  if base ~= nil and base ~= 10 then
    local number = number_of_base(value, base)
    return number
  elseif type(value) == 'string' then
    return number_of_text(value)
  end
  return tonumber(...)
end

-- Is the C character of this number another one than NUL? What is no int becomes the smallest.
local function has_byte(number)
  return math.abs(number) < 2 ^ 31 and math.floor(math.abs(number)) % 256 ~= 0
end

-- One conversion of string.format.
local function convert(spec, kind, list, place)
  local value = list[place]
  if place > list.n then
    error(("bad argument #%d to 'format' (no value)"):format(place + 1), 3)
  elseif kind == 's' or kind == 'q' then
    if type(value) ~= 'string' and type(value) ~= 'number' then
      wrong(place + 1, 'format', 'string', type_name(list, place), 4)
    end
    value = lua51.base.tostring(value)
    if kind == 's' and (find(spec, '%.') or #value < 100) then
      value = match(value, '^%Z*') -- C's text ends at its first NUL
    end
    if kind == 'q' then
      return '"' .. gsub(value, '[%z"\\\n\r]', QUOTED) .. '"'
    end
    return string.format(spec .. kind, value)
  elseif not INTEGERS[kind] and not FLOATS[kind] then
    error(("invalid option '%%%s' to 'format'"):format(kind), 3)
  end
  local number = lua51.base.tonumber(value)
  if number == nil then
    wrong(place + 1, 'format', 'number', type_name(list, place), 4)
  elseif FLOATS[kind] then
    return printed(spec .. kind, number)
  elseif kind == 'c' and not has_byte(number) then
    -- C's text ends at the NUL, but for the blanks before it.
    return (string.format(spec .. kind, 1):gsub('\1.*', ''))
  elseif number >= 2 ^ 64 and UNSIGNED[kind] then
    number = 0
  end
  return string.format(spec .. kind, number)
end

function lua51.string.format(...)
  local format = ...
  if type(format) ~= 'string' and type(format) ~= 'number' then
    wrong(1, 'format', 'string', type_name({ n = select('#', ...), format }, 1), 3)
  end
  local list, place, out, at = { n = select('#', ...) - 1, select(2, ...) }, 0, {}, 1
  format = lua51.base.tostring(format)
  while true do
    local found = find(format, '%', at, true)
    out[#out + 1] = sub(format, at, (found or 0) - 1)
    if not found then
      return table.concat(out)
    elseif sub(format, found + 1, found + 1) == '%' then
      out[#out + 1], at = '%', found + 2
    else
      local flags, width, dot, precision, kind = match(format, '^%%([-+ #0]*)(%d*)(%.?)(%d*)(.?)',
        found)
      if #flags > 5 then
        error('invalid format (repeated flags)', 2)
      elseif #width > 2 or #precision > 2 then
        error('invalid format (width or precision too long)', 2)
      end
      place = place + 1
      out[#out + 1] = convert('%' .. flags .. width .. dot .. precision, kind, list, place)
      at = found + 1 + #flags + #width + #dot + #precision + 1
    end
  end
end

function lua51.string.char(...)
  local bytes = { ... }
  for place = 1, select('#', ...) do
    local number = lua51.base.tonumber(bytes[place])
    bytes[place] = number and as_int(number) or bytes[place]
  end
  return string.char(unpack(bytes, 1, select('#', ...)))
end

-- C's cast of what does not fit gives the smallest.
local function near(index)
  local number = lua51.base.tonumber(index)
  if number and (number >= 2 ^ 63 or number ~= number) then
    return -FAR
  end
  return number and math.max(math.min(number, FAR), -FAR) or index
end

local function whole(number)
  local index = near(number)
  return index < 0 and math.ceil(index) or math.floor(index)
end

-- Nothing is to be cut off of it.
local function is_cut(value)
  return value == nil or type(value) == 'number' and value % 1 == 0 and value > -FAR and value < FAR
end

-- The arguments at these places become integers as `to_integer` says, where LuaJIT rounds them.
local function cut(to_integer, own, ...)
  local places = { ... }
  local first, second = ...
  return function(...)
    local count = select('#', ...)
    if count < first
      or is_cut((select(first, ...))) and (not second or is_cut((select(second, ...)))) then
      return own(...)
    end
    local list = { ... }
    for _, place in ipairs(places) do
      local number = place <= count and lua51.base.tonumber(list[place])
      list[place] = number and to_integer(number) or list[place]
    end
    return own(unpack(list, 1, count))
  end
end

lua51.base.select = cut(as_int, select, 1)
lua51.base.unpack = cut(as_int, unpack, 2, 3)
lua51.string.find = cut(whole, string.find, 3)
lua51.string.match = cut(whole, string.match, 3)

-- Up to what is no element, which is then said as ever.
local function concat(list, separator, first, ...)
  if type(list) ~= 'table' then
    return table.concat(list, separator, first, ...)
  end
  local last = ...
  for place, value in pairs({ [3] = first, [4] = last }) do
    if not lua51.base.tonumber(value) then
      wrong(place, 'concat', 'number', type(value), 3)
    end
  end
  first, last = first or 1, last or #list
  local texts, place = {}, first
  while place <= last and rawget(list, place) ~= nil do
    local element = rawget(list, place)
    texts[place] = type(element) == 'number' and spelled(element) or element
    place = place + 1
  end
  return table.concat(texts, type(separator) == 'number' and spelled(separator) or separator,
    first, last)
end

lua51.table.concat = cut(as_int, concat, 3, 4)
function lua51.table.setn(...)
  if type((...)) ~= 'table' then
    wrong(1, 'setn', 'table', type_name({ n = select('#', ...), ... }, 1), 3)
  end
  error("'setn' is obsolete", 2)
end
lua51.table.remove = cut(as_int, table.remove, 2)

local insert = cut(as_int, table.insert, 2)
function lua51.table.insert(...)
  if select('#', ...) == 3 then
    return insert(...)
  end
  return table.insert(...)
end

lua51.string.sub = cut(near, string.sub, 2, 3)
lua51.string.byte = cut(near, string.byte, 2, 3)

-- LuaJIT puts a third argument between the copies.
local rep = cut(as_int, string.rep, 2)
function lua51.string.rep(...)
  if select('#', ...) > 2 then
    local text, count = ...
    return rep(text, count)
  end
  return rep(...)
end

-- LuaJIT's own do not say in their errors what they are called. Of two arguments the server looks
-- at the second first.
local function checked(name, count, own)
  own = own or math[name]
  lua51.math[name] = function(...)
    local one, two = ...
    if count == 1 and type(one) == 'number' then
      return own(one)
    elseif count == 2 and type(one) == 'number' and type(two) == 'number' then
      return own(one, two)
    end
    local list = { n = select('#', ...), ... }
    for place = count, 1, -1 do
      list[place] = lua51.base.tonumber(list[place])
        or wrong(place, name, 'number', type_name(list, place), 3)
    end
    return own(unpack(list, 1, count))
  end
end

for name in ([[abs acos asin atan ceil cos cosh deg exp floor frexp log log10 modf rad sin sinh sqrt
  tan tanh]]):gmatch('%S+') do
  checked(name, 1)
end

-- The zero that a negative number comes to keeps its sign.
checked('ceil', 1, function(number)
  local whole_number = math.ceil(number)
  return whole_number == 0 and number < 0 and -1 / math.huge or whole_number
end)
for name in ('atan2 fmod pow'):gmatch('%S+') do
  checked(name, 2)
end
checked('ldexp', 2, function(number, exponent)
  return math.ldexp(number, as_int(exponent))
end)

-- What is compared with NaN stays where it is.
local function extreme(name, is_beyond)
  return function(...)
    local one, two = ...
    if select('#', ...) == 2 and type(one) == 'number' and type(two) == 'number' then
      return is_beyond(two, one) and two or one
    end
    local list = { n = select('#', ...), ... }
    local found
    for place = 1, math.max(list.n, 1) do
      local number = lua51.base.tonumber(list[place])
      if number == nil then
        wrong(place, name, 'number', type_name(list, place), 3)
      elseif place == 1 or is_beyond(number, found) then
        found = number
      end
    end
    return found
  end
end

lua51.math.min = extreme('min', function(number, least)
  return number < least
end)
lua51.math.max = extreme('max', function(number, most)
  return number > most
end)

function lua51.base.tostring(...)
  local value = ...
  if type(value) == 'number' then
    return spelled(value)
  elseif type(value) == 'userdata' then
    return 'userdata: (nil)' -- cjson.null; there is no other one
  end
  return tostring(...)
end

-- Numbers at the first places stand for texts. What `..` makes of one is LuaJIT's own.
local function spelling(own, places)
  return function(...)
    local one, two, three = ...
    if type(one) ~= 'number' and (places < 2 or type(two) ~= 'number')
      and (places < 3 or type(three) ~= 'number') then
      return own(...)
    end
    local list = { n = select('#', ...), ... }
    for place = 1, places do
      if type(list[place]) == 'number' then
        list[place] = spelled(list[place])
      end
    end
    return own(unpack(list, 1, list.n))
  end
end

for name, places in pairs({ len = 1, lower = 1, upper = 1, reverse = 1, rep = 1, sub = 1, byte = 1,
  find = 2, match = 2, gmatch = 2, gsub = 3 }) do
  lua51.string[name] = spelling(lua51.string[name] or string[name], places)
end

-- So do those that a table or a function gives for a match.
local spelling_gsub = lua51.string.gsub
function lua51.string.gsub(...)
  local list = { n = select('#', ...), ... }
  local with = list[3]
  local function spell(value, ...)
    return type(value) == 'number' and spelled(value) or value, ...
  end
  if type(with) == 'table' then
    list[3] = nesting.callback(function(found)
      return spell(with[found])
    end)
  elseif type(with) == 'function' then
    list[3] = nesting.callback(function(...)
      return spell(with(...))
    end)
  end
  return spelling_gsub(unpack(list, 1, list.n))
end

-- A number that is thrown without its place stays one.
local throw = cut(as_int, error, 2)
local throw_text = spelling(throw, 1)
function lua51.base.error(...)
  local _, level = ...
  local number = lua51.base.tonumber(level)
  if number and as_int(number) <= 0 then
    return throw(...)
  end
  return throw_text(...)
end

-- LuaJIT throws whatever stands there, and without its place.
function lua51.base.assert(...)
  local good, message = ...
  if good or select('#', ...) == 0 then
    return assert(...)
  elseif message == nil then
    message = 'assertion failed!'
  elseif type(message) ~= 'string' and type(message) ~= 'number' then
    wrong(2, 'assert', 'string', type(message), 3)
  end
  error(lua51.base.tostring(message):match('^%Z*'), 2) -- C's text ends at its first NUL
end

-- LuaJIT gives the function what stands behind the handler, and takes no handler but a function.
function lua51.base.xpcall(...)
  local code, handler = ...
  if select('#', ...) < 2 then
    error("bad argument #2 to 'xpcall' (value expected)", 2)
  elseif type(handler) ~= 'function' then
    handler = function()
      return 'error in error handling'
    end
  end
  return nesting.xpcall(code, handler)
end

lua51.text, lua51.number = lua51.base.tostring, lua51.base.tonumber

return lua51

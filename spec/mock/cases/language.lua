-- SPDX-License-Identifier: Apache-2.0
-- Expressions of Lua 5.1, and what a script of Redis 7.0.15 sees of them: the type and the text of
-- each result, or "!" and the message of the error, without its place.
local SHOW = [[
local function show(ok, ...)
  if not ok then
    return '!' .. string.gsub((...), '^[^:]*:%%d+: ', '')
  end
  local out = {}
  for i = 1, select('#', ...) do
    out[i] = type((select(i, ...))) .. ' ' .. tostring((select(i, ...)))
  end
  return table.concat(out, ', ')
end
return show(pcall(function() return %s end))]]

local CASES = {
  { 'table.setn({}, 1)', "!'setn' is obsolete" },
  { 'table.setn(1)', "!bad argument #1 to 'setn' (table expected, got number)" },
  { "string.format('%s', false)", "!bad argument #2 to 'format' (string expected, got boolean)" },
  { "string.format('%s', nil)", "!bad argument #2 to 'format' (string expected, got nil)" },
  { "string.format('%s')", "!bad argument #2 to 'format' (no value)" },
  { "string.format('%d', 'x')", "!bad argument #2 to 'format' (number expected, got string)" },
  { "string.format('%a', 1)", "!invalid option '%a' to 'format'" },
  { "string.format('%123d', 1)", '!invalid format (width or precision too long)' },
  { "string.format('%.100f', 1)", '!invalid format (width or precision too long)' },
  { "string.format('%5.1f|%.1f', 0.25, 0.05)", 'string   0.2|0.1' },
  { "string.format('%.0f %.0f', 0.5, 1.5)", 'string 0 2' },
  { "string.format('%d %i %x', '10', 3.7, 255)", 'string 10 3 ff' },
  { "string.format('%-5s|%5.2s|%%', 'a', 'bcd')", 'string a    |   bc|%' },
  { "string.format('%+d % d %05d %#x', 1, 2, 3, 255)", 'string +1  2 00003 0xff' },
  { "#string.format('%c', 0), #string.format('%5c', 0)", 'number 0, number 4' },
  { "string.format('%c%5c', 65, 66)", 'string A    B' },
  { "string.format('%q', 'a\\0b\\r\\n\"')", 'string "a\\000b\\r\\\n\\""' },
  { "string.format('%.17g %e', 0.1, 12345.678)", 'string 0.10000000000000001 1.234568e+04' },
  { "string.rep('a', 3, ',')", 'string aaa' },
  { "string.sub('abc', 2, 1e10)", 'string bc' },
  { "string.sub('abc', -1e10, 2)", 'string ab' },
  { "string.rep(100000000000125, 1), (string.gsub('a', 'a', 100000000000125))",
    'string 1.0000000000012e+14, string 1.0000000000012e+14' },
  { 'string.sub(100000000000125, -6), string.reverse(100000000000125)',
    'string 12e+14, string 41+e2100000000000.1' },
  { 'pcall(error, 100000000000125)', 'boolean false, string 1.0000000000012e+14' },
  { 'math.log(8, 2)', 'number 2.0794415416798' },
  { 'tostring(math.max(1, 0/0)), tostring(math.min(1, 0/0))', 'string 1, string 1' },
  { 'math.min(3, 1, 2), math.max(3, 1, 2)', 'number 1, number 3' },
  { "math.max('7', 3)", 'number 7' },
  { 'math.min()', "!bad argument #1 to 'min' (number expected, got no value)" },
  { "tonumber('0b1')", 'nil nil' },
  { "tonumber('1LL'), tonumber('1i')", 'nil nil, nil nil' },
  { "tonumber('0x1F'), tonumber(' 12 ')", 'number 31, number 12' },
  { "tonumber('-ff', 16), tonumber('zz', 36)", 'number 1.844674407371e+19, number 1295' },
  { 'tostring(0/0)', 'string -nan' },
  { "tonumber('1e-07123456789'), tonumber(' -.5e99999999 '), tonumber('0e99999999')",
    'number 0, number -inf, number 0' },
  { "tonumber('.e99999999'), tonumber('1e99999999x'), 1 / tonumber('-1e-99999999')",
    'nil nil, nil nil, number -inf' },
  { "tonumber('nan'), tonumber('-nan'), tonumber(' NAN ')", 'number nan, number -nan, number nan' },
  { "string.format('%s|%5s|', 'a\\0b', 'c\\0d')", 'string a|    c|' },
  { "#string.format('%s', string.rep('a\\0', 50))", 'number 100' },
  { "string.format('%d', '0b1')", "!bad argument #2 to 'format' (number expected, got string)" },
  { "string.sub('abc', 1e100), string.byte('abc', 2, 2^40)", 'string abc, number 98, number 99' },
  { "string.byte('', 1)", '' },
  { "tonumber('12\\0z')", 'number 12' },
  { "#string.format('%c', 0.5), string.format('%x', 1e100)", 'number 0, string 0' },
  { "math.sqrt(nil)", "!bad argument #1 to 'sqrt' (number expected, got nil)" },
  { "math.deg()", "!bad argument #1 to 'deg' (number expected, got no value)" },
  { "math.pow(nil, 'x')", "!bad argument #2 to 'pow' (number expected, got string)" },
  { "#string.format('%c', 1/0), #string.format('%c', -2^31)", 'number 0, number 0' },
  { "math.pow(2)", "!bad argument #2 to 'pow' (number expected, got no value)" },
  { "pcall(string.byte, '')", 'boolean true' },
  { "string.char(1e100) == '\\0', #string.char(2^32)", 'boolean true, number 1' },
  { 'math.ldexp(3, 1e100), math.ldexp(1, 1.9)', 'number 3, number 2' },
  { 'select("#", select(1e16, 1, 2))', 'number 0' },
  { "string.rep('a', 2^53), string.rep('a', 1.9)", 'string , string a' },
  { "unpack({1, 2}, 2^31, '2')", '!too many results to unpack' },
  { "('%5.1f'):format(0.25), ('a'):rep(2, ',')", 'string   0.2, string aa' },
  { "('abc'):sub(2, 2^31), ('aaa'):find('a', 1.9)", 'string bc, number 1, number 1' },
  { 'tostring(math.ceil(-0.75)), 1 / math.ceil(-0.1)', 'string -0, number -inf' },
  { "rawset({}, 'f')", "!bad argument #3 to 'rawset' (value expected)" },
  { 'unpack({1, 2}, 1.9)', 'number 1, number 2' },
  { "string.find('aaa', 'a', 1.9), (string.match('abc', '.', 2.9))", 'number 1, string b' },
  { "string.find('aaa', 'a', 2^53), string.find('ab', '^', -1e15)", 'nil nil, number 1, number 0' },
  { "table.concat({1, 2, 3}, ',', 1.9, 2.9)", 'string 1,2' },
  { "table.concat({255 - 1e15, 0.5}, ' ')", 'string -9.9999999999974e+14 0.5' },
  { "table.concat({}, 'x', '2', false)",
    "!bad argument #4 to 'concat' (number expected, got boolean)" },
  { "table.concat({1, 2}, 'x', false)",
    "!bad argument #3 to 'concat' (number expected, got boolean)" },
  { "table.concat({1, 2, 3}, 'x', nil, '2')", 'string 1x2' },
  { "table.concat({1, 2}, 255 - 1e15)", 'string 1-9.9999999999974e+142' },
  { 'tostring(255 - 1e15), tostring(2^53), tostring(0.1)',
    'string -9.9999999999974e+14, string 9.007199254741e+15, string 0.1' },
  { 'table.remove({1, 2}, 2.7)', 'number 2' },
  { "(function() local t = {1, 2} table.insert(t, 1.7, 0) return t[1] end)()", 'number 0' },
  { "string.format('%6s', 0/0)", 'string   -nan' },
  { 'bit.tohex(1, 1e16), bit.tohex(0.1, 10), bit.tohex(255, -4)',
    'string 00000001, string 00000000, string 00FF' },
  { 'bit.tohex(255, -2^31)', 'string 000000FF' },
  { "(string.gsub(select(2, pcall(coroutine.wrap("
    .. "function() return 1, bit.tohex(1, {}) end))), ':%d+', ''))",
    "string user_script: bad argument #2 to 'tohex' (number expected, got table)" },
  { 'bit.tobit(1e16), bit.bswap(2^63, "x")', 'number 937459712, number 0' },
  { 'bit.band(true, 1)', "!bad argument #1 to 'band' (number expected, got boolean)" },
  { 'loadstring(12) ~= nil', 'boolean false' },
  { 'loadstring({})', "!bad argument #1 to 'loadstring' (string expected, got table)" },
  { "loadstring('\"\\\\u0003\"') == nil", 'boolean true' },
  { "loadstring('return 1_0') == nil, loadstring('a b-1c') == nil", 'boolean true, boolean true' },
}

local list = {}
for i, case in ipairs(CASES) do
  list[i] = { script = SHOW:format(case[1]), gives = case[2] }
end
return list

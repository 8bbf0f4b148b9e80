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
  { 'pcall(error, 100000000000125, 0)', 'boolean false, number 1.0000000000012e+14' },
  { "pcall(error, 100000000000125, '0'), pcall(error, 100000000000125, {})",
    "boolean false, boolean false, string bad argument #2 to '?' (number expected, got table)" },
  { 'pcall(error, 100000000000125, 0.5)', 'boolean false, number 1.0000000000012e+14' },
  { "pcall(error, 'm', 2)", 'boolean false, string user_script:11: m' },
  { "pcall(error, 12, 2)", 'boolean false, string user_script:11: 12' },
  { "pcall(error, 'm', 2.9), pcall(error, 'm', '2'), select(2, pcall(error, 'm', 1))",
    'boolean false, boolean false, string m' },
  { "pcall(error, 'm', 4)", 'boolean false, string user_script:11: m' },
  { "pcall(error, 'm', 5), pcall(error, 'm', 2^40)", 'boolean false, boolean false, string m' },
  { "pcall(pcall, error, 'm', 3)", 'boolean true, boolean false, string user_script:11: m' },
  { "pcall(function() error('m', 3) end)", 'boolean false, string user_script:11: m' },
  { "pcall(function() local _ = error('m', 2) end)", 'boolean false, string m' },
  { 'pcall(assert, false, 100000000000125)', 'boolean false, string 1.0000000000012e+14' },
  { "pcall(assert, false, 'a\\0b')", 'boolean false, string a' },
  { 'pcall(assert, nil)', 'boolean false, string assertion failed!' },
  { 'assert(1, nil, 2)', 'number 1, nil nil, number 2' },
  { 'assert(false, {})', "!bad argument #2 to 'assert' (string expected, got table)" },
  { "string.sub(select(2, pcall(function() assert(false, 'x') end)), 1, 12)",
    'string user_script:' },
  { 'redis.sha1hex(100000000000125)', 'string 33d06dbe1ff97d2806c935ad089f03dce1b0c695' },
  { "#struct.pack('s', 100000000000125), struct.pack('c0', 100000000000125)",
    'number 20, string 1.0000000000012e+14' },
  { "loadstring(100000000000125)", 'nil nil, string [string "1.0000000000012e+14"]:1: unexpected '
    .. "symbol near '1.0000000000012e+14'" },
  { "select('#', loadstring('return 1'))", 'number 1' },
  { "string.gsub('abc', 'b', { b = 100000000000125 })",
    'string a1.0000000000012e+14c, number 1' },
  { "string.gsub('abc', '()b', function(x) return x / 3, 1 end)",
    'string a0.66666666666667c, number 1' },
  { "string.gsub('abcb', 'b', setmetatable({}, { __index = function(_, x) return x .. x end }), 1)",
    'string abbcb, number 1' },
  { "string.gsub('abc', '(b)(c)', { b = false })", 'string abc, number 1' },
  { "string.gsub('abc', 'b', function() return {} end)",
    '!invalid replacement value (a table)' },
  { "pcall(table.concat, setmetatable({}, { __index = function() return 'x' end }), '', 1, 2)",
    "boolean false, string invalid value (nil) at index 1 in table for 'concat'" },
  { 'math.log(8, 2)', 'number 2.0794415416798' },
  { 'tostring(math.max(1, 0/0)), tostring(math.min(1, 0/0))', 'string 1, string 1' },
  { 'math.min(3, 1, 2), math.max(3, 1, 2)', 'number 1, number 3' },
  { "math.max('7', 3)", 'number 7' },
  { 'math.min()', "!bad argument #1 to 'min' (number expected, got no value)" },
  { "tonumber('0b1')", 'nil nil' },
  { "tonumber('1LL'), tonumber('1i')", 'nil nil, nil nil' },
  { "tonumber('0x1F'), tonumber(' 12 ')", 'number 31, number 12' },
  { "tonumber('-ff', 16), tonumber('zz', 36)", 'number 1.844674407371e+19, number 1295' },
  { "tonumber('-ffffffffffffff00', 16), tonumber('-0', 16), tonumber('-1', 2) == 2 ^ 64",
    'number 256, number 0, boolean true' },
  { "tonumber('-9223372036854775808', 16) == 2 ^ 64, tonumber('-' .. ('z'):rep(20), 36) == 2 ^ 64",
    'boolean true, boolean true' },
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
  { "string.rep('a', 2^63 + 2048), string.rep('a', -2^63 - 2048), string.rep('a', 0/0)",
    'string , string , string ' },
  { "string.rep('a', -1), #string.rep('a', 2^31), string.rep('a', 2^32 + 1), "
    .. "string.rep('a', -2^32 + 2)",
    'string , number 0, string a, string aa' },
  { "string.rep('a', 0.9), string.rep('a', -0.9), string.rep('a', '2')",
    'string , string , string aa' },
  { "select(-1, 'a', 'b'), select(-2.9, 'a', 'b')", 'string b, string a, string b' },
  { "select(2^32 + 2, 'a', 'b')", 'string b' },
  { "select(-2^32 + 1, 'a', 'b')", 'string a, string b' },
  { "select('2', 'a', 'b')", 'string b' },
  { "select(3, 'a', 'b')", '' },
  { "select(0, 'a')", "!bad argument #1 to 'select' (index out of range)" },
  { "select(-3, 'a', 'b')", "!bad argument #1 to 'select' (index out of range)" },
  { "select({}, 'a')", "!bad argument #1 to 'select' (number expected, got table)" },
  { 'unpack({1, 2, 3}, 2, 2^32 + 3)', 'number 2, number 3' },
  { "unpack({1, 2, 3}, '2'), unpack({1, 2, 3}, -1, 0)", 'number 2, nil nil, nil nil' },
  { 'unpack({1, 2, 3}, 3, 2)', '' },
  { 'unpack({1, 2}, true)', "!bad argument #2 to 'unpack' (number expected, got boolean)" },
  { 'unpack({1, 2}, 1, {})', "!bad argument #3 to 'unpack' (number expected, got table)" },
  { 'unpack(nil)', "!bad argument #1 to 'unpack' (table expected, got nil)" },
  { 'unpack({}, 1, 3)', 'nil nil, nil nil, nil nil' },
  { "string.char(65.9, '66'), #string.char()", 'string AB, number 0' },
  { 'string.char(256)', "!bad argument #1 to 'char' (invalid value)" },
  { 'string.char(-1)', "!bad argument #1 to 'char' (invalid value)" },
  { "string.char(65, 'x')", "!bad argument #2 to 'char' (number expected, got string)" },
  { 'string.char({})', "!bad argument #1 to 'char' (number expected, got table)" },
  { "string.format('%E %G %g', 12345.678, 1e-10, 1e20)", 'string 1.234568E+04 1E-10 1e+20' },
  { "string.format('%o %u %X %x %i', 8, 9, 255, 255, -3)", 'string 10 9 FF ff -3' },
  { "string.format('%u %o', 2^64, 2^64)", 'string 0 0' },
  { "string.format('%x %X', 2^64, 2^65)", 'string 0 0' },
  { "string.format('%d', 2^63 - 1024), string.format('%i', -2^63)",
    'string 9223372036854774784, string -9223372036854775808' },
  { "string.format('%e %E', 0.5, 0.5), string.format('%f', 0.5)",
    'string 5.000000e-01 5.000000E-01, string 0.500000' },
  { 'string.format(\'%q\', \'a\\\\b"c\\nd\\re\\0f\')', 'string "a\\\\b\\"c\\\nd\\re\\000f"' },
  { "string.format('%c', 65.9), string.format('%c', '66')", 'string A, string B' },
  { "#string.format('%c', 256), #string.format('%c', -256), #string.format('%c', 255), "
    .. "#string.format('%c', -1)",
    'number 0, number 0, number 1, number 1' },
  { "#string.format('%-5c|', 0), #string.format('%-5c|', 65)", 'number 1, number 6' },
  { "string.format('%s', nil and 1)", "!bad argument #2 to 'format' (string expected, got nil)" },
  { "string.format('%s %s', 1, true)",
    "!bad argument #3 to 'format' (string expected, got boolean)" },
  { "string.format('%5.1s|%-4s|%.0s|', 'abc', 'd', 'e')", 'string     a|d   ||' },
  { "string.format('%s', 'a\\0b') == 'a', #string.format('%.5s', 'a\\0b'), "
    .. "#string.format('%s', ('a\\0'):rep(49)), #string.format('%s', ('a\\0'):rep(50)), "
    .. "#string.format('%200s', 'a')",
    '!invalid format (width or precision too long)' },
  { "#string.format('%.99f', 1/3), #string.format('%99d', 1)", 'number 101, number 99' },
  { "string.format('%#o %+5d|%-5d|% 5d|%05d', 8, 1, 2, 3, 4)",
    'string 010    +1|2    |    3|00004' },
  { "string.format('%-+ #0d', 1)", 'string +1' },
  { "string.format('%-+ #00d', 1)", '!invalid format (repeated flags)' },
  { "string.format('%100d', 1)", '!invalid format (width or precision too long)' },
  { "string.format('%.100d', 1)", '!invalid format (width or precision too long)' },
  { "string.format('%', 1)", "!invalid option '%' to 'format'" },
  { "string.format('%5', 1)", "!invalid option '%' to 'format'" },
  { "string.format('%!', 1)", "!invalid option '%!' to 'format'" },
  { "string.format(12), string.format('%%'), string.format('')", 'string 12, string %, string ' },
  { 'string.format({})', "!bad argument #1 to 'format' (string expected, got table)" },
  { 'string.format()', "!bad argument #1 to 'format' (string expected, got no value)" },
  { "string.format('%d')", "!bad argument #2 to 'format' (no value)" },
  { "string.format('%d', nil)", "!bad argument #2 to 'format' (number expected, got nil)" },
  { "string.format('%d', {})", "!bad argument #2 to 'format' (number expected, got table)" },
  { "string.format('%s%s', 1)", "!bad argument #3 to 'format' (no value)" },
  { "string.format('%5%')", "!bad argument #2 to 'format' (no value)" },
  { "tonumber('1u'), tonumber('1ul'), tonumber('5I'), tonumber('5l'), tonumber('1U '), "
    .. "tonumber('0B1'), tonumber(' -0b1')",
    'nil nil, nil nil, nil nil, nil nil, nil nil, nil nil, nil nil' },
  { "tonumber('inf'), tonumber('-inf'), tonumber('Infinity'), tonumber(' INF '), tonumber('infx')",
    'number inf, number -inf, number inf, number inf, nil nil' },
  { "tonumber('nan'), tonumber('-nan'), tonumber('+nan')", 'number nan, number -nan, number nan' },
  { "tonumber('1e'), tonumber('1e+'), tonumber('.'), tonumber('.e1'), tonumber('+1'), "
    .. "tonumber('- 1'), tonumber('--1')",
    'nil nil, nil nil, nil nil, nil nil, number 1, nil nil, nil nil' },
  { "tonumber('1e99999999'), tonumber('-1e99999999'), tonumber('0.0e99999999'), "
    .. "tonumber('1e-99999999'), tonumber('+1e+99999999'), tonumber(' 1.5e99999999 '), "
    .. "tonumber('e99999999')",
    'number inf, number -inf, number 0, number 0, number inf, number inf, nil nil' },
  { "1 / tonumber('-0e99999999'), 1 / tonumber('0e-99999999'), 1 / tonumber('-1e-99999999')",
    'number -inf, number inf, number -inf' },
  { "tonumber('10', 2), tonumber('zz', 36), tonumber('ZZ', 36), tonumber('12', 2), "
    .. "tonumber('', 2), tonumber(' 7 ', 8), tonumber('8', 8)",
    'number 2, number 1295, number 1295, nil nil, nil nil, number 7, nil nil' },
  { "tonumber('-1', 16), tonumber('-0', 16), tonumber('ffffffffffffffff', 16), "
    .. "tonumber('10', 10), tonumber('10', 10.9), tonumber('1e1', 10), tonumber('0x10', 16)",
    'number 1.844674407371e+19, number 0, number 1.844674407371e+19, number 10, number '
    .. '10, number 10, number 16' },
  { "tonumber(10, 16), tonumber('10', '16'), tonumber(11, 2), tonumber(1.5, 10)",
    'number 16, number 16, number 3, number 1.5' },
  { "tonumber('z', 1)", "!bad argument #2 to 'tonumber' (base out of range)" },
  { "tonumber('z', 37)", "!bad argument #2 to 'tonumber' (base out of range)" },
  { 'tonumber(nil, 10), tonumber({}), tonumber(true)', 'nil nil, nil nil, nil nil' },
  { 'tonumber(nil, 16)', "!bad argument #1 to 'tonumber' (string expected, got nil)" },
  { 'tonumber()', "!bad argument #1 to 'tonumber' (value expected)" },
  { "tonumber('1', nil), tonumber('0x'), tonumber('0x1p4'), tonumber('1 2')",
    'number 1, nil nil, number 16, nil nil' },
  { "string.format('%o', 2^64), string.format('%u', 2^65)", 'string 0, string 0' },
  { "string.format('%X', 2^66), string.format('%x', 2^64 + 2048)", 'string 0, string 0' },
  { "tonumber('1', {})", "!bad argument #2 to 'tonumber' (number expected, got table)" },
  { "tonumber('1', true)", "!bad argument #2 to 'tonumber' (number expected, got boolean)" },
  { "tonumber('1', 'x')", "!bad argument #2 to 'tonumber' (number expected, got string)" },
  { "tonumber('12', 10), tonumber('12', 11)", 'number 12, number 13' },
  { "string.format('%o', 1e100), string.format('%u', 1e100), string.format('%X', 1e100)",
    'string 0, string 0, string 0' },
  { "tonumber('1i'), tonumber('i'), tonumber('l'), tonumber(' inf'), tonumber('-INF ')",
    'nil nil, nil nil, nil nil, number inf, number -inf' },
  { "string.format('%.0f', tonumber('-fffffffffff', 16))", 'string 18446726481523507200' },
  { "#string.format('%c', 2^31 + 65), #string.format('%c', 2^32 + 65), "
    .. "#string.format('%c', 2^31 - 1), #string.format('%c', -2^31 - 65)",
    'number 0, number 0, number 1, number 0' },
  { "string.format('%x', 2^64 + 4096), string.format('%o', 2^64 + 4096)", 'string 0, string 0' },
  { "string.format('%.5s', ('a\\0'):rep(60)), #string.format('%s', ('a\\0'):rep(60))",
    'string a, number 120' },
  { "string.sub('abc', 2^63), string.sub('abc', 1, 2^63), string.sub('abc', -2^63, 2), "
    .. "string.sub('abc', 0/0), string.sub('abc', 1, 0/0)",
    'string abc, string , string ab, string abc, string ' },
  { "string.sub('abc', 2^64), string.sub('abc', 1, 2^62), string.sub('abc', '2')",
    'string abc, string abc, string bc' },
  { "string.find('abc', 'b', -0.5), string.find('abc', 'a', -1.5), string.find('abc', 'c', -1.5)",
    'number 2, nil nil, number 3, number 3' },
  { "string.find('abab', 'b', 2.9), string.find('abab', 'b', 3.1), string.find('abc', 'a', 0.9)",
    'number 2, number 4, number 1, number 1' },
  { "string.match('abcd', '.', -2.9), string.match('abcd', '.', 2.9)", 'string c, string b' },
  { "string.byte('abc', -1), string.byte('abc', 1, 2^63), string.byte('abc', 2^63)",
    'number 99, nil nil' },
  { "string.byte('abc', 1, -1)", 'number 97, number 98, number 99' },
  { "string.byte('abc', nil, 2)", 'number 97, number 98' },
  { "table.concat({1, 2, 3}, 1), table.concat({1, 2, 3}, 255 - 1e15), table.concat({'a', "
    .. "'b'}, nil)",
    'string 11213, string 1-9.9999999999974e+142-9.9999999999974e+143, string ab' },
  { "table.concat({1, nil, 3}, ',', 1, 1), table.concat({}, ','), table.concat({1, 2}, "
    .. "',', 3), table.concat({1, 2}, ',', 2, 1)",
    'string 1, string , string , string ' },
  { "table.concat({1, 2, 3}, ',', 2), table.concat({1, 2, 3}, ',', '2', '3')",
    'string 2,3, string 2,3' },
  { "table.concat({1, {}}, ',')", "!invalid value (table) at index 2 in table for 'concat'" },
  { "table.concat({1}, ',', 1, 2)", "!invalid value (nil) at index 2 in table for 'concat'" },
  { "(function() local t = {1, 2, 3} table.insert(t, 2.9, 'x') return t[2], #t end)()",
    'string x, number 4' },
  { "(function() local t = {1, 2, 3} table.insert(t, 'x') return t[4] end)()", 'string x' },
  { '(function() local t = {1, 2, 3} return table.remove(t, 2.9), table.remove(t), #t end)()',
    'number 2, number 3, number 1' },
  { "(function() local t = {1, 2, 3} return table.remove(t, '1'), t[1] end)()",
    'number 1, number 2' },
  { 'math.ceil(-0.5), 1 / math.ceil(-0.5), 1 / math.ceil(0), math.ceil(0.5), '
    .. 'math.ceil(-1.5), math.ceil(-1)',
    'number -0, number -inf, number inf, number 1, number -1, number -1' },
  { '1 / math.ceil(-0.0)', 'number -inf' },
  { "math.fmod(-5, 3), math.pow(2, '3'), math.ldexp(1, 2.9), math.ldexp(1, -1), "
    .. "math.ldexp(1, 2^32 + 1), math.atan2(0, 1)",
    'number -2, number 8, number 4, number 0.5, number 2, number 0' },
  { "math.min(1, 2), math.min(2, 1), math.min(1, 1), math.max(1, 2), math.max(2, 1), "
    .. "math.max('3', 1), math.min('3', 4)",
    'number 1, number 1, number 1, number 2, number 2, number 3, number 3' },
  { "1 / math.min(tonumber('0'), tonumber('-0')), 1 / math.max(tonumber('-0'), tonumber('0'))",
    'number inf, number -inf' },
  { "1 / math.min(tonumber('-0'), tonumber('0')), 1 / math.max(tonumber('0'), tonumber('-0'))",
    'number -inf, number inf' },
  { 'tostring(math.min(0/0, 1)), tostring(math.max(0/0, 1)), tostring(math.max(1, 0/0, '
    .. '2)), tostring(math.min(3, 0/0, 2))',
    'string -nan, string -nan, string 2, string 2' },
  { "tostring(1e14), tostring(123456789012345), tostring(99999999999999.5), "
    .. "tostring(0.1), tostring(1e100), tostring(1/0), tostring(100), tostring('a'), "
    .. 'tostring(nil), tostring(true)',
    'string 1e+14, string 1.2345678901234e+14, string 1e+14, string 0.1, string 1e+100, '
    .. 'string inf, string 100, string a, string nil, string true' },
  { "1e15 .. '', 0.1 .. '', -1 .. '', 2^53 .. ''",
    'string 1e+15, string 0.1, string -1, string 9.007199254741e+15' },
  { 'unpack({1, 2, 3}, 2), unpack({}, 1, 2)', 'number 2, nil nil, nil nil' },
  { '#{unpack({1, 2, 3}, 2.9)}, #{unpack({1, 2, 3}, 1, 2.9)}, #{unpack({1, 2, 3}, -0.5, 1)}',
    'number 2, number 2, number 2' },
  { "select('#'), select('#', nil), select('#', 1, nil)", 'number 0, number 1, number 2' },
  { 'pcall()', 'boolean false, string attempt to call a boolean value' },
  { 'xpcall(tostring, tostring, 5)',
    "boolean false, string bad argument #1 to '?' (value expected)" },
  { "xpcall(function(a) return tostring(a) end, tostring, 5)", 'boolean true, string nil' },
  { "xpcall(function() error('x', 0) end, function(e) return e .. '!' end)",
    'boolean false, string x!' },
  { "xpcall(function() error('x') end, 5), (xpcall(function() end, nil))",
    'boolean false, boolean true' },
  { "select(2, xpcall(error, 5))", 'string error in error handling' },
  { 'xpcall(tostring)', "!bad argument #2 to 'xpcall' (value expected)" },
  { "tostring(cjson.null), 'x' .. tostring(cjson.decode('[null]')[1])",
    'string userdata: (nil), string xuserdata: (nil)' },
  { 'getmetatable()', "!bad argument #1 to 'getmetatable' (value expected)" },
  { 'setmetatable({})', "!bad argument #2 to 'setmetatable' (nil or table expected)" },
  { 'setmetatable({}, 1)', "!bad argument #2 to 'setmetatable' (nil or table expected)" },
  { 'setmetatable()', "!bad argument #1 to 'setmetatable' (table expected, got no value)" },
  { 'setmetatable(1, {})', "!bad argument #1 to 'setmetatable' (table expected, got number)" },
  { 'setmetatable(setmetatable({}, { __metatable = {} }), {})',
    '!cannot change a protected metatable' },
  { 'setmetatable(setmetatable({}, { __metatable = false }), {})',
    '!cannot change a protected metatable' },
  { 'getmetatable(setmetatable(setmetatable({}, {}), nil))', 'nil nil' },
  { 'rawget({})', "!bad argument #2 to 'rawget' (value expected)" },
  { 'rawget(1, 2)', "!bad argument #1 to 'rawget' (table expected, got number)" },
  { 'rawset()', "!bad argument #1 to 'rawset' (table expected, got no value)" },
  { 'rawset(_G, 1)', "!bad argument #3 to 'rawset' (value expected)" },
  { 'next()', "!bad argument #1 to 'next' (table expected, got no value)" },
  { 'load(1), 1', "!bad argument #1 to 'load' (function expected, got number)" },
  { 'loadstring()', "!bad argument #1 to 'loadstring' (string expected, got no value)" },
}

local list = {}
for i, case in ipairs(CASES) do
  list[i] = { script = SHOW:format(case[1]), gives = case[2] }
end

-- What no server compiles, and an editor or LuaJIT may let pass: the text, and what is said near.
for _, case in ipairs({ { '\239\187\191return 1', '\239' },
  { 'local gr\195\182\195\159e = 1 return 1', '\195' }, { '#comment\nreturn 1', '#' },
  { 'local a\160= 1', '\160' }, { 'local x = = \195\182', '=' },
  { 'return 1e3.."x" + +', '+' } }) do
  list[#list + 1] = { script = case[1], fails = 'ERR Error compiling script (new function): '
    .. "user_script:1: unexpected symbol near '" .. case[2] .. "'" }
  list[#list + 1] = { script = 'return tostring(loadstring(ARGV[1]))', args = { case[1] },
    gives = 'nil' }
end
for _, case in ipairs({
  { "return tostring(loadstring('#!lua\\nreturn 1'))", 'nil' },
  { '#!lua\nreturn "\195\182"', '\195\182' },
  { "return 'a\\\r\nb\\\n\rc'", 'a\nb\nc' },
  { 'return 1e3.."x"..1e-1 .."y"..0x10..":"..2 ..""', '1000x0.1y16:2' },
  { 'local function f(...) return arg.n end return f(1, nil, nil)', 3 },
  { 'local function f(a, ...) return function() return arg[1] end end return f(1, 2)()', 2 },
  { 'local function f(arg, ...) return arg.n end return f(1, 2, 3)', 2 },
  { 'local function f(...) return tostring(arg), ... end return f(1)', 'nil' },
  { "local function f(...) local arg = 'x' return arg end return f(1)", 'x' },
  { "return tostring(pcall(function() return redis.call('NOSUCH') end))", 'false' },
}) do
  list[#list + 1] = { script = case[1], gives = case[2] }
end
-- What C takes for an integer, and integers of no bytes.
for _, case in ipairs({
  { "return { struct.unpack('i0i0b', 'abc') }", { 0, 0, 97, 2 } },
  { "return { struct.unpack('b', 'ab', 2.5) }", { 98, 3 } },
  { "return { cmsgpack.unpack_one('\\1\\2\\3', 1.9) }", { 2, 2 } },
  { "return { cmsgpack.unpack_one('\\1\\2\\3', -0.5) }", { 1, 1 } },
  { "return { cmsgpack.unpack_limit('\\1\\2\\3', 1.9, 0.5) }", { 1, 1 } },
  { "return { cmsgpack.unpack_limit('\\1\\2\\3', 0.5, 0) }", { 1, 2, 3 } },
}) do
  list[#list + 1] = { script = case[1], gives = case[2] }
end

-- Calls inside of one another, by functions that are C's on a server.
for _, case in ipairs({
  { "return { select(2, xpcall(function() error('x', 3) end, tostring)) }",
    { 'user_script:1: x' } },
  { "local function f() pcall(error) ('a'):gsub('a', error) end for i = 1, 300 do pcall(f) end "
    .. 'for i = 1, 300 do xpcall(f, tostring) coroutine.resume(coroutine.create(f)) end return 1',
    1 },
  { 'local co = coroutine.create(function() return pcall(coroutine.yield, 5) end) '
    .. 'return { select(3, coroutine.resume(co)) }',
    { 'attempt to yield across metamethod/C-call boundary' } },
  { 'return { select(2, pcall(coroutine.yield, 5)) }',
    { 'attempt to yield across metamethod/C-call boundary' } },
  { 'local co = coroutine.wrap(function(a) while true do a = coroutine.yield(a, 2) end end) '
    .. 'return { (pcall(co, 1)) and 1, select(2, co(7)) }', { 1, 2 } },
}) do
  list[#list + 1] = { script = case[1], gives = case[2] }
end
for _, script in ipairs({
  "local n = 0 local function f() n = n + 1 if n < 200 then ('a'):gsub('a', f) end end f()",
  "local function f() ('a'):gsub('a', f) end f()",
  'local function f() local ok, e = coroutine.resume(coroutine.create(f)) error(e, 0) end f()',
  'local function f() local ok, e = xpcall(f, function(e) return e end) error(e, 0) end f()',
}) do
  list[#list + 1] = { script = script, fails = 'ERR C stack overflow', line = 1 }
end
-- How many exactly: under Lua 5.1 those of the specs count, too.
for _, case in ipairs(rawget(_G, 'jit') and {
  { "local n = 0 local function f() n = n + 1 if n < 199 then ('a'):gsub('a', f) end end f() "
    .. 'return n', 199 },
  { 'local n = 0 local function f() n = n + 1 pcall(f) end f() return n', 199 },
  { 'local n = 0 local function f() n = n + 1 xpcall(f, tostring) end f() return n', 199 },
  { 'local n = 0 local function f() n = n + 1 coroutine.resume(coroutine.create(f)) end f() '
    .. 'return n', 200 },
  { 'local n = 0 local function f() n = n + 1 pcall(coroutine.wrap(f)) end f() return n', 100 },
} or {}) do
  list[#list + 1] = { script = case[1], gives = case[2] }
end
list[#list + 1] = { script = 'local function f() coroutine.wrap(f)() end f()',
  fails_like = 'ERR user_script:1: user_script:1: ' }
list[#list + 1] = { script = "coroutine.wrap(function() error('x') end)()",
  fails = 'ERR user_script:1: user_script:1: x', line = 1 }

-- Long and deep texts.
list[#list + 1] = { script = 'return ' .. ('1+'):rep(10000) .. '1', gives = 10001 }
list[#list + 1] = { script = 'local t = {} t.t = t return t' .. ('.t'):rep(10000) .. ' == t',
  gives = 1 }
list[#list + 1] = { script = 'return ' .. ('('):rep(5000) .. '1' .. (')'):rep(5000),
  fails_like = 'ERR Error compiling script (new function): user_script:1: ' }
list[#list + 1] = { script = "return '\\q' .. " .. ('{'):rep(5000),
  fails_like = 'ERR Error compiling script (new function): user_script:1: ' }
list[#list + 1] = { script = 'return arg',
  fails = "ERR user_script:1: Script attempted to access nonexistent global variable 'arg'",
  line = 1 }
return list

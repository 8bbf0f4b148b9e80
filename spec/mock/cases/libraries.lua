-- SPDX-License-Identifier: Apache-2.0
-- The libraries `struct` and `cmsgpack`, as Redis 7.0.15 has them.
local BYTES = 'local out = {} for i = 1, #text do out[i] = text:byte(i) end return out'

local function bytes(expression, gives)
  return { script = 'local text = ' .. expression .. ' ' .. BYTES, gives = gives }
end

local function shown(expression, gives)
  return { script = ('local list = { %s } for i = 1, #list do list[i] = tostring(list[i]) end '
    .. 'return list'):format(expression), gives = gives }
end

local function fails(expression, text)
  return { script = 'local list = { ' .. expression .. ' } return list',
    fails_like = 'ERR user_script:1: ' .. text }
end

return {
  bytes('struct.pack("bBhH", -1, 255, -2, 65535)', { 255, 255, 254, 255, 255, 255 }),
  bytes('struct.pack(">hi", 1, -2)', { 0, 1, 255, 255, 255, 254 }),
  bytes('struct.pack("<i3", 66051)', { 3, 2, 1 }),
  bytes('struct.pack("l", -2 ^ 40)', { 0, 0, 0, 0, 0, 255, 255, 255 }),
  bytes('struct.pack("f", 0)', { 0, 0, 0, 0 }),
  bytes('struct.pack("d", 0.1)', { 154, 153, 153, 153, 153, 153, 185, 63 }),
  bytes('struct.pack(">f", 0.1)', { 61, 204, 204, 205 }),
  bytes('struct.pack("f", 1e-45)', { 1, 0, 0, 0 }),
  bytes('struct.pack("f", 1e39)', { 0, 0, 128, 127 }),
  bytes('struct.pack("s", "ab")', { 97, 98, 0 }),
  bytes('struct.pack("c2c0", "abc", "de")', { 97, 98, 100, 101 }),
  bytes('struct.pack("!4bi", 1, 2)', { 1, 0, 0, 0, 2, 0, 0, 0 }),
  bytes('struct.pack("bxb", 1, 2)', { 1, 0, 2 }),
  shown('struct.unpack("bBhH", struct.pack("bBhH", -1, 255, -2, 65535))',
    { '-1', '255', '-2', '65535', '7' }),
  shown('struct.unpack("Bc0", "\\3abcd")', { 'abc', '5' }),
  shown('struct.unpack("s", "ab\\0c")', { 'ab', '4' }),
  shown('struct.unpack("b", "\\1\\2\\3", 2)', { '2', '3' }),
  shown('struct.unpack("dLc0", struct.pack("dLc0", 1.5, 3, "xyz"))', { '1.5', 'xyz', '20' }),
  shown('struct.unpack("L", ("\\255"):rep(8))', { '1.844674407371e+19', '9' }),
  shown('struct.size("!8bd"), struct.size("i3 h")', { '16', '5' }),
  shown('struct.size("qbk7")', { '1' }), -- letters and digits that are no option count for nothing
  fails('struct.pack("i")', "bad argument #2 to 'pack' (number expected, got nil)"),
  fails('struct.pack("c3", "ab")', "bad argument #3 to 'pack' (string too short)"),
  fails('struct.pack("y", 1)', "bad argument #1 to 'pack' (invalid format option 'y')"),
  fails('struct.pack("i33", 1)', 'integral size 33 is larger than limit of 32'),
  fails('struct.unpack("i", "abc")', "bad argument #2 to 'unpack' (data string too short)"),
  fails('struct.unpack("s", "abc")', 'unfinished string in data'),
  fails('struct.unpack("c0", "abc")', "format 'c0' needs a previous size"),
  fails('struct.unpack("b", "a", 0)', "bad argument #3 to 'unpack' (offset must be 1 or greater)"),

  shown('string.byte(cmsgpack.pack({ [0] = 1, [2] = 2 }))', { '130' }), -- no array, a map of two
  bytes('cmsgpack.pack(1, -1, 127, 128, -33)', { 1, 255, 127, 204, 128, 208, 223 }),
  bytes('cmsgpack.pack(65536, -32769)', { 206, 0, 1, 0, 0, 210, 255, 255, 127, 255 }),
  bytes('cmsgpack.pack(2 ^ 40)', { 207, 0, 0, 1, 0, 0, 0, 0, 0 }),
  bytes('cmsgpack.pack(0.5)', { 202, 63, 0, 0, 0 }),
  bytes('cmsgpack.pack(0.1)', { 203, 63, 185, 153, 153, 153, 153, 153, 154 }),
  bytes('cmsgpack.pack(nil, true, false)', { 192, 195, 194 }),
  bytes('cmsgpack.pack("ab", {}, { 1, "a" })', { 162, 97, 98, 144, 146, 1, 161, 97 }),
  bytes('cmsgpack.pack({ a = { b = 1 } })', { 129, 161, 97, 129, 161, 98, 1 }),
  bytes('cmsgpack.pack(("x"):rep(32)):sub(1, 3)', { 217, 32, 120 }),
  bytes('cmsgpack.pack(cjson.null, tostring)', { 192, 192 }),
  shown('cmsgpack.unpack(cmsgpack.pack(1, -300, 1.5, "x", true))',
    { '1', '-300', '1.5', 'x', 'true' }),
  shown('cjson.encode(cmsgpack.unpack(cmsgpack.pack({ 1, { a = 2 }, {} })))', { '[1,{"a":2},{}]' }),
  shown('cmsgpack.unpack_one("\\1\\2\\3")', { '1', '1' }),
  shown('cmsgpack.unpack_one("\\1\\2\\3", 2)', { '-1', '3' }),
  shown('cmsgpack.unpack_limit("\\1\\2\\3", 2)', { '2', '1', '2' }),
  fails('cmsgpack.unpack("\\204")', 'Missing bytes in input.'),
  fails('cmsgpack.unpack("\\193")', 'Bad data format in input.'),
  fails('cmsgpack.unpack_one("\\1", 5)', 'Start offset 5 greater than input length 1.'),
}

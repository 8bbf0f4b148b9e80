-- SPDX-License-Identifier: Apache-2.0
-- Patterns of keys, as Redis 7.0.15 reads them: which of some keys each of them matches.
local KEYS = { 'a', 'b', 'c', 'd', 'ab', 'ac', 'bc', 'abc', 'aXbYc', 'axe', '-', '^', ']', '[',
  '\\', '*', 'a\\', 'a5', 'aab', '`', 'a[', '+', ',' }

local CASES = {
  { '*', '* + , - [ \\ ] ^ ` a a5 aXbYc a[ a\\ aab ab abc ac axe b bc c d' },
  { '**', '* + , - [ \\ ] ^ ` a a5 aXbYc a[ a\\ aab ab abc ac axe b bc c d' },
  { 'a*', 'a a5 aXbYc a[ a\\ aab ab abc ac axe' },
  { '*a', 'a' },
  { 'a**b', 'aab ab' },
  { '?', '* + , - [ \\ ] ^ ` a b c d' },
  { 'a?', 'a5 a[ a\\ ab ac' },
  { '[ab]c', 'ac bc' },
  { '[^a]', '* + , - [ \\ ] ^ ` b c d' },
  { '[^a]b', '' },
  { '[a-c]', 'a b c' },
  { '[c-a]', 'a b c' },
  { '[a-', '- a' },
  { '[a', 'a' },
  { '[', '' },
  { '[]', '' },
  { '[]a]', '' },
  { '[^]', '* + , - [ \\ ] ^ ` a b c d' },
  { '[^]a', '' },
  { '[-a]', '- a' },
  { '[a-c-e]', '- a b c' },
  { '[\\]]', ']' },
  { '[\\a-c]', '- a c' },
  { '[\\', '\\' },
  { '[a-\\]]', '' },
  { '\\*', '*' },
  { '\\a', 'a' },
  { '\\', '\\' },
  { 'a\\', 'a\\' },
  { '\\\\', '\\' },
  { 'a*b*c', 'aXbYc abc' },
  { '*b*c', 'aXbYc abc bc' },
  { 'a[^b-d]e', 'axe' },
  { '[b-d]*', 'b bc c d' },
  { '*[b-d]', 'aXbYc aab ab abc ac b bc c d' },
  { '[a-b-c]', '- a b c' },
  { 'a*[0-9]', 'a5' },
  { '*?', '* + , - [ \\ ] ^ ` a a5 aXbYc a[ a\\ aab ab abc ac axe b bc c d' },
  { '?*', '* + , - [ \\ ] ^ ` a a5 aXbYc a[ a\\ aab ab abc ac axe b bc c d' },
  { '*??', 'a5 aXbYc a[ a\\ aab ab abc ac axe bc' },
  { '[^a', '* + , - [ \\ ] ^ ` b c d' },
  { '[a]*b', 'aab ab' },
  { 'ab', 'ab' },
  { 'abc*', 'abc' },
  { '[.-a]', '[ \\ ] ^ ` a' },
  { '[a-c', 'a b c' },
  { '[+--]', '+ , -' },
  { '[a^]', '^ a' },
  { '[\\^a]', '^ a' },
  { '[a-\\]', '\\ ] ^ ` a' },
  { 'a[', '' },
  { '[[]', '[' },
  { 'a*bc', 'abc' },
  { '*abc', 'abc' },
}

local set = { 'MSET' }
for _, key in ipairs(KEYS) do
  set[#set + 1], set[#set + 2] = key, ''
end

local list = {}
for i, case in ipairs(CASES) do
  list[i] = { script = "local keys = redis.call('KEYS', ARGV[1]) table.sort(keys) "
    .. "return table.concat(keys, ' ')", args = { case[1] }, after = { set }, gives = case[2] }
end
return list

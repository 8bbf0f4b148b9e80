-- SPDX-License-Identifier: Apache-2.0
-- Random expressions of Lua, each list from a number alone: what the language and its library
-- answer in a script. An expression is a tree: one that differs can be cut down to what differs.
local grammar = require('mock.grammar')

local expressions = {}

-- So many of a seed.
expressions.COUNT = 50
local DEPTH_MAX = 4

-- N a number, S a text, B a truth, T a table, H one that may have holes, whose length no manual
-- says, A any of them; P a pattern, F a format, I an integer, Z a step, Q a place, K a name of a
-- field, J a text of JSON. What has none of them ends a branch. Of 0 and -0 in one function Lua 5.1
-- makes one constant, and LuaJIT two: so zero is a variable where it may get a sign.
local RULES = {
  N = {
    'zero', '1', '-1', '3', '7', '10', '255', '0.5', '-1.5', '2.5', '0.1', '1e15', '1e16', '-1e15',
    '1e100', '2^31', '2^53', '-2^31', '2^63', '(0/0)', '(1/0)', '(-1/0)', '0x10', '123456789',
    '1767225600123', '1e-7', '3.', '.5',
    '(N + N)', '(N - N)', '(N * N)', '(N / N)', '(N % N)', '(N ^ I)', '(-N)', '#S', '#T',
    'math.abs(N)', 'math.ceil(N)', 'math.floor(N)', 'math.fmod(N, N)', 'math.max(N, N)',
    'math.min(N, N)', 'math.max(N, N, N)', 'math.modf(N)', 'math.frexp(N)', 'math.ldexp(N, I)',
    'math.sqrt(N)', 'math.pow(N, I)', 'math.mod(N, N)', 'math.log10(N)',
    'tonumber(A)', 'tonumber(S)', 'tonumber(S, 16)', 'tonumber(S, I)', 'string.len(S)',
    'string.byte(S, I)', 'select("#", A, A)', 'select(I, A, A)', 'table.getn(T)', 'table.maxn(T)',
    'bit.band(N, N)', 'bit.bor(N, I)', 'bit.bxor(I, N)', 'bit.lshift(N, I)', 'bit.rshift(N, I)',
    'bit.arshift(N, I)', 'bit.rol(N, I)', 'bit.bnot(N)', 'bit.tobit(N)', 'bit.bswap(N)',
    '(string.find(S, S, 1, true) or 0)', 'string.find(S, P)', 'string.find(S, P, I)',
    '(N + S)', '(S * N)', '(B and N or N)',
    '(function() local s, c = 0, 0 for i = Q, I, Z do s, c = s + i, c + 1 '
      .. 'if c > 9 then break end end return s end)()',
    '(function() local c = 0 for _, v in ipairs(T) do c = c + 1 end return c end)()',
    '(function(a, ...) return a, ... end)(N, A)', '(function(...) return select("#", ...) end)(T)',
  },
  S = {
    "''", "'a'", "'abc'", "'10'", "' 7 '", "'0x1f'", "'1e3'", "'-5'", "'a\\0b'", "'a,b,,c'",
    "'Hello World'", "'\\r\\n\"\\\\'", "'\\200\\255'", "'(x(y)z)'", "'inf'", "'1_0'",
    '[[long]]', "'zz'", "'key=value'",
    '(S .. S)', '(S .. some(N))', '(some(N) .. S)', 'string.rep(S, I)', 'string.sub(S, I)',
    'S:sub(I, I)',
    'S:upper()', 'string.lower(S)', 'S:reverse()', 'text(A)', 'text(N)', 'type(A)',
    'string.format(F, A)', 'string.format(F, N)', 'string.format(F, S)',
    'string.format(F .. F, N, S)', 'string.format("%s %d", S, N)', 'string.char(I, 65)',
    'string.char(N)', 'string.gsub(S, P, S)', 'string.gsub(S, P, "<%0>")',
    'string.gsub(S, P, "%1", I)', 'string.gsub(S, P, full(S, S))',
    'S:gsub(P, function(x) return some(A) end)',
    'string.match(S, P)', 'S:match(P, I)', 'table.concat(full(S, some(N), S), S)',
    'table.concat(plain(T), S)',
    'table.concat(plain(T), S, I, I)', 'cjson.encode(N)', 'cjson.encode(S)',
    'cjson.encode(A)', 'cjson.encode(T)', 'bit.tohex(N)',
    'bit.tohex(N, I)', 'string.format("%q", S)', 'redis.sha1hex(S)', '(B and S or S)',
    '(function() local out = {} for w in S:gmatch(P) do out[#out + 1] = w end '
      .. 'return table.concat(out, ";") end)()',
  },
  B = {
    'true', 'false', '(N < N)', '(N <= N)', '(N > N)', '(N == N)', '(N ~= N)', '(S < S)',
    '(S <= S)',
    '(S >= S)', '(S == S)', '(A == A)', '(not A)', '(A ~= nil)', 'rawequal(A, A)', '(S < N)',
    '(B and B)', '(B or B)', '(S == N)', '(T == T)', '(A < A)',
  },
  T = {
    '{}', '{A}', 'full(A, A)', 'full(N, N, N)', 'full(S, S)', '{K = A}', '{[A] = A}',
    '{unpack(T)}', 'full(T, T)', '{math.modf(N)}', '{math.frexp(N)}', '{string.byte(S, 1, -1)}',
    '{xpcall(function() return A end, function(e) return 1 end)}', 'cjson.decode(J)',
    '(function() local t = full(N, N, N, N) table.sort(t) return t end)()',
    '(function() local t = full(S, S, S) table.sort(t, function(a, b) return a > b end) '
      .. 'return t end)()',
    '(function() local t = T table.insert(t, (A)) return t end)()',
    '(function() local t = full(A, A, A) return {table.remove(t, I) or 0, #t} end)()',
    '(function() local i = 0 repeat i = i + 1 until i > I or i > 5 return {i} end)()',
  },
  H = {
    '{A, nil, A}', '{A, A}', '{[I] = A}', '{unpack(full(N, S, B), I, I)}', '{string.find(S, P)}',
    '{string.gsub(S, P, S)}', '{try(function() return A end)}', '{pcall(error, (A))}',
    '{pcall(error)}', '{select(2, A, T)}', '{next({K = A})}', '{next({A})}',
    '(function() local t = full(A, A) table.insert(t, Q, (A)) return t end)()',
    '(function() local t = setmetatable({}, {__index = function(_, k) return k end}) '
      .. 'return {t[A], t.K} end)()',
    '(function() local t = setmetatable({}, {__add = function(a, b) return A end, '
      .. '__lt = function() return B end, __eq = function() return B end, '
      .. '__concat = function(a, b) return S end, __call = function(_, x) return x end}) '
      .. 'return {t + 1, t < t, t .. S, t(A), rawget(t, A)} end)()',
    '(function() local co = coroutine.wrap(function(a) local b = coroutine.yield(a) '
      .. 'return b, A end) return {co(A), co(A)} end)()',
    '{(coroutine.resume(coroutine.create(function() return A end)))}',
    '(function() local a, b = A return {a, b} end)()',
    '(function() local t = {} for i, v in ipairs({A, A}) do t[v] = i end return {t[A]} end)()',
    '(function() local t = {} rawset(t, "K", A) return t end)()',
    '{loadstring("return " .. I)()}', '{(loadstring(S))}', '{assert(A)}', '{assert(A, S)}',
    '{tostring(nil), tostring(true)}',
  },
  A = { 'N', 'N', 'S', 'S', 'B', 'T', 'H', 'nil', '(A and A)', '(A or A)', '(T)[I]', '(T).K',
    '(A)' },
  P = {
    "'%d+'", "'a'", "'.'", "'^(.)(.-)$'", "'%w'", "'[a-c]'", "'()'", "'%b()'", "'%f[%w]%w+'", "'('",
    "'%'", "'[a'", "'.-'", "'b*'", "'%s*'", "'^%s*(.-)%s*$'", "'(%w+)=(%w+)'", "'[^,]*'", "''",
    "'%a%A'", "'[%]]'", "'%1'", "'(a)%1'", "'$'", "'^'", "'%z'", "'[%z%c]'", "'.$'", "'%x%X'", 'S',
  },
  F = {
    "'%d'", "'%5d'", "'%-5d|'", "'%05d'", "'%+d'", "'% d'", "'%s'", "'%10s'", "'%-10s|'", "'%.2s'",
    "'%q'", "'%x'", "'%X'", "'%#x'", "'%o'", "'%u'", "'%i'", "'%c'", "'%f'", "'%.3f'", "'%8.2f'",
    "'%e'", "'%.14g'", "'%g'", "'%.17g'", "'%G'", "'%E'", "'%%'", "'%'", "'%y'", "'%.0f'",
    "'%5.1s'",
    "'%123d'", "'%.20f'",
  },
  I = { '0', '1', '2', '3', '-1', '-2', '5', '10', '2.7', "'2'", 'N' },
  Z = { '1', '2', '-1', '-2', '0.5', "'2'" },
  Q = { '0', '1', '2', '3', '-1', '2.7', "'2'" },
  K = { 'f', 'g', 'n' },
  J = {
    "'[]'", "'{}'", "'[1,2.5,-3e2]'", "'{\"f\":[null,true]}'", "'\"x\\\\u00e9\\\\n\"'", "'nul'",
    "'['",
    "'[1,]'", "'{\"f\":1}'", "' 7 '", "'1e400'", "'[[[]]]'", "'\"\"'", "''", "'[01]'", "'0x10'",
    'S',
    'cjson.encode(A)', "'nan'", "'{\"1\":2}'",
  },
}

-- What may stand where something else belongs; of a NaN no text is made, and no table with holes is
-- asked for its length.
RULES.X = { 'N', 'S', 'B', 'T', 'nil' }
RULES.Y = { 'some(N)', 'S', 'B', 'T', 'nil' }
local EXCHANGED = { N = 'X', I = 'X', B = 'X', S = 'Y', T = 'Y' }

-- A letter by itself, but for those of formats and patterns, such as "%X".
local INNER = '%f[%w%%][NSBTHAPFIZQKJ]%f[%W]'

-- What ends a branch, of each sort.
local LEAVES = {}
for sort, rules in pairs(RULES) do
  LEAVES[sort] = {}
  for _, rule in ipairs(rules) do
    if not rule:find(INNER) then
      table.insert(LEAVES[sort], rule)
    end
  end
end
LEAVES.H = { '{}' }
LEAVES.X = { '1', "'a'", 'nil', 'true', '{}' }
LEAVES.Y = LEAVES.X
LEAVES.A = { '1', "'a'", 'nil', 'true', '{}' }

-- Counts for string.rep and places stay small: none of them may come from a large number.
local SMALL = { '0', '1', '2', '3', '-1', '5', '2.7', "'2'", 'nil' }

local ONE_IN_TWELVE = { true, false, false, false, false, false, false, false, false, false, false,
  false }

-- A tree: texts, and trees of what stands between them.
local function grow(pick, sort, depth)
  if EXCHANGED[sort] and pick(ONE_IN_TWELVE) then
    sort = EXCHANGED[sort]
  end
  local rule = pick(depth < DEPTH_MAX and RULES[sort] or LEAVES[sort])
  local tree, at = { sort = sort }, 1
  local is_rep = rule:find('string.rep', 1, true)
  while true do
    local first = rule:find(INNER, at)
    tree[#tree + 1] = rule:sub(at, (first or 0) - 1)
    if not first then
      return tree
    end
    local inner = rule:sub(first, first)
    tree[#tree + 1] = is_rep and inner == 'I' and { pick(SMALL) } or grow(pick, inner, depth + 1)
    at = first + 1
  end
end

---@param tree table of `list`
---@return string
function expressions.text(tree)
  local parts = {}
  for i, part in ipairs(tree) do
    parts[i] = type(part) == 'table' and expressions.text(part) or part
  end
  return table.concat(parts)
end

---@param seed integer
---@return table[] trees
function expressions.list(seed)
  local pick, list = grammar.generator(seed), {}
  for i = 1, expressions.COUNT do
    list[i] = grow(pick, 'A', 0)
  end
  return list
end

-- What a script sees: the value with its type, down to the elements of tables, or "!" and the
-- message of the error without its place. The sign of NaN is no value's, and no text is made of one
-- by "..": what that is called, the mock under LuaJIT does not know. Nor does it know the texts of
-- all errors.
local SHOW = [[
local zero = tonumber('0')
local function full(...)
  local list = {}
  for i = 1, select('#', ...) do
    list[i] = (select(i, ...))
    if list[i] == nil then
      break
    end
  end
  return list
end
local function text(value)
  return type(value) ~= 'table' and type(value) ~= 'function' and tostring(value) or type(value)
end
local function some(value)
  return value == value and value or 0
end
local function plain(list)
  for i = 1, type(list) == 'table' and #list or 0 do
    list[i] = some(list[i])
  end
  return list
end
local function success(good, ...)
  if good then
    return good, ...
  end
  return good, 'error'
end
local function try(f)
  return success(pcall(f))
end
local function show(value, depth)
  local kind = type(value)
  if kind == 'number' then
    return value == value and string.format('%.17g', value) or 'nan'
  elseif kind == 'string' then
    return '"' .. string.gsub(value, '%-nan', 'nan') .. '"'
  elseif kind ~= 'table' then
    return kind == 'boolean' and tostring(value) or kind
  elseif depth > 4 then
    return '{...}'
  end
  local parts = {}
  for k, v in pairs(value) do
    parts[#parts + 1] = show(k, depth + 1) .. '=' .. show(v, depth + 1)
  end
  table.sort(parts)
  return '{' .. table.concat(parts, ' ') .. '}'
end
local function all(good, ...)
  if not good then
    return '!' .. string.gsub(tostring((...)), '^[^:]*:%d+: ', '')
  end
  local parts = {}
  for i = 1, select('#', ...) do
    parts[i] = show((select(i, ...)), 0)
  end
  return table.concat(parts, ', ')
end
return all(pcall(function() return EXPRESSION end))]]

---@param tree table
---@return string script
function expressions.script(tree)
  return (SHOW:gsub('EXPRESSION', function()
    return expressions.text(tree)
  end))
end

return expressions

-- SPDX-License-Identifier: Apache-2.0
-- The globals of a script: those that Redis 7.0 has and no others, none of which can be changed.
local cjson = require('cjson')

local bit = require('latchkey.mock.bits')
local cmsgpack = require('latchkey.mock.cmsgpack')
local lexer = require('latchkey.lua51.lexer')
local lua51 = require('latchkey.mock.lua51')
local nesting = require('latchkey.mock.nesting')
local parser = require('latchkey.lua51.parser')
local struct = require('latchkey.mock.struct')

local Sandbox = {}
Sandbox.__index = Sandbox

local READONLY = 'Attempt to modify a readonly table'
local BYTECODE = 'MOCK bytecode is not modelled'

local BASE = { 'assert', 'collectgarbage', 'error', 'ipairs', 'rawequal', 'select', 'tonumber',
  'tostring', 'type', 'unpack', 'xpcall', '_VERSION' }
local STRING = { 'byte', 'char', 'dump', 'find', 'format', 'gmatch', 'gsub', 'len', 'lower',
  'match', 'rep', 'reverse', 'sub', 'upper' }
local TABLE = { 'concat', 'foreach', 'foreachi', 'getn', 'insert', 'maxn', 'remove', 'setn',
  'sort' }
local MATH = { 'abs', 'acos', 'asin', 'atan', 'atan2', 'ceil', 'cos', 'cosh', 'deg', 'exp',
  'floor', 'fmod', 'frexp', 'huge', 'ldexp', 'log', 'log10', 'max', 'min', 'modf', 'pi', 'pow',
  'rad', 'sin', 'sinh', 'sqrt', 'tan', 'tanh' }
local COROUTINE = { 'create', 'resume', 'running', 'status', 'wrap', 'yield' }
local BIT = { 'arshift', 'band', 'bnot', 'bor', 'bswap', 'bxor', 'lshift', 'rol', 'ror', 'rshift',
  'tobit', 'tohex' }
local CJSON = { '_NAME', '_VERSION', 'decode', 'decode_invalid_numbers', 'decode_max_depth',
  'encode', 'encode_invalid_numbers', 'encode_keep_buffer', 'encode_max_depth',
  'encode_number_precision', 'encode_sparse_array', 'null' }

local CMSGPACK = { '_COPYRIGHT', '_DESCRIPTION', '_NAME', '_VERSION', 'pack', 'unpack',
  'unpack_limit', 'unpack_one' }

local STRING_METHODS = {}
for _, name in ipairs(STRING) do
  STRING_METHODS[name] = true
end

local function pick(from, list, instead)
  local picked = {}
  for _, name in ipairs(list) do
    picked[name] = instead and instead[name] or from[name]
  end
  return picked
end

local function refuse_write()
  error(READONLY, 2)
end

-- What a script's text is made to call: `return f(x)`, where f is the server's own, becomes
-- `return same(f(x))`; and what the server's Lua has in `arg` is in no other.
local SAME, ARG = '__latchkey_same', '__latchkey_arg'
local HIDDEN = {
  [SAME] = function(...)
    return ...
  end,
  [ARG] = function(...)
    return { n = select('#', ...), ... }
  end,
}

local function refuse_missing(_, name)
  if HIDDEN[name] then
    return HIDDEN[name]
  end
  error(("Script attempted to access nonexistent global variable '%s'"):format(tostring(name)), 2)
end

-- An empty table in front of a full one; `behind` tells next and rawget where the full one is.
local function guard(self, full)
  local front = setmetatable({}, { __index = full, __newindex = refuse_write })
  self.behind[front] = full
  return front
end

-- Full ones that are the same for every server: they keep nothing, and no script can change them.
local SHARED = {
  string = pick(string, STRING, lua51.string),
  table = pick(table, TABLE, lua51.table),
  coroutine = pick(coroutine, COROUTINE, nesting.coroutine),
  bit = pick(bit, BIT),
  cmsgpack = pick(cmsgpack, CMSGPACK),
  struct = pick(struct, { 'pack', 'size', 'unpack' }),
}
SHARED.string.gfind = string.gmatch

-- Compiled loops call no hooks, and a script that never ends has to be stopped by one.
local function prepare(chunk, env)
  if jit then
    jit.off(chunk, true)
  end
  return setfenv(chunk, env)
end

-- What LuaJIT takes and the server reads otherwise or refuses: such a script is not run.
local function find_foreign(problems)
  local foreign, is_wrong = nil, problems and problems.is_wrong
  for _, problem in ipairs(problems or {}) do
    if problem.rule == 'dialect' then
      foreign = foreign or ('MOCK line %d: %s'):format(problem.line, problem.message)
    else
      is_wrong = true
    end
  end
  return foreign, is_wrong
end

-- Is it a function of the server, as far as a text tells? `own` has the locals that are one.
local function is_own(node, own)
  while node and node.tag == 'Index' do
    node = node[1]
  end
  return node and node.tag == 'Name' and (not node.var or own[node.var])
end

-- The server's functions are C, which leaves the frame of who calls it in its place, also behind
-- `return`: an error says the line. Those of the mock, and LuaJIT's, take that place.
local function keep_frame(add, node, own)
  for i, var in ipairs(node.tag == 'Local' and node.vars or {}) do
    own[var] = is_own(node[i], own) or nil
  end
  local call = node.tag == 'Return' and #node == 1 and node[1]
  if call and (call.tag == 'Call' and is_own(call[1], own)
    or call.tag == 'Method' and STRING_METHODS[call.name]) then
    add(call.first, ' ' .. SAME .. '(')
    add(call.last, ')', true)
  end
end

-- The server's Lua has the arguments beyond the named ones in a local `arg`; nil where the function
-- has `...` in its body.
local function add_arg(add, functions)
  for _, node in ipairs(functions) do
    add(node.body, node.unpacks and ' local arg; ' or (' local arg=%s(...); '):format(ARG))
  end
end

local function edited(code, block, tokens)
  local edits, own = {}, {}
  local function add(place, text, is_behind)
    local token = tokens[place]
    edits[#edits + 1] = { at = token.at + (is_behind and #token.text or 0), text = text }
  end
  local with_dots, has_arg = {}, false
  parser.walk(block, function(node)
    keep_frame(add, node, own)
    has_arg = has_arg or node.tag == 'Name' and node.name == 'arg'
    if node.vararg then
      with_dots[#with_dots + 1] = node
    end
  end)
  if jit and has_arg then
    add_arg(add, with_dots)
  end
  for i, edit in ipairs(edits) do
    edit.i = i
  end
  table.sort(edits, function(a, b)
    return a.at < b.at or a.at == b.at and a.i < b.i
  end)
  local parts, at = {}, 1
  for _, edit in ipairs(edits) do
    parts[#parts + 1] = code:sub(at, edit.at - 1) .. edit.text
    at = edit.at
  end
  return table.concat(parts) .. code:sub(at)
end

-- What is wrong on a server with a text that LuaJIT reads: it takes bytes above 127 for letters,
-- and skips a first line that starts with "#".
local function misread(code, name)
  if code:sub(1, 1) == '#' then
    return select(2, loadstring(' ' .. code, name))
  end
  for _, token in ipairs((lexer.tokens(code))) do
    if token.kind == 'operator' and token.text:byte() > 127 then
      local _, why = loadstring(code:sub(1, token.at - 1) .. '@' .. code:sub(token.at + 1), name)
      return why and why:gsub("'@'$", "'" .. token.text .. "'", 1)
    end
  end
end

local function compile(code, name, env)
  if code:sub(1, 1) == '\27' then
    return nil, BYTECODE
  end
  code = jit and lexer.spaced(code) or code
  local chunk, why = loadstring(code, name)
  local may_be_right = jit and why and why:find('invalid escape', 1, true)
  if not chunk and not may_be_right then
    return nil, jit and misread(code, name) or why
  end
  local block, problems, tokens = parser.parse(code)
  local foreign, is_wrong, wrong
  if jit then
    foreign, is_wrong = find_foreign(problems)
    wrong = (problems or code:sub(1, 1) == '#') and misread(code, name)
  end
  -- What is wrong in any Lua is nothing that LuaJIT alone would take; only of escapes it refuses
  -- some that are right on a server.
  if wrong then
    return nil, wrong
  elseif not chunk and (not foreign or is_wrong) then
    return nil, why
  elseif foreign then
    return nil, foreign
  end
  return prepare(block and loadstring(edited(code, block, tokens), name) or chunk, env)
end

-- Redis' own pcall: an error table arrives as its text.
local function text_of(ok, ...)
  local err = ...
  if not ok and type(err) == 'table' and type(err.err) == 'string' then
    return false, err.err
  end
  return ok, ...
end

-- Further down than any stack is.
local NOWHERE = 2 ^ 20

-- A level of an error as the server counts it, from who called `error` two functions above: there
-- pcall is a C function, and here one of Lua above one of C, as is xpcall under LuaJIT. Below the
-- script there is no place.
local function level_here(self, level)
  local frame = 3
  for _ = 2, level do
    frame = frame + 1
    local place = debug.getinfo(frame, 'f')
    if not place then
      return NOWHERE
    end
    frame = self.two_frames[place.func] and frame + 1 or frame
  end
  local place = debug.getinfo(frame, 'Sf')
  local is_below = place and place.func and place.what ~= 'C' and getfenv(place.func) ~= self.env
  return is_below and NOWHERE or frame - 2
end

local function throws_under_jit(self, own)
  return function(...)
    local _, level = ...
    local number = lua51.number(level)
    if number and number >= 2 and number < NOWHERE then
      return own((...), level_here(self, number))
    end
    return own(...)
  end
end

-- A C function that is called last leaves the frame of who called it in its place: this one counts.
local function throws_under_puc(self, own)
  return function(...)
    local message, level = ...
    local number = level == nil and 1 or tonumber(level)
    if not number then
      local is_called = debug.getinfo(2, 'S').what ~= 'C'
      own(("bad argument #2 to '%s' (number expected, got %s)"):format(is_called and 'error' or '?',
        type(level)), 2)
    elseif number >= 1 and number < NOWHERE then
      own(message, level_here(self, number) + 1)
    end
    own(message, level)
  end
end

-- An argument is wrong of the function that calls this.
local function wrong(name, place, why)
  error(("bad argument #%d to '%s' (%s)"):format(place, name, why), 3)
end

local function type_of(...)
  return select('#', ...) == 0 and 'no value' or type((...))
end

local function add_metatable_functions(self, globals)
  local behind = self.behind
  local metatables = {
    [self.env] = guard(self, { __index = refuse_missing }),
  }
  local of_strings = guard(self, { __index = globals.string })

  function globals.getmetatable(...)
    local value = ...
    if select('#', ...) == 0 then
      wrong('getmetatable', 1, 'value expected')
    elseif type(value) == 'string' then
      return of_strings
    elseif behind[value] then
      return metatables[value]
    end
    return getmetatable(value)
  end
  function globals.setmetatable(...)
    local value, metatable = ...
    if type(value) ~= 'table' then
      wrong('setmetatable', 1, 'table expected, got ' .. type_of(...))
    elseif behind[value] then
      error(READONLY, 0)
    elseif select('#', ...) < 2 or metatable ~= nil and type(metatable) ~= 'table' then
      wrong('setmetatable', 2, 'nil or table expected')
    end
    local before = debug.getmetatable(value)
    if before and rawget(before, '__metatable') ~= nil then
      error('cannot change a protected metatable', 2)
    end
    return setmetatable(value, metatable)
  end
  function globals.rawset(...)
    local value, given = (...), select('#', ...)
    if type(value) ~= 'table' then
      wrong('rawset', 1, 'table expected, got ' .. type_of(...))
    elseif given < 3 then
      wrong('rawset', given + 1, 'value expected')
    elseif behind[value] then
      error(READONLY, 0)
    end
    return rawset(...)
  end
  function globals.rawget(...)
    local value, key = ...
    if type(value) ~= 'table' then
      wrong('rawget', 1, 'table expected, got ' .. type_of(...))
    elseif select('#', ...) < 2 then
      wrong('rawget', 2, 'value expected')
    end
    return rawget(behind[value] or value, key)
  end
  function globals.next(...)
    local value, key = ...
    if type(value) ~= 'table' then
      wrong('next', 1, 'table expected, got ' .. type_of(...))
    end
    return next(behind[value] or value, key)
  end
  function globals.pairs(...)
    local value = ...
    if type(value) ~= 'table' then
      wrong('pairs', 1, 'table expected, got ' .. type_of(...))
    end
    return next, behind[value] or value, nil
  end
end

local function add_load_functions(self, globals, refuse)
  local function load_text(code, name)
    local chunk, why = compile(code, name, self.env)
    if why and why:find('^MOCK ') then
      refuse(why)
    elseif chunk then
      return chunk
    end
    return nil, why
  end

  function globals.loadstring(...)
    local code, name = ...
    code = type(code) == 'number' and lua51.text(code) or code
    if type(code) ~= 'string' then
      wrong('loadstring', 1, 'string expected, got ' .. type_of(...))
    end
    return load_text(code, name or code)
  end
  function globals.load(...)
    local reader, name = ...
    if type(reader) ~= 'function' then
      wrong('load', 1, 'function expected, got ' .. type_of(...))
    end
    local parts = {}
    for part in reader do
      if part == '' then
        break
      end
      parts[#parts + 1] = part
    end
    return load_text(table.concat(parts), name or '=(load)')
  end
end

---@param redis table the functions of `redis`
---@param refuse function(text) ends the script: it needs what is not modelled
function Sandbox.new(redis, refuse)
  local self = setmetatable({ behind = {}, missing_global = refuse_missing }, Sandbox)
  local globals = pick(_G, BASE, lua51.base)
  self.globals = setmetatable(globals, { __index = refuse_missing })
  self.env = guard(self, globals)

  globals._G = self.env
  globals.redis = guard(self, redis)
  for name, full in pairs(SHARED) do
    globals[name] = guard(self, full)
  end
  globals.math = guard(self, pick(math, MATH, lua51.math))
  globals.cjson = guard(self, pick(cjson.new(), CJSON))
  local math_behind = self.behind[globals.math]
  math_behind.mod = math.fmod
  function math_behind.random()
    refuse('MOCK math.random is not modelled')
  end
  math_behind.randomseed = math_behind.random

  function globals.pcall(...)
    if select('#', ...) == 0 then
      return false, 'attempt to call a boolean value' -- the server calls one of its own
    end
    local before = nesting.enter()
    if not before then
      return false, nesting.OVERFLOW
    end
    return text_of(nesting.leave(before, pcall(...)))
  end
  self.two_frames = { [globals.pcall] = true, [nesting.xpcall] = true }
  globals.error = (jit and throws_under_jit or throws_under_puc)(self, globals.error)
  function globals.gcinfo()
    return collectgarbage('count')
  end
  add_metatable_functions(self, globals)
  add_load_functions(self, globals, refuse)
  return self
end

---Settings of its libraries are as in the beginning, as where a server begins Lua anew.
function Sandbox:renew()
  local full = self.behind[self.globals.cjson]
  for name, value in pairs(pick(cjson.new(), CJSON)) do
    full[name] = value
  end
end

---A table that scripts can read and not change.
function Sandbox:guard(full)
  return guard(self, full)
end

-- What a text compiles to depends on no server, and many servers, one after the other, are given
-- the same texts. Of each: the code as any sandbox takes it over, which is quicker than to read the
-- text again.
local KEPT_MAX = 500
local kept, kept_count = {}, 0

local function keep(code, name, chunk)
  if kept_count == KEPT_MAX then
    kept, kept_count = {}, 0
  end
  kept[name] = kept[name] or {}
  kept[name][code], kept_count = string.dump(chunk), kept_count + 1
end

---@param code string
---@param name string chunk name
---@return function|nil chunk
---@return string|nil why
function Sandbox:compile(code, name)
  local known = kept[name] and kept[name][code]
  if known then
    return prepare(loadstring(known), self.env)
  end
  local chunk, why = compile(code, name, self.env)
  if chunk then
    keep(code, name, chunk)
  end
  return chunk, why
end

---Scripts see these globals alone, and later on, with nil, their own again.
---@param globals table|nil
function Sandbox:narrow(globals)
  getmetatable(self.env).__index = globals or self.globals
end

function Sandbox:set_arguments(keys, args)
  self.globals.KEYS, self.globals.ARGV = keys, args
end

return Sandbox

-- SPDX-License-Identifier: Apache-2.0
-- Rules on the Lua of a script: what the server's Lua 5.1 has, and what a script should not do.
local parser = require('latchkey.lua51.parser')
local script_of = require('latchkey.lint.script')
local set = require('latchkey.text').set

local UNPACK_MAX = 1000
local INTEGER_MAX = 2 ^ 53

local FUNCTIONS = set('ipairs next pairs select tonumber type unpack')

local LIBRARIES = {
  redis = set('acl_check_cmd call error_reply pcall status_reply'),
  string = set('byte char find format gmatch gsub len lower match rep reverse sub upper'),
  table = set('concat insert maxn remove sort'),
  math = set('abs ceil floor fmod huge max min modf pow sqrt'),
  bit = set('arshift band bnot bor bswap bxor lshift rol ror rshift tobit tohex'),
  cjson = set('decode encode'),
  cmsgpack = set('pack unpack'),
  struct = set('pack size unpack'),
}

-- What surprises nobody but latchkey: other people's scripts may use it.
local OTHERS_FUNCTIONS = set([[assert error getmetatable pcall rawequal rawget rawset setmetatable
  tostring xpcall]])
local OTHERS = {
  redis = set([[LOG_DEBUG LOG_NOTICE LOG_VERBOSE LOG_WARNING REPL_ALL REPL_AOF REPL_NONE
    REPL_REPLICA REPL_SLAVE log replicate_commands set_repl sha1hex]]),
  table = set('foreach foreachi getn'),
  math = set([[acos asin atan atan2 cos cosh deg exp frexp ldexp log log10 pi rad sin sinh tan
    tanh]]),
  cjson = set('encode_max_depth decode_max_depth encode_sparse_array null'),
  cmsgpack = set('unpack_limit unpack_one'),
}

local function is_others(name, member)
  local members = OTHERS[name] or {}
  return members[member] or not LIBRARIES[name] and OTHERS_FUNCTIONS[name] or false
end

local INSTEAD = {
  assert = "answer redis.error_reply('LKARG ...')",
  error = "answer redis.error_reply('LKARG ...')",
  pcall = 'use redis.pcall and check .err',
  tostring = "use string.format('%.0f', n)",
  ['table.unpack'] = 'use unpack',
  ['math.random'] = 'take random values as arguments',
}

local function forbidden(name)
  return ('%s is no local, and nothing that a script may use; %s'):format(name,
    INSTEAD[name] or 'work with KEYS, ARGV and redis.call')
end

local function globals(script, report)
  parser.walk(script.block, function(node)
    if node.tag == 'Assign' then
      for i = 1, node.targets do
        if node[i].tag == 'Name' and not node[i].var then
          report(node[i].line, ('%s is no local; the server refuses globals, write "local"')
            :format(node[i].name))
        end
      end
    end
  end)
end

local function library(script, report)
  local members, assigned = {}, {}
  parser.walk(script.block, function(node)
    if node.tag == 'Index' and node[2].tag == 'String' and not node[1].var then
      members[node[1]] = node[2].value
    end
    for i = 1, node.targets or 0 do
      assigned[node[i]] = true
    end
    if node.tag ~= 'Name' or node.var or assigned[node] then
      return
    end
    local known, member = LIBRARIES[node.name], members[node]
    if script.contract and is_others(node.name, member) then
      return
    elseif known and not known[member] then
      report(node.line, forbidden(member and node.name .. '.' .. member
        or node.name .. ' as a value'))
    elseif not known and not FUNCTIONS[node.name] and node.name ~= 'KEYS'
      and node.name ~= 'ARGV' then
      report(node.line, forbidden(node.name))
    end
  end)
end

-- Is the distance from the first index to the last at most 999, as far as can be read?
local function is_bounded(first, last)
  if not last then
    return false
  elseif last.tag == 'Call' and script_of.member(last[1], 'math') == 'min' then
    for i = 2, #last do
      if is_bounded(first, last[i]) then
        return true
      end
    end
  elseif last.tag == 'Operator' and last.op == '+' then
    local step = script_of.integer(last[2])
    return step ~= nil and step < UNPACK_MAX and last[1].tag == 'Name' and first.tag == 'Name'
      and last[1].var == first.var
  end
  local from, to = script_of.integer(first), script_of.integer(last)
  return from ~= nil and to ~= nil and to - from < UNPACK_MAX
end

-- As many as a contract says that there are at most.
local function counts(script, node)
  for name, list in pairs(script.contract and script.header
    and { KEYS = script.header.keys, ARGV = script.header.argv } or {}) do
    local last = list[#list]
    if script_of.is_global(node, name) then
      return #list + (last and last.many and last.many.max or 0) <= UNPACK_MAX
    end
  end
  return false
end

local function unpacks(script, report)
  parser.walk(script.block, function(node)
    if node.tag == 'Call' and script_of.is_global(node[1], 'unpack')
      and not is_bounded(node[3], node[4]) and not counts(script, node[2]) then
      report(node.line, 'unpack without a bound; write unpack(t, i, math.min(i + 999, #t))')
    end
  end)
end

local function protected(script, report)
  local looked_at, results = {}, {}
  parser.walk(script.block, function(node)
    if node.tag == 'Index' and node[1].var and node[2].value == 'err' then
      looked_at[node[1].var] = true
    elseif node.tag == 'Local' then
      for i, value in ipairs(node) do
        results[value] = node.vars[i]
      end
    end
  end)
  for _, call in ipairs(script.calls) do
    if call.verb == 'pcall' and not looked_at[results[call.node] or false] then
      report(call.line, 'the .err of this redis.pcall is not checked; check it, or use redis.call')
    end
  end
end

local ARITHMETIC = set('+ - * / % ^')

local function is_number(node)
  return node.tag == 'Number' or node.tag == 'Operator' and ARITHMETIC[node.op]
    or node.tag == 'Call' and script_of.is_global(node[1], 'tonumber')
end

local function numbers(script, report)
  parser.walk(script.block, function(node)
    if node.tag == 'Number' and (node.value >= INTEGER_MAX or node.value % 1 ~= 0) then
      report(node.line, ('%s is no integer below 2^53'):format(node.text))
    elseif node.tag == 'Operator' and node.op == '..' and
      (is_number(node[1]) or is_number(node[2])) then
      report(node.line, "a number joined to text; from 1e14 it gets an exponent: use string.format")
    end
  end)
end

return {
  { id = 'globals', wants = 'everything that is assigned is a local', needs = 'block',
    check = globals },
  { id = 'library', wants = 'only the functions that every server has and that cannot surprise',
    needs = 'block', check = library },
  { id = 'unpack', wants = 'unpack takes at most 1000 values at a time: the C stack is small',
    needs = 'block', check = unpacks },
  { id = 'pcall', wants = 'the .err of each redis.pcall is checked', needs = 'block',
    check = protected },
  { id = 'numbers', wants = 'integers below 2^53, and none turned to text by ".."',
    needs = 'block', check = numbers },
}

-- SPDX-License-Identifier: Apache-2.0
-- Rules on keys and arguments: header and code say the same of them.
local parser = require('latchkey.lua51.parser')
local script_call = require('latchkey.script.call')
local script_of = require('latchkey.lint.script')

local CHANNEL_MAX = 1024

local TESTS = { is_integer = true, is_reader = true, is_writer = true }

local LISTS = { KEYS = 'keys', ARGV = 'argv' }

-- `#KEYS` or `#ARGV`: its name node, else nil.
local function counted(node)
  if node.tag == 'Unary' and node.op == '#' and
    (script_of.is_global(node[1], 'KEYS') or script_of.is_global(node[1], 'ARGV')) then
    return node[1]
  end
end

local function is_refusal(node)
  return node.tag == 'Call' and script_of.member(node[1], 'redis') == 'error_reply'
end

local function refuses(block)
  local last = block[#block]
  return last ~= nil and last.tag == 'Return' and last[1] ~= nil and is_refusal(last[1])
end

-- Calls visit for each node in the conditions of the check: if statements at the top that refuse.
local function in_check(script, visit)
  for _, statement in ipairs(script.block) do
    if statement.tag == 'If' then
      for i = 1, #statement - 1, 2 do
        if refuses(statement[i + 1]) then
          parser.walk(statement[i], visit)
        end
      end
    end
  end
end

local function label(array, index)
  return index and ('%s[%d]'):format(array, index) or array
end

-- What the header wants to be bound: label -> name.
local function wanted_bindings(h)
  local wanted, order = {}, {}
  for _, array in ipairs({ 'KEYS', 'ARGV' }) do
    for i, field in ipairs(h[LISTS[array]]) do
      local id = label(array, not field.many and i or nil)
      if not (field.marks and field.marks.absent) then
        wanted[id] = field.name
        order[#order + 1] = id
      end
    end
  end
  return wanted, order
end

local function check_binding(bound, wanted, found, report)
  local id = label(bound.array, bound.index)
  if not wanted[id] then
    report(bound.line, ('%s is not in the header; declare it or remove it'):format(id))
  elseif found[id] then
    report(bound.line, ('%s is bound twice; keep one'):format(id))
  elseif bound.var.name ~= wanted[id] then
    report(bound.line, ('%s is "%s" in the header, but bound to "%s"'):format(id, wanted[id],
      bound.var.name))
  elseif bound.var.uses == 0 then
    report(bound.line, ('"%s" is bound but never used'):format(bound.var.name))
  end
  found[id] = true
end

local function bind(script, report)
  local wanted, order = wanted_bindings(script.header)
  local found, allowed = {}, {}
  for _, bound in ipairs(script.bindings) do
    check_binding(bound, wanted, found, report)
    allowed[bound.source] = true
  end
  for _, id in ipairs(order) do
    if not found[id] then
      report(script.header.first_code_line, ('%s is not bound; write "local %s = %s"'):format(id,
        wanted[id], id))
    end
  end

  in_check(script, function(node)
    local array = counted(node)
    if array then
      allowed[array] = true
    end
  end)
  parser.walk(script.block, function(node)
    if (script_of.is_global(node, 'KEYS') or script_of.is_global(node, 'ARGV'))
      and not allowed[node] then
      report(node.line, ('%s outside of the bind block; use the name it is bound to'):format(
        node.name))
    end
  end)
end

-- Functions, then bindings, then the rest; and every refusal before the first write.
local function order(script, report)
  local bindings, stage = {}, 1
  for _, bound in ipairs(script.bindings) do
    bindings[bound.var] = true
  end
  for _, statement in ipairs(script.block) do
    local place = statement.tag == 'LocalFunction' and 1
      or statement.tag == 'Local' and bindings[statement.vars[1]] and 2 or 3
    if place < stage then
      report(statement.line, place == 1 and 'a function below the bind block; move it up'
        or 'a binding below the bind block; move it up')
    end
    stage = math.max(stage, place)
  end

  local writes, written = {}, nil
  for _, call in ipairs(script.calls) do
    writes[call.node] = call.command ~= nil and call.command.access ~= 'r'
  end
  parser.walk(script.block, function(node, depth)
    if depth > 0 then
      return
    elseif writes[node] then
      written = written or node.line
    elseif written and is_refusal(node) then
      report(node.line, ('a refusal does not undo the write of line %d; check before it'):format(
        written))
    end
  end)
end

-- The least and most values of KEYS or ARGV by the header.
local function count_range(fields)
  local min, max = #fields, #fields
  for _, field in ipairs(fields) do
    if field.optional then
      min = min - 1
    elseif field.many then
      min, max = min - 1 + field.many.min, max - 1 + field.many.max
    end
  end
  return min, max
end

local function count(script, report)
  local tests = { KEYS = {}, ARGV = {} }
  in_check(script, function(node)
    local array = node.tag == 'Operator' and counted(node[1])
    if array and node[2].tag == 'Number' then
      table.insert(tests[array.name],
        { line = node.line, text = ('#%s %s %d'):format(array.name, node.op, node[2].value) })
    end
  end)
  for _, array in ipairs({ 'KEYS', 'ARGV' }) do
    local min, max = count_range(script.header[LISTS[array]])
    local wanted = min == max and { ('#%s ~= %d'):format(array, min) }
      or { ('#%s < %d'):format(array, min), ('#%s > %d'):format(array, max) }
    for i, want in ipairs(wanted) do
      local test = tests[array][i]
      if not test or test.text ~= want then
        report(test and test.line or script.header.first_code_line,
          ('by the header the check refuses "%s"%s'):format(want,
            test and (', not "' .. test.text .. '"') or '; add that'))
      end
    end
  end
end

local function one_of(name, words)
  local sorted = { unpack(words) }
  table.sort(sorted)
  return ('%s one of %s'):format(name, table.concat(sorted, ' '))
end

-- The names in a table that the script writes out, such as { GET = true, ['SET'] = true }.
local function listed_names(script, var)
  local listed = {}
  for _, statement in ipairs(script.block) do
    local constructor = statement.tag == 'Local' and statement.vars[1] == var and statement[1]
    for _, item in ipairs(constructor and constructor.tag == 'Table' and constructor or {}) do
      listed[#listed + 1] = item.tag == 'Pair' and item[1].tag == 'String' and item[1].value or '?'
    end
  end
  return listed
end

-- The limits that a test such as is_integer is called with, as text.
local function limits_of(call)
  local limits = {}
  for i = 3, #call do
    limits[#limits + 1] = ('%.0f'):format(script_of.integer(call[i]) or 0 / 0)
  end
  return table.concat(limits, ', ')
end

-- A test of a variable, if the node is one: a call such as is_integer, a value it is compared with,
-- a limit of its length, a table it is looked up in; as text.
local function test_of(script, node)
  local name = node.tag == 'Call' and node[1].tag == 'Name' and node[1].name
  local first, second = node[1], node[2]
  if TESTS[name] and second and second.var then
    return second.var, ('%s(%s, %s)'):format(name, second.name, limits_of(node))
  elseif node.tag == 'Index' and first.var and second.var then
    return second.var, one_of(second.name, listed_names(script, first.var))
  elseif node.tag ~= 'Operator' then
    return nil
  elseif node.op == '~=' and first.var and second.tag == 'String' then
    return first.var, ("%s ~= '%s'"):format(first.name, second.value)
  elseif (node.op == '<' or node.op == '>') and first.tag == 'Unary' and first[1].var
    and second.tag == 'Number' then
    return first[1].var, ('#%s %s %.0f'):format(first[1].name, node.op, second.value)
  end
end

-- What the check tests of each bound variable.
local function collect_tests(script)
  local tests = {}
  in_check(script, function(node)
    local var, text = test_of(script, node)
    if var then
      tests[var] = tests[var] or { texts = {}, line = node.line }
      tests[var].texts[text] = true
      table.insert(tests[var].texts, text)
    end
  end)
  return tests
end

local function wanted_lengths(name, min, max)
  local above = ('#%s > %.0f'):format(name, max)
  return min == 0 and { above } or { ('#%s < %.0f'):format(name, min), above }
end

local function wanted_tests(argument, dynamic)
  local name = argument.name
  if argument.kind == 'integer' then
    return { ('is_integer(%s, %.0f, %.0f)'):format(name, argument.min, argument.max) }
  elseif argument.kind == 'channel' then
    return wanted_lengths(name, 1, CHANNEL_MAX)
  elseif argument.kind == 'choice' then
    local wanted = {}
    for i, value in ipairs(argument.values) do
      wanted[i] = ("%s ~= '%s'"):format(name, value)
    end
    return wanted
  elseif argument.kind == 'command' then
    return { one_of(name, dynamic) }
  elseif argument.kind ~= 'text' then
    return { ('is_%s(%s, %.0f)'):format(argument.kind, name, argument.max) }
  end
  return wanted_lengths(name, argument.min, argument.max)
end

local function check(script, report)
  local tests = collect_tests(script)
  for _, bound in ipairs(script.bindings) do
    local argument = bound.array == 'ARGV' and script.header.argv[bound.index]
    local tested = tests[bound.var] or { texts = {} }
    local wanted = argument and wanted_tests(argument, script.header.dynamic) or {}
    for _, want in ipairs(wanted) do
      if not tested.texts[want] then
        report(tested.line or bound.line, ('by the header the check needs "%s"%s'):format(want,
          tested.line and (', not "' .. tested.texts[1] .. '"') or ''))
      end
    end
  end
end

-- eval and debug form a call from options that are called like the arguments.
local function options(script, report)
  for _, field in ipairs(script.header.argv) do
    if script_call.OPTIONS[field.name] then
      report(script.header.lines.argv, ('"%s" is an option of eval or debug; rename the argument')
        :format(field.name))
    end
  end
end

return {
  { id = 'bind', needs = 'both', check = bind,
    wants = 'each KEYS[i] and ARGV[i] is bound once, to its name in the header, and used' },
  { id = 'order', needs = 'both', check = order,
    wants = 'functions, then bindings, then checks; no refusal after a write' },
  { id = 'count', needs = 'both', check = count,
    wants = 'the check compares #KEYS and #ARGV with what the header declares' },
  { id = 'check', needs = 'both', check = check,
    wants = 'each argument is tested for exactly the range that the header gives it' },
  { id = 'options', needs = 'header', check = options,
    wants = 'no argument is called like an option of eval or debug' },
}

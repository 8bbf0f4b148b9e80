-- SPDX-License-Identifier: Apache-2.0
-- Rules on replies: header and code list the same shapes and the same errors.
local parser = require('latchkey.lua51.parser')
local script_of = require('latchkey.lint.script')
local written = require('latchkey.lint.written')

local RECALL = 'recall'

-- Outcome and length of a table as it is written; nil if it does not start with an integer.
local function shape_of(constructor)
  local first = constructor[1] and script_of.integer(constructor[1][1])
  if not first or constructor[1].tag ~= 'Item' then
    return nil
  end
  local last = constructor[#constructor][1]
  local grows = last.tag == 'Call' and script_of.is_global(last[1], 'unpack')
  return { first = first, least = grows and #constructor - 1 or #constructor, grows = grows }
end

-- Tables that a variable is given, so that a reply may be built step by step.
local function built_tables(script)
  local tables = {}
  local function give(var, value)
    if var and value and value.tag == 'Table' then
      tables[var] = tables[var] or {}
      table.insert(tables[var], value)
    end
  end
  parser.walk(script.block, function(node)
    if node.tag == 'Local' then
      for i, var in ipairs(node.vars) do
        give(var, node[i])
      end
    elseif node.tag == 'Assign' then
      for i = 1, node.targets do
        give(node[i].var, node[node.targets + i])
      end
    end
  end)
  return tables
end

-- What the fragment recall gives back, a reply of an earlier call: set of variables.
local function recalled(script)
  local vars = {}
  parser.walk(script.block, function(node)
    local call = node.tag == 'Local' and node[1]
    if call and call.tag == 'Call' and call[1].name == RECALL and node.vars[2] then
      vars[node.vars[2]] = true
    end
  end)
  return vars
end

-- Every reply of the script itself, functions left out; what is no reply is reported.
local function collect(script, report)
  local tables, earlier, replies = built_tables(script), recalled(script), {}
  local function add(constructor, line, grows)
    local reply = shape_of(constructor)
    if not reply then
      return report(line, 'a reply starts with its outcome, a written integer: {1, ...}')
    end
    reply.line, reply.grows = line, reply.grows or grows
    replies[#replies + 1] = reply
  end

  parser.walk(script.block, function(node, depth)
    if node.tag ~= 'Return' or depth > 0 then
      return
    end
    local value = #node == 1 and node[1] or {}
    if value.tag == 'Table' then
      add(value, node.line, false)
    elseif tables[value.var or false] then
      for _, constructor in ipairs(tables[value.var]) do
        add(constructor, node.line, true)
      end
    elseif not (earlier[value.var or false] or value.tag == 'Call'
      and script_of.member(value[1], 'redis') == 'error_reply') then
      report(node.line, 'return one table {outcome, ...} or redis.error_reply(...)')
    end
  end)
  return replies
end

local function replies(script, report)
  local reached = {}
  for _, reply in ipairs(collect(script, report)) do
    local known = false
    for _, shape in ipairs(script.header.returns) do
      if written.fits(reply, shape) then
        known, reached[shape] = true, true
      end
    end
    if not known then
      report(reply.line, ('no line of "returns:" fits this reply {%d%s}; add one'):format(
        reply.first, reply.least > 1 and ', ...' or ''))
    end
  end
  for _, shape in ipairs(script.header.returns) do
    if not reached[shape] then
      report(script.header.lines.returns, ('the code never answers %s; remove the line'):format(
        shape.shape))
    end
  end
  local last = script.block[#script.block]
  if not last or last.tag ~= 'Return' then
    report(#script.lines, 'the script ends without a return; its reply would be nil')
  end
end

-- The leading word of an error as far as it is written out.
local function code_of(node)
  local text = script_of.beginning(node)
  return text and (text .. ' '):match('^([A-Z][A-Z0-9]*) ')
end

local function errors(script, report)
  local declared, answered = {}, {}
  for _, err in ipairs(script.header.errors) do
    declared[err.code] = true
  end
  parser.walk(script.block, function(node)
    if node.tag == 'Call' and script_of.member(node[1], 'redis') == 'error_reply' then
      local code = code_of(node[2])
      if not code then
        report(node.line, "an error starts with its code: 'LKARG what was wrong'")
      elseif not declared[code] then
        report(node.line, ('%s is not under "errors:"; add it'):format(code))
      else
        answered[code] = true
      end
    end
  end)
  for _, err in ipairs(script.header.errors) do
    if not answered[err.code] then
      report(script.header.lines.errors, ('the code never answers %s; remove the line'):format(
        err.code))
    end
  end
end

return {
  { id = 'replies', wants = 'the code answers all shapes under "returns:", and no other',
    needs = 'both', check = replies },
  { id = 'errors', wants = 'the code answers all errors under "errors:", and no other',
    needs = 'both', check = errors },
}

-- SPDX-License-Identifier: Apache-2.0
-- The replies that a script of somebody else's writes out, as a contract calls them.
local parser = require('latchkey.lua51.parser')
local script_of = require('latchkey.lint.script')

local written = {}

-- Functions that give one value, whatever they are called with: behind one of them a table has an
-- end that can be counted.
local ONE_VALUE = { tonumber = true, tostring = true, type = true }
local ONE_VALUE_OF = { redis = true, cjson = true, math = true }

local function falsy(node)
  return node.tag == 'Nil' or node.tag == 'False'
end

local IS_NUMBER = { ['+'] = true, ['-'] = true, ['*'] = true, ['/'] = true, ['%'] = true,
  ['^'] = true, ['#'] = true }
local IS_TRUTH = { ['=='] = true, ['~='] = true, ['<'] = true, ['<='] = true, ['>'] = true,
  ['>='] = true, ['not'] = true }

-- All that an expression may be: both sides of `and` and `or`, and what a variable stays.
local function values_of(node, values, into)
  local is_choice = node.tag == 'Operator' and (node.op == 'and' or node.op == 'or')
  local value = values[node.var or false]
  if node.tag == 'Paren' then
    values_of(node[1], values, into)
  elseif is_choice then
    for _, left in ipairs(values_of(node[1], values, {})) do
      -- Of what only a run can tell, the left side of `and` counts where it is nothing.
      local counts = node.op == 'or' and not falsy(left) or node.op == 'and' and falsy(left)
      into[#into + 1] = counts and left or nil
    end
    values_of(node[2], values, into)
  elseif IS_TRUTH[node.op] then
    into[#into + 1], into[#into + 2] = { tag = 'True' }, { tag = 'False' }
  elseif value and value.tag ~= 'Table' and value.tag ~= 'Function' then
    values_of(value, values, into)
  else
    into[#into + 1] = node
  end
  return into
end

local function grows(node)
  if node.tag ~= 'Call' or not node[1].name and node[1].tag ~= 'Index' then
    return node.tag == 'Call' or node.tag == 'Method' or node.tag == 'Vararg'
  end
  local called = node[1]
  if called.tag == 'Index' then
    return not (called[1].tag == 'Name' and not called[1].var and ONE_VALUE_OF[called[1].name])
  end
  return called.var ~= nil or not ONE_VALUE[called.name]
end

-- The first word of an error, as far as it is written out; '' is none. A text of one word stands
-- behind ERR, unless it is a table's.
local function code_of(node, of_table)
  local text, is_whole = script_of.beginning(node)
  text = text and text:gsub('^%-', '')
  local word = text and text:match('^(%S*) ')
  if word or not (text and is_whole) then
    return word
  end
  return of_table and text or 'ERR'
end

-- Of a table: what the server makes of it goes by `err`, then `ok`, then what is numbered from 1,
-- up to the first nil.
local function of_table(node)
  local fields, items = {}, {}
  for _, item in ipairs(node) do
    if item.tag == 'Item' then
      items[#items + 1] = item[1]
    elseif item[1].tag == 'String' then
      fields[item[1].value] = item[2]
    else
      return {}
    end
  end
  if fields.err then
    return { is_error = true, code = code_of(fields.err, true) }
  elseif fields.ok then
    return fields.ok.tag == 'String' and { names = { fields.ok.value } } or {}
  elseif next(fields) then
    return {}
  end
  local length, last = #items, items[#items]
  for i, item in ipairs(items) do
    if item.tag == 'Nil' then
      length, last = i - 1, nil
      break
    end
  end
  local may_grow = last ~= nil and grows(last)
  return { first = items[1] and script_of.integer(items[1]), items = items, length = length,
    is_text = items[1] ~= nil and items[1].tag == 'String', grows = may_grow,
    least = may_grow and length - 1 or length }
end

local function of_number(number)
  -- A server cuts off what is behind the point; of -0.5 no sign is left.
  return { names = { ('%.0f'):format(math.modf(number) + 0), 'integer' } }
end

-- What one value is called among the replies of a contract.
local function reply_of(node)
  local integer = script_of.integer(node)
  local verb = node.tag == 'Call' and script_of.member(node[1], 'redis')
  if integer then
    return of_number(integer)
  elseif node.tag == 'String' then
    return { names = { ("'%s'"):format(node.value), 'text' } }
  elseif node.tag == 'Operator' and node.op == '..' then
    return { names = { 'text' }, is_open = true }
  elseif IS_NUMBER[node.op] then
    return { names = { 'integer' }, is_open = true }
  elseif falsy(node) then
    return { names = { 'nil' } }
  elseif node.tag == 'True' then
    return of_number(1)
  elseif node.tag == 'Table' then
    return of_table(node)
  elseif verb == 'error_reply' then
    return { is_error = true, code = code_of(node[2]) }
  elseif verb == 'status_reply' and node[2] and node[2].tag == 'String' then
    return { names = { node[2].value } }
  end
  return {}
end

-- Does every way through a block end with a reply, or not at all?
local function ends(block)
  local last = block[#block]
  local tag = last and last.tag
  if tag == 'Block' then
    return ends(last)
  elseif tag == 'Call' then
    return script_of.is_global(last[1], 'error')
  elseif tag ~= 'If' then
    return tag == 'Return' or tag == 'While' and last[1].tag == 'True'
  end
  local all = #last % 2 == 1 and ends(last[#last])
  for i = 2, #last, 2 do
    all = all and ends(last[i])
  end
  return all
end

---@class WrittenReply what is known of one; where nothing but `node` is, only a run can tell
---@field node? table what is returned; nil: nothing
---@field line integer
---@field names? string[] any of these: `1`, `integer`, `'free'`, `text`, `nil`, OK
---@field is_open? boolean it is put together, or counted
---@field length? integer of an array, as it is written
---@field least? integer how many of them there are, whatever the last one gives
---@field grows? boolean the last one may be none or several
---@field first? number of an array, where it is a number that is written out
---@field is_text? boolean an array begins with a text
---@field items? table[] of an array, as they are written
---@field is_error? boolean
---@field code? string of an error, its first word; nil: only a run can tell
---@field is_end? boolean the end of the script, where it may get there

---Does a line of `returns:` stand for an array that begins with a number?
---@param reply { first: number, least: integer, grows?: boolean } least: elements that it has
---@param shape table
---@return boolean
function written.fits(reply, shape)
  if reply.first ~= shape.first then
    return false
  elseif reply.grows then
    return shape.rest or shape.arity >= reply.least
  end
  return shape.rest and reply.least >= 1 or shape.arity == reply.least
end

---Every reply of the script itself, functions left out.
---@param script table
---@return WrittenReply[]
function written.replies(script)
  local values, list = script_of.definitions(script.block), {}
  local function add(reply, line, node)
    reply.line, reply.node = line, node
    list[#list + 1] = reply
  end
  parser.walk(script.block, function(node, depth)
    if node.tag ~= 'Return' or depth > 0 then
      return
    elseif not node[1] then
      return add({ names = { 'nil' } }, node.line)
    end
    for _, value in ipairs(values_of(node[1], values, {})) do
      add(reply_of(value), node.line, value)
    end
  end)
  if not ends(script.block) then
    add({ names = { 'nil' }, is_end = true }, #script.lines)
  end
  return list
end

return written

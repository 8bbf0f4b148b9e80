-- SPDX-License-Identifier: Apache-2.0
-- Manual pages of the library's functions in mdoc(7), from the doc comments of the public headers.
local man = require('lib.manual.man')

local man3 = {}

local PARTS = {
  { 'blocks', 'Blocks' }, { 'threads', 'Threads' }, { 'after-io', 'If the reply was lost' },
  { 'since', 'Since' },
}

local function squeeze(text)
  return (text:gsub('%s+', ' '):gsub('^ ', ''):gsub(' $', ''))
end

-- The first sentence, as a title: in lower case, without its end.
local function summary(doc, name)
  local sentence = doc.text:match('^(.-)[.:;] ') or doc.text:gsub('[.:;]$', '')
  sentence = sentence:gsub('^%u%l', string.lower):gsub('[.:;]+$', '')
  return sentence ~= '' and sentence or name
end

-- "lk_status", and each argument as it is declared.
local function signature(item)
  local code = item.code:gsub('/%*.-%*/', ''):gsub('^LK_API ', '')
  local result, arguments = code:match('^(.-)%s*' .. item.name .. '%((.*)%)[^)]*;$')
  local list, depth, from = {}, 0, 1
  for at, char in arguments:gmatch('()([(),])') do
    depth = depth + (char == '(' and 1 or char == ')' and -1 or 0)
    if char == ',' and depth == 0 then
      list[#list + 1] = squeeze(arguments:sub(from, at - 1))
      from = at + 1
    end
  end
  list[#list + 1] = squeeze(arguments:sub(from))
  return squeeze(result), list
end

local function tagged(out, label, text)
  out[#out + 1] = '.It ' .. label
  man.flow(out, text)
end

local function description(out, doc)
  out[#out + 1] = '.Sh DESCRIPTION'
  man.flow(out, doc.text ~= '' and doc.text or 'Its header says no more.')
  local rows = {}
  for _, param in ipairs(doc.params) do
    tagged(rows, 'Fa ' .. param.name, param.text)
  end
  for _, part in ipairs(PARTS) do
    if doc.tags[part[1]] and doc.tags[part[1]] ~= '' then
      tagged(rows, part[2], doc.tags[part[1]])
    end
  end
  if #rows > 0 then
    out[#out + 1] = '.Bl -tag -width Ds'
    for _, line in ipairs(rows) do
      out[#out + 1] = line
    end
    out[#out + 1] = '.El'
  end
end

---@param item table of headers.parse, a function
---@param header string "latchkey/who.h"
---@param date string "November 21, 2026"
---@return string
function man3.page(item, header, date)
  local doc = item.doc
  local out = man.header(item.name, 3, item.name, summary(doc, item.name), date)
  out[#out + 1] = '.Sh SYNOPSIS'
  out[#out + 1] = '.In ' .. header
  local result, arguments = signature(item)
  out[#out + 1] = '.Ft "' .. result .. '"'
  out[#out + 1] = '.Fo ' .. item.name
  for _, argument in ipairs(arguments) do
    out[#out + 1] = '.Fa "' .. argument .. '"'
  end
  out[#out + 1] = '.Fc'
  description(out, doc)
  if doc.tags['return'] then
    out[#out + 1] = '.Sh RETURN VALUES'
    man.flow(out, doc.tags['return'])
  end
  out[#out + 1] = '.Sh SEE ALSO\n.Xr latchkey 1'
  return table.concat(out, '\n') .. '\n'
end

---Is this what headers.parse found a function?
---@param item table
---@return boolean
function man3.is_function(item)
  return item.code ~= nil and item.code:find('^LK_API [^(]-' .. item.name .. '%(') ~= nil
end

return man3

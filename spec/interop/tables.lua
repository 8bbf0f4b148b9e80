-- SPDX-License-Identifier: Apache-2.0
-- The tables of golden/ and recorded/: lines of cells between tabs; "#" begins a comment, "==" a
-- scenario. <A> in a cell is an owner, <r1> the id of an unlock, <p1> of a permit.
local stringx = require('pl.stringx')
local utils = require('pl.utils')

local helper = require('helper')

local tables = {}

---@param folder string 'golden', 'recorded/3.49.0'
---@param name string
---@return table[] scenarios { title, and the cells of each line with its number as `line` }
function tables.read(folder, name)
  local path = ('%s/spec/interop/%s/%s.tsv'):format(helper.root, folder, name)
  local scenarios = {}
  for number, text in ipairs(stringx.splitlines(assert(utils.readfile(path)))) do
    local title = text:match('^== (.*)$')
    if title then
      table.insert(scenarios, { title = title })
    elseif text ~= '' and not text:find('^#') then
      local cells = stringx.split(text, '\t')
      cells.line = number
      table.insert(scenarios[#scenarios], cells)
    end
  end
  return scenarios
end

local EXPAND = {
  -- <uuid of the process>:<thread id>; a process has several threads.
  ['^%u$'] = function(letter)
    local thread = letter:byte() - 64
    return ('5f864eed-8aaf-4630-bc84-f51150e4a9c%d:%d'):format(thread % 2, thread)
  end,
  ['^r%d$'] = function(request)
    return ('%031x'):format(0) .. request:sub(2)
  end,
  -- Raw bytes: among them NUL, line ends, a brace, a comma, and what is no UTF-8.
  ['^p%d$'] = function(permit)
    return permit .. '\0\r\n\t {,}:\255\128\'"%'
  end,
}

---A text, or a table of texts, with what stands for owners and ids expanded.
function tables.expand(value)
  if type(value) == 'string' then
    return (value:gsub('<(%w+)>', function(word)
      for pattern, expand in pairs(EXPAND) do
        if word:find(pattern) then
          return expand(word)
        end
      end
    end))
  elseif type(value) ~= 'table' then
    return value
  end
  local expanded = {}
  for key, part in pairs(value) do
    expanded[tables.expand(key)] = tables.expand(part)
  end
  return expanded
end

local function argument(word)
  local list = word:match('^%[(.*)%]$')
  return list and tables.expand(stringx.split(list, ',')) or tonumber(word) or tables.expand(word)
end

---@param call string a method's name and its arguments, between blanks; "[a,b]" is a list
---@return string name
---@return any[] arguments
function tables.words(call)
  local words, arguments = stringx.split(call), {}
  for i = 2, #words do
    arguments[i - 1] = argument(words[i])
  end
  return words[1], arguments
end

return tables

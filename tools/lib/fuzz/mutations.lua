-- SPDX-License-Identifier: Apache-2.0
-- Changes of valid input, all of which follow from one number.
local cjson = require('cjson')

local mutations = {}

local Chance = {}
Chance.__index = Chance

local MODULUS = 2147483647 -- Lehmer's generator: exact in doubles, under every Lua

---@param seed integer
---@return table chance
function mutations.chance(seed)
  local self = setmetatable({ state = seed * 7919 % (MODULUS - 1) + 1 }, Chance)
  for _ = 1, 5 do
    self:below(2)
  end
  return self
end

---@param n integer
---@return integer from 0 to n - 1
function Chance:below(n)
  self.state = self.state * 16807 % MODULUS
  return self.state % n
end

---@param list any[]
---@return any one of them
function Chance:one(list)
  return list[self:below(#list) + 1]
end

local ODD_BYTES = { '\0', '\27', '\255', '\n', '\r\n', '"', '\\', '{', '[', '}', ']', ',', ':', '-',
  '0', '9', '$', '*', '%', ' ', '../' }
local ODD_NUMBERS = { '0', '-1', '1', '2147483648', '-9223372036854775808', '9007199254740993',
  '1e308', '1e999', '0.5', '99999999999999999999', 'nan' }

local changes = {
  function(c, text, at) -- another byte
    return text:sub(1, at - 1) .. string.char(c:below(256)) .. text:sub(at + 1)
  end,
  function(c, text, at)
    return text:sub(1, at - 1) .. c:one(ODD_BYTES) .. text:sub(at)
  end,
  function(c, text, at) -- a piece less
    return text:sub(1, at - 1) .. text:sub(at + 1 + c:below(16))
  end,
  function(c, text, at) -- a piece twice
    local piece = text:sub(at, at + c:below(64))
    return text:sub(1, at - 1) .. piece .. text:sub(at)
  end,
  function(c, text, at) -- a piece of elsewhere
    local from = c:below(#text) + 1
    return text:sub(1, at - 1) .. text:sub(from, from + c:below(64)) .. text:sub(at)
  end,
  function(_, text, at) -- cut off
    return text:sub(1, at - 1)
  end,
  function(c, text, at) -- another number
    local first, last = text:find('%-?%d+', at)
    return first and text:sub(1, first - 1) .. c:one(ODD_NUMBERS) .. text:sub(last + 1) or text
  end,
}

---@param c table chance
---@param text string
---@return string changed in one to four places
function mutations.bytes(c, text)
  for _ = 0, c:below(4) do
    text = c:one(changes)(c, text, c:below(#text + 1) + 1)
    text = #text > 0 and text or '\n'
  end
  return text
end

---@param object table
---@return table names of its fields, in an order that is the same each time
function mutations.sorted_names(object)
  local names = {}
  for name in pairs(object) do
    names[#names + 1] = name
  end
  table.sort(names, function(a, b)
    return tostring(a) < tostring(b)
  end)
  return names
end

local function odd_value(c)
  return c:one({ function() return cjson.null end, function() return true end,
    function() return {} end, function() return { {} } end, function() return { a = 1 } end,
    function() return '' end, function() return 'x' end, function() return ('x'):rep(300) end,
    function() return '\27[2J' end, function() return 0 end, function() return -1 end,
    function() return 0.5 end, function() return 2 ^ 53 end, function() return 1e300 end,
    function() return { 1, 'x', cjson.null } end })()
end

-- Goes down to somewhere, and changes what is there.
local function change_node(c, node, donor)
  local names = mutations.sorted_names(node)
  local name = #names > 0 and c:one(names)
  if name and type(node[name]) == 'table' and c:below(4) > 0 then
    return change_node(c, node[name], donor)
  end
  local what = c:below(5)
  if not name then
    node[c:one({ 1, 'name', 'x' })] = odd_value(c)
  elseif what == 0 then
    node[name] = nil
  elseif what == 1 then
    node[name] = node[c:one(names)]
  elseif what == 2 and type(name) == 'number' then
    table.insert(node, name, node[c:one(names)])
  elseif what == 3 and #mutations.sorted_names(donor) > 0 then
    node[name] = donor[c:one(mutations.sorted_names(donor))]
  else
    node[name] = odd_value(c)
  end
end

---@param c table chance
---@param text string JSON
---@return string changed by its structure; by its bytes, where it is no JSON
function mutations.json(c, text)
  local decoded, document = pcall(cjson.decode, text)
  if not decoded or type(document) ~= 'table' or c:below(4) == 0 then
    return mutations.bytes(c, text)
  end
  for _ = 0, c:below(3) do
    change_node(c, document, cjson.decode(text))
  end
  local encoded, again = pcall(cjson.encode, document)
  return encoded and again or mutations.bytes(c, text)
end

---@param c table chance
---@param text string
---@param change fun(c: table, line: string): string
---@return string with lines gone, twice, elsewhere or changed
function mutations.lines(c, text, change)
  local lines = {}
  for line in text:gmatch('[^\n]+') do
    lines[#lines + 1] = line
  end
  for _ = 0, c:below(4) do
    local at, what = c:below(#lines) + 1, c:below(6)
    if what == 0 and #lines > 1 then
      table.remove(lines, at)
    elseif what == 1 then
      table.insert(lines, at, c:one(lines))
    elseif what == 2 then
      local other = c:below(#lines) + 1
      lines[at], lines[other] = lines[other], lines[at]
    else
      lines[at] = change(c, lines[at])
    end
  end
  return table.concat(lines, '\n') .. '\n'
end

return mutations

-- SPDX-License-Identifier: Apache-2.0
-- Wrong versions of C, line by line: where a text can be changed, and what it then is. Comments,
-- strings and lines of the preprocessor stay as they are.
local M = {}

local SWAPS = {
  ['<'] = '<=', ['<='] = '<', ['>'] = '>=', ['>='] = '>', ['=='] = '!=', ['!='] = '==',
  ['&&'] = '||', ['||'] = '&&', ['+'] = '-', ['-'] = '+', ['+='] = '-=', ['-='] = '+=',
  ['++'] = '--', ['--'] = '++',
}
local WORDS = { ['true'] = 'false', ['false'] = 'true' }

-- The same text with blanks in the place of what is not code.
local function mask(text)
  local function blank(piece)
    return (piece:gsub('[^\n]', ' '))
  end
  local out, at = {}, 1
  while at <= #text do
    local rest = text:sub(at, at + 1)
    local last
    if rest == '/*' then
      last = select(2, text:find('*/', at + 2, true))
    elseif rest == '//' then
      last = (text:find('\n', at, true) or #text + 1) - 1
    elseif rest:find('^["\']') then
      local quote = rest:sub(1, 1)
      last = at + 1
      while text:sub(last, last) ~= quote do
        last = last + (text:sub(last, last) == '\\' and 2 or 1)
      end
    elseif at == 1 and rest:find('^#') or text:find('^\n[ \t]*#', at) then
      last = at
      repeat
        last = (text:find('\n', last + 1, true) or #text + 1)
      until text:sub(last - 1, last - 1) ~= '\\'
      last = last - 1
    end
    out[#out + 1] = last and blank(text:sub(at, last)) or text:sub(at, at)
    at = (last or at) + 1
  end
  return table.concat(out)
end

-- Operators stand between blanks in this tree (clang-format), but ++ and --.
local function operators(line, add)
  for at, op, after in line:gmatch('() ([<>=!&|+%-]+)() ') do
    if SWAPS[op] then
      add('operator', at + 1, after - 1, SWAPS[op])
    end
  end
  for at, op, after in line:gmatch('()([+-][+-])()') do
    local left, right = line:sub(at - 1, at - 1), line:sub(after, after)
    if SWAPS[op] and (left:find('[%w%])]') or right:find('[%a_*]')) then
      add('operator', at, after - 1, SWAPS[op])
    end
  end
end

local function constants(line, add)
  for at, number, after in line:gmatch('%f[%w_.]()(%d+)()%f[^%w_.]') do
    add('constant', at, after - 1, number == '1' and '0' or ('%.0f'):format(number + 1))
  end
  for at, word, after in line:gmatch('%f[%w_]()(%a+)()%f[^%w_]') do
    if WORDS[word] then
      add('constant', at, after - 1, WORDS[word])
    end
  end
end

-- A call or an assignment that is a line of its own; declarations, returns and jumps are not.
local function statements(line, before, add)
  local at, text, after = line:match('^%s+()(.-);()%s*$')
  if not text or not before:find('[;{}:]%s*$') then
    return
  end
  local assigns = text:find('^%*?[%w_]+[%w_%.%->%[%]]* [+%-|&]?= ')
  local calls = text:find('^[%l_][%w_]*%(.*%)$') and not text:find('^%a+ ')
  local counts = text:find('^[%w_%->%.]+[+-][+-]$')
  if assigns or calls or counts then
    add('dropped', at, after - 1, ';')
  end
end

local function branches(line, add)
  local open = line:match('^%s*if ()%(') or line:match('^%s*} else if ()%(')
  local condition = open and line:match('^%b()', open)
  if condition then
    add('branch', open, open + #condition - 1)
  end
end

--- All that can be changed in a text.
---@param name string the file's
---@param text string
---@return table[] { file, line, kind, from, to: places in the text, with, was: the line }
function M.candidates(name, text)
  local found, at, number, before = {}, 1, 0, '}'
  local masked = mask(text)
  for line in (masked .. '\n'):gmatch('(.-)\n') do
    number = number + 1
    local function add(kind, from, to, with)
      with = with or '(!' .. text:sub(at + from - 1, at + to - 1) .. ')'
      found[#found + 1] = { file = name, line = number, kind = kind, from = at + from - 1,
        to = at + to - 1, with = with, was = text:sub(at, at + #line - 1):match('^%s*(.-)%s*$') }
    end
    if line:find('^%s') then
      operators(line, add)
      constants(line, add)
      statements(line, before, add)
      branches(line, add)
    end
    if line:find('%S') then
      before = line
    end
    at = at + #line + 1
  end
  return found
end

--- The text with one change, which keeps every line's number.
function M.apply(text, mutant)
  return text:sub(1, mutant.from - 1) .. mutant.with .. text:sub(mutant.to + 1)
end

--- What its line says then.
function M.becomes(text, mutant)
  local line = 0
  for said in (M.apply(text, mutant) .. '\n'):gmatch('(.-)\n') do
    line = line + 1
    if line == mutant.line then
      return said:match('^%s*(.-)%s*$')
    end
  end
end

--- So many of them, drawn by a seed, in the order in which they are drawn.
function M.draw(candidates, count, seed)
  local left, drawn, state = { unpack(candidates) }, {}, seed % 2147483647 + 1
  while #drawn < count and #left > 0 do
    state = state * 48271 % 2147483647
    drawn[#drawn + 1] = table.remove(left, state % #left + 1)
  end
  return drawn
end

return M

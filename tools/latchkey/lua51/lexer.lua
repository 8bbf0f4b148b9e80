-- SPDX-License-Identifier: Apache-2.0
-- The tokens of Lua 5.1, as the server reads it. What LuaJIT takes beyond that is a problem here.
local lexer = {}

local KEYWORDS = {}
for word in ([[and break do else elseif end false for function if in local nil not or repeat return
  then true until while]]):gmatch('%a+') do
  KEYWORDS[word] = true
end

local ESCAPES = { a = '\a', b = '\b', f = '\f', n = '\n', r = '\r', t = '\t', v = '\v',
  ['\\'] = '\\', ['"'] = '"', ["'"] = "'", ['\n'] = '\n', ['\r'] = '\n' }

local NUMBERS = { '^0[xX]%x+$', '^%d+%.?%d*$', '^%.%d+$', '^%d+%.?%d*[eE][+-]?%d+$',
  '^%.%d+[eE][+-]?%d+$' }

local OPERATORS = { '...', '..', '==', '~=', '<=', '>=' }

local function is_number(text)
  for _, pattern in ipairs(NUMBERS) do
    if text:match(pattern) then
      return true
    end
  end
  return false
end

-- Where the long bracket at `start` ends, and what is in it; nil if there is none or it never ends.
local function long_bracket(source, start)
  local level = source:match('^%[(=*)%[', start)
  if not level then
    return nil
  end
  local from = start + #level + 2
  local close, last = source:find(']' .. level .. ']', from, true)
  if not close then
    return nil, 'a long bracket is never closed'
  end
  return last, source:sub(from, close - 1)
end

local function count_lines(text)
  return select(2, text:gsub('\n', ''))
end

-- One quoted string: its last place and value; nil if it does not end.
local function quoted(source, start, problem)
  local quote, parts, at = source:sub(start, start), {}, start + 1
  while at <= #source do
    local c = source:sub(at, at)
    if c == quote then
      return at, table.concat(parts)
    elseif c == '\n' or c == '\r' or at == #source then
      return nil
    elseif c == '\\' then
      local digits = source:match('^%d%d?%d?', at + 1)
      local after = source:sub(at + 1, at + 1)
      if digits then
        if tonumber(digits) > 255 then
          problem('syntax', ('the escape "\\%s" is no byte; the last is \\255'):format(digits))
        end
        parts[#parts + 1] = string.char(tonumber(digits) % 256)
        at = at + 1 + #digits
      elseif source:find('^\r\n', at + 1) or source:find('^\n\r', at + 1) then
        parts[#parts + 1] = '\n'
        at = at + 3
      else
        if not ESCAPES[after] then
          problem('dialect', ('Lua 5.1 has no escape "\\%s"; write the character or \\ddd')
            :format(after))
        end
        parts[#parts + 1] = ESCAPES[after] or after
        at = at + 2
      end
    else
      parts[#parts + 1] = c
      at = at + 1
    end
  end
end

---Cuts a script into tokens; comments and a first line that starts with "#!" are left out.
---@param source string
---@return table[] tokens { kind, text, value, line, at }; at: its first byte; kind: name, keyword,
---string, number, operator, end
---@return table[] problems { line, rule = 'dialect' | 'syntax', message }
function lexer.tokens(source)
  local tokens, problems = {}, {}
  local line, at = 1, 1

  local function problem(rule, message)
    problems[#problems + 1] = { line = line, rule = rule, message = message }
  end

  local function add(kind, text, value)
    tokens[#tokens + 1] = { kind = kind, text = text, value = value, line = line, at = at }
    at = at + #text
  end

  local function add_string(last, value)
    local text = source:sub(at, last)
    add('string', text, value)
    line = line + count_lines(text)
  end

  local function skip_comment()
    local last, inside = long_bracket(source, at + 2)
    if not last then
      if inside then
        problem('syntax', inside)
      end
      last = (source:find('[\n\r]', at) or #source + 1) - 1
    end
    line = line + count_lines(source:sub(at, last))
    at = last + 1
  end

  local function add_number()
    local text = source:match('^%d+%f[^%w_.]', at) -- as most are
    if text then
      return add('number', text, tonumber(text))
    end
    text = source:match('^[%d.]+[eE][+-]?', at) or source:match('^[%d.]+', at)
    text = text .. source:match('^[%w_]*', at + #text)
    if not is_number(text) then
      problem('dialect', ('%s is no number of Lua 5.1; write a plain one'):format(text))
    end
    add('number', text, tonumber(text))
  end

  local function add_word()
    local word = source:match('^[%a_][%w_]*', at)
    if word == 'goto' then
      problem('dialect', 'Lua 5.1 has no goto; use a loop or an early return')
    end
    add(KEYWORDS[word] and 'keyword' or 'name', word)
  end

  local function add_operator()
    local label = source:match('^::%s*[%a_][%w_]*%s*::', at)
    if label then
      problem('dialect', 'Lua 5.1 has no labels; use a loop or an early return')
      return add('operator', label)
    end
    for _, operator in ipairs(OPERATORS) do
      if source:sub(at, at + #operator - 1) == operator then
        return add('operator', operator)
      end
    end
    local c = source:sub(at, at)
    if not c:match('[-+*/%%^#<>=(){}%[%];:,.]') then
      problem('syntax', ('unexpected character %q'):format(c))
    end
    add('operator', c)
  end

  if source:sub(1, 2) == '#!' then
    at = source:find('\n', 1, true) or #source + 1
  end
  while at <= #source do
    local c = source:sub(at, at)
    if c == '\n' then
      line, at = line + 1, at + 1
    elseif c:match('%s') then
      at = at + 1
    elseif source:find('^%-%-', at) then
      skip_comment()
    elseif c:match('[%a_]') then
      add_word()
    elseif source:find('^%.?%d', at) then
      add_number()
    elseif c == '"' or c == "'" then
      local last, value = quoted(source, at, problem)
      if not last then
        problem('syntax', 'the string does not end on its line; close it')
        last, value = (source:find('\n', at, true) or #source + 1) - 1, ''
      end
      add_string(last, value)
    elseif source:find('^%[=*%[', at) then
      local last, value = long_bracket(source, at)
      if not last then
        problem('syntax', value)
      end
      add_string(last or #source, value)
    else
      add_operator()
    end
  end
  add('end', '')
  return tokens, problems
end

---LuaJIT reads a `..` behind an exponent or a hexadecimal number as part of the number.
---@param code string
---@return string code with a blank between the two: on any Lua the same
function lexer.spaced(code)
  if not code:find('%d[eExX][+-]?%w*%.%.') then
    return code
  end
  local parts, at, before = {}, 1, nil
  for _, token in ipairs((lexer.tokens(code))) do
    if before and before.kind == 'number' and token.text:find('^%.%.')
      and token.at == before.at + #before.text then
      parts[#parts + 1], at = code:sub(at, token.at - 1), token.at
    end
    before = token
  end
  parts[#parts + 1] = code:sub(at)
  return table.concat(parts, ' ')
end

return lexer

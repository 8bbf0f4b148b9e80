-- SPDX-License-Identifier: Apache-2.0
-- The syntax tree of Lua 5.1 (reference manual, section 8), with names resolved to their locals.
--
-- A node is { tag, line, ... } with its children, in source order, in the array part:
--   Block ...statements            Local {vars} ...values      LocalFunction {var} Function
--   Assign {targets=n} ...         Return ...values            Break
--   If cond Block [cond Block]... [Block]                      While cond Block
--   Repeat Block cond              For {vars} ...values Block  (numeric and generic)
--   Function {params, vararg, unpacks, body} Block              Call function ...arguments
--   Method {name} object ...arguments
--   Index object key               Table ...(Item value | Pair key value)
--   Operator {op} left right       Unary {op} operand          Paren value
--   Name {name, var}               String {value}  Number {value}  Nil  True  False  Vararg
-- A var is { name, line, uses }; a Name without one is a global. An expression and a statement know
-- their tokens: first and last are places among those that parser.parse gives as well, and `body`
-- is that of a function's first statement. One that `unpacks` has `...` in its own body.
local lexer = require('latchkey.lua51.lexer')

local parser = {}

-- Left and right binding power; a right one that is lower binds to the right.
local BINARY = {
  ['or'] = { 1, 1 }, ['and'] = { 2, 2 },
  ['<'] = { 3, 3 }, ['>'] = { 3, 3 }, ['<='] = { 3, 3 }, ['>='] = { 3, 3 }, ['~='] = { 3, 3 },
  ['=='] = { 3, 3 },
  ['..'] = { 5, 4 }, ['+'] = { 6, 6 }, ['-'] = { 6, 6 },
  ['*'] = { 7, 7 }, ['/'] = { 7, 7 }, ['%'] = { 7, 7 },
  ['^'] = { 10, 9 },
}
local UNARY_POWER = 8
local UNARY = { ['not'] = true, ['-'] = true, ['#'] = true }
local CONSTANTS = { ['nil'] = 'Nil', ['true'] = 'True', ['false'] = 'False', ['...'] = 'Vararg' }
local BLOCK_ENDS = { ['end'] = true, ['else'] = true, ['elseif'] = true, ['until'] = true }

local Parser = {}
Parser.__index = Parser

function Parser:fail(expected)
  local token = self.token
  local found = token.kind == 'end' and 'the end of the file' or '"' .. token.text .. '"'
  error({ line = token.line, rule = 'syntax', message = ('%s expected, but there is %s'):format(
    expected, found) }, 0)
end

function Parser:advance()
  local token = self.token
  self.at = self.at + 1
  self.token = self.tokens[self.at]
  return token
end

-- Names and strings never count: "end" may be a string.
function Parser:is(text)
  local token = self.token
  return token.text == text and (token.kind == 'keyword' or token.kind == 'operator')
end

function Parser:accept(text)
  return self:is(text) and self:advance()
end

function Parser:expect(text)
  return self:accept(text) or self:fail('"' .. text .. '"')
end

function Parser:name()
  if self.token.kind ~= 'name' then
    self:fail('a name')
  end
  return self:advance()
end

function Parser:node(tag, fields)
  local node = fields or {}
  node.tag, node.line = tag, node.line or self.token.line
  return node
end

function Parser:declare(token)
  local var = { name = token.text, line = token.line, uses = 0 }
  self.scope.names[token.text] = var
  return var
end

function Parser:resolve(token)
  local scope = self.scope
  while scope do
    local var = scope.names[token.text]
    if var then
      var.uses = var.uses + 1
      return var
    end
    scope = scope.outer
  end
end

function Parser:open_scope()
  self.scope = { names = {}, outer = self.scope }
end

function Parser:close_scope()
  self.scope = self.scope.outer
end

function Parser:expressions(into)
  repeat
    into[#into + 1] = self:expression(0)
  until not self:accept(',')
  return into
end

function Parser:table_constructor()
  local node = self:node('Table')
  self:expect('{')
  while not self:is('}') do
    local item = self:node('Item')
    local after = self.tokens[self.at + 1]
    if self:accept('[') then
      item.tag = 'Pair'
      item[1] = self:expression(0)
      self:expect(']')
      self:expect('=')
    elseif self.token.kind == 'name' and after.kind == 'operator' and after.text == '=' then
      local key = self:advance()
      item.tag = 'Pair'
      item[1] = self:node('String', { value = key.text, line = key.line })
      self:expect('=')
    end
    item[#item + 1] = self:expression(0)
    node[#node + 1] = item
    if not (self:accept(',') or self:accept(';')) then
      break
    end
  end
  self:expect('}')
  return node
end

function Parser:function_body(line, with_self)
  local node = self:node('Function', { line = line, params = {} })
  local around = self.within
  self.within = { loops = 0, vararg = false }
  self:open_scope()
  if with_self then
    node.params[1] = self:declare({ text = 'self', line = line })
  end
  self:expect('(')
  if not self:is(')') then
    repeat
      if self:accept('...') then
        self.within.vararg = true
        break
      end
      node.params[#node.params + 1] = self:declare(self:name())
    until not self:accept(',')
  end
  node.body = self.at + 1
  self:expect(')')
  node[1] = self:block()
  self:expect('end')
  self:close_scope()
  node.vararg, node.unpacks = self.within.vararg, self.within.unpacks
  self.within = around
  return node
end

function Parser:arguments(call)
  if self.token.kind == 'string' or self:is('{') then
    call[#call + 1] = self:simple_expression()
    return call
  end
  self:expect('(')
  if not self:is(')') then
    self:expressions(call)
  end
  self:expect(')')
  return call
end

function Parser:primary_expression()
  if self:is('(') then
    local node = self:node('Paren')
    self:advance()
    node[1] = self:expression(0)
    self:expect(')')
    return node
  end
  local token = self:name()
  return self:node('Name', { name = token.text, line = token.line, var = self:resolve(token) })
end

function Parser:suffixed_expression()
  local node = self:primary_expression()
  while true do
    local line = self.token.line
    if self:accept('.') then
      local key = self:name()
      node = self:node('Index', { line = line, node,
        self:node('String', { value = key.text, line = key.line }) })
    elseif self:accept('[') then
      node = self:node('Index', { line = line, node, self:expression(0) })
      self:expect(']')
    elseif self:accept(':') then
      local method = self:node('Method', { line = line, name = self:name().text, node })
      node = self:arguments(method)
    elseif self:is('(') or self:is('{') or self.token.kind == 'string' then
      node = self:arguments(self:node('Call', { line = line, node }))
    else
      return node
    end
  end
end

function Parser:simple_expression()
  local token = self.token
  if token.kind == 'string' or token.kind == 'number' then
    self:advance()
    return self:node(token.kind == 'string' and 'String' or 'Number',
      { value = token.value, text = token.text, line = token.line })
  elseif CONSTANTS[token.text] then
    if token.text == '...' then
      if not self.within.vararg then
        self:fail('an expression')
      end
      self.within.unpacks = true
    end
    self:advance()
    return self:node(CONSTANTS[token.text], { line = token.line })
  elseif self:is('{') then
    return self:table_constructor()
  elseif self:accept('function') then
    return self:function_body(token.line)
  end
  return self:suffixed_expression()
end

-- Which tokens an expression or statement is made of.
function Parser:span(node, first)
  node.first, node.last = first, self.at - 1
  return node
end

function Parser:expression(limit)
  local left
  local token, first = self.token, self.at
  if token.kind ~= 'string' and UNARY[token.text] then
    self:advance()
    left = self:node('Unary', { op = token.text, line = token.line, self:expression(UNARY_POWER) })
  else
    left = self:simple_expression()
  end
  self:span(left, first)
  while true do
    local operator = self.token
    local power = operator.kind ~= 'string' and BINARY[operator.text]
    if not power or power[1] <= limit then
      return left
    end
    self:advance()
    left = self:span(self:node('Operator', { op = operator.text, line = operator.line, left,
      self:expression(power[2]) }), first)
  end
end

function Parser:names()
  local tokens = {}
  repeat
    tokens[#tokens + 1] = self:name()
  until not self:accept(',')
  return tokens
end

function Parser:declare_all(tokens)
  local vars = {}
  for i, token in ipairs(tokens) do
    vars[i] = self:declare(token)
  end
  return vars
end

local statements = {}

statements['local'] = function(self, line)
  if self:accept('function') then
    local var = self:declare(self:name())
    return self:node('LocalFunction', { line = line, var = var, self:function_body(line) })
  end
  local node = self:node('Local', { line = line })
  local tokens = self:names()
  if self:accept('=') then
    self:expressions(node)
  end
  node.vars = self:declare_all(tokens)
  return node
end

statements['function'] = function(self, line)
  local token = self:name()
  local target =
    self:node('Name', { name = token.text, line = token.line, var = self:resolve(token) })
  local is_method = false
  while not is_method and (self:is('.') or self:is(':')) do
    is_method = self:advance().text == ':'
    local key = self:name()
    target = self:node('Index', { line = key.line, target,
      self:node('String', { value = key.text, line = key.line }) })
  end
  return self:node('Assign', { line = line, targets = 1, target,
    self:function_body(line, is_method) })
end

statements['if'] = function(self, line)
  local node = self:node('If', { line = line })
  repeat
    node[#node + 1] = self:expression(0)
    self:expect('then')
    node[#node + 1] = self:block()
  until not self:accept('elseif')
  if self:accept('else') then
    node[#node + 1] = self:block()
  end
  self:expect('end')
  return node
end

statements['while'] = function(self, line)
  local node = self:node('While', { line = line, self:expression(0) })
  self:expect('do')
  node[2] = self:loop_body()
  self:expect('end')
  return node
end

statements['repeat'] = function(self, line)
  local node = self:node('Repeat', { line = line })
  self:open_scope()
  self.within.loops = self.within.loops + 1
  node[1] = self:block_in_scope()
  self.within.loops = self.within.loops - 1
  self:expect('until')
  node[2] = self:expression(0)
  self:close_scope()
  return node
end

statements['for'] = function(self, line)
  local node = self:node('For', { line = line })
  local tokens = self:names()
  local numeric = #tokens == 1 and self:accept('=')
  if not numeric then
    self:expect('in')
  end
  self:expressions(node)
  if numeric and #node == 1 then
    self:fail('","')
  elseif numeric and #node > 3 then
    self:fail('two or three values before')
  end
  self:expect('do')
  self:open_scope()
  node.vars = self:declare_all(tokens)
  node[#node + 1] = self:loop_body()
  self:close_scope()
  self:expect('end')
  return node
end

statements['do'] = function(self)
  local block = self:block()
  self:expect('end')
  return block
end

statements['return'] = function(self, line)
  local node = self:node('Return', { line = line })
  if not self:ends_block() and not self:is(';') then
    self:expressions(node)
  end
  return node
end

statements['break'] = function(self, line)
  if self.within.loops == 0 then
    self:fail('a loop around "break"')
  end
  return self:node('Break', { line = line })
end

function Parser:ends_block()
  return self.token.kind == 'end' or self.token.kind == 'keyword' and BLOCK_ENDS[self.token.text]
end

function Parser:expression_statement()
  local line = self.token.line
  local node = self:suffixed_expression()
  if node.tag == 'Call' or node.tag == 'Method' then
    return node
  end
  local assign = self:node('Assign', { line = line, node })
  while self:accept(',') do
    assign[#assign + 1] = self:suffixed_expression()
  end
  assign.targets = #assign
  self:expect('=')
  return self:expressions(assign)
end

function Parser:block_in_scope()
  local block = self:node('Block')
  while not self:ends_block() do
    local token, first = self.token, self.at
    local statement = token.kind == 'keyword' and statements[token.text]
    if statement then
      self:advance()
      block[#block + 1] = statement(self, token.line)
    else
      block[#block + 1] = self:expression_statement()
    end
    self:span(block[#block], first)
    self:accept(';')
    if block[#block].tag == 'Return' or block[#block].tag == 'Break' then
      break
    end
  end
  return block
end

function Parser:block()
  self:open_scope()
  local block = self:block_in_scope()
  self:close_scope()
  return block
end

function Parser:loop_body()
  self.within.loops = self.within.loops + 1
  local block = self:block()
  self.within.loops = self.within.loops - 1
  return block
end

-- The tree of tokens, else what is wrong with their order.
local function parse_tokens(tokens)
  local self = setmetatable({ tokens = tokens, at = 1, token = tokens[1],
    within = { loops = 0, vararg = true } }, Parser)
  local ok, result = pcall(function()
    local block = self:block()
    if self.token.kind ~= 'end' then
      self:fail('the end of the file')
    end
    return block
  end)
  if ok then
    return result
  elseif type(result) ~= 'table' and tostring(result):find('stack overflow', 1, true) then
    -- A server stops at 200 levels, in these words.
    return nil, { line = self.token.line, rule = 'syntax',
      message = 'chunk has too many syntax levels' }
  elseif type(result) ~= 'table' then
    error(result, 0)
  end
  return nil, result
end

---@param source string
---@return table|nil block
---@return table[]|nil problems { line, rule = 'dialect' | 'syntax', message }; `is_wrong`: the rest
---  is no Lua either
---@return table[]|nil tokens
function parser.parse(source)
  local tokens, problems = lexer.tokens(source)
  local block, wrong = parse_tokens(tokens)
  if #problems > 0 then
    problems.is_wrong = wrong ~= nil
    return nil, problems
  elseif wrong then
    return nil, { wrong }
  end
  return block, nil, tokens
end

---Calls visit(node, depth) for a node and all below it, in source order; depth counts the
---functions around it.
---@param node table
---@param visit fun(node: table, depth: integer)
---@param depth? integer
function parser.walk(node, visit, depth)
  -- No recursion: a sum of thousands is as deep as it is long.
  local nodes, depths, count = { node }, { depth or 0 }, 1
  while count > 0 do
    local here, around = nodes[count], depths[count]
    count = count - 1
    visit(here, around)
    local inner = here.tag == 'Function' and around + 1 or around
    for i = #here, 1, -1 do
      count = count + 1
      nodes[count], depths[count] = here[i], inner
    end
  end
end

return parser

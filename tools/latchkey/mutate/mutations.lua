-- SPDX-License-Identifier: Apache-2.0
-- Small wrong versions of a script, made from its syntax tree: each changes one place of the text.
-- A visitor gets a node and adds edits { kind, from, to, text }, in bytes of the source.
local script_of = require('latchkey.lint.script')

local mutations = {}

-- `needs` says which spec is missing where such a version passes: "a spec ...".
mutations.kinds = {
  { id = 'dropped-call', what = 'a statement that calls something is left out',
    needs = 'that compares all keys, their leases and the messages afterwards' },
  { id = 'dropped-return', what = 'a branch goes on where it should end',
    needs = 'that takes this branch, and compares the reply and all keys' },
  { id = 'never', what = 'a condition is never true',
    needs = 'in which this condition holds' },
  { id = 'always', what = 'a condition is always true',
    needs = 'in which this condition does not hold' },
  { id = 'boundary', what = 'a comparison is wrong for equal values',
    needs = 'in which both sides are equal' },
  { id = 'flipped', what = 'a comparison says the opposite',
    needs = 'for each outcome of this comparison' },
  { id = 'connective', what = '"and" and "or" are exchanged',
    needs = 'in which one side holds and the other does not' },
  { id = 'dropped-operand', what = 'one side of "and" or "or" is left out',
    needs = 'in which only the other side decides' },
  { id = 'dropped-not', what = 'a "not" is left out',
    needs = 'for each outcome of this condition' },
  { id = 'number', what = 'a number is off by one',
    needs = 'that compares what comes of exactly this number' },
  { id = 'arithmetic', what = 'another operator or rounding',
    needs = 'whose numbers give another result with that operator' },
  { id = 'outcome', what = 'a reply has another outcome of the header',
    needs = 'of this reply' },
  { id = 'command', what = 'another command of the same form',
    needs = 'with the key or field there already, and one without it, that compare all keys' },
  { id = 'option', what = 'an option of a command is left out or turned around',
    needs = 'with the key there already, and one without it, that compare value and lease' },
  { id = 'swapped-arguments', what = 'two neighbouring arguments of a command are exchanged',
    needs = 'in which these two differ, that compares the keys' },
  { id = 'other-argument', what = 'another argument or key of the script stands in its place',
    needs = 'in which these two differ, that compares the keys' },
  { id = 'order', what = 'a message goes out before the write that it reports',
    needs = 'of this message, with the rules of strict mode' },
  { id = 'text', what = 'a written text is another: a message, a field, a part of a name',
    needs = 'that compares this text, or where a message has it, the messages' },
  { id = 'prefix', what = 'a text that begins like another counts as that one',
    needs = "with two texts of which one begins with the other, such as 'a:1' and 'a:12'" },
  { id = 'bytes', what = 'a text ends at its first NUL, or at its first blank',
    needs = "with a NUL and a blank in this text, such as 'a\\0 b'" },
  { id = 'digit', what = 'of a number only one digit counts',
    needs = 'in which this number has two digits or more' },
  { id = 'bound', what = 'a number is cut just below its upper bound',
    needs = 'with the largest number that the contract allows here' },
  { id = 'exponent', what = 'a large number is written with an exponent',
    needs = 'in which this number has nine digits or more' },
  { id = 'brace', what = 'a name with one brace is taken for one with a tag',
    needs = "of a name with one brace, such as 'a{b'" },
}

local BOUNDARY = { ['<'] = '<=', ['<='] = '<', ['>'] = '>=', ['>='] = '>' }
local FLIPPED = { ['=='] = '~=', ['~='] = '==', ['<'] = '>=', ['<='] = '>', ['>'] = '<=',
  ['>='] = '<' }
local ARITHMETIC = { ['+'] = '-', ['-'] = '+', ['*'] = '+', ['/'] = '*', ['%'] = '+' }
local FUNCTIONS = { min = 'max', max = 'min', floor = 'ceil', ceil = 'floor' }
local COMMANDS = {
  PEXPIRE = 'EXPIRE', HSET = 'HSETNX', HDEL = 'HGET', DEL = 'EXISTS', PTTL = 'TTL',
  LPUSH = 'RPUSH', RPUSH = 'LPUSH', LPOP = 'RPOP', ZADD = 'ZINCRBY', ZREM = 'ZSCORE',
  HINCRBY = 'HSET', LREM = 'LINDEX', SPUBLISH = 'PUBLISH', PUBLISH = 'SPUBLISH',
  INCR = 'DECR', INCRBY = 'DECRBY', PEXPIREAT = 'EXPIREAT',
  ZRANGE = 'ZREVRANGE',
}
local OPTIONS = { GT = 'LT', LT = 'GT', NX = 'XX', XX = 'NX', KEEPTTL = false, CH = false,
  PX = 'EX', REV = false }

-- The bytes of a node that has a span.
local function bytes(self, node)
  local last = self.tokens[node.last]
  return self.tokens[node.first].at, last.at + #last.text - 1
end

local function text_of(self, node)
  local from, to = bytes(self, node)
  return self.source:sub(from, to)
end

local function replace(self, kind, node, text)
  local from, to = bytes(self, node)
  self:add(kind, node.line, from, to, text)
end

-- Two nodes of one list change places.
local function exchange(self, kind, first, second)
  local from, upto = bytes(self, first)
  local start, to = bytes(self, second)
  self:add(kind, first.line, from, to, self.source:sub(start, to)
    .. self.source:sub(upto + 1, start - 1) .. self.source:sub(from, upto))
end

-- The token between two operands, which no node has for its own.
local function operator_bytes(self, node)
  local token = self.tokens[node[1].last + 1]
  return token.at, token.at + #token.text - 1
end

local function is_refusal(node)
  local value = node.tag == 'Return' and node[1]
  return value and value.tag == 'Call' and script_of.member(value[1], 'redis') == 'error_reply'
end

-- The argument of the script that a node is, if that is a text, or a number.
local TEXTS = { text = true, reader = true, writer = true }

local function argument_of(self, node, is_number)
  local bound = node.tag == 'Name' and node.first and self.bound[node.name]
  local field = bound and bound.array == 'ARGV' and bound.field
  if node.tag == 'Index' and node.first and script_of.is_global(node[1], 'ARGV')
    and node[2].tag == 'Number' then
    field = self.header.argv[node[2].value]
  end
  if field and (is_number and field.kind == 'integer' or not is_number and TEXTS[field.kind]) then
    return field
  end
end

-- Of two texts that are compared, either begins with the other.
local function mutate_comparison(self, node)
  for side = 1, 2 do
    if argument_of(self, node[side]) then
      local given, found = text_of(self, node[side]), text_of(self, node[3 - side])
      replace(self, 'prefix', node, ("(string.sub(%s or '', 1, #%s) %s %s)"):format(found, given,
        node.op, given))
      replace(self, 'prefix', node, ("(string.sub(%s, 1, #(%s or '')) %s %s)"):format(given, found,
        node.op, found))
      return
    end
  end
end

-- An argument where it is used, cut in the ways in which texts and numbers are cut by mistake.
local function mutate_argument(self, node)
  local number = argument_of(self, node, true)
  if number then
    replace(self, 'bound', node, ('math.min(%s, %.0f)'):format(text_of(self, node),
      number.max - 1))
    if number.max >= 10 then
      replace(self, 'digit', node, ('(%s %% 10)'):format(text_of(self, node)))
    end
  elseif argument_of(self, node) then
    replace(self, 'bytes', node, ("string.match(%s, '^%%Z*')"):format(text_of(self, node)))
    replace(self, 'bytes', node, ("string.match(%s, '^[^ ]*')"):format(text_of(self, node)))
  end
end

-- What a reply tells beside its outcome.
local function mutate_told(self, constructor)
  for place = 2, #constructor do
    local item = constructor[place]
    local told = item.tag == 'Item' and item[1]
    if told and told.first and (told.tag == 'Call' or told.tag == 'Name'
      and not argument_of(self, told, true)) then
      replace(self, 'digit', told, ('(%s %% 10)'):format(text_of(self, told)))
    end
  end
end

-- Patterns and formats that take less than they should.
local TAKES_LESS = {
  { kind = 'bytes', from = '%.([+*-])', to = '%%Z%1' },
  { kind = 'bytes', from = '%.([+*-])', to = '[^ ]%1' },
  { kind = 'digit', from = '(%%d)[+*]', to = '%1' },
  { kind = 'exponent', from = '%%%.0f', to = '%%.8g' },
  { kind = 'brace', from = '^{$', to = '}' },
}

local visitors = {}

function visitors.If(self, node)
  for i = 1, #node - 1, 2 do
    local last = node[i + 1][#node[i + 1]]
    replace(self, 'never', node[i], 'false')
    if not (last and is_refusal(last)) then
      replace(self, 'always', node[i], 'true')
    end
    if last and last.tag == 'Return' and not is_refusal(last) then
      local from, to = bytes(self, last)
      self:add('dropped-return', last.line, from, to, '')
    end
  end
end

function visitors.Operator(self, node)
  local op = node.op
  local from, to = operator_bytes(self, node)
  if op == 'and' or op == 'or' then
    self:add('connective', node.line, from, to, op == 'and' and 'or' or 'and')
    replace(self, 'dropped-operand', node, text_of(self, node[1]))
    replace(self, 'dropped-operand', node, text_of(self, node[2]))
  elseif FLIPPED[op] then
    self:add('flipped', node.line, from, to, FLIPPED[op])
    if BOUNDARY[op] then
      self:add('boundary', node.line, from, to, BOUNDARY[op])
    elseif not self.in_check then
      mutate_comparison(self, node)
    end
  elseif ARITHMETIC[op] then
    self:add('arithmetic', node.line, from, to, ARITHMETIC[op])
  end
end

function visitors.Unary(self, node)
  if node.op == 'not' then
    local from = self.tokens[node.first].at
    self:add('dropped-not', node.line, from, from + 2, '')
  end
end

function visitors.Number(self, node)
  replace(self, 'number', node, ('%.0f'):format(node.value + 1))
  if node.value > 0 and not self.in_check then
    replace(self, 'number', node, ('%.0f'):format(node.value - 1))
  end
end

function visitors.String(self, node)
  if node.first and node.value ~= '' then
    replace(self, 'text', node, ('%q'):format(node.value == '0' and '1' or node.value .. 'x'))
    for _, less in ipairs(TAKES_LESS) do
      local text, count = node.value:gsub(less.from, less.to)
      if count > 0 then
        replace(self, less.kind, node, ('%q'):format(text))
      end
    end
  end
end

-- Another outcome of the header, the nearest that has as many elements, else any.
local function other_outcome(self, first, length)
  local found
  for _, shape in ipairs(self.header.returns) do
    local fits = shape.rest or shape.arity == length
    if not shape.bare and shape.first ~= first and (not found or fits and not found.fits) then
      found = { first = shape.first, fits = fits }
    end
  end
  return found and found.first
end

local function mutate_outcome(self, constructor)
  local item = constructor[1]
  local first = item and item.tag == 'Item' and script_of.integer(item[1])
  local other = first and other_outcome(self, first, #constructor)
  if other then
    replace(self, 'outcome', item[1], ('%.0f'):format(other))
  end
  return item and item[1]
end

-- Keys or arguments that could be taken for this one.
local function substitutes(self, name)
  local bound = self.bound[name]
  local list = {}
  for _, other in ipairs(bound and self.bound or {}) do
    if other.name ~= name and other.array == bound.array and other.kind == bound.kind then
      list[#list + 1] = other.name
    end
  end
  return list
end

function visitors.Name(self, node)
  local other = self.in_redis and node.first and substitutes(self, node.name)[1]
  if other then
    replace(self, 'other-argument', node, other)
  end
  if not self.in_check then
    mutate_argument(self, node)
  end
end

-- An argument that has no name of its own.
function visitors.Index(self, node)
  if not self.in_check then
    mutate_argument(self, node)
  end
end

local function mutate_option(self, call, place)
  local node = call[place]
  local option = node.value:upper()
  local turned = OPTIONS[option]
  if turned == nil then
    return false
  elseif turned then
    replace(self, 'option', node, ("'%s'"):format(turned))
  end
  local before = self.tokens[node.first - 1]
  local value = option == 'PX' and call[place + 1] or node -- the time may have been forgotten
  local last = self.tokens[value.last]
  self:add('option', node.line, before.at, last.at + #last.text - 1, '')
  return true
end

-- What stands in a call of redis.call, less what is changed otherwise: places to leave alone.
local function mutate_redis_call(self, node)
  local done = { [1] = true, [2] = true }
  local name = node[2] and node[2].tag == 'String' and node[2].value:upper()
  if COMMANDS[name] then
    replace(self, 'command', node[2], ("'%s'"):format(COMMANDS[name]))
  end
  for place = 4, #node do
    done[place] = node[place].tag == 'String' and mutate_option(self, node, place)
  end
  for place = 4, #node - 1 do
    if not done[place] and not done[place + 1] then
      exchange(self, 'swapped-arguments', node[place], node[place + 1])
    end
  end
  return done
end

-- What a script reads as a number: of a text that a key holds, the first digit alone.
local function mutate_number_read(self, node)
  if node[1].name == 'tonumber' and #node == 2 and node[2].first
    and not argument_of(self, node[2], true) then
    replace(self, 'digit', node[2], ("string.sub(%s or '', 1, 1)"):format(text_of(self, node[2])))
  end
end

function visitors.Call(self, node)
  mutate_number_read(self, node)
  local fn = script_of.member(node[1], 'math')
  if FUNCTIONS[fn] and node.first then -- one that is called on goes on within another node
    local name = self.tokens[node.first + 2]
    self:add('arithmetic', node.line, name.at, name.at + #name.text - 1,
      (name.text:gsub(fn, FUNCTIONS[fn])))
  end
end

-- A script is one step for everybody else, so the order of its writes shows to nobody; that of a
-- message and a write does.
function visitors.Block(self, node)
  for i, statement in ipairs(node) do
    local before = node[i - 1]
    if statement.tag == 'Call' then
      local from, to = bytes(self, statement)
      self:add('dropped-call', statement.line, from, to, 'do end')
      if before and before.tag == 'Call' and statement[1].name == 'tell' then
        exchange(self, 'order', before, statement)
      end
    end
  end
end

---A visitor for nodes by their tags; what it gives back are the children to leave alone.
---@param self table { source, tokens, header, bound, add, in_check, in_redis }
---@param node table
---@return table done place -> true
function mutations.visit(self, node)
  local verb = node.tag == 'Call' and script_of.member(node[1], 'redis')
  if verb == 'error_reply' then
    return { true, true, true }
  elseif verb == 'call' or verb == 'pcall' then
    return mutate_redis_call(self, node)
  end
  if node.tag == 'Return' and node[1] and node[1].tag == 'Table' then
    self.outcomes[mutate_outcome(self, node[1]) or false] = true
    mutate_told(self, node[1])
  elseif node.tag == 'Local' and node[1] and node[1].tag == 'Table' then
    self.outcomes[mutate_outcome(self, node[1]) or false] = true
  elseif visitors[node.tag] and not self.outcomes[node] then
    visitors[node.tag](self, node)
  end
  return self.outcomes[node] and { true } or {}
end

return mutations

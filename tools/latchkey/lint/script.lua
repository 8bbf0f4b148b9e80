-- SPDX-License-Identifier: Apache-2.0
-- A script as the rules see it: text, header, syntax tree, and what is read off the tree once.
local paths = require('pl.path')
local utils = require('pl.utils')

local catalog = require('latchkey.script.catalog')
local fragments = require('latchkey.script.fragments')
local header = require('latchkey.script.header')
local lexer = require('latchkey.lua51.lexer')
local lines = require('latchkey.script.lines')
local other_commands = require('latchkey.redis.other_commands')
local parser = require('latchkey.lua51.parser')
local redis_commands = require('latchkey.redis.commands')
local digest = require('latchkey.digest')

local script = {}

---Is this the global of that name?
---@param node table|nil
---@param name string
---@return boolean
function script.is_global(node, name)
  return node ~= nil and node.tag == 'Name' and not node.var and node.name == name
end

---The member NAME of `library.NAME`, where library is a global; else nil.
---@param node table
---@param library string
---@return string|nil
function script.member(node, library)
  if node.tag == 'Index' and script.is_global(node[1], library) and node[2].tag == 'String' then
    return node[2].value
  end
end

---The integer that a node is written as, else nil.
---@param node table|nil
---@return number|nil
function script.integer(node)
  if node and node.tag == 'Unary' and node.op == '-' and node[1].tag == 'Number' then
    return -node[1].value
  end
  return node and node.tag == 'Number' and node.value or nil
end

---Which variables are given another value later.
---@param block table
---@return table changed var -> true
function script.changed(block)
  local changed = {}
  parser.walk(block, function(node)
    for i = 1, node.targets or 0 do
      changed[node[i].var or false] = true
    end
  end)
  return changed
end

---What each variable is, where it is given one value only.
---@param block table
---@return table values var -> expression
function script.definitions(block)
  local values, changed = {}, script.changed(block)
  parser.walk(block, function(node)
    for i, var in ipairs(node.tag == 'Local' and node.vars or {}) do
      values[var] = not changed[var] and node[i] or nil
    end
  end)
  return values
end

---The local functions: those that are declared as such, and locals that are made one and stay it.
---@param block table
---@return table functions var -> Function
function script.functions(block)
  local functions = {}
  for var, value in pairs(script.definitions(block)) do
    functions[var] = value.tag == 'Function' and value or nil
  end
  parser.walk(block, function(node)
    if node.tag == 'LocalFunction' then
      functions[node.var] = node[1]
    end
  end)
  return functions
end

---What local functions are called with: var of a parameter -> arguments, false for one that is
---missing.
---@param block table
---@param functions table as script.functions() gives them
---@return table
function script.passed(block, functions)
  local arguments = {}
  parser.walk(block, function(node)
    local called = node.tag == 'Call' and functions[node[1].var or false]
    for i, param in ipairs(called and called.params or {}) do
      arguments[param] = arguments[param] or {}
      table.insert(arguments[param], node[i + 1] or false)
    end
  end)
  return arguments
end

---What an expression begins with, where that is a text that is written out.
---@param node table|nil
---@return string|nil text
---@return boolean is_whole it is nothing else
function script.beginning(node)
  local is_whole = true
  while node and node.tag == 'Operator' and node.op == '..' do
    node, is_whole = node[1], false
  end
  return node and node.tag == 'String' and node.value or nil, is_whole
end

-- Of variables each of which is the one before, twice, the last would have a text without an end.
local TEXT_MAX = 4096

---The text of what is put together by `..` of literals and of what somebody knows.
---@param node table an expression
---@param values table as script.definitions() gives them
---@param known fun(node: table): string|nil asked of what is neither
---@return string|nil text nil: only a run can tell
function script.text_of(node, values, known)
  if node.tag == 'String' then
    return node.value
  elseif node.tag == 'Paren' then
    return script.text_of(node[1], values, known)
  elseif node.tag == 'Operator' and node.op == '..' then
    local left = script.text_of(node[1], values, known)
    local right = left and script.text_of(node[2], values, known)
    return right and #left + #right <= TEXT_MAX and left .. right or nil
  end
  local text, value = known(node), values[node.var or false]
  return text or value and script.text_of(value, values, known)
end

-- The binding of a variable to KEYS[i], or to all keys or arguments as one table.
local function bound_to(var, value, line)
  for _, array in ipairs({ 'KEYS', 'ARGV' }) do
    if script.is_global(value, array) then
      return { array = array, source = value, var = var, line = line }
    elseif value.tag == 'Index' and script.is_global(value[1], array) and
      value[2].tag == 'Number' then
      return { array = array, source = value[1], index = value[2].value, var = var, line = line }
    end
  end
end

-- Bindings of the form `local name = KEYS[i]`; in a script that is somebody else's, one statement
-- may have several.
local function add_bindings(list, statement, is_foreign)
  local is_one = statement.tag == 'Local' and #statement == 1 and #statement.vars == 1
  for i, var in ipairs((is_one or is_foreign) and statement.vars or {}) do
    list[#list + 1] = statement[i] and bound_to(var, statement[i], statement.line)
  end
end

-- What is known of a command that is not written out: it may do anything with its key.
local CHOSEN = { type = 'any', access = 'w', keys = 'first' }

-- The member of `redis` that a function is: of a call, or of a local that has no other value, which
-- may have it of another local.
local function verb_of(node, values)
  while node and node.tag == 'Name' and values[node.var or false] do
    node = values[node.var]
  end
  local verb = node and script.member(node, 'redis')
  return (verb == 'call' or verb == 'pcall') and verb or nil
end

-- The locals that stand for redis.call or redis.pcall: var -> true, and what they are made of.
local function aliases_of(values)
  local vars, nodes = {}, {}
  for var, value in pairs(values) do
    if verb_of(value, values) then
      vars[var], nodes[value] = true, true
    end
  end
  return vars, nodes
end

-- Calls of redis.call and redis.pcall; `within` is the local function around one. In a script that
-- is somebody else's, commands may be in small letters and those of which latchkey's own scripts
-- make no use, and a local may stand for redis.call.
---@return table[] calls
---@return table aliases { vars, nodes }: such locals -> true, and what they are made of -> true
local function redis_calls(block, is_foreign)
  local calls, values = {}, is_foreign and script.definitions(block) or {}
  local function search(node, within)
    within = node.tag == 'LocalFunction' and node.var.name or within
    local verb = node.tag == 'Call' and verb_of(node[1], values)
    if verb then
      local name = node[2] and node[2].tag == 'String' and node[2].value or nil
      name = name and is_foreign and name:upper() or name
      local command = CHOSEN
      if name then
        command = redis_commands[name] or is_foreign and other_commands[name] or nil
      end
      calls[#calls + 1] = { node = node, verb = verb, name = name, within = within,
        command = command, line = node.line }
    end
    for _, child in ipairs(node) do
      search(child, within)
    end
  end
  search(block)
  local vars, nodes = aliases_of(values)
  return calls, { vars = vars, nodes = nodes }
end

-- A contract's lines are of another file than the script's.
local function read_contract(self, full)
  local text = assert(utils.readfile(self.contract, true))
  local h, findings = header.parse_contract(text, self.source, self.sha1, full)
  local function place(line)
    return { contract = self.contract, line = line }
  end
  self.contract_lines = lines.split(text)
  for _, finding in ipairs(findings or {}) do
    finding.line = finding.of_script and finding.line or place(finding.line)
  end
  for field, line in pairs(h and h.lines or {}) do
    h.lines[field] = place(line)
  end
  if h then
    h.first_code_line = place(1)
  end
  return h, findings
end

-- What a server says of code that follows the grammar, and is still no program.
local function check_program(source)
  local code = source:gsub('^#![^\n]*', '')
  local chunk, why = loadstring(lexer.spaced(code), '=script')
  local line, message = (why or ''):match('^script:(%d+): (.*)$')
  return not chunk and { { line = tonumber(line) or 1, rule = 'syntax', message = message or why } }
    or nil
end

---@param path string
---@param source string
---@param bare? boolean somebody else's, whatever stands beside it
---@return table script { path, source, lines, sha1, header?, block?, root?, calls, bindings,
---  aliases, contract? }; the last but one as redis_calls() gives them, the last the file of a
---  contract, whose lines in `header.lines` are { contract, line }
---@return table[] findings of header and syntax: { line, rule, message }
function script.read(path, source, bare)
  local self = { path = path, source = source, sha1 = digest.sha1(source) }
  self.lines = lines.split(source)
  self.copies, self.marker_problems = fragments.find(self.lines)
  local findings, wrong_header, wrong_code = {}
  -- The file may be named from within its own folder.
  local full = paths.abspath(path)
  self.contract = not bare and catalog.contract_of(path, source) or nil
  if self.contract then
    self.header, wrong_header = read_contract(self, full)
  else
    self.header, wrong_header = header.parse(source, full)
  end
  self.block, wrong_code = parser.parse(source)
  wrong_code = wrong_code or check_program(source)
  self.block = not wrong_code and self.block or nil
  for _, problems in ipairs({ wrong_header or {}, wrong_code or {} }) do
    for _, problem in ipairs(problems) do
      findings[#findings + 1] = problem
    end
  end
  if self.header then
    local tail = self.header.name .. '.lua'
    local above = path:sub(-#tail) == tail and path:sub(1, -#tail - 2)
    self.root = above and (above == '' and '.' or above) or full:sub(1, -#tail - 2)
  end

  if self.block then
    self.bindings = {}
    local is_foreign = bare or self.contract ~= nil
    self.calls, self.aliases = redis_calls(self.block, is_foreign)
    for _, statement in ipairs(self.block) do
      add_bindings(self.bindings, statement, is_foreign)
    end
  end
  return self, findings
end

return script

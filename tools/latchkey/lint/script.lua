-- SPDX-License-Identifier: Apache-2.0
-- A script as the rules see it: text, header, syntax tree, and what is read off the tree once.
local paths = require('pl.path')

local fragments = require('latchkey.script.fragments')
local header = require('latchkey.script.header')
local lines = require('latchkey.script.lines')
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

-- Bindings of the form `local name = KEYS[i]`, and of all keys or arguments as one table.
local function binding(statement)
  local value = statement[1]
  if statement.tag ~= 'Local' or #statement ~= 1 or #statement.vars ~= 1 then
    return nil
  end
  for _, array in ipairs({ 'KEYS', 'ARGV' }) do
    if script.is_global(value, array) then
      return { array = array, source = value, var = statement.vars[1], line = statement.line }
    elseif value.tag == 'Index' and script.is_global(value[1], array) and
      value[2].tag == 'Number' then
      return { array = array, source = value[1], index = value[2].value, var = statement.vars[1],
        line = statement.line }
    end
  end
end

-- What is known of a command that is not written out: it may do anything with its key.
local CHOSEN = { type = 'any', access = 'w', keys = 'first' }

-- Calls of redis.call and redis.pcall; `within` is the local function around one.
local function redis_calls(block)
  local calls = {}
  local function search(node, within)
    within = node.tag == 'LocalFunction' and node.var.name or within
    local verb = node.tag == 'Call' and script.member(node[1], 'redis')
    if verb == 'call' or verb == 'pcall' then
      local name = node[2] and node[2].tag == 'String' and node[2].value or nil
      local command = CHOSEN
      if name then
        command = redis_commands[name]
      end
      calls[#calls + 1] = { node = node, verb = verb, name = name, within = within,
        command = command, line = node.line }
    end
    for _, child in ipairs(node) do
      search(child, within)
    end
  end
  search(block)
  return calls
end

---@param path string
---@param source string
---@return table script { path, source, lines, sha1, header?, block?, root?, calls, bindings }
---@return table[] findings of header and syntax: { line, rule, message }
function script.read(path, source)
  local self = { path = path, source = source, sha1 = digest.sha1(source) }
  self.lines = lines.split(source)
  self.copies, self.marker_problems = fragments.find(self.lines)
  local findings, wrong_header, wrong_code = {}
  -- The file may be named from within its own folder.
  local full = paths.abspath(path)
  self.header, wrong_header = header.parse(source, full)
  self.block, wrong_code = parser.parse(source)
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
    self.calls, self.bindings = redis_calls(self.block), {}
    for _, statement in ipairs(self.block) do
      self.bindings[#self.bindings + 1] = binding(statement)
    end
  end
  return self, findings
end

return script

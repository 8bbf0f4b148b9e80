-- SPDX-License-Identifier: Apache-2.0
-- The mutants of a script, each with a name that lasts as long as its line keeps its text.
local script_of = require('latchkey.lint.script')
local parser = require('latchkey.lua51.parser')
local digest = require('latchkey.digest')
local mutations = require('latchkey.mutate.mutations')

local mutants = {}

-- What stands in the bind block by its name: { array, field, kind }, and in order.
local function bound_names(script)
  local bound = {}
  for _, binding in ipairs(script.bindings) do
    local fields = binding.array == 'KEYS' and script.header.keys or script.header.argv
    local field = fields[binding.index or false]
    if field then
      local entry = { name = binding.var.name, array = binding.array, field = field,
        kind = field.kind == 'integer' and 'integer' or binding.array }
      bound[#bound + 1], bound[entry.name] = entry, entry
    end
  end
  return bound
end

local function is_binding(script, statement)
  for _, binding in ipairs(script.bindings) do
    if statement.vars and statement.vars[1] == binding.var then
      return true
    end
  end
  return false
end

-- The check of arguments: if statements at the top that refuse.
local function is_check(statement)
  local last = statement.tag == 'If' and statement[2][#statement[2]]
  local value = last and last.tag == 'Return' and last[1]
  return value and value.tag == 'Call' and script_of.member(value[1], 'redis') == 'error_reply'
    or false
end

local function copy_at(script, line)
  for _, copy in ipairs(script.copies) do
    if line > copy.first and line < copy.last then
      return copy
    end
  end
end

-- Every edit of a script, in source order.
local function edits(script)
  local list = {}
  local context = { source = script.source, tokens = script.tokens, header = script.header,
    bound = bound_names(script), outcomes = {} }
  function context.add(_, kind, line, from, to, text)
    if script.source:sub(from, to) ~= text then
      list[#list + 1] = { kind = kind, line = line, from = from, to = to, text = text }
    end
  end
  local function walk(node)
    local done = mutations.visit(context, node)
    local around = context.in_redis
    local verb = node.tag == 'Call' and script_of.member(node[1], 'redis')
    context.in_redis = verb == 'call' or verb == 'pcall' or node.tag == 'Call' and around
    for i, child in ipairs(node) do
      -- Behind command and key, no server looks at what a right is asked for.
      if not done[i] and not (verb == 'acl_check_cmd' and i > 3) then
        walk(child)
      end
    end
    context.in_redis = around
  end
  mutations.visit(context, script.block)
  for _, statement in ipairs(script.block) do
    if not is_binding(script, statement) then
      context.in_check = is_check(statement)
      walk(statement)
    end
  end
  return list
end

local function squeezed(text)
  return (text:gsub('%s+', ' '):match('^ ?(.-) ?$'))
end

-- Whose text, kind and the text of the line, and which it is where a line has several.
local function name_of(owner, edit, line_text, seen)
  local text = ('%s\n%s\n%s'):format(owner, edit.kind, squeezed(line_text))
  seen[text] = (seen[text] or 0) + 1
  return ('%s:%s:%s'):format(owner, edit.kind, digest.sha1(text .. '\n' .. seen[text]):sub(1, 8))
end

local function applied(source, edit)
  return source:sub(1, edit.from - 1) .. edit.text .. source:sub(edit.to + 1)
end

-- The lines that an edit changes, before and after.
local function shown(source, edit)
  local from = edit.from
  while from > 1 and source:sub(from - 1, from - 1) ~= '\n' do
    from = from - 1
  end
  local to = source:find('\n', edit.to, true) or #source
  return squeezed(source:sub(from, to)),
    squeezed(source:sub(from, edit.from - 1) .. edit.text .. source:sub(edit.to + 1, to))
end

local function read(path, source)
  local script = script_of.read(path, source)
  script.tokens = select(3, parser.parse(source))
  return script
end

-- An edit as a mutant; nil if it is no Lua.
local function new_mutant(script, edit, owner, line, seen)
  local id = name_of(owner, edit, script.lines[edit.line], seen)
  if not loadstring((applied(script.source, edit):gsub('^#', '--'))) then
    return nil
  end
  local before, after = shown(script.source, edit)
  return { id = id, script = owner, kind = edit.kind, line = line, before = before, after = after,
    variants = { { name = script.header.name, original = script.source, edit = edit } } }
end

---The text of a variant. It is made when it is asked for: the texts of all mutants are many
---megabytes, which each process that tries one would have to copy.
---@param variant table
---@return string
function mutants.source_of(variant)
  return applied(variant.original, variant.edit)
end

---The mutants of a script, but for those of the fragments in it.
---@param path string
---@param source string
---@return table[] mutants { id, script, kind, line, before, after, variants }; a variant is what
---  stands in a script's place, { name, original, edit = { from, to, text } }, see source_of
function mutants.of(path, source)
  local script = read(path, source)
  local list, seen = {}, {}
  for _, edit in ipairs(edits(script)) do
    if not copy_at(script, edit.line) then
      list[#list + 1] = new_mutant(script, edit, script.header.name, edit.line, seen)
    end
  end
  return list
end

-- The same edit in every other copy of a fragment.
local function spread(mutant, script, copy, edit, users)
  local start = script.source:find(copy.text, 1, true)
  for _, user in ipairs(users) do
    local first = user.source:find(copy.text, 1, true)
    if user.name ~= script.header.name and first then
      local by = first - start
      table.insert(mutant.variants, { name = user.name, original = user.source,
        edit = { from = edit.from + by, to = edit.to + by, text = edit.text } })
    end
  end
end

---The mutants of a fragment's text, each in all scripts that have a copy.
---@param name string
---@param users table[] scripts of lib.catalog that use it
---@return table[] mutants
function mutants.of_fragment(name, users)
  local script = read(users[1].path, users[1].source)
  local list, seen = {}, {}
  for _, edit in ipairs(edits(script)) do
    local copy = copy_at(script, edit.line)
    local mutant = copy and copy.name == name and new_mutant(script, edit, '_fragments/' .. name,
      edit.line - copy.first, seen)
    if mutant then
      spread(mutant, script, copy, edit, users)
      list[#list + 1] = mutant
    end
  end
  return list
end

---The mutants of scripts and of what they share.
---@param scripts table[] of lib.catalog
---@return table[] mutants
function mutants.of_all(scripts)
  local list, users, names = {}, {}, {}
  for _, script in ipairs(scripts) do
    for _, mutant in ipairs(mutants.of(script.path, script.source)) do
      list[#list + 1] = mutant
    end
    for _, name in ipairs(script.header.uses) do
      if not users[name] then
        users[name], names[#names + 1] = {}, name
      end
      table.insert(users[name], script)
    end
  end
  table.sort(names)
  for _, name in ipairs(names) do
    for _, mutant in ipairs(mutants.of_fragment(name, users[name])) do
      list[#list + 1] = mutant
    end
  end
  return list
end

return mutants

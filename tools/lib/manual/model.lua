-- SPDX-License-Identifier: Apache-2.0
-- What there is to say about a command, as its own parser has it: the one source of man pages,
-- shell completions and reference pages. Those of commands in C are read from their --help.
--
-- A model is { name, summary, usage, description, sections, notes, extra }. A section is
-- { title, rows }, or { title, text }: as it stands. A row is { names, value, text, choices } of an
-- option or { label, text, choices, words } of an argument; `extra` are options named in passing.
local cli = require('latchkey.cli')

local model = {}

---@param text string
---@return string[] paragraphs
local function paragraphs(text)
  local list = {}
  for block in (text .. '\n\n'):gmatch('(.-)\n\n+') do
    if block:find('%S') then
      list[#list + 1] = block
    end
  end
  return list
end

local function one_line(text)
  return (text:gsub('%s+', ' '):gsub('^ ', ''):gsub(' $', ''))
end

local function option_row(option)
  local value = #option:_get_argument_list() > 0 and option:_get_argname(1) or nil
  if option._choices then
    value = (option._argname or option._name:gsub('^%-+', '')):upper()
  end
  return { names = option._public_aliases, value = value and value:gsub('[<>]', ''):upper(),
    text = option:_get_description(), choices = option._choices }
end

local function argument_row(argument)
  return { label = argument._name, text = argument:_get_description(), choices = argument._choices }
end

---@param home string
---@param name string of a command in Lua
---@return table model
function model.of_command(home, name)
  local parser, command = cli.parser(home, name, {})
  local arguments, options = {}, {}
  for i, argument in ipairs(parser._arguments) do
    arguments[i] = argument_row(argument)
  end
  for _, option in ipairs(parser._options) do
    options[#options + 1] = not option._hidden and option_row(option) or nil
  end
  options[#options + 1] = { names = { '-h', '--help' }, text = 'This text.' }
  local usage = parser:get_usage():gsub('^Usage: ', '')
  local self = { name = name, summary = command.summary, server = command.server, usage = usage,
    description = one_line(parser._description), sections = {},
    notes = parser._epilog and { one_line(parser._epilog) } or {} }
  if command.words then
    arguments[1].words = command.words(home)
  end
  if #arguments > 0 then
    table.insert(self.sections, { title = 'Arguments', rows = arguments })
  end
  table.insert(self.sections, { title = 'Options', rows = options })
  return self
end

-- The row that begins in a line of a help; nil where none does.
local function row_of(line)
  local label, text = line:match('^  (%-.-)  +(%S.*)$')
  if not label then
    assert(not line:find('^  %-'), 'two blanks stand before the text of an option, in: ' .. line)
    return nil
  end
  local row = { names = {}, text = text }
  for word in label:gmatch('[^%s,]+') do
    if word:find('^%-') then
      table.insert(row.names, word)
    else
      row.value = word
    end
  end
  return row
end

-- The rows of a section of a help; nil where its lines are no options.
local function rows_of(lines)
  local rows = {}
  for _, line in ipairs(lines) do
    local row = row_of(line)
    if row then
      rows[#rows + 1] = row
    elseif #rows > 0 and line:find('^   ') then
      rows[#rows].text = rows[#rows].text .. ' ' .. one_line(line)
    else
      return nil
    end
  end
  return rows
end

-- Options that a help names only in passing, as "(--busy-exit N)", or among lines that are none.
local function in_passing(help, known)
  local rows = {}
  for line in help:gmatch('[^\n]+') do
    local row = row_of(line)
    if row and not known[row.names[1]] then
      known[row.names[1]] = true
      rows[#rows + 1] = row
    end
  end
  for option, value in help:gmatch('(%-%-%l[%l-]+) ?(%u?)') do
    if not known[option] then
      known[option] = true
      rows[#rows + 1] = { names = { option }, value = value ~= '' and value or nil, text = '' }
    end
  end
  return rows
end

---@param name string of a command in C
---@param summary string
---@param help string what its --help prints
---@return table model
function model.of_help(name, summary, help)
  local blocks = paragraphs(help)
  local self = { name = name, summary = summary, server = true,
    usage = blocks[1]:gsub('^Usage: ', ''), description = one_line(blocks[2]), sections = {},
    notes = {} }
  local known = {}
  for i = 3, #blocks do
    local title, rest = blocks[i]:match('^(%u[^\n]*)\n(  .*)$')
    if blocks[i]:find('^  %-') then
      title, rest = 'Options', blocks[i]
    end
    if title then
      local lines = {}
      for line in rest:gmatch('[^\n]+') do
        lines[#lines + 1] = line
      end
      local rows = rows_of(lines)
      for _, row in ipairs(rows or {}) do
        for _, option in ipairs(row.names) do
          known[option] = true
        end
      end
      table.insert(self.sections, { title = title, rows = rows, text = not rows and rest or nil })
    else
      table.insert(self.notes, one_line(blocks[i]))
    end
  end
  self.extra = in_passing(help, known)
  return self
end

---The models of all commands, by name.
---@param home string
---@param help_of fun(name: string): string what --help prints, of a command in C
---@return table[] models
function model.all(home, help_of)
  local models = {}
  for i, name in ipairs(cli.command_names(home)) do
    models[i] = cli.BUILT_IN[name] and model.of_help(name, cli.BUILT_IN[name], help_of(name))
      or model.of_command(home, name)
  end
  return models
end

---The rows of all options of a command.
---@param self table
---@return table[] rows
function model.options(self)
  local rows = {}
  for _, section in ipairs(self.sections) do
    for _, row in ipairs(section.rows or {}) do
      if row.names then
        rows[#rows + 1] = row
      end
    end
  end
  for _, row in ipairs(self.extra or {}) do
    rows[#rows + 1] = row
  end
  return rows
end

return model

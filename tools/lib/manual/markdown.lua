-- SPDX-License-Identifier: Apache-2.0
-- Reference pages of the commands, from their models.
local exits = require('latchkey.cli.exits')

local markdown = {}

local function cell(text)
  return (text:gsub('<', '&lt;'):gsub('[|*_]', '\\%0'))
end

local function label_of(row)
  if not row.names then
    return '`' .. row.label .. '`'
  end
  local words = {}
  for i, name in ipairs(row.names) do
    words[i] = '`' .. name .. (row.value and ' ' .. row.value or '') .. '`'
  end
  return table.concat(words, ', ')
end

---@param command table model
---@return string
function markdown.command(command)
  local out = { '# latchkey ' .. command.name, '', command.description, '', '```console',
    command.usage, '```', '' }
  for _, section in ipairs(command.sections) do
    out[#out + 1] = '## ' .. section.title .. '\n'
    if section.rows then
      out[#out + 1] = '| | |\n|---|---|'
      for _, row in ipairs(section.rows) do
        out[#out + 1] = ('| %s | %s |'):format(label_of(row), cell(row.text))
      end
      out[#out + 1] = ''
    else
      out[#out + 1] = '```console\n' .. section.text .. '\n```\n'
    end
  end
  if #command.notes > 0 then
    out[#out + 1] = '## Notes\n'
    for _, note in ipairs(command.notes) do
      out[#out + 1] = cell(note) .. '\n'
    end
  end
  return table.concat(out, '\n')
end

---@param commands table[] models
---@return string
function markdown.index(commands)
  local out = { '# Commands\n', 'From their own `--help`; the man pages say the same.\n',
    '| command | |', '|---|---|' }
  for _, command in ipairs(commands) do
    out[#out + 1] = ('| [%s](%s.md) | %s |'):format(command.name, command.name,
      cell(command.summary))
  end
  out[#out + 1] = '\n## Exit codes\n'
  out[#out + 1] = '| code | means | what to do |\n|---|---|---|'
  for _, exit in ipairs(exits) do
    out[#out + 1] = ('| %d | %s | %s |'):format(exit.code, cell(exit.text), cell(exit.hint))
  end
  return table.concat(out, '\n') .. '\n'
end

return markdown

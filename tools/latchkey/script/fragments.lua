-- SPDX-License-Identifier: Apache-2.0
-- The shared pieces of scripts: reference texts in _fragments/, and marked copies in the scripts.
local path = require('pl.path')
local utils = require('pl.utils')

local lines = require('latchkey.script.lines')

local fragments = {}

fragments.MAX_LINES = 36
fragments.MAX_PER_SCRIPT = 7

local OPEN = '^%-%->>> fragment ([a-z][a-z0-9_]*)$'
local CLOSE = '^%-%-<<< fragment ([a-z][a-z0-9_]*)$'

---The reference text of a fragment.
---@param folder string the folder of the scripts
---@param name string
---@return string|nil text
function fragments.read(folder, name)
  return (utils.readfile(path.join(folder, '_fragments', name .. '.lua'), true))
end

---The marked copies in a script.
---@param list string[] the script, line by line
---@return table[] copies { name, first, last, text }; first and last are the marker lines
---@return table[] problems { line, message }
function fragments.find(list)
  local copies, problems = {}, {}
  local open
  for number, line in ipairs(list) do
    local opened, closed = line:match(OPEN), line:match(CLOSE)
    local problem
    if opened then
      problem = open and ('fragment %s opens inside fragment %s'):format(opened, open.name)
      open = { name = opened, first = number }
    elseif closed and open and closed == open.name then
      open.last = number
      open.text = table.concat(list, '\n', open.first + 1, number - 1) .. '\n'
      copies[#copies + 1] = open
      open = nil
    elseif closed then
      problem = ('fragment %s closes here but does not open'):format(closed)
    elseif line:match('^%-%->>>') or line:match('^%-%-<<<') then
      problem = 'a marker is "-->>> fragment NAME" or "--<<< fragment NAME"'
    end
    if problem then
      problems[#problems + 1] = { line = number, message = problem }
    end
  end
  if open then
    problems[#problems + 1] =
      { line = open.first, message = ('fragment %s is never closed'):format(open.name) }
  end
  return copies, problems
end

---A script whose copies are those of the reference texts; the same text if all were.
---@param source string
---@param read fun(name: string): string|nil
---@return string
function fragments.refresh(source, read)
  local list = lines.split(source)
  local copies = fragments.find(list)
  for i = #copies, 1, -1 do
    local copy = copies[i]
    local text = read(copy.name)
    if text then
      for _ = copy.first + 1, copy.last - 1 do
        table.remove(list, copy.first + 1)
      end
      table.insert(list, copy.first + 1, (text:gsub('\n$', '')))
    end
  end
  return lines.join(list)
end

return fragments

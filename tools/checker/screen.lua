-- SPDX-License-Identifier: Apache-2.0
-- A run on one screen: a column for each client, one for the server, one for the keys that change.
local utils = require('pl.utils')

local screen = {}

local CLIENT, SERVER = 32, 26

local function cut(text, width)
  return #text > width and text:sub(1, width - 1) .. '>' or text .. (' '):rep(width - #text)
end

local function is_told(row, story)
  for _, letter in ipairs(story.letters) do
    if row.who == letter then
      return true
    end
  end
end

local function line_of(source, number)
  local at = 0
  for line in (source .. '\n'):gmatch('(.-)\n') do
    at = at + 1
    if at == number then
      return (line:gsub('^%s+', ''))
    end
  end
end

local function acting(story)
  local list, seen = {}, {}
  for _, row in ipairs(story.rows) do
    if row.who and is_told(row, story) and not seen[row.who] then
      seen[row.who] = true
      list[#list + 1] = row.who
    end
  end
  table.sort(list)
  return list
end

local function short(row)
  local words = row.does
  if row.script then
    local owner = row.does:match('lk%-%u:%d+%S*')
    words = (row.late and 'late ' or '') .. row.script .. (owner and ' ' .. owner or '')
  end
  return words .. (row.state and ': ' .. row.state or '')
end

local function show_row(row, letters)
  local keys = {}
  for i, change in ipairs(row.changes) do
    keys[i] = change.key .. ' = ' .. change.now
  end
  if row.passes and #keys == 0 then
    return nil
  end
  local line = cut(tostring(row.at_ms + (row.passes or 0)), 6)
  for _, letter in ipairs(letters) do
    line = line .. cut(row.who == letter and short(row) or '', CLIENT - 1) .. ' '
  end
  local server = row.answer or row.who == 'server' and row.does or row.passes and 'a lease ends'
    or ''
  return (line .. cut(server, SERVER - 1) .. ' ' .. table.concat(keys, '; ')):gsub('%s+$', '')
end

local function show_blame(blame)
  local path = ('%s/%s.lua'):format(blame.scripts, blame.script)
  local source = utils.readfile(path, true) or ''
  return ('%s:%d: %s'):format(path, blame.line or 0, line_of(source, blame.line) or '')
end

---@param told table of story.of
---@param options { scripts: string, replay: string, model: string, hints: string|nil }
---@return string
function screen.show(told, options)
  local letters, lines = acting(told), {}
  local finding = told.finding
  if finding then
    lines[1], lines[2] = ('%s violated: %s'):format(finding.property, finding.message), ''
  end
  local head = cut('ms', 6)
  for _, letter in ipairs(letters) do
    head = head .. cut(letter, CLIENT)
  end
  lines[#lines + 1] = head .. cut('server', SERVER) .. 'keys that change'
  for _, row in ipairs(told.rows) do
    lines[#lines + 1] = show_row(row, letters)
  end
  if told.blame then
    lines[#lines + 1] = ''
    lines[#lines + 1] = show_blame(told.blame)
  end
  lines[#lines + 1] = ('again: latchkey check %s %s--replay \'%s\''):format(options.model,
    options.hints and options.hints .. ' ' or '', options.replay)
  return table.concat(lines, '\n') .. '\n'
end

return screen

-- SPDX-License-Identifier: Apache-2.0
-- A run on one screen: a column for each client, one for the server, one for the keys that change.
local tablex = require('pl.tablex')
local utils = require('pl.utils')

local screen = {}

-- Where a terminal is too narrow for the longest of a column, it is cut to these.
local CLIENT, SERVER, AT = 32, 26, 6

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

-- The cells of a row: the time, one for each client, the server's, the keys that change.
local function cells_of(row, letters)
  local keys, cells = {}, { tostring(row.at_ms + (row.passes or 0)) }
  for i, change in ipairs(row.changes) do
    keys[i] = change.key .. ' = ' .. change.now
  end
  if row.passes and #keys == 0 then
    return nil
  end
  for _, letter in ipairs(letters) do
    cells[#cells + 1] = row.who == letter and short(row) or ''
  end
  cells[#cells + 1] = row.answer or row.who == 'server' and row.does
    or row.passes and 'a lease ends' or ''
  cells[#cells + 1] = table.concat(keys, '; ')
  return cells
end

local function table_of(told, letters)
  local head = tablex.copy(letters)
  table.insert(head, 1, 'ms')
  tablex.insertvalues(head, { 'server', 'keys that change' })
  local rows = { head }
  for _, row in ipairs(told.rows) do
    rows[#rows + 1] = cells_of(row, letters)
  end
  return rows
end

-- As wide as its longest cell and a blank, if all of them fit into `width`.
local function widths_of(rows, width)
  local widths, total = {}, 0
  for place = 1, #rows[1] do
    widths[place] = 0
    for _, cells in ipairs(rows) do
      widths[place] = math.max(widths[place], #cells[place] + 1)
    end
    total = total + widths[place]
  end
  if width and total > width then
    for place = 2, #widths - 1 do
      widths[place] = math.min(widths[place], place < #widths - 1 and CLIENT or SERVER)
    end
  end
  widths[1] = math.max(widths[1], AT)
  return widths
end

local function show_table(rows, width)
  local widths, lines = widths_of(rows, width), {}
  for i, cells in ipairs(rows) do
    local line = ''
    for place = 1, #cells - 1 do
      line = line .. cut(cells[place], widths[place] - 1) .. ' '
    end
    lines[i] = (line .. cells[#cells]):gsub('%s+$', '')
  end
  return lines
end

local function show_blame(blame)
  local path = ('%s/%s.lua'):format(blame.scripts, blame.script)
  local source = utils.readfile(path, true) or ''
  local lines = { ('%s:%d: %s'):format(path, blame.line or 0, line_of(source, blame.line) or '') }
  for _, other in ipairs(blame.others) do
    lines[#lines + 1] = ('  line %d %s: %s'):format(other.line, other.what,
      line_of(source, other.line) or '')
  end
  return table.concat(lines, '\n')
end

---@param told table of story.of
---@param options { scripts: string, replay: string, model: string, hints: string|nil,
---  width: integer|nil } `width` of the terminal; without one no column is cut
---@return string
function screen.show(told, options)
  local letters, lines = acting(told), {}
  local finding = told.finding
  if finding then
    lines[1], lines[2] = ('%s violated: %s'):format(finding.property, finding.message), ''
  end
  tablex.insertvalues(lines, show_table(table_of(told, letters), options.width))
  if told.blame then
    lines[#lines + 1] = ''
    lines[#lines + 1] = show_blame(told.blame)
  end
  lines[#lines + 1] = ('again: latchkey check %s %s--replay \'%s\''):format(options.model,
    options.hints and options.hints .. ' ' or '', options.replay)
  return table.concat(lines, '\n') .. '\n'
end

return screen

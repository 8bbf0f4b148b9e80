-- SPDX-License-Identifier: Apache-2.0
-- The tables of docs/explanation/phases.md, from c/src/harness/phases.h and phases.c.
--   luajit tools/lib/phases.lua           prints them
--   luajit tools/lib/phases.lua --write   puts them into the page
local utils = require('pl.utils')

local HEADER, TABLE = 'c/src/harness/phases.h', 'c/src/harness/phases.c'
local PAGE = 'docs/explanation/phases.md'
local BEGIN, END = '<!-- phases: made by tools/lib/phases.lua -->\n', '<!-- end of phases -->\n'

local MACHINES = {
  { word = 'ACQUIRES', title = 'An acquire of a lock' },
  { word = 'COUNTS', title = 'A call on what is counted, or on what else is no lock' },
  { word = 'WATCHES', title = 'A watch, which renews a lease' },
}

local phases = {}

-- GIVING_BACK: giving back
local function said(word)
  return (word:lower():gsub('_', ' '))
end

-- The names and comments of an enum, in their order.
local function legend(header, prefix)
  local found = {}
  for word, comment in header:gmatch('\n  ' .. prefix .. '([%u_]+)[^\n/]*/%* ([^\n]-) %*/') do
    found[#found + 1] = { word = word, comment = comment }
  end
  return found
end

local function words(text)
  local found = {}
  for word in text:gmatch('[%u_]+') do
    found[#found + 1] = word
  end
  return found
end

-- The rows of the table, in the order in which they are looked at.
local function rows(source)
  local found = {}
  local body = assert(source:match('rows%[%] = (%b{});'), TABLE .. ' has no rows')
  for line in body:sub(2):gmatch('[^\n]+') do
    local machines, at, happened, next =
      line:match('^%s+{([^,]+), ([^,]+), ([^,]+), LK_NEXT_([%u_]+)},$')
    if machines then
      found[#found + 1] = { machines = words(machines), phases = words(at),
        happened = words(happened), next = next }
    else
      assert(not line:find('LK_NEXT', 1, true), 'not a row on one line: ' .. line)
    end
  end
  return found
end

local function has(list, word)
  for _, one in ipairs(list) do
    if one == word then
      return true
    end
  end
  return false
end

local function list(found)
  local names = {}
  for i, word in ipairs(found) do
    names[i] = said(word)
  end
  return table.concat(names, ', ')
end

local function table_of(machine, all)
  local lines = { ('| in phase | what happens | what it does |\n|---|---|---|'):format() }
  for _, row in ipairs(all) do
    if has(row.machines, machine.word) then
      lines[#lines + 1] = ('| %s | %s | %s |'):format(list(row.phases), list(row.happened),
        said(row.next))
    end
  end
  return ('### %s\n\n%s\n'):format(machine.title, table.concat(lines, '\n'))
end

local function legend_table(title, found)
  local lines = { ('| %s | meaning |\n|---|---|'):format(title) }
  for _, one in ipairs(found) do
    lines[#lines + 1] = ('| %s | %s |'):format(said(one.word), one.comment)
  end
  return table.concat(lines, '\n') .. '\n'
end

-- Markdown, from the texts of the two files.
function phases.render(header, source)
  local all, parts = rows(source), {}
  for _, machine in ipairs(MACHINES) do
    parts[#parts + 1] = table_of(machine, all)
  end
  parts[#parts + 1] = '### Words\n\n' .. legend_table('phase', legend(header, 'LK_PHASE_'))
  parts[#parts + 1] = legend_table('what happens', legend(header, 'LK_HAPPENED_'))
  parts[#parts + 1] = legend_table('what it does', legend(header, 'LK_NEXT_'))
  return table.concat(parts, '\n')
end

-- The page with these tables in their place.
function phases.put(page, tables)
  local from, to = page:find(BEGIN, 1, true), page:find(END, 1, true)
  assert(from and to, PAGE .. ' has no place for the tables')
  return page:sub(1, from + #BEGIN - 1) .. '\n' .. tables .. '\n' .. page:sub(to)
end

if arg and arg[0] and arg[0]:find('phases.lua', 1, true) then
  local tables = phases.render(assert(utils.readfile(HEADER)), assert(utils.readfile(TABLE)))
  if arg[1] == '--write' then
    assert(utils.writefile(PAGE, phases.put(assert(utils.readfile(PAGE)), tables)))
  else
    io.write(tables)
  end
end

return phases

-- SPDX-License-Identifier: Apache-2.0
-- Rules on the text of a script.
local fragments = require('latchkey.script.fragments')
local parser = require('latchkey.lua51.parser')

local COLUMNS = 100
local LINES = 130

local function width(script, report)
  for number, line in ipairs(script.lines) do
    local _, continuation = line:gsub('[\128-\191]', '')
    if #line - continuation > COLUMNS then
      report(number, ('%d columns; break the line'):format(#line - continuation))
    end
  end
end

-- Fragments are left out: a reader knows them from other scripts.
local function size(script, report)
  local count = #script.lines
  for _, copy in ipairs(script.copies) do
    count = count - (copy.last - copy.first + 1)
  end
  if count > LINES then
    report(#script.lines, ('%d lines beside fragments; split the script'):format(count))
  end
end

local function blanks(script, report)
  for number, line in ipairs(script.lines) do
    if line:find('[\t\r]') then
      report(number, 'a tab or carriage return; indent by two spaces, end lines with \\n')
    elseif line:find(' $') then
      report(number, 'spaces at the end of the line; remove them')
    end
  end
  if script.source:sub(-1) ~= '\n' then
    report(#script.lines, 'the last line has no end; add a line end')
  end
end

-- What reads a script as text of C would end there.
local function bytes(script, report)
  for number, line in ipairs(script.lines) do
    if line:find('%z') then
      report(number, 'a NUL byte; remove it')
    end
  end
end

local function quotes(script, report)
  parser.walk(script.block, function(node)
    if node.tag == 'String' and node.text and node.text:sub(1, 1) == '"'
      and not node.value:find("'", 1, true) then
      report(node.line, ('%s; write it with single quotes'):format(node.text))
    end
  end)
end

local function conditions(script, report)
  parser.walk(script.block, function(node)
    local last = node.tag == 'If' and #node or node.tag == 'While' and 1 or 0
    for i = 1, last, 2 do
      if node[i].tag == 'Paren' then
        report(node[i].line, 'parentheses around a condition; remove them')
      end
    end
  end)
end

local function check_copy(script, copy, report)
  local text = fragments.read(script.root, copy.name)
    or script.home and fragments.read(script.home, copy.name)
  if not text then
    report(copy.first, ('there is no fragment %s; add _fragments/%s.lua'):format(copy.name,
      copy.name))
  elseif text ~= copy.text then
    report(copy.first, ('this is not the text of _fragments/%s.lua; run latchkey fragments --write')
      :format(copy.name))
  end
  if copy.last - copy.first - 1 > fragments.MAX_LINES then
    report(copy.first, ('fragment %s has %d lines, at most %d are allowed'):format(copy.name,
      copy.last - copy.first - 1, fragments.MAX_LINES))
  end
end

local function fragment(script, report)
  for _, problem in ipairs(script.marker_problems) do
    report(problem.line, problem.message)
  end
  if #script.copies > fragments.MAX_PER_SCRIPT then
    report(script.copies[#script.copies].first,
      ('%d fragments, at most %d are allowed'):format(#script.copies, fragments.MAX_PER_SCRIPT))
  end
  local names = {}
  for i, copy in ipairs(script.copies) do
    names[i] = copy.name
    check_copy(script, copy, report)
  end
  local there, uses = table.concat(names, ', '), table.concat(script.header.uses, ', ')
  if there ~= uses then
    report(script.header.lines.uses or script.header.first_code_line,
      ('the header uses "%s", the script has "%s"; make them agree, in one order'):format(uses,
        there))
  end
end

return {
  { id = 'width', wants = 'no line is longer than 100 columns; break longer ones', check = width },
  { id = 'size', wants = 'a script has at most 130 lines beside its fragments; split a longer one',
    check = size },
  { id = 'blanks', wants = 'no tabs, carriage returns or trailing spaces; end the last line',
    check = blanks },
  { id = 'bytes', wants = 'a script has no NUL byte; remove it', check = bytes },
  { id = 'quotes', wants = 'strings stand in single quotes', needs = 'block', check = quotes },
  { id = 'conditions', wants = 'no parentheses around a whole condition', needs = 'block',
    check = conditions },
  { id = 'fragment', needs = 'header', check = fragment,
    wants = 'shared pieces equal _fragments/ and stand in "uses:"; latchkey fragments --write' },
}

-- SPDX-License-Identifier: Apache-2.0
-- How large the files and functions of C are, and which names stand in two places: read from the
-- source as clang-format lays it out, where a definition begins in the first column and ends with a
-- brace there.
local stringx = require('pl.stringx')

local rooms = {}

rooms.LINES_MAX = 500
rooms.BODY_MAX = 60
rooms.PARAMETERS_MAX = 6

-- Between the outermost parentheses: how many, at commas that are in no others.
local function count_parameters(list)
  if list:match('^%s*void%s*$') or list:match('^%s*$') then
    return 0
  end
  local flat = list:gsub('%b()', ''):gsub('%b[]', '')
  local _, commas = flat:gsub(',', '')
  return commas + 1
end

-- A definition's first lines, up to its brace: its name, parameters, and whether it is static.
local function read_head(head)
  local flat = head:gsub('LK_[A-Z_]+%b()', ''):gsub('%f[%w_]LK_[A-Z_]+%f[^%w_]', '')
  local before, list = flat:match('^([%w_%s%*]-)(%b())%s*{')
  local name = before and before:match('([%w_]+)$')
  if name then
    return { name = name, parameters = count_parameters(list:sub(2, -2)),
      is_static = before:match('^%s*static%s') ~= nil or before:match('%f[%w]static%s') ~= nil }
  end
end

---The functions that a text of C defines.
---@param text string
---@return { name: string, parameters: integer, is_static: boolean, line: integer,
---  lines: integer }[]
function rooms.functions(text)
  local list, head, first, open = {}, nil, nil, nil
  for number, line in ipairs(stringx.splitlines(text)) do
    if open then
      if line:find('^}') then
        open.lines = number - open.line + 1
        list[#list + 1], open = open, nil
      end
    elseif head or line:find('^[%a_]') then
      first = head and first or number
      head = (head and head .. ' ' or '') .. line
      if head:find('{') then
        local one = read_head(head)
        local is_whole = head:find('}%s*$')
        if one and is_whole then
          one.line, one.lines = first, number - first + 1
          list[#list + 1] = one
        elseif one then
          one.line, open = first, one
        end
        head = nil
      elseif head:find(';') then
        head = nil
      end
    end
  end
  return list
end

-- Findings of one file go to say(key, text); a key is what an exception is listed by.
local function check_file(path, text, rules, say)
  local _, lines = text:gsub('\n', '')
  if lines > rooms.LINES_MAX then
    say(path, ('%s has %d lines; %d are enough'):format(path, lines, rooms.LINES_MAX))
  end
  for pattern, folder in pairs(rules.refused or {}) do
    if not path:find(folder, 1, true) and text:find(pattern) then
      say(path, ('%s names %s; only %s may'):format(path, text:match(pattern), folder))
    end
  end
end

local function check_function(path, one, rules, say)
  local place = ('%s:%d: %s()'):format(path, one.line, one.name)
  if one.lines > rooms.BODY_MAX then
    say(path .. ':' .. one.name,
      ('%s has %d lines; %d are enough'):format(place, one.lines, rooms.BODY_MAX))
  end
  if one.parameters > rooms.PARAMETERS_MAX and not (rules.public or {})[one.name] then
    say(path .. ':' .. one.name,
      ('%s has %d parameters; %d are enough'):format(place, one.parameters, rooms.PARAMETERS_MAX))
  end
end

---@param files { [1]: string, [2]: string }[] path and text of each file
---@param rules { excepted?: string[], public?: table<string, boolean>,
---  refused?: table<string, string> } public: functions whose parameters a header has promised;
---  refused: a pattern, and in which folder alone it may stand
---@return string[] findings
function rooms.check(files, rules)
  local findings, excepted, homes, used = {}, {}, {}, {}
  for _, key in ipairs(rules.excepted or {}) do
    excepted[key] = true
  end
  local function say(key, text)
    used[key] = true
    if not excepted[key] then
      findings[#findings + 1] = text
    end
  end
  for _, file in ipairs(files) do
    local path, text = file[1], file[2]
    check_file(path, text, rules, say)
    for _, one in ipairs(path:find('%.c$') and rooms.functions(text) or {}) do
      check_function(path, one, rules, say)
      local home = homes[one.name]
      if one.is_static and home and home ~= path then
        say(one.name, ('%s:%d: %s() stands in %s, too: a name means one thing'):format(path,
          one.line, one.name, home))
      end
      homes[one.name] = home or path
    end
  end
  for _, key in ipairs(rules.excepted or {}) do
    if not used[key] then
      findings[#findings + 1] = key .. ' needs no exception any more: remove it'
    end
  end
  return findings
end

return rooms

-- SPDX-License-Identifier: Apache-2.0
-- The ledger of released scripts: released.tsv, one row for each (name, version) ever released.
local utils = require('pl.utils')

local ledger = {}

ledger.FILE = 'released.tsv'
ledger.HEAD = '# name\tversion\tsha1\tsince\n'

local function numbers(version)
  local major, minor, patch = version:match('^(%d+)%.(%d+)%.(%d+)$')
  return { tonumber(major), tonumber(minor), tonumber(patch) }
end

---Is version a above version b?
---@param a string
---@param b string
---@return boolean
function ledger.above(a, b)
  local left, right = numbers(a), numbers(b)
  for i = 1, 3 do
    if left[i] ~= right[i] then
      return left[i] > right[i]
    end
  end
  return false
end

---@param text string the ledger
---@return table[] rows { name, version, sha1, since, line }
---@return table[] problems { line, message }
function ledger.parse(text)
  local rows, problems, seen, last = {}, {}, {}, {}
  local function problem(line, message)
    problems[#problems + 1] = { line = line, message = message }
  end

  if text:sub(1, #ledger.HEAD) ~= ledger.HEAD or text:sub(-1) ~= '\n' then
    problem(1, 'the ledger starts with the line of its columns and ends with a line end')
  end
  local number = 1
  for line in text:gsub('^[^\n]*\n', ''):gmatch('([^\n]*)\n') do
    number = number + 1
    local name, version, sha1, since =
      line:match('^([%w_/]+)\t(%d+%.%d+%.%d+)\t(%x+)\t(%d+%.%d+%.%d+)$')
    if not name or #sha1 ~= 40 then
      problem(number, 'a row is name, version, SHA-1 and toolkit version, separated by tabs')
    else
      local id = name .. ' ' .. version
      if seen[id] then
        problem(number, ('%s is released in line %d already'):format(id, seen[id]))
      elseif last[name] and not ledger.above(version, last[name]) then
        problem(number, ('%s is not above the released %s'):format(id, last[name]))
      end
      seen[id], last[name] = number, version
      rows[#rows + 1] =
        { name = name, version = version, sha1 = sha1, since = since, line = number }
    end
  end
  return rows, problems
end

---The rows of one script: the one of its version, and the newest.
---@param rows table[]
---@param name string
---@param version string
---@return table|nil same
---@return table|nil newest
function ledger.find(rows, name, version)
  local same, newest
  for _, row in ipairs(rows) do
    if row.name == name then
      newest = row
      same = row.version == version and row or same
    end
  end
  return same, newest
end

---The ledger as it was released: at the newest tag that HEAD has, else at HEAD.
---@param folder string where the ledger is
---@return string|nil text nil outside of git, or where the ledger is new
function ledger.committed(folder)
  local git = ('git -C %s '):format(utils.quote_arg(folder))
  local tagged, _, tag = utils.executeex(git .. 'describe --tags --abbrev=0')
  local commit = tagged and tag:match('%S+') or 'HEAD'
  local ok, _, text = utils.executeex(git .. 'show ' .. commit .. ':./' .. ledger.FILE, true)
  return ok and text or nil
end

return ledger

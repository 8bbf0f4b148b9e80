-- SPDX-License-Identifier: Apache-2.0
-- What llvm-cov counted of the branches of the library: how many were taken, by folder, and which
-- were not. Reasons for those are in branches.tsv beside this file: file (or *), a part of a line,
-- the reason.
local here = arg and arg[0]:match('^(.*)/lib/[^/]*$')
if here then
  package.path = ('%s/?.lua;%s/?/init.lua;%s'):format(here, here, package.path)
end

local cjson = require('cjson')
local stringx = require('pl.stringx')
local tablex = require('pl.tablex')
local utils = require('pl.utils')

local branches = {}

---The reasons of a table: rows of file, part of a line, reason.
---@param text string
---@return table[]
function branches.reasons(text)
  local list = {}
  for _, line in ipairs(stringx.splitlines(text)) do
    local file, part, reason = line:match('^([^\t]+)\t([^\t]+)\t([^\t]+)$')
    if file and file ~= 'file' then
      list[#list + 1] = { file = file, part = part, reason = reason, times = 0 }
    end
  end
  return list
end

local function reason_for(reasons, file, line)
  for _, row in ipairs(reasons) do
    if (row.file == '*' or row.file == file) and line:find(row.part, 1, true) then
      row.times = row.times + 1
      return row.reason
    end
  end
end

---Counts both sides of each branch below c/src.
---@param export table as `llvm-cov export` writes it
---@param read fun(file: string): string[] lines of a source
---@param reasons table[]
---@return table { taken, all, folders, missed }; missed: { file, line, side, text, reason }
function branches.count(export, read, reasons)
  local result = { taken = 0, all = 0, folders = {}, missed = {} }
  for _, entry in ipairs(export.data[1].files) do
    local file = entry.filename:match('/c/src/(.*)$')
    local folder = file and file:match('^[^/]+')
    local lines = file and #entry.branches > 0 and read(entry.filename)
    for _, branch in ipairs(file and entry.branches or {}) do
      local sum = result.folders[folder] or { taken = 0, all = 0 }
      result.folders[folder] = sum
      for i, side in ipairs({ 'true', 'false' }) do
        local was_taken = branch[4 + i] > 0
        result.all, sum.all = result.all + 1, sum.all + 1
        if was_taken then
          result.taken, sum.taken = result.taken + 1, sum.taken + 1
        else
          local text = stringx.strip(lines[branch[1]] or '')
          result.missed[#result.missed + 1] = { file = file, line = branch[1], column = branch[2],
            side = side, text = text, reason = reason_for(reasons, file, text) }
        end
      end
    end
  end
  return result
end

---The share as it is said: cut, so that it is never said to be more than it is.
---@return string percent with one decimal
function branches.share(part)
  return part.all > 0 and ('%.1f'):format(math.floor(part.taken * 1000 / part.all) / 10) or '-'
end

local function by_reason(missed)
  local sums, names = {}, {}
  for _, branch in ipairs(missed) do
    local reason = branch.reason or 'no reason is written down'
    if not sums[reason] then
      names[#names + 1] = reason
    end
    sums[reason] = (sums[reason] or 0) + 1
  end
  table.sort(names, function(a, b)
    return sums[a] > sums[b] or sums[a] == sums[b] and a < b
  end)
  return names, sums
end

local function main(argv)
  local least, list = 0, false
  for i, word in ipairs(argv) do
    least = word == '--least' and tonumber(argv[i + 1]) or least
    list = list or word == '--list'
  end
  local reasons = branches.reasons(utils.readfile(here .. '/lib/branches.tsv') or '')
  local result = branches.count(cjson.decode(assert(utils.readfile(argv[1]))),
    utils.readlines, reasons)
  if list then
    for _, branch in ipairs(result.missed) do
      print(('%s:%d:%d  %-5s  %s%s'):format(branch.file, branch.line, branch.column, branch.side,
        branch.text, branch.reason and '  -- ' .. branch.reason or ''))
    end
  end
  for folder, sum in tablex.sort(result.folders) do
    print(('%-8s %5s %% of %5d'):format(folder, branches.share(sum), sum.all))
  end
  local names, sums = by_reason(result.missed)
  for _, name in ipairs(names) do
    print(('not taken: %4d  %s'):format(sums[name], name))
  end
  local idle = 0
  for _, row in ipairs(reasons) do
    if row.times == 0 then
      idle = idle + 1
      io.stderr:write(('coverage: branches.tsv has a reason for nothing: %s, %s\n'):format(row.file,
        row.part))
    end
  end
  print(('%s %% of %d branches of c/src'):format(branches.share(result), result.all))
  return (result.taken * 100 < least * result.all or idle > 0) and 1 or 0
end

if here then
  os.exit(main(arg))
end
return branches

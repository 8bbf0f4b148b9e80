-- SPDX-License-Identifier: Apache-2.0
-- What llvm-cov counted of the branches of the library: how many were taken, by folder, and which
-- were not. Reasons for those are in branches.tsv beside this file: file (or *), a part of a line,
-- the side, how often, the reason. `never`: no run takes them. `some runs`: it depends on who comes
-- first.
local here = arg and arg[0]:match('^(.*)/lib/[^/]*$')
if here then
  package.path = ('%s/?.lua;%s/?/init.lua;%s'):format(here, here, package.path)
end

local cjson = require('cjson')
local stringx = require('pl.stringx')
local tablex = require('pl.tablex')
local utils = require('pl.utils')

local branches = {}

---The reasons of a table: rows of file, part of a line, side (true, false, any), runs (never, some
---runs), reason.
---@param text string
---@return table[]
function branches.reasons(text)
  local list = {}
  for number, line in ipairs(stringx.splitlines(text)) do
    local row = stringx.split(line, '\t')
    local file, part, side, runs, reason = unpack(row)
    if number > 1 and line ~= '' then
      local known = (side == 'true' or side == 'false' or side == 'any')
        and (runs == 'never' or runs == 'some runs') and reason and reason ~= '' and #row == 5
      assert(known, ('branches.tsv:%d is not understood'):format(number))
      list[#list + 1] = { file = file, part = part, side = side, runs = runs, reason = reason,
        branches = 0, times = 0 }
    end
  end
  return list
end

-- The first row that is about this side. Each that is about it has code, and one more to excuse if
-- it was not taken.
local function reason_for(reasons, file, line, side, was_taken)
  local first
  for _, row in ipairs(reasons) do
    if (row.file == '*' or row.file == file) and (row.side == 'any' or row.side == side)
      and line:find(row.part, 1, true) then
      row.branches = row.branches + 1
      row.times = row.times + (was_taken and 0 or 1)
      first = first or row
    end
  end
  return first
end

-- What a header defines is counted in each file that includes it: of one place all counts are one
-- branch.
local function places_of(entry)
  local list, known = {}, {}
  for _, branch in ipairs(entry.branches) do
    local key = table.concat(branch, ':', 1, 4)
    local place = known[key]
    if not place then
      place = { line = branch[1], column = branch[2], 0, 0 }
      known[key], list[#list + 1] = place, place
    end
    place[1], place[2] = place[1] + branch[5], place[2] + branch[6]
  end
  return list
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
    for _, place in ipairs(file and places_of(entry) or {}) do
      local sum = result.folders[folder] or { taken = 0, all = 0 }
      local text = stringx.strip(lines[place.line] or '')
      result.folders[folder] = sum
      for i, side in ipairs({ 'true', 'false' }) do
        local row = reason_for(reasons, file, text, side, place[i] > 0)
        result.all, sum.all = result.all + 1, sum.all + 1
        if place[i] > 0 then
          result.taken, sum.taken = result.taken + 1, sum.taken + 1
        else
          result.missed[#result.missed + 1] = { file = file, line = place.line,
            column = place.column, side = side, text = text, reason = row and row.reason }
        end
      end
    end
  end
  return result
end

---What is wrong with these figures and their reasons: a branch that was not taken and has no
---reason, a reason whose code is gone, one that no run should take and this one has.
---@param result table of branches.count()
---@param reasons table[] that it was given
---@return string[] sentences
function branches.wrong(result, reasons)
  local list = {}
  for _, row in ipairs(reasons) do
    local about = ('branches.tsv, %s, %s'):format(row.file, row.part)
    if row.branches == 0 then
      list[#list + 1] = about .. ': there is no such branch any more'
    elseif row.times == 0 and row.runs == 'never' then
      list[#list + 1] = about .. ': was taken, so the reason is not true'
    end
  end
  for _, branch in ipairs(result.missed) do
    if not branch.reason then
      list[#list + 1] = ('c/src/%s:%d:%d is never %s, and branches.tsv has no reason: %s'):format(
        branch.file, branch.line, branch.column, branch.side, branch.text)
    end
  end
  return list
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
  local wrong = branches.wrong(result, reasons)
  for _, sentence in ipairs(wrong) do
    io.stderr:write('coverage: ', sentence, '\n')
  end
  print(('%s %% of %d branches of c/src'):format(branches.share(result), result.all))
  return (result.taken * 100 < least * result.all or #wrong > 0) and 1 or 0
end

if here then
  os.exit(main(arg))
end
return branches

-- SPDX-License-Identifier: Apache-2.0
-- The commands that pages name and do not run, in the text or where they only show: there is such a
-- command, and it has these options. The files that they name are there, too.
local dir = require('pl.dir')
local path = require('pl.path')
local stringx = require('pl.stringx')
local utils = require('pl.utils')

local document = require('documents.document')
local program = require('cli.program')

-- Fences whose lines are commands that are not run here; "" may hold anything.
local SHOWN = { [''] = true, console = true, crontab = true, build = true, debian = true }

local files = { 'README.md', 'CONTRIBUTING.md', 'c/packaging/README.md' }
for _, file in ipairs(dir.getallfiles(program.root .. '/docs', '*.md')) do
  files[#files + 1] = path.relpath(file, program.root)
end
table.sort(files)

-- Lines that may have commands: { text, where }.
local function lines_of(file)
  local full, list = program.root .. '/' .. file, {}
  for _, block in ipairs(document.blocks(full)) do
    if SHOWN[block.kind] then
      for line in block.text:gsub('\\\n', ' '):gmatch('[^\n]+') do
        list[#list + 1] = { text = line, where = ('%s:%d'):format(file, block.line) }
      end
    end
  end
  local text = assert(utils.readfile(full)):gsub('```.-\n```', '')
  for span in text:gmatch('`([^`]+)`') do
    list[#list + 1] = { text = span:gsub('%s+', ' '), where = file }
  end
  return list
end

-- The calls of latchkey and of tools/ in a line: arrays of words, without what comes behind `--`.
local function calls_in(line)
  local calls = {}
  local text = line:gsub('^%$ ', ''):gsub('%s#%s.*', ''):gsub('[()]', ' ')
  for part in text:gsub('&&', '\n'):gsub('|', '\n'):gsub(';', '\n'):gmatch('[^\n]+') do
    local words = stringx.split((part:gsub(' %-%- .*', '')))
    while words[1] and (words[1]:find('^[%d*]+$') or words[1]:find('^[%u_]+=')) do
      table.remove(words, 1) -- of a crontab, or a variable
    end
    if words[1] == 'sudo' then
      table.remove(words, 1)
    end
    if words[1] == 'latchkey' or (words[1] or ''):find('^tools/[%l-]+$') then
      calls[#calls + 1] = words
    end
  end
  return calls
end

local helps = {}
local function help_of(...)
  local key = table.concat({ ... }, ' ')
  if not helps[key] then
    local words = { ... }
    local name = table.remove(words, 1)
    local full = name == 'latchkey' and program.path or path.join(program.root, name)
    words[#words + 1] = '--help'
    local result = program.start_any(full, words):wait()
    helps[key] = result.code == 0 and result.out .. '\n' or false
  end
  return helps[key]
end

-- Why a call cannot be made; nothing if it can.
local function wrong(words)
  local command, first = { words[1] }, 2
  local there = path.exists(path.join(program.root, words[1]))
  if words[1] == 'latchkey' and words[2] and words[2]:find('^%l') then
    command[2], first = words[2], 3
  elseif words[1] == 'latchkey' and words[2] and not words[2]:find('^%-') then
    return nil -- `latchkey COMMAND`
  elseif words[1] ~= 'latchkey' and (#words == 1 or path.isdir(there or '')) then
    return not there and 'is not there' or nil
  end
  local help = help_of(unpack(command))
  if not help then
    return 'is no command'
  end
  for i = first, #words do
    local option = words[i]:match('^%[?(%-%-[%l-]+)') or words[i]:match('^(%-%a)$')
    if option and not help:find((option:gsub('%-', '%%-')) .. '%f[^%w-]') then
      return 'has no option ' .. option
    end
  end
end

describe('what pages name and do not run', function()
  teardown(program.clean)

  it('can be run', function()
    local found, count = {}, 0
    for _, file in ipairs(files) do
      for _, line in ipairs(lines_of(file)) do
        for _, words in ipairs(calls_in(line.text)) do
          local why = wrong(words)
          count = count + 1
          if why then
            found[#found + 1] = ('%s: `%s` %s'):format(line.where, line.text, why)
          end
        end
      end
    end

    assert.same({}, found)
    assert.is_true(count > 80, count)
  end)

  it('is there, where it is a file of the project', function()
    local found, count = {}, 0
    for _, file in ipairs(files) do
      local is_own = file:find('own-script', 1, true) or file:find('howto/audit-', 1, true)
      for _, line in ipairs(is_own and {} or lines_of(file)) do
        for name in line.text:gmatch('%f[^%s%z](%l+/[%w_/.-]+%.%l+)%f[%s%z]') do
          local top = name:match('^%l+')
          if path.isdir(path.join(program.root, top)) and top ~= 'build' then
            count = count + 1
            if not path.exists(path.join(program.root, name)) then
              found[#found + 1] = ('%s: %s'):format(line.where, name)
            end
          end
        end
      end
    end

    assert.same({}, found)
    assert.is_true(count > 50, count)
  end)
end)

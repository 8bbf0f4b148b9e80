-- SPDX-License-Identifier: Apache-2.0
-- What a document of the project shows, done: files are written, commands run, and what they are
-- said to print is compared. In fences, by the words behind the marks:
--   lua PATH   a file with this content; c PATH the same, and it compiles without a warning
--   sh         commands, run by one shell after the other with what the last one exported
--   text       what the commands before it print; "..." stands for anything on a line
--   repl [DIR] a session of `latchkey repl`, with the scripts of a folder: what is printed between
--              what is said to it
-- Fences of other words are not done; the specs know which there may be.
local dir = require('pl.dir')
local path = require('pl.path')
local utils = require('pl.utils')

local program = require('cli.program')

local document = {}

---@param file string of Markdown
---@return table[] blocks { kind, argument, text, line }
function document.blocks(file)
  local blocks, open, number = {}, nil, 0
  for line in io.lines(file) do
    number = number + 1
    local mark = line:match('^```(.*)$')
    if mark and open then
      open.text = table.concat(open, '\n') .. '\n'
      blocks[#blocks + 1] = open
      open = nil
    elseif mark then
      open = { kind = mark:match('^%S*'), argument = mark:match('^%S+%s+(%S+)$'), line = number }
    elseif open then
      open[#open + 1] = line
    end
  end
  return blocks
end

-- Blanks are collapsed on both sides: columns are as wide as what is in them.
local function lines_of(text)
  local list = {}
  for line in text:gmatch('[^\n]+') do
    list[#list + 1] = line:gsub('%s+', ' '):gsub(' $', '')
  end
  return list
end

local function fits(expected, actual)
  local pattern = expected:gsub('%p', '%%%0'):gsub('%%%.%%%.%%%.', '.*')
  return actual:find('^' .. pattern .. '$') ~= nil
end

-- Why the output is not what the document shows.
local function compare(expected, actual)
  local wanted, found = lines_of(expected), lines_of(actual)
  for i = 1, math.max(#wanted, #found) do
    if not wanted[i] or not found[i] or not fits(wanted[i], found[i]) then
      return ('shown:   %s\nprinted: %s'):format(wanted[i] or '(nothing)', found[i] or '(nothing)')
    end
  end
end

local COMPILE = 'cc -std=gnu11 -Wall -Wextra -Werror -c -o "$1.o" "$1" '
  .. '$(pkg-config --cflags latchkey) && rm "$1.o"'

-- Why the file is no good, when it is none.
local function write(folder, block, env)
  local file = path.join(folder, block.argument)
  assert(dir.makepath(path.dirname(file)))
  assert(utils.writefile(file, block.text))
  if block.kind == 'c' then
    local result = program.start_any('sh', { '-c', COMPILE, 'sh', file }, { env = env }):wait()
    return result.code ~= 0 and result.err or nil
  end
end

local DEADLINE_S = 240 -- some commands take seconds on an idle machine

local RUN = [[set -e
cd "$1"
PATH="$3:$PATH"
if [ -e "$2/exported" ]; then . "$2/exported"; fi
. "$2/commands"
export -p >"$2/exported"]]

local function run(folder, state, text, env)
  assert(utils.writefile(state .. '/commands', text))
  return program.start_any('sh', { '-c', RUN, 'sh', folder, state,
    path.dirname(program.path) }, { env = env }):wait(DEADLINE_S)
end

local SESSION = 'latchkey repl %s <<\'END\'\n%sEND\n'

-- What is said in a session, and what it is to print.
local function session(text)
  local said, printed = {}, {}
  for line in text:gmatch('[^\n]+') do
    local words = line:match('^latchkey> (.*)$')
    table.insert(words and said or printed, (words or line) .. '\n')
  end
  return table.concat(said), table.concat(printed)
end

---Does what a document shows, in a folder of its own.
---@param file string
---@param options { env: table|nil, replace: table<string, string>|nil, prepare: string|nil,
---  finish: string|nil } finish: commands behind the last block, which succeed
---@return string|nil why it is not as the document says
function document.follow(file, options)
  local folder, state = program.folder(), program.folder()
  local last = run(folder, state, options.prepare or '', options.env)
  assert(last.code == 0, last.err)
  for _, block in ipairs(document.blocks(file)) do
    for name, value in pairs(options.replace or {}) do
      block.text = block.text:gsub(name:gsub('%p', '%%%0'), (value:gsub('%%', '%%%%')))
    end
    local where = ('%s:%d: '):format(file, block.line)
    if block.kind == 'sh' then
      last = run(folder, state, block.text, options.env)
      if last.code ~= 0 then
        return ('%sexit %s\n%s'):format(where, last.code or last.signal, last.err)
      end
    elseif block.kind == 'text' then
      local why = compare(block.text, last.out)
      if why then
        return where .. why
      end
    elseif block.kind == 'repl' then
      local said, printed = session(block.text)
      local scripts = block.argument and '--dir ' .. block.argument or ''
      local why = compare(printed,
        run(folder, state, SESSION:format(scripts, said), options.env).out)
      if why then
        return where .. why
      end
    elseif block.argument then
      local why = write(folder, block, options.env)
      if why then
        return where .. why
      end
    end
  end
  last = run(folder, state, options.finish or '', options.env)
  return last.code ~= 0 and ('%s: at the end\n%s'):format(file, last.out .. last.err) or nil
end

return document

-- SPDX-License-Identifier: Apache-2.0
-- At build time: man pages, shell completions and reference pages, from the commands' own parsers.
-- The library has to be there (LATCHKEY_LIB): some commands have it loaded by then.
package.path = 'tools/?.lua;tools/?/init.lua;' .. package.path

local argparse = require('argparse')
local dir = require('pl.dir')
local path = require('pl.path')
local utils = require('pl.utils')

local completion = require('lib.manual.completion')
local headers = require('lib.site.headers')
local man = require('lib.manual.man')
local man3 = require('lib.manual.man3')
local man7 = require('lib.manual.man7')
local markdown = require('lib.manual.markdown')
local model = require('lib.manual.model')

jit.off() -- compiled loops over pairs() can crash in old LuaJITs

local parser = argparse('tools/manual.lua', 'Manuals of the commands.')
parser:option('--program', 'The program, to ask for the help of commands in C.'):argname('FILE')
  :count(1)
parser:option('--date', 'Of the man pages: November 21, 2026.'):argname('DATE'):default('')
parser:option('--man', 'A folder for man pages.'):argname('DIR')
parser:option('--man3', 'A folder for man pages of the library\'s functions and types.')
  :argname('DIR')
parser:option('--man7', 'A folder for man pages of concepts.'):argname('DIR')
parser:option('--completion', 'A folder for bash/latchkey, zsh/_latchkey, fish/latchkey.fish.')
  :argname('DIR')
parser:option('--markdown', 'A folder for reference pages.'):argname('DIR')
local args = parser:parse()

local function write(folder, name, text)
  local file = path.join(folder, name)
  assert(dir.makepath(path.dirname(file)))
  assert(utils.writefile(file, text))
end

local commands = model.all('.', function(name)
  local program = utils.quote_arg(args.program)
  local _, code, help = utils.executeex(('%s %s --help'):format(program, name))
  assert(code == 0, name)
  return help
end)
if args.man then
  write(args.man, 'latchkey.1', man.program(commands, args.date))
  for _, command in ipairs(commands) do
    write(args.man, ('latchkey-%s.1'):format(command.name), man.command(command, args.date))
  end
end
if args.man3 then
  local items, tables = {}, {}
  for _, file in ipairs(dir.getfiles('c/include/latchkey', '*.h')) do
    for _, item in ipairs(headers.parse(assert(utils.readfile(file))).items) do
      if item.macro then
        tables[item.macro.name] = item.macro.value
      end
      item.header = 'latchkey/' .. path.basename(file)
      item.rows = item.code and tables[item.code:match('\n%s+(LK_[%u_]+)%(LK_[%u_]+%)\n')]
      items[#items + 1] = item.name and item
    end
  end
  local related = man3.related(items)
  for _, item in ipairs(items) do
    write(args.man3, item.name .. '.3', man3.page(item, item.header, args.date, related[item.name]))
  end
end
if args.man7 then
  for _, row in ipairs(man7.PAGES) do
    local text = assert(utils.readfile('docs/' .. row[1]))
    write(args.man7, row[2] .. '.7', man7.page(text, row[2], row[3], args.date))
  end
end
if args.completion then
  write(args.completion, 'bash/latchkey', completion.bash(commands))
  write(args.completion, 'zsh/_latchkey', completion.zsh(commands))
  write(args.completion, 'fish/latchkey.fish', completion.fish(commands))
end
if args.markdown then
  for _, command in ipairs(commands) do
    write(args.markdown, command.name .. '.md', markdown.command(command))
  end
  write(args.markdown, 'index.md', markdown.index(commands))
end

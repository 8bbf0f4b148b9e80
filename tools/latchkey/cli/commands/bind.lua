-- SPDX-License-Identifier: Apache-2.0
local path = require('pl.path')

local bind_c = require('latchkey.script.bind_c')
local bind_lua = require('latchkey.script.bind_lua')
local catalog = require('latchkey.script.catalog')
local digest = require('latchkey.digest')
local whole_file = require('latchkey.whole_file')

local command = { summary = 'write typed calls of scripts, for programs in C or Lua' }

command.exits = {
  { 0, 'the calls are written; scripts that have none are named on standard error' },
  { 64, 'wrong use: no scripts, a header or contract that is wrong, or a file that '
    .. 'cannot be written' },
}

function command.configure(parser)
  parser:argument('language', 'For which language: c or lua.'):choices({ 'c', 'lua' })
  parser:option('--dir', 'The folder of the scripts.'):argname('DIR'):count(1)
  parser:option('-o --output', 'The file to write; default: standard output.'):argname('FILE')
  parser:epilog('The C header or Lua module has one function for each script: keys formed as '
    .. 'headers and contracts say, arguments with their ranges, replies by their shapes. The texts '
    .. 'of the scripts are in it.')
end

-- LK_BOUND_CALLS_H_0123ABCD, of calls.h: files of other scripts may have that name, too.
local function guard_of(file, scripts)
  local names = {}
  for i, script in ipairs(scripts) do
    names[i] = script.name
  end
  return ('LK_BOUND_%s_%s'):format(path.basename(file or 'calls.h'):gsub('[^%w]', '_'),
    digest.sha1(table.concat(names, ' ')):sub(1, 8)):upper()
end

function command.run(args, ctx)
  if not path.isdir(args.dir) then
    return ctx:misuse(('--dir %s is not a folder'):format(args.dir))
  end
  local scripts, findings = catalog.read(args.dir)
  if not scripts then
    return ctx:misuse(('%s:%d: %s'):format(findings[1].file, findings[1].line,
      findings[1].message))
  elseif #scripts == 0 then
    return ctx:misuse(('there are no scripts in %s'):format(args.dir))
  end
  local text, left
  if args.language == 'c' then
    text, left = bind_c.header(scripts, guard_of(args.output, scripts))
  else
    text, left = bind_lua.module(scripts)
  end
  for _, one in ipairs(left) do
    ctx:note(('%s has no typed call: %s'):format(one.script, one.why))
  end
  if args.output then
    local good, why = whole_file.write(args.output, text)
    if not good then
      return ctx:misuse(why)
    end
  end
  ctx:result({ file = args.output or '', scripts = #scripts - #left, left = left,
    text = not args.output and text or nil },
    args.output and '' or text)
  return 0
end

return command

-- SPDX-License-Identifier: Apache-2.0
local path = require('pl.path')

local catalog = require('latchkey.script.catalog')
local cli = require('latchkey.cli')
local pages = require('latchkey.bundle.pages')
local report = require('latchkey.report')
local sorted = require('latchkey.sorted')
local text = require('latchkey.text')
local trust = require('latchkey.bundle.trust')
local whole_file = require('latchkey.whole_file')

local command = { summary = 'the reference pages of scripts, from their headers' }

-- What shells offer behind the command.
function command.words(home)
  return catalog.names(path.join(home, 'scripts'))
end

function command.configure(parser)
  parser:argument('script', 'The scripts\' names; without one, all.'):args('*')
  parser:option('--dir', 'A folder of scripts; without one, the project\'s own.'):argname('DIR')
  parser:option('-o --output', 'Write Markdown files into this folder.'):argname('FOLDER')
end

-- The pages asked for by file name, and these names in order.
local function chosen(args, scripts)
  local files, names = pages.all(scripts), {}
  for _, name in ipairs(args.script) do
    if not scripts[name] then
      return nil, ('no script is named "%s"'):format(name)
    end
    names[#names + 1] = name .. '.md'
  end
  if #names == 0 then
    names = sorted(files)
  end
  return files, names
end

local function write(folder, files, names)
  for _, name in ipairs(names) do
    local written, why = whole_file.write_below(path.join(folder, name), files[name])
    if not written then
      return nil, why
    end
  end
  return true
end

function command.run(args, ctx)
  local folder = args.dir or path.join(ctx.home, 'scripts')
  if not path.isdir(folder) then
    return ctx:misuse(folder .. ' is not a folder')
  end
  local scripts, findings = catalog.read(folder)
  if not scripts then
    return trust.refuse(ctx, (report.text(findings):gsub('\n$', '')))
  end
  local files, names = chosen(args, scripts)
  if not files then
    return ctx:misuse(names)
  end
  local texts, rows = {}, {}
  for i, name in ipairs(names) do
    texts[i] = files[name]
    rows[i] = { file = name, text = files[name] }
  end
  if args.output then
    local written, why = write(args.output, files, names)
    if not written then
      return trust.refuse(ctx, why)
    end
    ctx:note(('%d pages written to %s'):format(#names, text.safe(args.output)))
  end
  ctx:result({ pages = rows }, args.output and '' or table.concat(texts, '\n'))
  return cli.exits.done
end

return command

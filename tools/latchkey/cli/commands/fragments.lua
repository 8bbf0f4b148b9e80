-- SPDX-License-Identifier: Apache-2.0
local path = require('pl.path')
local utils = require('pl.utils')

local catalog = require('latchkey.script.catalog')
local fragments = require('latchkey.script.fragments')
local lines = require('latchkey.script.lines')
local report = require('latchkey.report')
local text = require('latchkey.text')
local whole_file = require('latchkey.whole_file')

local command = { summary = 'compare or refresh the shared pieces inside scripts' }

function command.configure(parser)
  parser:argument('folder', 'a folder of scripts; without one, the project\'s own'):args('?')
  parser:mutex(
    parser:flag('--check', 'say which copies differ; the default'),
    parser:flag('--write', 'put the reference texts in their place'))
end

local function add(findings, file, line, rule, message)
  findings[#findings + 1] = { file = file, line = line, rule = rule, message = message }
end

-- What one script has and should have; nil where only its author can tell.
local function compare(file, read, findings)
  local source, why = utils.readfile(file, true)
  if not source then
    return add(findings, file, 0, 'file', why)
  end
  local copies, problems = fragments.find(lines.split(source))
  local before = #findings
  for _, problem in ipairs(problems) do
    add(findings, file, problem.line, 'fragment', problem.message)
  end
  for _, copy in ipairs(copies) do
    if not read(copy.name) then
      add(findings, file, copy.first, 'fragment',
        ('there is no fragment %s; add _fragments/%s.lua'):format(copy.name, copy.name))
    end
  end
  if #findings == before then
    return { file = file, source = source, fresh = fragments.refresh(source, read) }
  end
end

function command.run(args, ctx)
  local home = path.join(ctx.home, 'scripts')
  local folder = args.folder or home
  local files, wrong = catalog.files(folder)
  if not files then
    return ctx:misuse(wrong)
  end
  local function read(name)
    return fragments.read(folder, name) or fragments.read(home, name)
  end

  local findings, stale, shown = {}, {}, {}
  for _, file in ipairs(files) do
    local compared = compare(file, read, findings)
    local written, why = true, nil
    if compared and compared.fresh ~= compared.source then
      if args.write then
        written, why = whole_file.write(file, compared.fresh)
      end
      if written then
        stale[#stale + 1] = file
        shown[#shown + 1] = ('%s %s\n'):format(args.write and 'refreshed' or 'stale',
          text.safe(file))
      else
        add(findings, file, 0, 'file', why)
      end
    end
  end
  ctx:result({ findings = findings, [args.write and 'refreshed' or 'stale'] = stale },
    report.text(findings) .. table.concat(shown))
  return (#findings > 0 or #stale > 0 and not args.write) and 1 or 0
end

return command

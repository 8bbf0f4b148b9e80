-- SPDX-License-Identifier: Apache-2.0
local cli = require('lib.cli')
local names = require('lib.names')
local terminal = require('lib.terminal')
local text = require('lib.text')

local command = { summary = 'is this server fit for locks?', server = true }

function command.configure(parser)
  parser:option('--user', 'Whose permissions are looked at; else those of the URL\'s user.')
  parser:option('--name', 'Of a lock that this user is to use: its keys and channels are looked '
    .. 'at, too, and not only the commands.')
  parser:epilog('Nothing is changed. Exit code 1: there is a problem. Notes are no problems, but '
    .. 'good to know.')
end

local MARKS = { good = 'ok', note = 'note', problem = 'PROBLEM' }
local COLOURS = { good = '32', note = '33', problem = '31;1' }

local function shown(findings, target, is_coloured)
  local lines = { target }
  for _, finding in ipairs(findings) do
    local mark = ('%-7s'):format(MARKS[finding.level])
    if is_coloured then
      mark = ('\27[%sm%s\27[0m'):format(COLOURS[finding.level], mark)
    end
    lines[#lines + 1] = ('  %s  %-11s  %s'):format(mark, finding.check, text.safe(finding.message))
    if finding.advice then
      lines[#lines + 1] = (' '):rep(24) .. '-> ' .. text.safe(finding.advice)
    end
  end
  return table.concat(lines, '\n') .. '\n'
end

function command.run(args, ctx)
  local good, why = names.check(args.name or 'any')
  if not good then
    return ctx:fail({ status = 'LK_NAME', message = why })
  end
  local client, code = ctx:client()
  if not client then
    return code
  end
  local show = terminal.progress(ctx)
  local findings, err = require('lib.doctor').examine(client, ctx.home, { user = args.user,
    name = args.name, show = show })
  show(nil)
  if not findings then
    return ctx:fail(err)
  end
  local problems, list = 0, {}
  for i, finding in ipairs(findings) do
    problems = problems + (finding.level == 'problem' and 1 or 0)
    list[i] = { check = finding.check, level = finding.level, message = text.safe(finding.message),
      advice = finding.advice and text.safe(finding.advice) }
  end
  ctx:result({ target = client:target(), findings = list, problems = problems },
    shown(findings, client:target(), terminal.has_colours()))
  return problems > 0 and cli.exits.found or cli.exits.done
end

return command

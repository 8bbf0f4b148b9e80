-- SPDX-License-Identifier: Apache-2.0
local path = require('pl.path')

local files = require('latchkey.files')
local lint = require('latchkey.lint')
local report = require('latchkey.report')

local command = { summary = 'check scripts: header, Lua, agreement of both, fragments, ledger' }

command.exits = {
  { 0, 'no findings' },
  { 1, 'a script, or a contract, has a finding' },
  { 64, 'wrong use: there is no such file, or no script in a folder' },
}

function command.configure(parser)
  parser:argument('target', 'scripts, or folders of scripts; without any, the project\'s own')
    :args('*')
  parser:flag('--rules', 'list the rules instead')
end

local function list_rules(ctx)
  local rules, lines = {}, {}
  for i, rule in ipairs(lint.rules) do
    rules[i] = { id = rule.id, wants = rule.wants }
    lines[i] = ('%-11s %s\n'):format(rule.id, rule.wants)
  end
  ctx:result({ rules = rules }, table.concat(lines))
  return 0
end

function command.run(args, ctx)
  if args.rules then
    return list_rules(ctx)
  end
  for _, target in ipairs(args.target) do
    if not path.exists(target) then
      return ctx:misuse(('there is no file or folder %s'):format(target))
    end
  end
  local home = path.join(ctx.home, 'scripts')
  local findings, checked, passed_over = lint.run(#args.target > 0 and args.target or { home },
    home)
  if passed_over[1] then
    ctx:note(files.passed_over(passed_over))
  end
  if checked == 0 and #findings == 0 then
    return ctx:misuse(('there are no scripts in %s'):format(table.concat(args.target, ', ')))
  end
  ctx:result({ findings = findings, checked = checked }, report.text(findings))
  ctx:note(('scripts checked: %d, findings: %d'):format(checked, #findings))
  return #findings > 0 and 1 or 0
end

return command

-- SPDX-License-Identifier: Apache-2.0
local path = require('pl.path')

local lint = require('lint')
local report = require('lib.report')

local command = { summary = 'check scripts: header, Lua, agreement of both, fragments, ledger' }

function command.configure(parser)
  parser:argument('target', 'Scripts, or folders of scripts; without any, the project\'s own.')
    :args('*')
  parser:flag('--rules', 'List the rules instead.')
end

local function list_rules(ctx)
  if ctx.json then
    local rules = {}
    for i, rule in ipairs(lint.rules) do
      rules[i] = { id = rule.id, wants = rule.wants }
    end
    ctx.stdout:write(report.json('lint', { rules = rules }))
    return 0
  end
  for _, rule in ipairs(lint.rules) do
    ctx.stdout:write(('%-11s %s\n'):format(rule.id, rule.wants))
  end
  return 0
end

function command.run(args, ctx)
  if args.rules then
    return list_rules(ctx)
  end
  local home = path.join(ctx.home, 'scripts')
  for _, target in ipairs(args.target) do
    if not path.exists(target) then
      ctx.stderr:write(('latchkey lint: there is no %s\n'):format(target))
      return 64
    end
  end
  local findings, checked = lint.run(#args.target > 0 and args.target or { home }, home)
  if ctx.json then
    ctx.stdout:write(report.json('lint', { findings = findings, checked = checked }))
  else
    ctx.stdout:write(report.text(findings))
    if not ctx.quiet then
      ctx.stderr:write(('%d scripts, %d findings\n'):format(checked, #findings))
    end
  end
  return #findings > 0 and 1 or 0
end

return command

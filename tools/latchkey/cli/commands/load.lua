-- SPDX-License-Identifier: Apache-2.0
local cli = require('latchkey.cli')
local loader = require('latchkey.bundle.loader')
local nodes = require('latchkey.servers.nodes')
local targets = require('latchkey.servers.targets')
local terminal = require('latchkey.cli.terminal')
local trust = require('latchkey.bundle.trust')

local command = { summary = 'load every script into the servers', server = true }

function command.configure(parser)
  parser:mutex(
    parser:option('--dir', 'A folder of further scripts.'):argname('DIR'),
    parser:option('--bundle', 'The scripts of a bundle, and no others.'):argname('FILE'))
  trust.options(parser)
  parser:flag('--functions', 'As libraries of functions, not under their SHA1.')
  parser:flag('--replace', 'With --functions: also where a newer or a foreign library has to go.')
  parser:flag('--dry-run', 'Only say what would be loaded, what stays, and what would go.')
  nodes.options(parser)
  parser:epilog('Several URLs, separated by spaces, are loaded one after the other, each with its '
    .. 'replicas; a server that fails is named, and the rest goes on. What is there already stays, '
    .. 'so loading again goes on where it ended. Exit code 2: a server could not be loaded; 1: '
    .. 'refused, nothing was loaded.')
end

-- The scripts to load: of the bundle, else those that a client knows.
local function wanted(contents, list)
  if contents then
    return contents.scripts
  end
  for _, node in ipairs(list) do
    if node.client then
      return node.client:scripts()
    end
  end
  return {}
end

local function names_of(items)
  local names = {}
  for i, item in ipairs(items) do
    names[i] = item.name or item.wanted.name
  end
  return names
end

-- "lock/acquire 1.0.0 -> 1.1.0"
local function going(plan)
  local words = {}
  for i, step in ipairs(plan.goes) do
    words[i] = ('%s %s -> %s'):format(step.wanted.name, step.version, step.wanted.version)
  end
  return words
end

local function show_plan(node)
  local plan, lines = node.plan, { nodes.title(node) .. '\n' }
  local function add(title, count, words)
    lines[#lines + 1] = ('  %-6s %4d%s%s\n'):format(title, count, #words > 0 and '  ' or '',
      table.concat(words, #words > 0 and words[1]:find(' ', 1, true) and ', ' or ' '))
  end
  add('new', #plan.new, names_of(plan.new))
  add('stays', #plan.stays, {})
  add('goes', #plan.goes + #plan.refused, going(plan))
  for _, step in ipairs(plan.refused) do
    lines[#lines + 1] = ('  refused: %s: %s\n'):format(step.wanted.library, step.why)
  end
  return table.concat(lines)
end

local function document(args, contents, target, list)
  local rows = {}
  for i, node in ipairs(list) do
    local plan = node.plan
    rows[i] = nodes.plain(node, plan and { new = names_of(plan.new), stays = #plan.stays,
      goes = going(plan), refused = names_of(plan.refused), loaded = node.loaded or 0 } or {})
  end
  return { kind = target.what, dry_run = args.dry_run or false, nodes = rows,
    bundle = contents and { name = contents.name, version = contents.version,
      sha256 = contents.sha256, trust = contents.trust } }
end

-- Tells of the nodes that failed; the exit code.
local function ending(ctx, list)
  local failed, first = nodes.tell(ctx, list)
  local loaded = 0
  for _, node in ipairs(list) do
    loaded = loaded + (node.loaded or 0)
  end
  if failed == 0 then
    return cli.exits.done
  elseif failed == #list and loaded == 0 then
    return ctx.exit_of(first.status)
  end
  return cli.exits.incomplete
end

-- A line that moves on a terminal; one for each script with --verbose.
local function steps_shown(ctx)
  local show = terminal.progress(ctx)
  return function(node, done, all, item)
    if ctx.verbose and item and not ctx.json then
      ctx.stderr:write(('%s: %d of %d: %s\n'):format(node.target, done + 1, all, item.name))
      ctx.stderr:flush()
    elseif not ctx.verbose then
      show(item and ('%s: %d of %d'):format(node.target, done, all) or nil)
    end
  end
end

local function load(args, ctx, list, target, items)
  local refused = loader.refused(list)
  if #refused > 0 then
    return trust.refuse(ctx, table.concat(refused, '\n'),
      'nothing was loaded; --replace loads in spite of that')
  end
  local on_step = steps_shown(ctx)
  loader.run(list, target, items, { forced = args.replace, on_step = on_step })
end

local function show_loaded(list, target)
  local lines = {}
  for _, node in ipairs(list) do
    if node.plan and not node.err then
      lines[#lines + 1] = ('%s: %d %s loaded, %d were there\n'):format(nodes.title(node),
        node.loaded, target.what, #node.plan.stays)
    end
  end
  return table.concat(lines)
end

function command.run(args, ctx)
  local contents, refused = trust.given(ctx, args)
  if refused then
    return refused
  end
  local list, code = nodes.open(ctx, { script_dir = args.dir })
  if not list then
    return code
  end
  local target = args.functions and targets.functions or targets.scripts
  local items, why = target.wanted(wanted(contents, list))
  if not items then
    return trust.refuse(ctx, why)
  end
  loader.plan(list, target, items, args.replace)

  local shown = {}
  if args.dry_run then
    for _, node in ipairs(list) do
      shown[#shown + 1] = node.plan and show_plan(node)
    end
  else
    code = load(args, ctx, list, target, items)
    if code then
      return code
    end
    shown[1] = show_loaded(list, target)
  end
  local fields = document(args, contents, target, list)
  if ctx.json and fields.nodes[1] and #list == 1 and list[1].err and not list[1].plan then
    return ctx:fail(list[1].err)
  end
  ctx:result(fields, table.concat(shown))
  code = ending(ctx, list)
  return args.dry_run and #loader.refused(list) > 0 and cli.exits.found or code
end

return command

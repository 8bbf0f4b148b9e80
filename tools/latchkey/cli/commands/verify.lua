-- SPDX-License-Identifier: Apache-2.0
local cli = require('latchkey.cli')
local loaded = require('latchkey.servers.loaded')
local nodes = require('latchkey.servers.nodes')
local targets = require('latchkey.servers.targets')
local trust = require('latchkey.bundle.trust')

local command = { summary = 'is a bundle whole, signed, and on the servers?', server = true }

function command.configure(parser)
  parser:argument('file', 'A bundle, as latchkey bundle writes it.')
  trust.options(parser)
  parser:flag('--functions', 'With --url: check for its function libraries.')
  nodes.options(parser)
  parser:epilog('With --url, each server (and replica) must have exactly the bundle\'s scripts: '
    .. 'a line for each, and with --verbose one for each script that it lacks. '
    .. 'Exit code 1: refused, or a server lacks some; 2: a server could not be asked.')
end

-- The names of what a node lacks or has otherwise.
local function lacking(node)
  local names = {}
  for _, item in ipairs(node.plan.new) do
    names[#names + 1] = item.name
  end
  for _, list in ipairs({ node.plan.goes, node.plan.refused }) do
    for _, step in ipairs(list) do
      names[#names + 1] = step.wanted.name
    end
  end
  table.sort(names)
  return names
end

-- In one line: has it what the bundle has? With --verbose, a line for each script that it has not.
local function verdict(node, names, wanted, what, is_verbose)
  local lines = { ('%s: %s'):format(nodes.title(node), #names == 0
    and ('has all %d %s'):format(#wanted, what)
    or ('lacks or has otherwise %d of %d %s: %s'):format(#names, #wanted, what,
      loaded.first_of(names))) }
  for _, name in ipairs(is_verbose and names or {}) do
    lines[#lines + 1] = '  ' .. name
  end
  return table.concat(lines, '\n') .. '\n'
end

-- Rows for the document, words for people, exit code.
local function compare(ctx, list, target, wanted)
  require('latchkey.bundle.loader').plan(list, target, wanted)
  local rows, shown, lacks = {}, {}, false
  for i, node in ipairs(list) do
    local names = node.plan and lacking(node)
    rows[i] = nodes.plain(node, { missing = names })
    if names then
      lacks = lacks or #names > 0
      shown[#shown + 1] = verdict(node, names, wanted, target.what, ctx.verbose)
    end
  end
  local failed, first = nodes.tell(ctx, list)
  local code = lacks and cli.exits.found or failed > 0 and cli.exits.incomplete or cli.exits.done
  if failed == #list then
    code = ctx.exit_of(first.status)
  end
  return rows, table.concat(shown), code
end

function command.run(args, ctx)
  local contents, why, hint = trust.open(args.file, args)
  if not contents then
    return trust.refuse(ctx, why, hint)
  end
  local rows, shown, code = {}, '', cli.exits.done
  -- The bundle alone is looked at unless a server is named here: LATCHKEY_URL is not asked.
  if args.url then
    local target = args.functions and targets.functions or targets.scripts
    local list, wrong = nodes.open(ctx)
    if not list then
      return wrong
    end
    rows, shown, code = compare(ctx, list, target, assert(target.wanted(contents.scripts)))
  end
  ctx:result({ file = args.file, name = contents.name, version = contents.version,
    sha256 = contents.sha256, scripts = #contents.scripts, signer = contents.signer,
    trust = contents.trust, nodes = rows },
    ('%s %s: %d scripts\nsha256 %s\n%s\n%s'):format(contents.name, contents.version,
      #contents.scripts, contents.sha256, contents.trust, shown))
  return code
end

return command

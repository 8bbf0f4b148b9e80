-- SPDX-License-Identifier: Apache-2.0
local cli = require('latchkey.cli')
local functions = require('latchkey.bundle.functions')
local loaded = require('latchkey.servers.loaded')
local nodes = require('latchkey.servers.nodes')

local command = { summary = 'which scripts the servers have, and which they lack', server = true }

function command.configure(parser)
  parser:option('--dir', 'A folder of further scripts.'):argname('DIR')
  parser:flag('--functions', 'A master counts that lacks a function library, or has it otherwise.')
  nodes.options(parser)
  parser:epilog('A line for each server, and with --verbose one for each script. Exit code 1: a '
    .. 'master lacks a script. It is loaded when it is first used. 2: a server could not be asked.')
end

local function look(node, with_functions)
  if node.err then
    return
  end
  node.scripts, node.err = loaded.scripts(node.client)
  if node.scripts then
    local err
    node.functions, err = loaded.functions(node.client)
    node.err = with_functions and err or nil
  end
end

-- The scripts that have no function there, or one of other bytes: what calls would run is not what
-- this program has.
local function without_function(node)
  local current, names = {}, {}
  for _, library in ipairs(node.functions) do
    current[library.library] = library.current
  end
  for _, script in ipairs(node.scripts) do
    if not current[functions.name(script.name, script.version)] then
      names[#names + 1] = script.name
    end
  end
  return names
end

local function lacks(node, with_functions)
  if node.err or node.role == 'replica' then
    return false
  elseif with_functions then
    return #without_function(node) > 0
  end
  return #loaded.missing(node.scripts) > 0
end

-- In one line: what it has, and what it lacks.
local function verdict(node, with_functions)
  if with_functions then
    local names = without_function(node)
    return #names == 0 and ('has all %d functions'):format(#node.scripts)
      or ('lacks or has otherwise %d of %d functions: %s'):format(#names, #node.scripts,
        loaded.first_of(names))
  end
  local names = loaded.missing(node.scripts)
  if #names == 0 then
    return ('has all %d scripts'):format(#node.scripts)
  elseif #names == #node.scripts then
    return ('has none of the %d scripts; each is loaded when it is first used'):format(#names)
  end
  return ('lacks %d of %d scripts: %s'):format(#names, #node.scripts, loaded.first_of(names))
end

local function show(node, args)
  local lines = { ('%s%s: %s'):format(nodes.title(node),
    node.version and ', version ' .. node.version or '', verdict(node, args.functions)) }
  if not args.verbose then
    return lines[1] .. '\n'
  end
  for _, script in ipairs(node.scripts) do
    lines[#lines + 1] = ('  %-20s %-8s %s  %s'):format(script.name, script.version, script.sha1,
      script.loaded and 'loaded' or 'missing')
  end
  for _, library in ipairs(node.functions or {}) do
    lines[#lines + 1] = ('  %-20s %-8s function %s%s'):format(library.name, library.version,
      library.library, library.current == false and ', not this program\'s' or '')
  end
  return table.concat(lines, '\n') .. '\n'
end

function command.run(args, ctx)
  local list, code = nodes.open(ctx, { script_dir = args.dir })
  if not list then
    return code
  end
  local rows, shown, found = {}, {}, false
  for i, node in ipairs(list) do
    look(node, args.functions)
    rows[i] = nodes.plain(node, { scripts = node.scripts, functions = node.functions })
    found = found or lacks(node, args.functions)
    shown[i] = not node.err and show(node, args) or ''
  end
  if #list == 1 and list[1].err then
    return ctx:fail(list[1].err)
  end
  ctx:result({ nodes = rows }, table.concat(shown))
  local failed, first = nodes.tell(ctx, list)
  if failed == #list then
    return ctx.exit_of(first.status)
  end
  return found and cli.exits.found or failed > 0 and cli.exits.incomplete or cli.exits.done
end

return command

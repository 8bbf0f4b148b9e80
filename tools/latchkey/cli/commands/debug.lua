-- SPDX-License-Identifier: Apache-2.0
local path = require('pl.path')

local catalog = require('latchkey.script.catalog')
local script_call = require('latchkey.script.call')

local command = { summary = 'step through a script, forwards and back', for_people = true }

command.exits = {
  { 0, 'the session ended' },
  { 1, 'from a pipe: a command failed, or the script ended with an error' },
  { 64, 'wrong use: there is no such script or call of it, or it is no Lua' },
}

-- What shells offer behind the command.
function command.words(home)
  return catalog.names(path.join(home, 'scripts'))
end

function command.configure(parser, arguments, home)
  parser:usage('Usage: latchkey debug [OPTION...] SCRIPT [KEY...] , [ARG...]\n'
    .. '       latchkey debug [OPTION...] SCRIPT --name NAME [--FIELD VALUE...]\n'
    .. '       latchkey debug [OPTION...] --trace FILE:LINE\n'
    .. '       latchkey debug --dap')
  parser:argument('script', 'The script\'s name, or a file; around a comma that stands alone, its '
    .. 'keys and arguments. Write -- before values that begin with a "-".'):args('*')
  parser:option('--before', 'What is done before the call, a line each: a command (SET k v), a '
    .. 'script with its options (lock/acquire --name k ...), or +TIME. May be given several times.')
    :argname('LINES'):count('*')
  parser:option('--dir', 'A folder of further scripts.'):argname('DIR')
  parser:flag('--function', 'The script as a Redis Function, as bundles have it.')
    :target('as_function')
  parser:option('--library', 'A library of functions; SCRIPT is one of them.'):argname('FILE')
  parser:option('--trace', 'A call that a client wrote down (docs/reference/trace.md), after those '
    .. 'before it.'):argname('FILE:LINE')
  parser:flag('--no-strict', 'Let the script do what latchkey forbids and a server tolerates.')
  parser:flag('--dap', 'The Debug Adapter Protocol, for editors, on standard input and output.')
  script_call.options(parser, script_call.catalogs(home,
    script_call.option_in(arguments, 'dir')))
  parser:epilog('On the mock, no server is needed. help lists what can be typed. From a pipe each '
    .. 'line is a command.')
end

-- What was given beside an option that stands alone.
local function beside(args)
  for _, option in ipairs({ 'name', 'library', 'dir', 'trace' }) do
    if args[option] then
      return '--' .. option
    end
  end
  return #args.script > 0 and 'a script' or #args.before > 0 and '--before' or nil
end

function command.run(args, ctx)
  if ctx.json then
    return ctx:misuse('debug is for people and, with --dap, for editors; latchkey eval --json '
      .. 'answers with a document')
  elseif args.dap then
    local wrong = beside(args)
    if wrong then
      return ctx:misuse(('--dap takes no %s: the editor says what it debugs'):format(wrong))
    end
    wrong = require('latchkey.debugger.dap').serve(ctx.home, io.stdin, ctx.stdout)
    return wrong and ctx:misuse(wrong) or 0
  end
  local targets = require('latchkey.debugger.target')
  local target, failure
  if args.trace then
    if #args.script > 0 then
      return ctx:misuse('name a script, or a line of a trace')
    end
    target, failure = require('latchkey.debugger.recorded').of(ctx.home, args)
  elseif #args.script == 0 then
    return ctx:misuse('name a script')
  else
    target, failure = targets.call(ctx.home, args)
  end
  if not target then
    return ctx:fail(failure)
  end
  return require('latchkey.debugger.session').run(ctx, target, { go = 'step' })
end

return command

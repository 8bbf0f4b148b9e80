-- SPDX-License-Identifier: Apache-2.0
local acl = require('lib.acl')
local cli = require('lib.cli')

local command = { summary = 'the smallest ACL rule for an application' }

function command.configure(parser, _, home)
  parser:argument('user', 'The name of the server\'s user.')
  parser:option('--names', 'Only locks with such names, as the command KEYS takes patterns; may be '
    .. 'given several times. A pattern without braces means names without braces, \'{orders}*\' '
    .. 'such with a tag; * (the default) means all.'):argname('PATTERN'):count('*')
  parser:option('--family', 'Only these scripts: ' .. table.concat(acl.families(home), ', ')
    .. '; may be given several times.'):choices(acl.families(home)):count('*')
  parser:option('--targets', 'Keys that guard/call may act on beside those of the locks, such as '
    .. '\'{orders}:*\'; may be given several times.'):argname('PATTERN'):count('*')
  parser:flag('--sharded', 'Also sharded channels, as clients of a cluster use them.')
  parser:flag('--functions', 'Scripts are called as functions of the server.')
  parser:flag('--load', 'Also what latchkey load and status need.')
  parser:epilog('Nothing is sent to a server: give the line to redis-cli, and the user a password. '
    .. 'Other tools of latchkey (ls, inspect, doctor) need more than an application does.')
end

function command.run(args, ctx)
  if not args.user:find('^[%w._@:+-]+$') then
    return ctx:misuse('the user\'s name may have letters, digits and . _ @ : + -')
  end
  local names = #args.names > 0 and args.names or { '*' }
  for _, list in ipairs({ names, args.targets }) do
    for _, pattern in ipairs(list) do
      local good, why = acl.check_pattern(pattern)
      if not good then
        return ctx:misuse(why)
      end
    end
  end
  local rule = acl.rule(ctx.home, { names = names, families = args.family,
    targets = args.targets, sharded = args.sharded, functions = args.functions, load = args.load })
  local line = ('ACL SETUSER %s %s'):format(args.user, table.concat(acl.words(rule), ' '))
  ctx:result({ user = args.user, names = names, commands = rule.commands, keys = rule.keys,
    channels = rule.channels, rule = line }, line .. '\n')
  if not ctx.json then
    ctx:note('latchkey acl: the rule sets no password; add one with ACL SETUSER ' .. args.user
      .. ' \'>PASSWORD\'')
  end
  return cli.exits.done
end

return command

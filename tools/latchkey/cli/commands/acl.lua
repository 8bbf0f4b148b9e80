-- SPDX-License-Identifier: Apache-2.0
local path = require('pl.path')
local tablex = require('pl.tablex')

local acl = require('latchkey.locks.acl')
local catalog = require('latchkey.script.catalog')
local cli = require('latchkey.cli')
local fleet = require('latchkey.servers.fleet')

local command = { summary = 'the smallest ACL rule for an application' }

function command.configure(parser, _, home)
  parser:argument('user', 'The name of the server\'s user.')
  parser:option('--names', 'Only locks with such names, as the command KEYS takes patterns; may be '
    .. 'given several times. A pattern without braces means names without braces, \'{orders}*\' '
    .. 'such with a tag; * (the default) means all.'):argname('PATTERN'):count('*')
  parser:option('--family', 'Only these scripts: ' .. table.concat(acl.families(home), ', ')
    .. ', or those of --dir; may be given several times.'):argname('FAMILY'):count('*')
  parser:option('--dir', 'A folder of scripts of your own, instead of latchkey\'s.'):argname('DIR')
  parser:option('--targets', 'Keys that guarded commands act on beside those of the locks, such as '
    .. '\'{orders}:*\'; may be given several times.'):argname('PATTERN'):count('*')
  parser:option('--url', 'Takes --cluster or --sentinel from the URL of the locks; does not '
    .. 'connect.'):argname('URL')
  parser:mutex(
    parser:flag('--cluster', 'For a cluster: its map, and sharded channels.'),
    parser:flag('--sentinel', 'For a master behind Sentinel; a second line is for the sentinels.'))
  parser:flag('--sharded', 'Also sharded channels.')
  parser:flag('--replicas', 'Holds wait until replicas have them (min_replicas).')
  parser:flag('--functions', 'Scripts are called as functions of the server.')
  parser:flag('--load', 'Also what latchkey load and status need.')
  parser:flag('--answers', 'Clients that wait may answer latchkey blame: those of latchkey exec, '
    .. 'and applications that set the option answers. Without it ACL LOG has an entry for each '
    .. 'that was not let.')
  parser:flag('--setinfo', 'For Redis 7.2 and later, and Valkey: connections may say which library '
    .. 'they are of. Without it ACL LOG has an entry for each client that was not let.')
  parser:flag('--operator', 'For operators: also what ls, top, inspect, '
    .. 'blame, break, doctor and status need, for locks of all kinds, CLIENT LIST among it, which '
    .. 'says whose a lock is.')
  parser:epilog('Nothing is sent to a server: pipe the line into redis-cli, '
    .. 'and give the user a password. '
    .. 'Other tools of latchkey (ls, inspect, doctor) need more than an application does: '
    .. '--operator.')
end

local function topology_of(args)
  return args.cluster and 'cluster' or args.sentinel and 'sentinel'
    or args.url and fleet.topology(args.url)
end

local function refuse_family(args, home)
  local families = acl.families(home, args.dir)
  for _, family in ipairs(args.family) do
    if not tablex.find(families, family) then
      return ('there is no family "%s"; there are %s'):format(family, table.concat(families, ', '))
    end
  end
end

-- What a line does not say.
local function remind(ctx, args, topology)
  ctx:note('latchkey acl: the rule sets no password; add one with ACL SETUSER ' .. args.user
    .. ' \'>PASSWORD\'')
  if topology == 'cluster' then
    ctx:note('latchkey acl: every node has users of its own: give it to all, replicas as well')
  elseif topology == 'sentinel' then
    ctx:note('latchkey acl: the first line is for the master and its replicas, the second for '
      .. 'every sentinel (sentinel_user in the URL)')
  end
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
  local _, findings = catalog.read_code(args.dir or path.join(ctx.home, 'scripts'))
  if findings then
    return ctx:misuse(('%s:%d: %s'):format(findings[1].file, findings[1].line,
      findings[1].message))
  end
  local unknown = refuse_family(args, ctx.home)
  if unknown then
    return ctx:misuse(unknown)
  end
  local topology = topology_of(args)
  local rule = acl.rule(ctx.home, { folder = args.dir, names = names, families = args.family,
    targets = args.targets, topology = topology, sharded = args.sharded, replicas = args.replicas,
    functions = args.functions, load = args.load, setinfo = args.setinfo,
    answers = args.answers, operator = args.operator })
  local line = acl.line(args.user, rule)
  local for_sentinels = topology == 'sentinel'
    and acl.line(args.user, acl.sentinel_rule({ setinfo = args.setinfo })) or nil
  ctx:result({ user = args.user, names = names, commands = rule.commands, keys = rule.keys,
    channels = rule.channels, rule = line, sentinel_rule = for_sentinels },
    line .. '\n' .. (for_sentinels and for_sentinels .. '\n' or ''))
  if not ctx.json then
    remind(ctx, args, topology)
  end
  return cli.exits.done
end

return command

-- SPDX-License-Identifier: Apache-2.0
local cli = require('lib.cli')
local kinds = require('lib.kinds')
local names = require('lib.names')
local text = require('lib.text')

local command = { summary = 'everything about one lock, in words', server = true }

function command.configure(parser)
  parser:argument('name', 'Of the lock.')
  parser:option('--kind', 'Read it as a lock of this kind: ' .. kinds.CHOICE .. '.')
    :choices(kinds.NAMES)
  parser:epilog('Exit code 3: the lock is free.')
end

local function words(name, lock, waiters)
  local lines = { ('%s is held.'):format(name),
    ('  kind     %s (%s)'):format(lock.kind, lock.certain and 'certain' or 'possible') }
  for _, holder in ipairs(lock.holders) do
    lines[#lines + 1] = ('  holder   %s%s'):format(text.safe(holder.owner),
      holder.holds > 1 and (', %d holds'):format(holder.holds) or '')
  end
  if lock.fields and lock.fields > #lock.holders then
    lines[#lines + 1] = ('  holder   a hash of %d fields: hardly a lock'):format(lock.fields)
  end
  if lock.token then
    lines[#lines + 1] = ('  token    %.0f, drawn last'):format(lock.token)
  end
  lines[#lines + 1] = lock.lease_ms < 0 and '  lease    endless: it is no lock of latchkey\'s'
    or ('  lease    ends in %s unless it is renewed'):format(text.show_ms(lock.lease_ms))
  lines[#lines + 1] = ('  waiting  %d %s for its release'):format(waiters,
    waiters == 1 and 'client listens' or 'clients listen')
  return table.concat(lines, '\n') .. '\n'
end

local function find(client, home, args)
  if args.kind then
    return kinds.read(client, home, args.kind, args.name)
  end
  return kinds.find(client, home, args.name)
end

function command.run(args, ctx)
  local good, why = names.check(args.name)
  if not good then
    return ctx:fail({ status = 'LK_NAME', message = why })
  end
  local client, code = ctx:client()
  if not client then
    return code
  end
  local name, lock, err = text.safe(args.name), find(client, ctx.home, args)
  if not lock then
    return ctx:fail(err)
  elseif lock.free then
    ctx:result({ name = name, state = 'free', kinds = {} }, name .. ' is free.\n')
    return cli.exits.free
  elseif lock.type then
    return ctx:fail({ status = 'LK_WRONGTYPE', message = ('%s is a %s: no lock of any kind'):format(
      name, lock.type) })
  end

  local waiters
  waiters, err = kinds.listeners(client, ctx.home, lock.kind, args.name)
  if not waiters then
    return ctx:fail(err)
  end
  local holders = {}
  for i, holder in ipairs(lock.holders) do
    holders[i] = { owner = text.safe(holder.owner), holds = holder.holds }
  end
  ctx:result({ name = name, state = 'held', kinds = { { kind = lock.kind, certain = lock.certain,
    lease_ms = lock.lease_ms, holders = holders, waiters = waiters, token = lock.token } } },
    words(name, lock, waiters))
  return cli.exits.done
end

return command

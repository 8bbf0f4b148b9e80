-- SPDX-License-Identifier: Apache-2.0
local ffi = require('ffi')

local cli = require('lib.cli')
local kinds = require('lib.kinds')
local names = require('lib.names')
local text = require('lib.text')

ffi.cdef('int isatty(int fd);')

local command = { summary = 'take a lock from its holder', server = true }

function command.configure(parser)
  parser:argument('name', 'Of the lock.')
  parser:option('--kind', 'Its kind, where the key does not show it: ' .. kinds.CHOICE .. '.')
    :choices(kinds.NAMES)
  parser:option('--owner', 'Only if this owner holds it, as inspect names it.')
  parser:flag('--yes', 'Do not ask.')
  parser:epilog('The holder is told when it next renews; until then it goes on working. '
    .. 'Breaking a fenced lock draws a token above the holder\'s: the resource can shut it out at '
    .. 'once. Exit code 1: another owner holds the lock by now, and nothing was done.')
end

local function contradiction(lock, kind, name)
  if lock.type then
    return ('%s is a %s: no lock of any kind'):format(name, lock.type)
  elseif kind and kinds.ROWS[kind].type ~= kinds.ROWS[lock.kind].type then
    return ('%s is a %s: no lock of kind %s'):format(name, kinds.ROWS[lock.kind].type, kind)
  elseif not lock.fits then
    return ('%s is a hash, but no lock: it has %d fields that are no owners with counts'):format(
      name, lock.fields)
  elseif not kind and not lock.certain then
    return ('%s may be something else than a lock; write --kind %s if it is one'):format(name,
      lock.kind)
  end
end

local function agrees(ctx, name, lock, owner)
  ctx.stderr:write(('%s is held by %s%s.\nBreak it? [y/N] '):format(name, text.safe(owner),
    lock.lease_ms >= 0 and ' for another ' .. text.show_ms(lock.lease_ms) or ''))
  local answer = io.stdin:read('*l')
  return answer ~= nil and answer:lower():find('^y') ~= nil
end

local function free(ctx, name)
  ctx:result({ name = name, outcome = 'free' }, name .. ' is free: nobody holds it.\n')
  return cli.exits.done
end

local function break_it(ctx, client, kind, raw_name, owner)
  local name = text.safe(raw_name)
  local script = kinds.ROWS[kind].breaks
  local derived = kinds.derived(ctx.home, script, raw_name)
  local reply, err = client:eval(script, { derived.lock, derived.counter },
    { owner, derived.channel, derived.publish })
  if not reply then
    return ctx:fail(err)
  elseif reply[1] == 0 then
    return free(ctx, name)
  elseif reply[1] == -1 then
    ctx:result({ name = name, outcome = 'another' }, ('%s is held by another than %s by now.\n')
      :format(name, text.safe(owner)))
    return cli.exits.found
  end
  ctx:result({ name = name, outcome = 'broken', kind = kind, owner = text.safe(owner),
    token = reply[2] }, ('%s is free; it was held by %s%s.\n'):format(name, text.safe(owner),
    reply[2] and (', with a token below %.0f'):format(reply[2]) or ''))
  return cli.exits.done
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
  local lock, err = kinds.find(client, ctx.home, args.name)
  if not lock then
    return ctx:fail(err)
  end
  local name = text.safe(args.name)
  if lock.free then
    return free(ctx, name)
  end
  local wrong = contradiction(lock, args.kind, name)
  if wrong then
    return ctx:fail({ status = 'LK_WRONGTYPE', message = wrong })
  end
  local owner = args.owner or lock.holders[1].owner
  if not args.yes then
    if ctx.json or ffi.C.isatty(0) == 0 then
      return ctx:misuse('nobody is there to be asked; write --yes')
    elseif not agrees(ctx, name, lock, owner) then
      ctx:note('nothing was done')
      return cli.exits.found
    end
  end
  return break_it(ctx, client, args.kind or lock.kind, args.name, owner)
end

return command

-- SPDX-License-Identifier: Apache-2.0
local cli = require('lib.cli')
local kinds = require('lib.kinds')
local text = require('lib.text')

local command = { summary = 'list the locks that exist', server = true }

local STEP = 500

function command.configure(parser)
  parser:argument('pattern', 'Of names, as the command KEYS takes it; default *.'):args('?')
  parser:option('--kind', 'Every key that can be a lock of this kind: ' .. kinds.CHOICE
    .. '. Without it, the keys that are certainly locks: hashes whose fields are owners.')
    :choices(kinds.NAMES)
  parser:option('--limit', 'Stop after so many locks.'):default('1000'):argname('N')
    :convert(tonumber)
  parser:epilog('The keyspace is read in steps, so locks that come and go meanwhile may be missed. '
    .. 'Exit code 2: there are more than the limit.')
end

-- Adds the locks among these keys; false when the limit is reached.
local function collect(client, args, ctx, names, found)
  for i = 1, names.n do
    local name = names[i]
    local lock, err
    if args.kind then
      lock, err = kinds.read(client, ctx.home, args.kind, name)
    else
      lock, err = kinds.recognize(client, ctx.home, 'hash', name)
    end
    -- The key became something else since it was listed.
    if not lock and err.status ~= 'LK_WRONGTYPE' then
      return nil, err
    end
    if lock and not lock.free and (lock.certain or args.kind and lock.fits) and not found[name] then
      if #found == args.limit then
        return false
      end
      lock.name = name
      lock.waiters, err = kinds.listeners(client, ctx.home, lock.kind, name)
      if not lock.waiters then
        return nil, err
      end
      found[name] = true
      found[#found + 1] = lock
    end
  end
  return true
end

-- The locks by name, and whether these are all.
local function scan(client, args, ctx)
  local found, cursor = {}, '0'
  repeat
    local reply, err = client:command('SCAN', cursor, 'MATCH', args.pattern or '*', 'COUNT', STEP,
      'TYPE', kinds.ROWS[args.kind or 'lock'].type)
    if not reply then
      return nil, err
    end
    local more
    more, err = collect(client, args, ctx, reply[2], found)
    if more == nil then
      return nil, err
    elseif more == false then
      return found, false
    end
    cursor = reply[1]
  until cursor == '0'
  return found, true
end

local function show_lease(ms)
  return ms < 0 and 'endless' or text.show_ms(ms)
end

local ROW = '%-24s %-6s %-10s %-8s %s'

local function table_text(locks)
  local lines = { ROW:format('NAME', 'KIND', 'LEASE', 'WAITING', 'HOLDERS') }
  for i, lock in ipairs(locks) do
    local holders = {}
    for j, holder in ipairs(lock.holders) do
      holders[j] = text.safe(holder.owner) .. (holder.holds > 1 and ' x' .. holder.holds or '')
    end
    if lock.token then
      holders[#holders + 1] = ('token %.0f'):format(lock.token)
    end
    lines[i + 1] = ROW:format(text.safe(lock.name), lock.kind, show_lease(lock.lease_ms),
      lock.waiters, table.concat(holders, ' '))
  end
  return table.concat(lines, '\n') .. '\n'
end

function command.run(args, ctx)
  if not args.limit or args.limit < 1 then
    return ctx:misuse('--limit takes a number from 1 on')
  end
  local client, code = ctx:client()
  if not client then
    return code
  end
  local locks, complete = scan(client, args, ctx)
  if not locks then
    return ctx:fail(complete)
  end
  table.sort(locks, function(a, b)
    return a.name < b.name
  end)
  local rows = {}
  for i, lock in ipairs(locks) do
    local holders = {}
    for j, holder in ipairs(lock.holders) do
      holders[j] = { owner = text.safe(holder.owner), holds = holder.holds }
    end
    rows[i] = { name = text.safe(lock.name), kind = lock.kind, lease_ms = lock.lease_ms,
      holders = holders, waiters = lock.waiters, token = lock.token }
  end
  ctx:result({ locks = rows, complete = complete }, #locks > 0 and table_text(locks) or '')
  if not complete then
    ctx:note(('latchkey ls: there are more than %d; see --limit'):format(args.limit))
    return cli.exits.incomplete
  end
  return cli.exits.done
end

return command

-- SPDX-License-Identifier: Apache-2.0
local breaking = require('latchkey.locks.kinds.breaking')
local cli = require('latchkey.cli')
local clients = require('latchkey.servers.clients')
local fleet = require('latchkey.servers.fleet')
local kinds = require('latchkey.locks.kinds')
local terminal = require('latchkey.cli.terminal')
local text = require('latchkey.text')
local words = require('latchkey.locks.kinds.words')

local command = { summary = 'take a lock from its holder', server = true }

-- So many holders are named in the question.
local ASKED_MAX = 10

local SHUT_OUT = [[
Its old holder may still write where tokens are checked, until the resource has seen a later one.
The token %.0f is later: write it there now. Where latchkey guards the resource:
  latchkey eval fence/admit --name RESOURCE --token %.0f --owner operator
]]

function command.configure(parser)
  parser:argument('name', 'Of the lock.')
  parser:option('--kind', 'Its kind, where the key does not show it: ' .. kinds.CHOICE .. '.')
    :choices(kinds.NAMES)
  parser:option('--owner', 'Only if this owner holds it, as inspect names it: of several readers '
    .. 'only this one, of permits the one with this id.')
  parser:flag('--yes', 'Do not ask.')
  parser:epilog('A holder that renews learns of it at its next renewal, another at its deadline; '
    .. 'until then it goes on working. Waiters are notified at once. Breaking a fenced lock draws '
    .. 'a token above the holder\'s and prints it: a resource refuses the old holder once it has '
    .. 'seen that token. A latch is opened. Exit code 1: another owner holds the lock by '
    .. 'now, and nothing was done.')
end

local function kinds_of(views)
  local list = {}
  for i, view in ipairs(views) do
    list[i] = view.kind
  end
  return table.concat(list, ', ')
end

-- The likeliest kind that can be broken.
local function breakable(views)
  for _, view in ipairs(views) do
    if kinds.ROWS[view.kind].breaks then
      return view.kind
    end
  end
end

-- The kind that the key shows. Nothing is taken from what may be something else.
local function choose(found, raw_name)
  local name = text.safe(raw_name)
  if found.what then
    return nil, ('%s is %s: not a lock of any kind'):format(name, found.what)
  end
  local first = found.views[1]
  if first.certain then
    return first
  elseif not first.fits and first.fields then
    return nil, name .. ' ' .. words.no_owners(first)
  elseif #found.views > 1 then
    return nil, ('%s may be several things: %s; write --kind with the one that it is, '
      .. 'e.g. latchkey break %s --kind %s'):format(name, kinds_of(found.views),
      text.shell_word(raw_name), breakable(found.views))
  end
  return nil, ('%s may be something else than a lock; write --kind %s if it is one'):format(name,
    first.kind)
end

-- What is to be broken: a view, { free = true }, or nil and why not.
local function find(client, home, args, name)
  local found, err = kinds.find(client, home, args.name)
  if not found then
    return nil, err
  elseif found.free then
    return { free = true, kind = args.kind }
  end
  local view, why
  if not args.kind then
    view, why = choose(found, args.name)
  elseif found.what then
    why = ('%s is %s: not a lock of any kind'):format(name, found.what)
  elseif kinds.ROWS[args.kind].type ~= kinds.ROWS[found.views[1].kind].type then
    why = ('%s is a %s: no lock of kind %s'):format(name, kinds.ROWS[found.views[1].kind].type,
      args.kind)
  else
    view, err = kinds.read(client, home, args.kind, args.name)
    if not view then
      return nil, err
    elseif not kinds.fits(view) then
      why = ('%s does not fit the kind %s'):format(name, args.kind)
    end
  end
  if why then
    return nil, { status = 'LK_WRONGTYPE', message = why }
  elseif not view.free and not kinds.ROWS[view.kind].breaks then
    return nil, { status = 'LK_INVALID', message = ('%s is a semaphore, which does not know who '
      .. 'has its permits; release them with latchkey eval semaphore/release'):format(name) }
  end
  return view
end

-- Whose clients they are, where the server tells.
local function name_them(client, name, holders)
  local masters, master = fleet.home(client, name)
  if masters then
    clients.new():name({ holders = holders }, master)
  end
end

-- The holders that are meant; false when the named owner is none of them.
local function chosen(client, home, view, args)
  local holders, err = breaking.holders(client, home, view, args.name)
  if not holders then
    return nil, err
  end
  name_them(client, args.name, holders)
  if not args.owner then
    return holders
  end
  for _, holder in ipairs(holders) do
    if holder.owner == args.owner then
      return { holder }
    end
  end
  return false
end

local function question(name, view, holders)
  if view.left then
    return ('%s is closed, %.0f left to count.\n'):format(name, view.left), 'Open it? [y/N] '
  end
  local lines = {}
  for i = 1, math.min(#holders, ASKED_MAX) do
    local left_ms = holders[i].left_ms or view.lease_ms
    local about = clients.about(holders[i])
    lines[i] = ('%s is held by %s%s%s.\n'):format(name, text.safe(holders[i].owner),
      left_ms >= 0 and ' for another ' .. text.show_ms(left_ms) or '',
      about and ':\n  ' .. about or '')
  end
  if #holders > ASKED_MAX then
    lines[#lines + 1] = ('And by %d more.\n'):format(#holders - ASKED_MAX)
  end
  return table.concat(lines), 'Break it? [y/N] '
end

local function free(ctx, name, kind)
  ctx:result({ name = name, outcome = 'free' }, kind == 'countdown' and name .. ' is open.\n'
    or name .. ' is free: nobody holds it.\n')
  return cli.exits.done
end

local function safe_all(owners)
  local list = {}
  for i, owner in ipairs(owners) do
    list[i] = text.safe(owner)
  end
  return list
end

local function who(holder)
  return text.safe(holder.owner)
    .. (holder.client and ' (' .. clients.short(holder.client) .. ')' or '')
end

local function whom(owners, holders)
  local list = {}
  for _, holder in ipairs(holders) do
    for _, owner in ipairs(owners) do
      list[#list + 1] = holder.owner == owner and who(holder) or nil
    end
  end
  return list
end

-- `after`: a view of it as it is now; nil where it could not be read again.
local function told(name, view, holders, done, after)
  if view.left then
    return ('%s is open; %.0f were left to count.\n'):format(name, done.left)
  elseif view.kind == 'permit' then
    return ('%s: %s.\n'):format(name, words.counted(done.broken, 'permit is free again',
      'permits are free again'))
  end
  local now = after and 'is free' or 'is broken'
  if after and after.holders and #after.holders > 0 then
    now = 'is now held by ' .. who(after.holders[1])
  end
  return ('%s %s; it was held by %s.\n'):format(name, now,
    table.concat(whom(done.owners, holders), ', '))
    .. (done.token and SHUT_OUT:format(done.token, done.token) or '')
end

-- What was done, in any case: a token that was drawn is told once. Then what went wrong behind it.
local function tell_done(ctx, fields, shown, err)
  fields.error = err and { status = err.status, message = text.safe(err.message),
    hint = err.hint or '' } or nil
  ctx:result(fields, shown)
  if not err then
    return cli.exits.done
  end
  return ctx.json and ctx.exit_of(err.status) or ctx:fail(err)
end

local function break_it(ctx, client, view, raw_name, holders)
  local name = text.safe(raw_name)
  local done, err = breaking.run(client, ctx.home, view.kind, raw_name, holders)
  if err and (not done or done.broken == 0) then
    return ctx:fail(err)
  elseif done.broken == 0 and done.another then
    ctx:result({ name = name, outcome = 'another' }, ('%s is held by another than %s by now.\n')
      :format(name, text.safe(holders[1].owner)))
    return cli.exits.found
  elseif done.broken == 0 then
    return free(ctx, name, view.kind)
  end
  local after
  if not err then
    after, err = kinds.read(client, ctx.home, view.kind, raw_name)
  end
  local now = after and after.holders or {}
  name_them(client, raw_name, now)
  local owners = safe_all(done.owners)
  return tell_done(ctx, { name = name, outcome = 'broken', kind = view.kind, owner = owners[1],
    owners = owners, count = done.broken, token = done.token, left = done.left,
    next = now[1] and text.safe(now[1].owner) or nil }, told(name, view, holders, done, after), err)
end

-- What is to be broken: { client, view, holders, name }; nil, and the exit code, where that is
-- nothing.
local function plan(args, ctx)
  local client, code = ctx:client_for(args.name)
  if not client then
    return nil, code
  end
  local name = text.safe(args.name)
  local view, err = find(client, ctx.home, args, name)
  if not view then
    return nil, ctx:fail(err)
  elseif view.free then
    return nil, free(ctx, name, view.kind)
  end
  local holders
  holders, err = chosen(client, ctx.home, view, args)
  if holders == nil then
    return nil, ctx:fail(err)
  elseif not holders then
    ctx:result({ name = name, outcome = 'another' }, ('%s is held by another than %s by now.\n')
      :format(name, text.safe(args.owner)))
    return nil, cli.exits.found
  elseif #holders == 0 and not view.left then
    return nil, free(ctx, name, view.kind)
  end
  return { client = client, view = view, holders = holders, name = name }
end

-- Asks, unless --yes; false, and the exit code, where it is not to be done.
local function agrees(ctx, args, questions, last)
  if args.yes then
    return true
  elseif ctx.json or not terminal.is_one(0) then
    return false, ctx:misuse('standard input is not a terminal, so nobody can be asked; write '
      .. '--yes')
  end
  ctx.stderr:write(questions, last)
  ctx.stderr:flush()
  local answer = io.stdin:read('*l')
  if answer and answer:lower():find('^y') then
    return true
  end
  ctx:note('nothing was done')
  return false, cli.exits.found
end

local function carry_out(what, args, ctx)
  return break_it(ctx, what.client, what.view, args.name, what.holders)
end

function command.run(args, ctx)
  local what, code = plan(args, ctx)
  if not what then
    return code
  end
  local yes
  yes, code = agrees(ctx, args, question(what.name, what.view, what.holders))
  return yes and carry_out(what, args, ctx) or code
end

-- The same process on each server, or that owner.
local function is_meant(holder, owner, person)
  local client = holder.client
  return holder.owner == owner or person ~= nil and client ~= nil and client.host == person.host
    and client.process == person.process
end

-- Whose client has this owner's name, on any server.
local function person_of(owner, records)
  for _, record in ipairs(records) do
    for _, holder in ipairs(record.plan and record.plan.holders or {}) do
      if holder.owner == owner then
        return holder.client
      end
    end
  end
end

local function narrow_one(args, record, person)
  local what, holders = record.plan, {}
  for _, holder in ipairs(what.holders) do
    holders[#holders + 1] = is_meant(holder, args.owner, person) and holder or nil
  end
  if #holders > 0 then
    what.holders = holders
    return
  end
  record.plan, record.code = nil, cli.exits.found
  record.ctx:result({ name = what.name, outcome = 'another' },
    ('%s is held by %s, which is not known to be the process of %s.\n'):format(what.name,
      what.holders[1] and who(what.holders[1]) or 'nobody', text.safe(args.owner)))
end

-- A process has an owner's name of its own on each server: --owner names one of them, and whose
-- client that is tells the others.
local function narrow(args, records)
  local person = args.owner and person_of(args.owner, records)
  for _, record in ipairs(args.owner and records or {}) do
    if record.plan then
      narrow_one(args, record, person)
    end
  end
end

command.several = {
  plan = function(args, ctx)
    return plan(setmetatable({ owner = false }, { __index = args }), ctx)
  end,
  narrow = narrow,
  done = carry_out,
  ask = function(ctx, plans)
    local parts = {}
    for i, one in ipairs(plans) do
      parts[i] = one.target .. ': ' .. (question(one.plan.name, one.plan.view, one.plan.holders))
    end
    return agrees(ctx, ctx.args, table.concat(parts), ('Break it on %d servers? [y/N] '):format(
      #plans))
  end,
  whole = function(codes, count)
    local several = require('latchkey.cli.several')
    return ('%d of %d servers do not have it any more; a majority needs %d'):format(
      several.count(codes, cli.exits.done), count, several.quorum(count))
  end,
}

return command

-- SPDX-License-Identifier: Apache-2.0
local cli = require('latchkey.cli')
local clients = require('latchkey.servers.clients')
local fleet = require('latchkey.servers.fleet')
local kinds = require('latchkey.locks.kinds')
local text = require('latchkey.text')
local words = require('latchkey.locks.kinds.words')

local command = { summary = 'everything about one lock, in words', server = true }

function command.configure(parser)
  parser:argument('name', 'Of the lock.')
  parser:option('--kind', 'Read it as a lock of this kind: ' .. kinds.CHOICE .. '.')
    :choices(kinds.NAMES)
  parser:epilog('A key can fit several kinds; all are shown, each certain or possible. '
    .. 'Exit code 3: the lock is free; 64: the key is no lock, or not one of this kind.')
end

local function read_as(client, home, kind, name)
  if kinds.ROWS[kind].type == 'string' then
    local what, err = kinds.too_long(client, name)
    if what or err then
      return what and { what = what }, err
    end
  end
  local view, err = kinds.read(client, home, kind, name)
  return view and { free = view.free, views = { view } }, err
end

-- Why it is no lock; nil where it can be one.
local function misfit(found, kind)
  if found.what then
    return ('is %s: not a lock of any kind'):format(found.what)
  end
  for _, view in ipairs(found.views) do
    if kinds.fits(view) then
      return nil
    end
  end
  local first = found.views[1]
  if kind or not first then
    return first and ('does not fit the kind %s'):format(kind)
  end
  return first.fields and words.no_owners(first) or 'is an empty string: not a lock of any kind'
end

local function find(client, home, args)
  local found, err
  if args.kind then
    found, err = read_as(client, home, args.kind, args.name)
  else
    found, err = kinds.find(client, home, args.name)
  end
  local why = found and misfit(found, args.kind)
  if why then
    return nil, { status = 'LK_WRONGTYPE', message = text.safe(args.name) .. ' ' .. why }
  end
  return found, err
end

-- Adds who waits, whose clients they are, and of several masters the one that has it.
local function complete(client, home, views, name)
  local masters, master = fleet.home(client, name)
  if not masters then
    return nil, master
  end
  local people = clients.new()
  for _, view in ipairs(views) do
    people:name(view, master)
    view.node = #masters > 1 and fleet.place(master) or nil
    local err
    view.waiters, err = kinds.waiters(client, home, view, name, masters, master)
    if not view.waiters then
      return nil, err
    end
  end
  return true
end

local function documents(views)
  local list = {}
  for i, view in ipairs(views) do
    list[i] = words.document(view)
  end
  return list
end

function command.run(args, ctx)
  local client, code = ctx:client_for(args.name)
  if not client then
    return code
  end
  local name, found, err = text.safe(args.name), find(client, ctx.home, args)
  if not found then
    return ctx:fail(err)
  end
  local ok
  ok, err = complete(client, ctx.home, found.views, args.name)
  if not ok then
    return ctx:fail(err)
  end
  if found.free then
    ctx:result({ name = name, state = 'free', kinds = documents(found.views) },
      words.free(name, found.views, args.kind))
    return cli.exits.free
  end
  ctx:result({ name = name, state = 'held', kinds = documents(found.views) },
    words.about(name, found.views))
  return cli.exits.done
end

-- From here on the number of an owner's name is that of a majority's round, alike on all its
-- servers; below, each client counts for itself (LK_ROUND_SERIALS in c/src/locks/lock.h).
local FIRST_ROUND = 1e13

-- Who has it on one server: names by which others are compared, with the process where it is known;
-- `singles`, processes that have it under a number which says no more; is_unsure: of a holder it is
-- not known whose it is. nil where holders have no names.
local function people_of(record)
  local view, people = record.fields.kinds[1], { names = {}, singles = {} }
  for _, holder in ipairs(view.permits and {} or view.holders) do
    local client, name = holder.client, holder.owner
    local number = tonumber(name:match('^lk%-[%x-]+:(%d+)'))
    local process = client and number and ('%s %d'):format(client.host, client.process)
    local is_round = process and number >= FIRST_ROUND
    if not holder.over then
      people.names[is_round and ('%s %.0f'):format(process, number) or name] = process or false
      people.is_unsure = people.is_unsure or not process
      if process and not is_round then
        people.singles[process] = true
      end
    end
  end
  return next(people.names) and people
end

-- On how many servers one with this name has it for certain, and on how many at most.
local function count_servers(all, name, process)
  local sure, at_most = 0, 0
  for _, people in ipairs(all) do
    local has = people.names[name] ~= nil
    sure = sure + (has and 1 or 0)
    at_most = at_most + ((has or people.is_unsure or people.singles[process]) and 1 or 0)
  end
  return sure, at_most
end

-- On how many servers the same one has it for certain, on how many at most, and on how many anyone.
local function by_one(records)
  local all, nameless, same, most = {}, 0, 0, 0
  for _, record in ipairs(records) do
    if record.code == cli.exits.done then
      local people = people_of(record)
      all[#all + 1] = people
      nameless = nameless + (people and 0 or 1)
    end
  end
  for _, people in ipairs(all) do
    for name, process in pairs(people.names) do
      local sure, at_most = count_servers(all, name, process)
      same, most = math.max(same, sure), math.max(most, at_most)
    end
  end
  return nameless + same, nameless + most, nameless + #all
end

-- Held by a majority, or by nobody; a server that was not asked may be the one that decides.
command.several = {
  whole = function(codes, count, args, records)
    local several = require('latchkey.cli.several')
    local same, at_most, held = by_one(records)
    local unknown = count - held - several.count(codes, cli.exits.free)
    local quorum, name = several.quorum(count), text.safe(args.name)
    local said = ('%s is held on %d of %d servers'):format(name, held, count)
    local parted = said
      .. (same < held and (', on %d of them by one owner'):format(same) or '')
    if same >= quorum then
      return parted .. ': a majority', cli.exits.done
    elseif unknown == count then
      return 'none of the servers could be asked', cli.exits.server
    elseif at_most >= quorum then
      return said .. ', by owners that are not known to be one', cli.exits.incomplete
    elseif at_most + unknown >= quorum then
      return ('%s; %d could not be asked, so it may be a majority'):format(said, unknown),
        cli.exits.incomplete
    end
    return ('%s: no majority, so nobody holds it'):format(parted), cli.exits.free
  end,
}

return command

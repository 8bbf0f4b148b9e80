-- SPDX-License-Identifier: Apache-2.0
local tablex = require('pl.tablex')

local ask = require('latchkey.locks.ask')
local blame = require('latchkey.locks.blame')
local cli = require('latchkey.cli')
local clients = require('latchkey.servers.clients')
local fleet = require('latchkey.servers.fleet')
local kinds = require('latchkey.locks.kinds')
local text = require('latchkey.text')
local told = require('latchkey.locks.blame.told')
local unasked = require('latchkey.locks.unasked')

local command = { summary = 'who waits for whom, and what is deadlocked', server = true }

local PAUSE_MS = 100

-- Of so many locks whose waiters are silent the holders are looked up.
local SILENT_MAX = 100

function command.configure(parser)
  parser:argument('name', 'Only this lock, and what its holders wait for.'):args('?')
  parser:option('--within', 'How long answers are waited for, 10ms to 1m.'):default('500ms')
    :argname('DURATION')
  parser:flag('--watch', 'Look again every second, and print what has changed, until a '
    .. 'signal. While the server is away, it tries again.')
  parser:flag('--dot', 'A graph for dot(1) of Graphviz.')
  parser:epilog('Clients answer that wait for something at this moment: those of latchkey exec, '
    .. 'and applications that set the option answers. Exit code 1: there is a deadlock. 2: none '
    .. 'was found, but some clients that wait could not be asked, the holders of a lock not be '
    .. 'read or not all be named, or a holder waits in another database.')
end

-- ------------------------------------------------------------------------------------ looking --

-- How many of latchkey's clients wait for each lock and answered, by the family of its channel.
local function heard(answers)
  local counts, idle = {}, 0
  for _, answer in ipairs(answers) do
    local seen = {}
    for _, wait in ipairs(answer.waits) do
      local key = unasked.family(wait.kind) .. ' ' .. wait.name
      counts[key] = (counts[key] or 0) + (seen[key] and 0 or 1)
      seen[key] = true
    end
    idle = idle + (#answer.waits == 0 and 1 or 0)
  end
  return counts, idle
end

-- The locks for which more listen than have answered: { kind, name, silent } of each. Who has just
-- stopped to wait still listens for a moment, and answers that it waits for nothing.
local function find_silent(listened, answers, name)
  local counts, idle = heard(answers)
  local list, sum = {}, 0
  for key, lock in pairs(listened) do
    local silent = lock.listeners - (counts[key] or 0)
    if silent > 0 and (not name or lock.name == name) then
      list[#list + 1] = { kind = lock.kind, name = lock.name, silent = silent }
      sum = sum + silent
    end
  end
  table.sort(list, function(a, b)
    return a.name < b.name
  end)
  return sum > idle and list or {}, math.max(sum - idle, 0)
end

-- Adds the kind that the key shows: several kinds share a channel.
local function with_kind(client, home, lock)
  local found = kinds.find(client, home, lock.name)
  local view = found and found.views and found.views[1]
  local kind = view and view.kind
  if kind and (not lock.kind or unasked.family(kind) == lock.kind) then
    lock.kind = kind
  end
  return lock
end

-- The locks that are to be looked at though nobody who answers waits for them.
local function further_of(client, home, answers, silent, name)
  local further, known = {}, {}
  for _, answer in ipairs(answers) do
    for _, wait in ipairs(answer.elsewhere and {} or answer.waits) do
      known[wait.name] = true
    end
  end
  for i = 1, math.min(#silent, SILENT_MAX) do
    if not known[silent[i].name] then
      further[#further + 1] = with_kind(client, home, silent[i])
      known[silent[i].name] = true
    end
  end
  if name and not known[name] then
    local lock = with_kind(client, home, { name = name })
    further[#further + 1] = lock.kind and lock or nil
  end
  return further
end

-- The clients that wait for locks of other databases: { clients, databases }; nil: none does.
local function elsewhere_of(answers)
  local databases, count = {}, 0
  for _, answer in ipairs(answers) do
    if answer.elsewhere and #answer.waits > 0 then
      count, databases[answer.elsewhere] = count + 1, true
    end
  end
  local numbers = tablex.keys(databases)
  table.sort(numbers)
  return count > 0 and { clients = count, databases = numbers } or nil
end

local function snapshot(client, home, within_ms, name)
  local answers, expected = ask.all(client, within_ms)
  if not answers then
    return nil, expected
  end
  local listened, hidden = unasked.listened(client, home)
  local silent, count = find_silent(listened, answers, name)
  local picture, err = blame.picture(answers, function(kind, of)
    return kinds.read(client, home, kind, of)
  end, further_of(client, home, answers, silent, name))
  return picture and { picture = picture, cycles = blame.cycles(picture), answers = answers,
    answered = #answers, expected = expected, silent = silent, silent_count = count,
    hidden = hidden and hidden.message, elsewhere = elsewhere_of(answers) }, err
end

-- Answers and looks are not of one moment, so a deadlock counts when it is seen twice.
local function confirmed(client, home, within_ms, first, name)
  if #first.cycles == 0 then
    return first
  end
  require('posix.poll').rpoll(-1, PAUSE_MS)
  local second, err = snapshot(client, home, within_ms, name)
  if not second then
    return nil, err
  end
  local before, cycles = {}, {}
  for _, cycle in ipairs(first.cycles) do
    before[blame.key(cycle)] = true
  end
  for _, cycle in ipairs(second.cycles) do
    cycles[#cycles + 1] = before[blame.key(cycle)] and cycle or nil
  end
  second.cycles = cycles
  return second
end

-- The locks that the named one depends on, or all that are waited for; as a sorted list of keys.
local function chosen(picture, name)
  local keys, wanted = {}, {}
  for key, lock in pairs(picture.locks) do
    wanted[key] = (not name or lock.name == name) or nil
  end
  local rows = {}
  for key in pairs(wanted) do
    rows[#rows + 1] = key
  end
  local at = 1
  while rows[at] do
    for _, holder in ipairs(picture.locks[rows[at]].holders) do
      for _, unit in ipairs(holder.units) do
        for _, wait in ipairs(picture.units[unit].waits) do
          if not wanted[wait.lock] then
            wanted[wait.lock] = true
            rows[#rows + 1] = wait.lock
          end
        end
      end
    end
    at = at + 1
  end
  for key in pairs(wanted) do
    keys[#keys + 1] = key
  end
  table.sort(keys)
  return keys
end

-- Keeps the deadlocks that the chosen locks are in, and counts the others.
local function keep_chosen(seen, keys)
  local wanted, kept = {}, {}
  for _, key in ipairs(keys) do
    wanted[key] = true
  end
  for _, cycle in ipairs(seen.cycles) do
    kept[#kept + 1] = wanted[cycle[1].wait.lock] and cycle or nil
  end
  seen.others, seen.cycles = #seen.cycles - #kept, kept
end

-- Adds whose clients the holders are, and who waits for each lock.
local function complete(client, home, seen, keys)
  local people, picture = clients.new(), seen.picture
  for _, key in ipairs(keys) do
    local lock = picture.locks[key]
    lock.waits = {}
    local masters, master
    if lock.view then
      masters, master = fleet.home(client, lock.name)
      lock.unread = not masters and master or nil
    end
    if masters then
      people:name(lock.view, master)
      lock.view.kind = lock.kind
      lock.listeners = kinds.waiters(client, home, lock.view, lock.name, masters, master)
    end
    seen.unread = (seen.unread or 0) + (lock.unread and 1 or 0)
  end
  if seen.silent_count > 0 then
    seen.people, seen.people_count = unasked.silent(client, seen.answers)
  end
  for _, unit in pairs(picture.units) do
    for _, wait in ipairs(unit.waits) do
      local lock = picture.locks[wait.lock]
      if lock.waits then
        table.insert(lock.waits, wait)
      end
    end
  end
  for _, key in ipairs(keys) do
    table.sort(picture.locks[key].waits, function(a, b)
      if a.waited_ms ~= b.waited_ms then
        return (a.waited_ms or 0) > (b.waited_ms or 0)
      end
      return a.unit < b.unit
    end)
  end
  return true
end

-- ---------------------------------------------------------------------------------------- run --

local function look(client, args, ctx, within_ms)
  local seen, err = snapshot(client, ctx.home, within_ms, args.name)
  if seen then
    seen, err = confirmed(client, ctx.home, within_ms, seen, args.name)
  end
  if not seen then
    return nil, err
  end
  local keys = chosen(seen.picture, args.name)
  seen.name = args.name
  if args.name then
    keep_chosen(seen, keys)
  end
  local ok
  ok, err = complete(client, ctx.home, seen, keys)
  return ok and { seen = seen, keys = keys }, err
end

local function tell(ctx, args, found)
  return ctx:result(told.document(found.seen, found.keys),
    (args.dot and told.graph or told.text)(found.seen, found.keys)) and ctx.stdout:flush()
end

-- What tells two looks apart: not the times.
local function gist(found)
  return (told.text(found.seen, found.keys):gsub('%d+%.?%d* %a+', ''))
end

-- Why there is no answer, with what was known before it.
local function tell_trouble(ctx, args, known, err)
  local fields, why = told.document(known.seen, known.keys), text.safe(err.message)
  fields.trouble = why
  return ctx:result(fields, ('%sno answer, trying again: %s\n'):format(args.dot and '// ' or '',
    why)) and ctx.stdout:flush()
end

local function watch(client, args, ctx, within_ms)
  local last, known
  while true do
    local found, err = look(client, args, ctx, within_ms)
    if not found and (not known or err.retriable == false) then
      return ctx:fail(err)
    end
    known = found or known
    local now, written = found and gist(found) or err.status, true
    if now ~= last and found then
      written = tell(ctx, args, found)
    elseif now ~= last then
      written = tell_trouble(ctx, args, known, err)
    end
    -- Of what cannot be written the exit code tells.
    if not written then
      return cli.exits.done
    end
    last = now
    require('posix.poll').rpoll(-1, 1000)
  end
end

-- May there be a deadlock that is not seen, as those who hold what is waited for are not all named,
-- or one of them waits in another database?
local function may_hide(picture, keys)
  for _, key in ipairs(keys) do
    local lock = picture.locks[key]
    local hides = lock.unnamed > 0
    for _, holder in ipairs(lock.holders) do
      hides = hides or told.database_of(picture, holder) ~= nil
    end
    if hides and #lock.waits > 0 then
      return true
    end
  end
  return false
end

function command.run(args, ctx)
  local within_ms, why = text.duration(args.within)
  if not within_ms then
    return ctx:misuse('--within: ' .. why)
  elseif within_ms < 10 or within_ms > 60000 then
    return ctx:misuse('--within takes 10ms to 1m')
  elseif args.dot and ctx.json then
    return ctx:misuse('either --dot or --json')
  elseif args.watch and rawget(ctx, 'result') then
    return ctx:misuse('--watch takes one server')
  end
  local client, code = ctx:client_for(args.name)
  if not client then
    return code
  elseif args.watch then
    return watch(client, args, ctx, within_ms)
  end
  local found, err = look(client, args, ctx, within_ms)
  if not found then
    return ctx:fail(err)
  end
  tell(ctx, args, found)
  local seen = found.seen
  local is_partial = seen.silent_count > 0 or seen.hidden or (seen.unread or 0) > 0
    or may_hide(seen.picture, found.keys)
  return #seen.cycles > 0 and cli.exits.found or is_partial and cli.exits.incomplete
    or cli.exits.done
end

-- Who waits for a majority listens nowhere: it asks all of them again and again, and does not
-- answer.
command.several = {
  whole = function(codes, count)
    local several = require('latchkey.cli.several')
    local found = several.count(codes, cli.exits.found)
    if found > 0 or several.count(codes, cli.exits.server) == count then
      return ('%d of %d servers have a deadlock'):format(found, count)
    end
    return 'no deadlock was found on one server; clients that wait for a majority do not answer, '
      .. 'so a deadlock of them is not seen: compare who holds what in latchkey ls',
      several.count(codes, cli.exits.use) == 0 and cli.exits.incomplete or nil
  end,
}

return command

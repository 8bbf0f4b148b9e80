-- SPDX-License-Identifier: Apache-2.0
local cli = require('latchkey.cli')
local kinds = require('latchkey.locks.kinds')
local nodes = require('latchkey.servers.nodes')
local survey = require('latchkey.locks.survey')
local terminal = require('latchkey.cli.terminal')
local text = require('latchkey.text')
local words = require('latchkey.locks.kinds.words')

local command = { summary = 'list the locks that exist', server = true }

local NAME_MIN, NAME_MAX = 24, 48

function command.configure(parser)
  parser:argument('pattern', 'Of names, as the command KEYS takes it; default *.'):args('?')
  parser:option('--kind', 'Every key that can be a lock of this kind: ' .. kinds.CHOICE
    .. '; may be given several times. Without it, the keys that are certainly locks: those whose '
    .. 'owners are.'):argname('KIND'):choices(kinds.NAMES):count('*')
  parser:option('--limit', 'Stop after N locks.'):default('1000'):argname('N')
    :convert(cli.number)
  parser:epilog('The keyspace is read in steps, so locks that come and go meanwhile may be missed. '
    .. 'The masters of a cluster are read one after the other. Exit code 2: there are more than '
    .. 'the limit, a master could not be asked, or a key is left out: this user may not read it, '
    .. 'or its slot is on the move.')
end

local function show_progress(show, scan, total, found)
  show(('%d %% of %.0f keys, %s'):format(scan:percent(total), total,
    words.counted(found, 'lock', 'locks')))
end

-- Adds the locks among these keys; false when the limit is reached.
local function collect(scan, keys, limit, found)
  for _, name in ipairs(keys) do
    local view, err = scan:look(name)
    if view == nil then
      return scan:give_up(scan.last, err)
    elseif view and #found == limit then
      return false
    elseif view then
      found[#found + 1] = view
    end
  end
  return true
end

-- The locks by name, and whether the limit left some out; nil and the error when no server answers.
local function all(scan, limit, show)
  local total, err = scan:size()
  if not total then
    return nil, err
  end
  local found = {}
  local within, keys
  repeat
    keys, err = scan:step()
    if not keys then
      return nil, err
    end
    within, err = collect(scan, keys, limit, found)
    if within == nil then
      return nil, err
    end
    show_progress(show, scan, total, #found)
  until scan.done or not within
  table.sort(found, function(a, b)
    return a.name < b.name
  end)
  return found, not within
end

local function table_text(views)
  local width = NAME_MIN
  for _, view in ipairs(views) do
    width = math.max(width, math.min(NAME_MAX, #text.safe(view.name)))
  end
  local node = views[1].node and words.NODE or '%s'
  local row = '%-' .. width .. 's %-9s %-10s %-8s ' .. node .. '%s'
  local lines = { row:format('NAME', 'KIND', 'LEASE', 'WAITING', views[1].node and 'NODE' or '',
    'HOLDERS') }
  for i, view in ipairs(views) do
    lines[i + 1] = row:format(text.safe(view.name), view.kind, words.lease(view),
      view.waiters, view.node or '', words.holders(view))
  end
  return table.concat(lines, '\n') .. '\n'
end

-- What is not in the table.
local function foot(ctx, scan, count)
  if count == 0 then
    ctx:note(words.is_whole(scan) and 'no locks' or 'no locks among what could be read')
  end
  local possible = words.possible(scan.possible)
  if possible then
    ctx:note(possible)
  end
end

-- The names of the keys of one kind of failure, the first of its errors, and what to do.
local LEFT_OUT = {
  { field = 'denied', status = 'LK_DENIED', one = '1 key that this user may not read is left out',
    many = '%.0f keys that this user may not read are left out',
    hint = 'name what it may read, as the command KEYS takes it; or give it more: '
      .. 'latchkey acl USER --operator --names PATTERN' },
  { field = 'moving', status = 'LK_CLUSTERDOWN',
    one = '1 key is left out, whose slot is on the move or not served',
    many = '%.0f keys are left out, whose slots are on the move or not served',
    hint = 'list again when they have moved; latchkey doctor says which slots are not served' },
}

local function tell_left_out(ctx, left_out)
  for _, kind in ipairs(LEFT_OUT) do
    local count, shown, first = left_out[kind.field], {}, nil
    for _, key in ipairs(left_out.keys) do
      if key.err.status == kind.status then
        shown[#shown + 1], first = text.safe(key.name), first or key.err.message
      end
    end
    if count > #shown then
      shown[#shown + 1] = ('and %.0f more'):format(count - #shown)
    end
    if count > 0 then
      ctx.stderr:write(('latchkey ls: %s: %s\n'):format(count == 1 and kind.one
        or kind.many:format(count), table.concat(shown, ', ')))
      ctx.stderr:write(first and ('  %s\n'):format(text.safe(first)) or '', '  ', kind.hint, '\n')
    end
  end
end

function command.run(args, ctx)
  if not args.limit or args.limit < 1 then
    return ctx:misuse('--limit takes a number from 1 on')
  end
  local client, code = ctx:client()
  if not client then
    return code
  end
  local show = terminal.progress(ctx)
  local scan = survey.new(client, ctx.home, { pattern = args.pattern, kinds = args.kind })
  local views, more = all(scan, args.limit, show)
  show(nil)
  if not views then
    return ctx:fail(more)
  end
  local rows = {}
  for i, view in ipairs(views) do
    rows[i] = words.document(view)
    rows[i].name = text.safe(view.name)
    rows[i].also = view.also
  end
  local complete = not more and words.is_whole(scan)
  ctx:result({ locks = rows, complete = complete, possible = scan.possible,
    failed = nodes.failed(scan.failures), left_out = words.left_out(scan.left_out) },
    #views > 0 and table_text(views) or '')
  if not ctx.json then
    foot(ctx, scan, #views)
    tell_left_out(ctx, scan.left_out)
  end
  nodes.tell(ctx, scan.failures)
  if more then
    ctx:note(('latchkey ls: there are more than %d; see --limit'):format(args.limit))
  end
  return complete and cli.exits.done or cli.exits.incomplete
end

command.several = {
  whole = function(codes, count)
    local several = require('latchkey.cli.several')
    return ('%d of %d servers were asked'):format(count - several.count(codes, cli.exits.server),
      count)
  end,
}

return command

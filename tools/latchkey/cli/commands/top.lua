-- SPDX-License-Identifier: Apache-2.0
local cli = require('latchkey.cli')
local kinds = require('latchkey.locks.kinds')
local terminal = require('latchkey.cli.terminal')
local text = require('latchkey.text')
local words = require('latchkey.locks.kinds.words')

local command = { summary = 'the locks that exist, live', server = true }

local EVERY_MIN_MS, EVERY_MAX_MS = 100, 3600000

function command.configure(parser)
  parser:argument('pattern', 'Of names, as the command KEYS takes it; default *.'):args('?')
  parser:option('--kind', 'Every key that can be a lock of this kind: ' .. kinds.CHOICE
    .. '; may be given several times.'):argname('KIND'):choices(kinds.NAMES):count('*')
  parser:option('--sort', 'By name, kind, lease, waiting or holds.'):default('name')
    :choices({ 'name', 'kind', 'lease', 'waiting', 'holds' })
  parser:flag('--reverse', 'The other way round.')
  parser:option('--every', 'How often to read again.'):default('2s'):argname('DURATION')
  parser:option('--limit', 'Show at most N locks.'):default('1000'):argname('N')
    :convert(cli.number)
  parser:flag('--once', 'One frame, as text.')
  parser:epilog('Keys: q quits, s sorts by the next column, r reverses, / filters (Enter keeps, '
    .. 'Escape drops it), arrows and page keys scroll. A large keyspace is searched a piece at a '
    .. 'time. While the server is away, the last known locks stay. With --json, a line per frame. '
    .. 'Exit code 2, with --once: there are more than the limit, a master could not be asked, or a '
    .. 'key is left out: this user may not read it, or its slot is on the move.')
end

local function frame(view)
  local rows = view:rows()
  local list = {}
  for i, row in ipairs(rows) do
    list[i] = words.document(row)
    list[i].name = text.safe(row.name)
  end
  return { locks = list, possible = view.scan.possible,
    left_out = words.left_out(view.scan.left_out), complete = view:is_complete(),
    trouble = view.trouble }
end

-- False when it could not be written.
local function write(ctx, view)
  return ctx:result(frame(view), view:text()) and ctx.stdout:flush()
end

-- Frames for programs, until a signal or a closed pipe ends them, or a disk is full. Who ignores
-- SIGPIPE (systemd does, for its services) learns of a closed pipe by what is written.
local function stream(ctx, view, every_ms)
  local poll = require('posix.poll')
  view:refresh(false)
  while write(ctx, view) do
    poll.rpoll(-1, every_ms)
    view:refresh(false)
  end
end

-- Refreshes when it is time, draws, and does what keys say.
local function watch(view, screen, every_ms)
  local now_ms = require('latchkey').now_ms
  local is_coloured, next_ms, go_on = terminal.has_colours(), 0, true
  while go_on and not screen.ended_by do
    local height, width = screen.size()
    if now_ms() >= next_ms or view:is_searching() then
      view:refresh(false)
      next_ms = now_ms() + every_ms
    end
    screen:draw(view:lines(height, width, is_coloured))
    local key = screen:key(view:is_searching() and 0 or math.max(0, next_ms - now_ms()))
    while key and go_on do
      go_on = view:press(key, height)
      key = go_on and screen:key(0) or nil
    end
  end
end

local function on_screen(view, every_ms)
  local screen = require('latchkey.cli.screen').open()
  local good, wrong = xpcall(watch, debug.traceback, view, screen, every_ms)
  screen:close()
  if not good then
    error(wrong, 0)
  end
end

-- Why nothing can be drawn again and again; nil when it can.
local function no_screen()
  if not (terminal.is_one(0) and terminal.is_one(1)) then
    return 'this is not a terminal'
  elseif not terminal.knows_escapes() then
    local kind = os.getenv('TERM') or ''
    return kind == '' and 'TERM does not say which terminal this is'
      or ('a terminal of the kind %s has no screen to draw on'):format(text.safe(kind))
  end
end

function command.run(args, ctx)
  local every_ms, why = text.duration(args.every)
  if not every_ms then
    return ctx:misuse('--every: ' .. why)
  elseif every_ms < EVERY_MIN_MS or every_ms > EVERY_MAX_MS then
    return ctx:misuse('--every takes 100ms to 1h')
  elseif not args.limit or args.limit < 1 then
    return ctx:misuse('--limit takes a number from 1 on')
  end
  local missing = not (args.once or ctx.json) and no_screen()
  if missing then
    return ctx:misuse(missing .. '; write --once for one frame, or --json')
  end
  local client, code = ctx:client()
  if not client then
    return code
  end
  local view = require('latchkey.locks.top').new(client, ctx.home, { pattern = args.pattern,
    kinds = args.kind, limit = args.limit, sort = args.sort, reverse = args.reverse or false })
  if args.once then
    local ok, err = view:refresh(true)
    if not ok then
      return ctx:fail(err)
    end
    write(ctx, view)
    return view:is_complete() and cli.exits.done or cli.exits.incomplete
  elseif ctx.json then
    stream(ctx, view, every_ms)
  else
    on_screen(view, every_ms)
  end
  return cli.exits.done
end

return command

-- SPDX-License-Identifier: Apache-2.0
-- MOCK: what a test asks of its server, and no other server knows.
local execute = require('latchkey.mock.front.execute')
local integers = require('latchkey.mock.integers')

local OK = { ok = 'OK' }
local MAX_MS = 2 ^ 41

local HELP = {
  'MOCK ADVANCE <ms>                time goes on by so much; leases end by it',
  'MOCK TIME                        which time it is (ms since 1970), and whether it flows',
  'MOCK TIME REAL|MANUAL            it flows, or it stands still between calls of ADVANCE',
  'MOCK LOSE <n> [SILENT] [<name>]  the next n replies of scripts and commands on keys are lost,',
  '                                 and of EXEC with one of them, or of one such as',
  '                                 lock/acquire; their connection ends, or says nothing any more',
  'MOCK CLOSE [NORMAL|PUBSUB]       all other connections end, or those of one kind',
  'MOCK DELAY <ms>                  every reply and message but of MOCK is so much later; 0: none',
  'MOCK REFUSE LOADING|BUSY|OOM|READONLY|MISCONF|NONE',
  'MOCK REFUSE <CODE> <text>        refuses as a server in that state does; NONE: no more',
  'MOCK FORGET [SCRIPTS|FUNCTIONS|CALLS]',
  '                                 what it was given is gone, as after a restart',
  'MOCK CALLS [<n>]                 the last n calls, oldest first: command, script, keys,',
  '                                 client, time, error',
  'MOCK STATUS                      what is switched on',
  'MOCK RESET                       no keys, scripts, functions, calls and faults',
}

local function read_number(text, max)
  local n = integers.parse(text)
  if not n or n < 0 or n > max then
    return nil, 'ERR value is not an integer or out of range'
  end
  return n
end

local function advance(front, _, argv)
  local ms, bad = read_number(argv[3], MAX_MS)
  if bad then
    return nil, bad
  end
  front:advance(ms)
  front:wake()
  return front:now_ms()
end

local function time(front, _, argv)
  local word = argv[3] and argv[3]:upper()
  if #argv > 3 or (word and word ~= 'REAL' and word ~= 'MANUAL') then
    return nil, 'ERR time is REAL or MANUAL'
  elseif word == 'REAL' and front.flows == nil then
    return nil, 'ERR time does not flow by itself here'
  elseif word then
    front.flows = word == 'REAL' or front.flows and false
    return OK
  end
  return { front:now_ms(), front.flows and 'real' or 'manual' }
end

local function lose(front, _, argv)
  local count, bad = read_number(argv[3], 1e6)
  if bad then
    return nil, bad
  end
  local at, how = 4, nil
  if argv[4] and argv[4]:upper() == 'SILENT' then
    at, how = 5, 'silent'
  end
  if #argv > at then
    return nil, 'ERR syntax error'
  end
  front.faults:lose(count, how, argv[at])
  return OK
end

local function close(front, conn, argv)
  local kind = argv[3] and argv[3]:lower()
  if #argv > 3 or (kind and kind ~= 'normal' and kind ~= 'pubsub') then
    return nil, 'ERR connections are NORMAL or PUBSUB'
  end
  return front.faults:close(kind, conn)
end

local function delay(front, _, argv)
  local ms, bad = read_number(argv[3], MAX_MS)
  if bad then
    return nil, bad
  end
  front.faults:delay(ms)
  return OK
end

local function refuse(front, _, argv)
  local code = table.concat(argv, ' ', 3)
  code = code:find(' ', 1, true) and code or code:upper()
  local _, why = front.faults:refuse(code ~= 'NONE' and code or nil)
  return OK, why and 'ERR ' .. why
end

local function forget(front, _, argv)
  local what = argv[3] and argv[3]:upper() or 'SCRIPTS'
  if #argv > 3 then
    return nil, 'ERR syntax error'
  elseif what == 'SCRIPTS' then
    front.faults:forget()
  elseif what == 'FUNCTIONS' then
    front.world.functions:flush()
    front.world.functions.sandbox:renew()
  elseif what == 'CALLS' then
    front.journal:clear()
  else
    return nil, 'ERR forgets SCRIPTS, FUNCTIONS or CALLS'
  end
  return OK
end

local function calls(front, _, argv)
  local count, bad = read_number(argv[3] or tostring(front.journal.limit), 1e6)
  if bad or #argv > 3 then
    return nil, bad or 'ERR syntax error'
  end
  local reply = {}
  for i, call in ipairs(front.journal:last(count)) do
    reply[i] = { call.command, call.script or false, call.keys, call.client, call.ms,
      call.err or false }
  end
  return reply
end

local function status(front)
  local faults = front.faults
  local losing = faults.losing
  local refusal = faults.refusal or faults.text
  return { map = { 'time', front.flows and 'real' or 'manual', 'now_ms', front:now_ms(),
    'lose', losing and losing.count or 0, 'lose_how', losing and losing.how or false,
    'lose_name', losing and losing.name or false, 'delay_ms', faults.delay_ms,
    'refuse', refusal or false, 'calls', front.journal.count,
    'connections', #front.connections } }
end

local function reset(front)
  front.faults:clear()
  front.world:begin()
  front.world.store:clear()
  execute.touch_watched(front)
  front.world:script_flush()
  front.world.functions:flush()
  front.world.functions.sandbox:renew()
  front.journal:clear()
  return OK
end

local function help()
  local lines = {}
  for i, line in ipairs(HELP) do
    lines[i] = { ok = line }
  end
  return lines
end

local function sub(arity, serve)
  return { arity = arity, flags = 'noauth loading busy noscript control now pubsub', serve = serve }
end

return {
  help = HELP,
  commands = {
    MOCK = { arity = -2, flags = 'control', subcommands = {
      ADVANCE = sub(3, advance), CALLS = sub(-2, calls), CLOSE = sub(-2, close),
      DELAY = sub(3, delay), FORGET = sub(-2, forget), HELP = sub(2, help), LOSE = sub(-3, lose),
      REFUSE = sub(-3, refuse), RESET = sub(2, reset), STATUS = sub(2, status),
      TIME = sub(-2, time),
    } },
  },
}

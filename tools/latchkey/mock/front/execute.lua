-- SPDX-License-Identifier: Apache-2.0
-- From a client's words to its reply: the checks that a server makes, in its order, then the
-- command, then who is told of it.
local dispatch = require('latchkey.mock.dispatch')
local modelled = require('latchkey.mock.commands')
local newer = require('latchkey.mock.front.newer')
local prepare = require('latchkey.mock.prepare')
local resp = require('latchkey.mock.resp')
local transactions = require('latchkey.mock.front.transactions')

local execute = {}

local NOAUTH = 'NOAUTH Authentication required.'
local LOADING = 'LOADING Redis is loading the dataset in memory'
local BUSY = 'BUSY Redis is busy running a script. '
  .. 'You can only call SCRIPT KILL or SHUTDOWN NOSAVE.'

-- Commands of the world that a server runs also while it loads, and while a script keeps it busy.
local WHILE_LOADING = { PUBLISH = true, SPUBLISH = true, TIME = true, ECHO = true,
  ['PUBSUB|NUMSUB'] = true, ['PUBSUB|SHARDNUMSUB'] = true, ['PUBSUB|CHANNELS'] = true,
  ['PUBSUB|SHARDCHANNELS'] = true, ['PUBSUB|NUMPAT'] = true }
local WHILE_BUSY = { ['SCRIPT|KILL'] = true, ['FUNCTION|KILL'] = true, ['FUNCTION|STATS'] = true }
-- What subscribers may say in the older protocol, beside what is marked "pubsub".
local FOR_SUBSCRIBERS = { PING = true, QUIT = true, RESET = true }

local GROUPS = { 'channels', 'session', 'clients', 'transactions', 'server', 'info' }

local function add(into, commands)
  for name, command in pairs(commands) do
    prepare(name, command)
    into[name] = command
  end
end

local shared

local function known()
  if not shared then
    shared = {}
    for name, command in pairs(modelled) do
      shared[name] = command
    end
    for _, group in ipairs(GROUPS) do
      add(shared, require('latchkey.mock.front.' .. group).commands)
    end
  end
  return shared
end

---Every command of a front by its name.
---@param options front.options
function execute.commands(options)
  local all = {}
  for name, command in pairs(known()) do
    all[name] = command
  end
  if options.control ~= false then
    add(all, require('latchkey.mock.front.control').commands)
  end
  add(all, options.commands or {})
  return all
end

---What INFO counts.
function execute.stats()
  return { connections = 0, commands = 0, rejected = 0, published = 0, calls = {}, errors = {} }
end

---Is it a command on keys, or one that runs a script?
function execute.names_keys(command)
  return command.keys or command.counted or command.replies
end

---@return string[] keys that the command names
function execute.keys(command, argv)
  local keys, positions = {}, command.keys
  local first, last, step
  if positions then
    first, step = positions[1] + 1, positions[3]
    last = positions[2] < 0 and #argv + 1 + positions[2] or positions[2] + 1
  elseif command.replies then
    first, last, step = 4, 3 + math.min(tonumber(argv[3]) or 0, #argv - 3), 1
  elseif command.counted then
    first, step = command.counted + 1, 1
    last = command.counted + math.min(tonumber(argv[command.counted]) or 0, #argv - command.counted)
  else
    return keys
  end
  for i = first, last, step do
    keys[#keys + 1] = argv[i]
  end
  return keys
end

local function refuse_subscriber(conn, command)
  if conn.version == 2 and not command.pubsub and not FOR_SUBSCRIBERS[command.name]
    and conn:is_subscriber() then
    return ("ERR Can't execute '%s': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET "
      .. 'are allowed in this context'):format(command.name:lower())
  end
end

local function is_while_loading(command)
  return command.loading or WHILE_LOADING[command.name]
end

-- A transaction is refused for what is in it.
local function refuse_by_fault(faults, command, queue)
  if faults.refusal == 'LOADING' then
    local waits = not is_while_loading(command) or command.name == 'EXEC' and queue
      and queue.needs_data
    return waits and LOADING or nil
  elseif faults.refusal == 'BUSY' then
    return not command.busy and not WHILE_BUSY[command.name] and BUSY or nil
  end
  return not command.noauth and faults.text or nil
end

local function refuse(front, conn, command, argv)
  local refusal = dispatch.refuse_form(front.commands, command, argv)
  if refusal then
    return refusal
  elseif not conn.authenticated and not command.noauth then
    return NOAUTH
  elseif command.control then
    return nil
  end
  local flags = command.name == 'EXEC' and conn.queue or command
  return front.gate and front.gate(front, conn, command, argv)
    or conn.queue and not command.now and front.world.full and dispatch.OOM
    or dispatch.refuse_state(front.world, flags)
    or refuse_subscriber(conn, command)
    or refuse_by_fault(front.faults, command, conn.queue)
end

---What the command touched, those who watch it learn.
function execute.touch_watched(front)
  local store, watchers = front.world.store, front.watchers or {}
  local undo = store.undo
  for i = 1, #undo - 1, 2 do
    local key = undo[i]
    -- Nothing was there, and nothing is, or the same: nothing was touched.
    if (undo[i + 1] or nil) ~= store.keys[key] then
      for _, conn in ipairs(watchers[key] or {}) do
        conn.is_dirty = true
      end
    end
  end
end

-- A pattern of a subscriber may be what hears it, so the channels are asked for each message.
local function tell(front)
  local messages = front.world:messages()
  front.stats.published = front.stats.published + #messages
  for _, message in ipairs(messages) do
    front.channels:tell(message)
  end
end

---Runs one command that nothing refuses.
---@return any reply
---@return string|nil err
function execute.perform(front, conn, command, argv)
  local world = front.world
  local calls = front.stats.calls
  calls[command.name] = (calls[command.name] or 0) + 1
  front.stats.commands = front.stats.commands + 1
  if command.serve then
    return command.serve(front, conn, argv)
  end
  world:begin()
  local reply, err = command.run(world, argv)
  front.journal:add(front, conn, command, argv, err)
  if front.watchers then
    execute.touch_watched(front)
  end
  if world.outbox[1] then
    tell(front)
  end
  if err then
    return nil, err
  elseif conn.version == 3 or newer.differs[command.name] then
    return newer.reply(command, argv, reply, conn)
  end
  return reply
end

local function count_error(front, err)
  local code = '-' .. (err:match('^%S+') or 'ERR')
  local errors = front.stats.errors
  errors[code] = (errors[code] or 0) + 1
end

---A reply or an error, as bytes.
---@return string
function execute.bytes(front, conn, reply, err)
  if err then
    count_error(front, err)
    return resp.error(err)
  end
  return resp.encode(reply, conn.version)
end

---Sends a reply. What subscribers are told comes also to who wants none.
function execute.answer(conn, bytes, is_pushed, is_control)
  if is_pushed then
    return conn:send(bytes)
  elseif conn.reply_off then
    return
  elseif conn.skips then
    conn.skips = false
    return
  end
  conn:send(bytes, is_control)
end

local function reject(front, conn, command, argv, err)
  if command and command.name == 'EXEC' then
    transactions.leave(conn)
    err = 'EXECABORT Transaction discarded because of: ' .. err:gsub('^ERR ', '')
  elseif conn.queue then
    conn.queue.is_refused = true
  end
  local group = command or front.commands[argv[1]:upper()]
  execute.answer(conn, execute.bytes(front, conn, nil, err), false, group and group.control)
end

-- A reply that gets lost is that of a command that was done.
local function lose(front, conn, how)
  if how == 'silent' then
    conn.is_mute = true
  else
    conn:finish()
  end
  front.stats.lost = (front.stats.lost or 0) + 1
end

---A command as it came.
---@param argv string[] at least one word
function execute.run(front, conn, argv)
  local command = dispatch.find(front.commands, argv)
  conn.last_ms = front.world.clock.ms
  conn.last = command and command.name or conn.last
  local refusal = refuse(front, conn, command, argv)
  if refusal then
    return reject(front, conn, command, argv, refusal)
  elseif conn.queue and not command.now then
    conn.queue:add(command, argv, is_while_loading(command))
    return execute.answer(conn, '+QUEUED\r\n')
  end
  local skips, queue = conn.skips, conn.queue
  local reply, err = execute.perform(front, conn, command, argv)
  local is_done = not err and reply ~= resp.NULL_ARRAY
  local how = front.faults:loses(command, argv, is_done and queue or nil)
  if how then
    return lose(front, conn, how)
  elseif conn.waits or (reply == nil and err == nil and conn.is_closed) then
    return
  end
  -- CLIENT REPLY SKIP is about the next command, not about itself.
  if conn.skips and not skips then
    return
  end
  execute.answer(conn, execute.bytes(front, conn, reply, err),
    type(reply) == 'table' and reply.is_pushed, command.control)
  if conn.ends_after then
    conn:finish()
  end
end

return execute

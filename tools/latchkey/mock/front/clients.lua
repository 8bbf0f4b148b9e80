-- SPDX-License-Identifier: Apache-2.0
-- CLIENT: who is connected, and away with some of them.
local integers = require('latchkey.mock.integers')
local session = require('latchkey.mock.front.session')

local clients = {}

local OK = { ok = 'OK' }
local SYNTAX = 'ERR syntax error'
local TYPES = { normal = true, pubsub = true, master = true, replica = true, slave = true }

local function kind_of(conn)
  return conn:is_subscriber() and 'pubsub' or 'normal'
end

local function marks(conn)
  local text = (conn:is_subscriber() and 'P' or '') .. (conn.queue and 'x' or '')
    .. (conn.waits and 'b' or '') .. (conn.is_dirty and 'd' or '')
  return text == '' and 'N' or text
end

local function describe(front, conn)
  local now = front:now_ms()
  return ('id=%d addr=%s laddr=%s fd=%d name=%s age=%d idle=%d flags=%s db=0 sub=%d psub=%d '
    .. 'ssub=%d multi=%d qbuf=0 qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl=0 oll=0 omem=0 '
    .. 'tot-mem=0 events=r cmd=%s user=%s redir=-1 resp=%d'):format(conn.id, conn.address,
    front.process.address or 'mock:0', conn.id + 7, conn.name,
    math.floor((now - conn.began_ms) / 1000), math.floor((now - conn.last_ms) / 1000), marks(conn),
    conn:count('channel'), conn:count('pattern'), conn:count('shard'),
    conn.queue and #conn.queue or -1, (conn.last or 'NULL'):lower(), conn.user, conn.version)
end

local function read_id(text)
  local id = integers.parse(text)
  return id and id > 0 and id or nil
end

local function read_list_filter(argv)
  if #argv == 2 then
    return function()
      return true
    end
  end
  local word = argv[3]:upper()
  if word == 'TYPE' and #argv == 4 then
    local kind = argv[4]:lower()
    if not TYPES[kind] then
      return nil, ("ERR Unknown client type '%s'"):format(argv[4])
    end
    return function(conn)
      return kind_of(conn) == kind
    end
  elseif word == 'ID' and #argv > 3 then
    local wanted = {}
    for i = 4, #argv do
      local id = read_id(argv[i])
      if not id then
        return nil, 'ERR Invalid client ID'
      end
      wanted[id] = true
    end
    return function(conn)
      return wanted[conn.id]
    end
  end
  return nil, SYNTAX
end

local function list(front, _, argv)
  local filter, bad = read_list_filter(argv)
  if not filter then
    return nil, bad
  end
  local lines = {}
  for _, conn in ipairs(front.connections) do
    if filter(conn) then
      lines[#lines + 1] = describe(front, conn) .. '\n'
    end
  end
  return { verbatim = table.concat(lines) }
end

-- What each word of CLIENT KILL asks of a connection.
local FILTERS = {
  ID = function(text)
    local id = read_id(text)
    return id and function(conn)
      return conn.id == id
    end, 'ERR client-id should be greater than 0'
  end,
  TYPE = function(text)
    local kind = text:lower()
    return TYPES[kind] and function(conn)
      return kind_of(conn) == kind
    end, ("ERR Unknown client type '%s'"):format(text)
  end,
  ADDR = function(text)
    return function(conn)
      return conn.address == text
    end
  end,
  LADDR = function(text)
    return function(conn)
      return (conn.front.process.address or 'mock:0') == text
    end
  end,
  USER = function(text, front)
    return (text == 'default' or front.users[text] ~= nil) and function(conn)
      return conn.authenticated and conn.user == text
    end, ("ERR No such user '%s'"):format(text)
  end,
}

local function read_kill_filters(front, argv)
  local filters, spares_me = {}, true
  if #argv % 2 ~= 0 then
    return nil, SYNTAX
  end
  for i = 3, #argv, 2 do
    local word, value = argv[i]:upper(), argv[i + 1]
    if word == 'SKIPME' then
      local answer = value:lower()
      if answer ~= 'yes' and answer ~= 'no' then
        return nil, SYNTAX
      end
      spares_me = answer == 'yes'
    elseif FILTERS[word] then
      local filter, bad = FILTERS[word](value, front)
      if not filter then
        return nil, bad
      end
      filters[#filters + 1] = filter
    else
      return nil, SYNTAX
    end
  end
  return filters, spares_me
end

local function passes(filters, conn)
  for _, filter in ipairs(filters) do
    if not filter(conn) then
      return false
    end
  end
  return true
end

-- Who asks for its own end has the answer first.
local function kill_all(front, me, filters, spares_me)
  local victims = {}
  for _, conn in ipairs(front.connections) do
    if (conn ~= me or not spares_me) and passes(filters, conn) then
      victims[#victims + 1] = conn
    end
  end
  for _, conn in ipairs(victims) do
    if conn == me then
      conn.ends_after = true
    else
      conn:kill()
    end
  end
  return #victims
end

local function kill(front, conn, argv)
  if #argv == 3 then
    local count = kill_all(front, conn, { FILTERS.ADDR(argv[3]) }, false)
    return OK, count == 0 and 'ERR No such client' or nil
  end
  local filters, spares_me = read_kill_filters(front, argv)
  if not filters then
    return nil, spares_me
  end
  return kill_all(front, conn, filters, spares_me)
end

local function reply(_, conn, argv)
  local word = argv[3]:upper()
  if word == 'ON' then
    conn.reply_off, conn.skips = false, false
    return OK
  elseif word == 'OFF' then
    conn.reply_off = true
  elseif word == 'SKIP' then
    conn.skips = not conn.reply_off
  else
    return nil, SYNTAX
  end
end

local function on_or_off(_, _, argv)
  local word = argv[3]:upper()
  return OK, word ~= 'ON' and word ~= 'OFF' and SYNTAX or nil
end

local function unblock(front, _, argv)
  local how = argv[4] and argv[4]:upper() or 'TIMEOUT'
  local id, bad = integers.parse(argv[3])
  if #argv > 4 or (how ~= 'TIMEOUT' and how ~= 'ERROR') then
    return nil, #argv > 4 and SYNTAX
      or 'ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR'
  elseif bad then
    return nil, bad
  end
  local other = front:connection(id)
  if not other or not other.waits then
    return 0
  end
  other:answer(how == 'ERROR' and { err = 'UNBLOCKED client unblocked via CLIENT UNBLOCK' }
    or other.waits.reply)
  return 1
end

-- A later server's, which clients send without being asked: what they are called is forgotten.
local function set_info(_, _, argv)
  local word = argv[3]:upper()
  if word ~= 'LIB-NAME' and word ~= 'LIB-VER' then
    return nil, ("ERR Unrecognized option '%s'"):format(argv[3])
  elseif argv[4]:find('[^!-~]') then
    return nil, ('ERR %s cannot contain spaces, newlines or special characters.')
      :format(argv[3]:lower())
  end
  return OK
end

local ALWAYS = 'loading noscript'

clients.commands = {
  CLIENT = { arity = -2, subcommands = {
    GETNAME = { arity = 2, flags = ALWAYS, serve = function(_, conn)
      return conn.name ~= '' and conn.name or false
    end },
    ID = { arity = 2, flags = ALWAYS, serve = function(_, conn)
      return conn.id
    end },
    INFO = { arity = 2, flags = ALWAYS, serve = function(front, conn)
      return { verbatim = describe(front, conn) .. '\n' }
    end },
    KILL = { arity = -3, flags = ALWAYS, serve = kill },
    LIST = { arity = -2, flags = ALWAYS, serve = list },
    ['NO-EVICT'] = { arity = 3, flags = ALWAYS, serve = on_or_off },
    ['NO-TOUCH'] = { arity = 3, flags = ALWAYS, serve = on_or_off },
    REPLY = { arity = 3, flags = ALWAYS, serve = reply },
    SETINFO = { arity = 4, flags = ALWAYS, serve = set_info },
    SETNAME = { arity = 3, flags = ALWAYS, serve = function(_, conn, argv)
      return OK, session.set_name(conn, argv[3])
    end },
    UNBLOCK = { arity = -3, flags = ALWAYS, serve = unblock },
    -- Known to servers, and not modelled.
    CACHING = { arity = 3 }, GETREDIR = { arity = 2 }, HELP = { arity = 2 },
    PAUSE = { arity = -3 }, TRACKING = { arity = -3 }, TRACKINGINFO = { arity = 2 },
    UNPAUSE = { arity = 2 },
  } },
}

return clients

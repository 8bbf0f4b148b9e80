-- SPDX-License-Identifier: Apache-2.0
-- How a connection begins and ends: greeting, password, database, farewell.
local integers = require('latchkey.mock.integers')
local transactions = require('latchkey.mock.front.transactions')

local session = {}

local OK = { ok = 'OK' }
local WRONGPASS = 'WRONGPASS invalid username-password pair or user is disabled.'
local BAD_NAME = 'ERR Client names cannot contain spaces, newlines or special characters.'

-- Without a password the default user takes any.
local function log_in(front, conn, user, password)
  local expected = front.users[user]
  if user == 'default' then
    expected = front.password or password
  end
  if expected ~= password then
    return WRONGPASS
  end
  conn.authenticated, conn.user = true, user
end

local function auth(front, conn, argv)
  if #argv > 3 then
    return nil, 'ERR syntax error'
  elseif #argv == 2 and not front.password then
    return nil, 'ERR AUTH <password> called without any password configured for the default user. '
      .. 'Are you sure your configuration is correct?'
  end
  local refusal = log_in(front, conn, #argv == 3 and argv[2] or 'default', argv[#argv])
  return OK, refusal
end

---@param name string
---@return string|nil err
function session.set_name(conn, name)
  if name:find('[^!-~]') then
    return BAD_NAME
  end
  conn.name = name
end

local function read_version(text)
  local version = integers.parse(text)
  if not version then
    return nil, 'ERR Protocol version is not an integer or out of range'
  elseif version ~= 2 and version ~= 3 then
    return nil, 'NOPROTO unsupported protocol version'
  end
  return version
end

local function read_hello(argv)
  local options = {}
  if argv[2] then
    local version, bad = read_version(argv[2])
    if bad then
      return nil, bad
    end
    options.version = version
  end
  local i = 3
  while i <= #argv do
    local word, more = argv[i]:upper(), #argv - i
    if word == 'AUTH' and more >= 2 then
      options.user, options.password = argv[i + 1], argv[i + 2]
      i = i + 3
    elseif word == 'SETNAME' and more >= 1 then
      options.name = argv[i + 1]
      i = i + 2
    else
      return nil, ("ERR Syntax error in HELLO option '%s'"):format(argv[i])
    end
  end
  return options
end

local function hello(front, conn, argv)
  local options, wrong = read_hello(argv)
  if options and options.user then
    wrong = log_in(front, conn, options.user, options.password)
  end
  if wrong then
    return nil, wrong
  elseif not conn.authenticated then
    return nil, 'NOAUTH HELLO must be called with the client already authenticated, otherwise the '
      .. 'HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and '
      .. 'select the RESP protocol version at the same time'
  end
  wrong = options.name and session.set_name(conn, options.name)
  if wrong then
    return nil, wrong
  end
  conn.version = options.version or conn.version
  return { map = { 'server', 'latchkey-mock', 'version', '7.0.15', 'proto', conn.version, 'id',
    conn.id, 'mode', 'standalone', 'role', front.world.replica and 'replica' or 'master',
    'modules', {} } }
end

local function select_database(_, _, argv)
  local number, bad = integers.parse(argv[2])
  if bad then
    return nil, integers.NOT_AN_INTEGER
  elseif number ~= 0 then
    return nil, 'ERR DB index is out of range'
  end
  return OK
end

local function reset(front, conn)
  transactions.leave(conn)
  front.channels:leave(conn)
  conn.heard = {}
  conn.version, conn.name, conn.user = 2, '', 'default'
  conn.authenticated = not front.password
  conn.reply_off, conn.skips = false, false
  return { ok = 'RESET' }
end

local function quit(_, conn)
  conn.ends_after = true
  return OK
end

local ALWAYS = 'noauth loading busy noscript'

session.commands = {
  AUTH = { arity = -2, flags = ALWAYS, serve = auth },
  HELLO = { arity = -1, flags = ALWAYS, serve = hello },
  QUIT = { arity = -1, flags = ALWAYS .. ' now', serve = quit },
  RESET = { arity = 1, flags = ALWAYS .. ' now', serve = reset },
  SELECT = { arity = 2, flags = 'loading', serve = select_database },
}

return session

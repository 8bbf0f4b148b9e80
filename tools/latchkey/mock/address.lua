-- SPDX-License-Identifier: Apache-2.0
-- Where a mock may listen: on this machine alone, for whoever reaches it may move its time.
local address = {}

local HOSTS = { ['127.0.0.1'] = '127.0.0.1', localhost = '127.0.0.1', ['[::1]'] = '::1' }
local MAX_PATH = 107 -- bytes of a socket's name

local function decode(text)
  return (text:gsub('%%(%x%x)', function(hex)
    return string.char(tonumber(hex, 16))
  end))
end

local function encode(text)
  return (text:gsub('[^%w/._~-]', function(byte)
    return ('%%%02X'):format(byte:byte())
  end))
end

local PASSWORD = 'a password stands before an "@": redis://default:PASSWORD@127.0.0.1'

-- What may be a password at another place is not repeated.
local function read_tcp(rest)
  local user_info, place = rest:match('^(.*)@([^@]*)$')
  place = place or rest
  if place:find('?', 1, true) then
    return nil, 'the mock takes no options behind a "?"; ' .. PASSWORD
  end
  local where, db = place:match('^([^/]*)/?(.*)$')
  local host, port = where:match('^(%[.*%])(.*)$')
  if not host then
    host, port = where:match('^([^:]*)(.*)$')
  end
  local number = port == '' and 0 or tonumber(port:match('^:(%d+)$'))
  local password = user_info and (user_info:match('^:(.+)$') or user_info:match('^default:(.+)$'))
  if user_info and not password then
    return nil, 'the mock knows one user: write redis://default:PASSWORD@127.0.0.1'
  elseif not HOSTS[host] then
    return nil, ('the mock listens on 127.0.0.1, [::1] or a Unix socket alone, not on "%s": '
      .. 'whoever reaches it may move its time'):format(host)
  elseif not number then
    return nil, 'behind the host stands no port; ' .. PASSWORD
  elseif number > 65535 then
    return nil, ('"%s" is no port'):format(port:sub(2))
  elseif db ~= '' and db ~= '0' then
    return nil, 'the mock has database 0 alone'
  end
  return { host = HOSTS[host], shown = host == 'localhost' and '127.0.0.1' or host, port = number,
    password = password and decode(password) }
end

---@param url string redis://127.0.0.1:PORT (0: a free one), unix:///PATH or unix:/PATH
---@return { host: string|nil, port: integer|nil, path: string|nil, password: string|nil }|nil
---@return string|nil why
function address.read(url)
  local rest = url:match('^redis://(.*)$')
  if rest then
    return read_tcp(rest)
  end
  local path = url:match('^unix://(/[^?]*)$') or url:match('^unix:(/[^/?][^?]*)$')
  path = path and decode(path)
  if not path then
    return nil, 'write redis://127.0.0.1:PORT or unix:///PATH'
  elseif path:find('%z') then
    return nil, 'the name of a socket has no NUL byte'
  elseif #path > MAX_PATH then
    return nil, ('the name of a socket has at most %d bytes'):format(MAX_PATH)
  end
  return { path = path }
end

---The URL by which clients come.
---@param place table of `read`
---@param port? integer that was found
---@return string
function address.url(place, port)
  if place.path then
    return 'unix://' .. encode(place.path)
  end
  local secret = place.password
    and 'default:' .. encode(place.password):gsub('/', '%%2F') .. '@' or ''
  return ('redis://%s%s:%d'):format(secret, place.shown, port)
end

return address

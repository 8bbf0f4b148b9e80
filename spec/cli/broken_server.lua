-- SPDX-License-Identifier: Apache-2.0
-- A server that is broken in one way, which no real one can be made to be. Run as a program; its
-- arguments are the socket to listen at, the way, and further fields of its INFO.
-- It is started by its path, and finds its modules beside it.
package.path = arg[0]:match('^(.*)/[^/]*$') .. '/?.lua;' .. package.path
local digest = require('openssl.digest')
local socket = require('posix.sys.socket')

local stub = require('stub_server')

local AT, WAY, MORE = arg[1], arg[2], (arg[3] or ''):gsub('|', '\r\n')

local function bulk(text)
  return ('$%d\r\n%s\r\n'):format(#text, text)
end

local function unknown(name)
  return ("-ERR unknown command '%s', with args beginning with:\r\n"):format(name)
end

-- What was loaded, by its SHA1.
local sources = {}

local function sha1(bytes)
  return (digest.new('sha1'):final(bytes):gsub('.', function(byte)
    return ('%02x'):format(byte:byte())
  end))
end

-- Without a key each script says by its own name how it is to be called.
local function refused(source)
  return ('-LKARG %s takes some keys\r\n'):format(source:match('\nname: +(%S+)'))
end

-- Who listens: by connection, the channel.
local listeners = {}

local function pushed(kind, channel, last)
  return '*3\r\n' .. bulk(kind) .. bulk(channel) .. last
end

-- A script that is told the verb to publish with has the channel in front of it.
local function publish_as(words)
  for place, word in ipairs(words) do
    for connection, channel in pairs(word == 'PUBLISH' and WAY ~= 'deaf' and listeners or {}) do
      if channel == words[place - 1] then
        socket.send(connection, pushed('message', channel, bulk('0')))
      end
    end
  end
end

-- What a server does that is well.
local WELL = {
  INFO = function()
    local version = WAY == 'old' and '6.2.14' or '7.0.15'
    return bulk(('redis_version:%s\r\nrole:master\r\nconnected_slaves:0\r\nmaxmemory_policy:%s\r\n'
      .. 'maxmemory:%s\r\nused_memory:1\r\naof_enabled:1\r\n%s\r\n'):format(version,
      WAY == 'evicts' and 'volatile-lru' or 'noeviction', WAY == 'evicts' and '1000000' or '0',
      MORE))
  end,
  TIME = function()
    return ('*2\r\n%s%s'):format(bulk(tostring(os.time() + (WAY == 'clock' and 3600 or 0))),
      bulk('0'))
  end,
  ACL = function()
    return '-NOPERM this user has no permissions to run the \'acl\' command\r\n'
  end,
  SCAN = function()
    return '*2\r\n' .. bulk('0') .. '*0\r\n'
  end,
  PING = function()
    return '+PONG\r\n'
  end,
  SCRIPT = function(words)
    if words[2]:upper() ~= 'LOAD' then
      return ('*%d\r\n%s'):format(#words - 2, (':1\r\n'):rep(#words - 2))
    end
    sources[sha1(words[3])] = words[3]
    return bulk(sha1(words[3]))
  end,
  EVALSHA = function(words)
    publish_as(words)
    return words[3] == '0' and refused(sources[words[2]]) or '*2\r\n:1\r\n:1\r\n'
  end,
  SUBSCRIBE = function(words, connection)
    listeners[connection] = words[2]
    return pushed('subscribe', words[2], ':1\r\n')
  end,
  UNSUBSCRIBE = function(words, connection)
    listeners[connection] = nil
    return pushed('unsubscribe', words[2], ':0\r\n')
  end,
}

-- COMMAND INFO of a server that lacks one.
local function knows_all_but(lacking)
  return function(words)
    local parts = { ('*%d\r\n'):format(#words - 2) }
    for i = 3, #words do
      parts[#parts + 1] = words[i]:upper() == lacking and '*-1\r\n'
        or '*2\r\n' .. bulk(words[i]) .. ':-2\r\n'
    end
    return table.concat(parts)
  end
end

local BROKEN = {
  shebang = { SCRIPT = function(words)
    return words[2]:upper() == 'LOAD' and words[3]:find('^#!')
      and '-ERR Error compiling script (new function): user_script:1: unexpected symbol\r\n'
      or WELL.SCRIPT(words)
  end },
  full = { SCRIPT = function(words)
    return words[2]:upper() == 'LOAD'
      and "-OOM command not allowed when used memory > 'maxmemory'.\r\n" or WELL.SCRIPT(words)
  end },
  forgets = { EVALSHA = function()
    return '-NOSCRIPT No matching script. Please use EVAL.\r\n'
  end },
  read_only = { EVALSHA = function(words)
    return sources[words[2]]:find('no-writes', 1, true) and WELL.EVALSHA(words)
      or "-READONLY You can't write against a read only replica.\r\n"
  end },
  -- It runs what it has, and has it no more when it is asked.
  loses = { SCRIPT = function(words)
    return words[2]:upper() == 'LOAD' and WELL.SCRIPT(words)
      or ('*%d\r\n%s'):format(#words - 2, (':0\r\n'):rep(#words - 2))
  end },
  -- Its scripts may not write while the memory is full, though they may be loaded.
  no_room = { EVALSHA = function(words)
    return sources[words[2]]:find('^#!lua\n') and
      "-OOM command not allowed when used memory > 'maxmemory'.\r\n" or WELL.EVALSHA(words)
  end },
  changes = { SCRIPT = function(words)
    return words[2]:upper() == 'LOAD' and bulk(('0'):rep(40)) or WELL.SCRIPT(words)
  end },
  hello = { HELLO = function()
    return '*4\r\n' .. bulk('server') .. bulk('other') .. bulk('version') .. bulk('3.1')
  end },
  renamed = { COMMAND = knows_all_but('PUBLISH') },
  no_evalsha = { EVALSHA = function() return unknown('EVALSHA') end },
  no_script = { SCRIPT = function() return unknown('SCRIPT') end },
  no_subscribe = { SUBSCRIBE = function() return unknown('SUBSCRIBE') end },
  -- As proxies do with a command that they do not pass on.
  hangs_up = { SUBSCRIBE = function() return false end },
  wrong_answer = { EVALSHA = function() return '+QUEUED\r\n' end },
  -- A release has a channel, and therefore more arguments than an acquire.
  no_publish = { EVALSHA = function(words)
    return #words >= 9 and '-ERR Unknown Redis command called from script script: 1, on '
      .. '@user_script:9. PUBLISH\r\n' or WELL.EVALSHA(words)
  end },
}

local function answer(words, connection)
  local name = words[1]:upper()
  local serve = (BROKEN[WAY] or {})[name] or WELL[name]
  if not serve then
    return '+OK\r\n'
  end
  return serve(words, connection)
end

stub.serve(AT, answer, function(connection)
  listeners[connection] = nil
end)

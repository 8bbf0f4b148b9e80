-- SPDX-License-Identifier: Apache-2.0
-- A server that has no memory for scripts, which not every version can be made to say: it knows no
-- script, and refuses to load any. Run as a program; its arguments are the socket to listen at and
-- the version that it says it is.
-- It is started by its path, and finds its modules beside it.
package.path = arg[0]:match('^(.*)/[^/]*$') .. '/?.lua;' .. package.path
local stub = require('stub_server')

local INFO = ('redis_version:%s\r\nrole:master\r\nconnected_slaves:0\r\n'):format(arg[2])

local function answer(words)
  local first, second = words[1]:upper(), (words[2] or ''):upper()
  if first == 'INFO' then
    return ('$%d\r\n%s\r\n'):format(#INFO, INFO)
  elseif first == 'SCRIPT' and second == 'EXISTS' then
    return ('*%d\r\n%s'):format(#words - 2, (':0\r\n'):rep(#words - 2))
  elseif first == 'SCRIPT' then
    return "-OOM command not allowed when used memory > 'maxmemory'.\r\n"
  end
  return '+OK\r\n'
end

stub.serve(arg[1], answer)

-- SPDX-License-Identifier: Apache-2.0
-- What answers every command with the same bytes. Run as a program; its arguments are the socket to
-- listen at and the reply, without its end.
-- It is started by its path, and finds its modules beside it.
package.path = arg[0]:match('^(.*)/[^/]*$') .. '/?.lua;' .. package.path
local stub = require('stub_server')

stub.serve(arg[1], function()
  return arg[2] .. '\r\n'
end)

-- SPDX-License-Identifier: Apache-2.0
local ffi = require('ffi')

local cli = require('latchkey.cli')

local command = { summary = 'the server of local: on this machine: status, stop' }

ffi.cdef('int poll(void *fds, unsigned long count, int timeout_ms);')

local STOP_MS, STEP_MS = 10000, 50

function command.configure(parser)
  parser:argument('action', 'status or stop.'):choices({ 'status', 'stop' })
  parser:epilog('The first command that uses the URL local: starts the server. '
    .. 'Exit code of status: 69 when it does not run.')
end

local function socket_url(dir)
  return 'unix://' .. (dir .. '/redis.sock'):gsub('[^%w/._~-]', function(byte)
    return ('%%%02X'):format(byte:byte())
  end)
end

local function running(client, ctx, dir)
  local info, err = client:command('INFO', 'server')
  if not info then
    return ctx:fail(err)
  end
  local process = tonumber(info:match('process_id:(%d+)'))
  local version = info:match('valkey_version:([%w.]+)') or info:match('redis_version:([%w.]+)')
  local seconds = tonumber(info:match('uptime_in_seconds:(%d+)'))
  ctx:result({ running = true, folder = dir, process = process, version = version,
    uptime_s = seconds },
    ('running in %s: process %d, version %s, for %d s\n'):format(dir, process, version, seconds))
  return cli.exits.done
end

-- SHUTDOWN has no reply: the server has stopped when its socket answers no more.
local function stop(client, ctx, dir, url)
  local latchkey = require('latchkey')
  client:command('SHUTDOWN')
  client:close()
  for _ = 1, STOP_MS / STEP_MS do
    local again, err = latchkey.open(url, { no_load = true })
    if not again and err.status == 'LK_UNREACHABLE' then
      ctx:result({ running = false, folder = dir, stopped = true }, 'stopped\n')
      return cli.exits.done
    elseif again then
      again:close()
    end
    ffi.C.poll(nil, 0, STEP_MS)
  end
  return ctx:fail({ status = 'LK_LOCAL', message = 'the server did not stop; see ' .. dir
    .. '/redis.log' })
end

function command.run(args, ctx)
  local latchkey = require('latchkey')
  local dir, err = latchkey.local_dir()
  if not dir then
    return ctx:fail(err)
  end
  local url = socket_url(dir)
  local client
  client, err = latchkey.open(url, { no_load = true })
  if client then
    return args.action == 'stop' and stop(client, ctx, dir, url) or running(client, ctx, dir)
  elseif err.status ~= 'LK_UNREACHABLE' then
    return ctx:fail(err)
  end
  ctx:result({ running = false, folder = dir, stopped = false }, ('not running (%s)\n'):format(dir))
  return args.action == 'stop' and cli.exits.done or cli.exits.server
end

return command

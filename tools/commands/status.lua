-- SPDX-License-Identifier: Apache-2.0
local cli = require('lib.cli')
local loaded = require('lib.loaded')

local command = { summary = 'which scripts the server has, and which it lacks', server = true }

function command.configure(parser)
  parser:option('--dir', 'A folder of further scripts.'):argname('DIR')
  parser:epilog('Exit code 1: the server lacks a script. It is loaded when it is first used.')
end

function command.run(args, ctx)
  local client, code = ctx:client({ script_dir = args.dir })
  if not client then
    return code
  end
  local scripts, err = loaded.scripts(client)
  if not scripts then
    return ctx:fail(err)
  end
  local lines = { client:target() }
  for _, script in ipairs(scripts) do
    lines[#lines + 1] = ('  %-20s %-8s %s  %s'):format(script.name, script.version, script.sha1,
      script.loaded and 'loaded' or 'missing')
  end
  ctx:result({ nodes = { { target = client:target(), scripts = scripts } } },
    table.concat(lines, '\n') .. '\n')
  return #loaded.missing(scripts) > 0 and cli.exits.found or cli.exits.done
end

return command

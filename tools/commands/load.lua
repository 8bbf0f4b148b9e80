-- SPDX-License-Identifier: Apache-2.0
local cli = require('lib.cli')
local loaded = require('lib.loaded')

local command = { summary = 'load every script into the server', server = true }

function command.configure(parser)
  parser:option('--dir', 'A folder of further scripts.'):argname('DIR')
  parser:flag('--dry-run', 'Only say which scripts are missing.')
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
  local missing = loaded.missing(scripts)
  if args.dry_run then
    ctx:result({ target = client:target(), missing = missing, loaded = 0 },
      #missing == 0 and 'every script is loaded\n'
      or ('missing: %s\n'):format(table.concat(missing, ' ')))
    return cli.exits.done
  end
  local report
  report, err = client:load()
  if not report then
    return ctx:fail(err)
  end
  ctx:result({ target = client:target(), missing = missing, loaded = report.loaded },
    ('%s: %d scripts loaded, %d were missing\n'):format(client:target(), report.loaded, #missing))
  return cli.exits.done
end

return command

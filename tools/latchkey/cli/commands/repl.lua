-- SPDX-License-Identifier: Apache-2.0
local path = require('pl.path')

local catalog = require('latchkey.script.catalog')
local report = require('latchkey.report')

local command = { summary = 'try scripts at a prompt, on the mock or on a server', server = true,
  for_people = true }

command.exits = {
  { 0, 'the input ended' },
  { 1, 'from a file or a pipe: a line failed' },
  { 64, 'wrong use: no such folder, or a script in it with a wrong header' },
  { 69, '--url: the server could not be reached, or refused' },
}

local PROMPT, MORE = 'latchkey> ', '......... '

function command.configure(parser)
  parser:option('--dir', 'A folder of scripts; without one, the project\'s own.'):argname('DIR')
  parser:flag('--no-strict', 'Let the mock take what latchkey forbids and a server tolerates.')
  parser:epilog('Without --url, a server in memory, whose time advance() moves. '
    .. 'LATCHKEY_URL is not used. help() says what can be typed. From a file or a pipe each '
    .. 'line is read without a prompt.')
end

local function open_world(args, ctx, folder)
  if not args.url then
    return require('latchkey.repl.mock').new({ scripts = folder, strict = not args.no_strict })
  end
  local client, code = ctx:client({ script_dir = args.dir })
  if not client then
    return nil, code
  end
  return require('latchkey.repl.server').new(client)
end

-- Reads and runs until the end; whether any line failed.
local function converse(session, source)
  local pending, failed = nil, false
  while not session.over do
    local line = source.read(pending and MORE or PROMPT)
    if not line then
      break
    end
    local typed = pending and pending .. '\n' .. line or line
    local done, wrong = session:run(typed)
    pending, failed = not done and typed or nil, failed or wrong
  end
  if pending then
    session:say('the input ends in the middle of: ' .. pending)
    failed = true
  end
  return failed
end

function command.run(args, ctx)
  if ctx.json then
    return ctx:misuse('repl is for people; latchkey eval --json answers with a document')
  end
  local folder = args.dir or path.join(ctx.home, 'scripts')
  if not path.isdir(folder) then
    return ctx:misuse(folder .. ' is not a folder')
  end
  local scripts, findings = catalog.read(folder)
  if not scripts then
    return ctx:fail({ status = 'LK_INVALID', lines = true,
      message = report.text(findings):gsub('\n$', ''), hint = 'latchkey lint reports it, too' })
  end
  local world, code = open_world(args, ctx, folder)
  if not world then
    return code
  end
  local session = require('latchkey.repl.session').new(world, scripts, function(line)
    ctx.stdout:write(line, '\n')
    ctx.stdout:flush()
  end)
  local source = require('latchkey.repl.input').open(function(word)
    return session:completions(word)
  end)
  if source.is_terminal then
    ctx:note('help() says what can be typed, quit() ends.')
  end
  local failed = converse(session, source)
  source.close()
  return failed and not source.is_terminal and 1 or 0
end

return command

-- SPDX-License-Identifier: Apache-2.0
local path = require('pl.path')
local tablex = require('pl.tablex')

local bare = require('latchkey.script.bare')
local bundle = require('latchkey.bundle')
local catalog = require('latchkey.script.catalog')
local cli = require('latchkey.cli')
local replies = require('latchkey.replies')
local script_call = require('latchkey.script.call')
local temporary_folder = require('latchkey.temporary_folder')
local text = require('latchkey.text')
local trust = require('latchkey.bundle.trust')

local command = { summary = 'run a script by its name', server = true }

command.exits = {
  { 0, 'the script answered, and with no error' },
  { 1, 'the script answered with an error; or a bundle is not trusted' },
  { 64, 'wrong use: there is no such script, or an argument is out of the range of its contract' },
  { 69, 'the server could not be reached, or refused' },
}

-- What shells offer behind the command.
function command.words(home)
  return catalog.names(path.join(home, 'scripts'))
end

-- Failures that the script itself answers with.
local SCRIPT_ERRORS = { LK_BADARG = true, LK_SCRIPT = true, LK_WRONGTYPE = true, LK_SERVER = true }

-- Whether it is trusted is another question, which its being run asks. A pipe is read only then:
-- the options that name keys and arguments are not known before.
local function readable(file)
  local bytes = file and path.isfile(file) and bundle.bytes_of(file)
  return bytes and bundle.read(bytes)
end

-- Of a bundle, its own scripts alone.
local function catalogs(home, folder, contents)
  return contents and { contents.scripts } or script_call.catalogs(home, folder)
end

function command.configure(parser, arguments, home)
  parser:usage('Usage: latchkey eval [OPTION...] SCRIPT [KEY...] , [ARG...]\n'
    .. '       latchkey eval [OPTION...] SCRIPT --name NAME [--FIELD VALUE...]')
  parser:argument('script', 'The script\'s name; around a comma that stands alone, its keys and '
    .. 'arguments. Write -- before values that begin with a "-".'):args('+')
  script_call.options(parser, catalogs(home, script_call.option_in(arguments, 'dir'),
    readable(script_call.option_in(arguments, 'bundle'))))
  parser:flag('--mock', 'On the mock engine, which starts empty, and on no server; '
    .. 'latchkey repl keeps its keys from line to line.')
  parser:mutex(
    parser:option('--dir', 'A folder of further scripts.'):argname('DIR'),
    parser:option('--bundle', 'A script of this bundle.'):argname('FILE'))
  trust.options(parser)
  parser:epilog('The reply is shown as redis-cli shows it.')
end

-- What the library would call the errors of the mock.
local MOCK_STATUS = { LKARG = 'LK_BADARG', WRONGTYPE = 'LK_WRONGTYPE' }

local function on_mock(ctx, script, keys, values)
  local world = require('latchkey.mock.world').new({ scripts = path.join(ctx.home, 'scripts') })
  local is_held = script.header and world:add(script.name, script.source, script.header)
  local reply, err
  if is_held then
    reply, err = world:eval(script.name, keys, values)
  else
    reply, err = world:eval_source(script.source, keys, values)
  end
  if err then
    err.status = MOCK_STATUS[err.code] or 'LK_SCRIPT'
  end
  return world.null, reply, err
end

-- Gives `run` the folder of further scripts that the library reads, unless their texts are sent; a
-- bundle's are laid out for so long.
local function with_folder(ctx, contents, texts, run)
  if texts or not contents then
    return run(not texts and ctx.args.dir or nil)
  end
  local folder, remove = temporary_folder.make('latchkey-eval')
  if not folder then
    return nil, nil, nil, ctx:misuse('no folder for the bundle: ' .. remove)
  end
  local function done(good, ...)
    remove()
    if not good then
      error((...), 0)
    end
    return ...
  end
  return done(pcall(function()
    local laid_out, why = bundle.unpack(contents, folder)
    if not laid_out then
      return nil, nil, nil, ctx:misuse('no room for the bundle: ' .. why)
    end
    return run(folder)
  end))
end

local function on_server(ctx, folder, texts, script, keys, values, told)
  local latchkey = require('latchkey')
  local client, code = ctx:client({ script_dir = folder })
  if not client then
    return nil, nil, nil, code
  end
  for place, channel in pairs(told or {}) do
    values[place] = client:publish_verb(channel)
  end
  local reply, err
  if tablex.find(texts or {}, script) then
    reply, err = bare.eval(client, script.source, keys, values)
  else
    reply, err = client:eval(script.name, keys, values)
  end
  if err and not SCRIPT_ERRORS[err.status] then
    return nil, nil, nil, ctx:fail(err)
  end
  return latchkey.null, reply, err
end

function command.run(args, ctx)
  local contents, refused = trust.given(ctx, args)
  if refused then
    return refused
  elseif args.dir and not path.isdir(args.dir) then
    return ctx:misuse(('--dir %s is not a folder'):format(args.dir))
  end
  local name = args.script[1]
  local lists = catalogs(ctx.home, args.dir, contents)
  local script = script_call.find(lists, name)
    or args.mock and not args.name and script_call.without_header(args.dir, name)
  if not script then
    return ctx:fail(script_call.refusal(args.dir, name))
  end
  local keys, values, told = script_call.form(script, args)
  if not keys then
    return ctx:misuse(values)
  end

  local null, reply, err, code
  if args.mock then
    null, reply, err = on_mock(ctx, script, keys, values)
  else
    local texts = bare.texts(lists[#lists])
    null, reply, err, code = with_folder(ctx, contents, texts, function(folder)
      return on_server(ctx, folder, texts, script, keys, values, told)
    end)
  end
  if code then
    return code
  elseif err then
    ctx:result({ script = script.name, error = { status = err.status, code = err.code,
      message = text.safe(err.message), line = err.line, hint = err.hint or '' } },
      ('(error) %s\n'):format(text.safe(err.message)))
    if err.line and not ctx.json then
      ctx:note(('%s, line %d'):format(script.name, err.line))
    end
    return cli.exits.found
  end
  ctx:result({ script = script.name, reply = replies.plain(reply, null) },
    replies.show(reply, null) .. '\n')
  return cli.exits.done
end

return command

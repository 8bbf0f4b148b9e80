-- SPDX-License-Identifier: Apache-2.0
local dir = require('pl.dir')
local path = require('pl.path')
local stdlib = require('posix.stdlib')
local utils = require('pl.utils')

local bundle = require('latchkey.bundle')
local catalog = require('latchkey.script.catalog')
local cli = require('latchkey.cli')
local names = require('latchkey.script.names')
local replies = require('latchkey.cli.replies')
local text = require('latchkey.cli.text')
local trust = require('latchkey.bundle.trust')

local command = { summary = 'run a script by its name', server = true }

-- What shells offer behind the command.
function command.words(home)
  return catalog.names(path.join(home, 'scripts'))
end

local HEADER = '--[[ latchkey-script'

-- Failures that the script itself answers with.
local SCRIPT_ERRORS = { LK_BADARG = true, LK_SCRIPT = true, LK_WRONGTYPE = true, LK_SERVER = true }

-- What stands behind an option, before the parser is made: which further options there are follows
-- from the headers of the scripts that it names.
local function option_in(arguments, option)
  for i, argument in ipairs(arguments) do
    local value = argument:match('^%-%-' .. option .. '=(.+)$')
      or argument == '--' .. option and arguments[i + 1]
    if value then
      return value
    end
  end
end

-- What has a header that is right; a mistake of a neighbour is no matter of theirs.
local function readable_scripts(folder)
  local scripts = {}
  for _, file in ipairs(catalog.files(folder)) do
    scripts[#scripts + 1] = catalog.read_file(file)
  end
  return scripts
end

-- The scripts that can be meant, as catalogs: a later one goes before an earlier.
local function catalogs(home, folder, contents)
  if contents then
    return { contents.scripts }
  end
  local list = { catalog.read(path.join(home, 'scripts')) or {} }
  if folder and path.isdir(folder) then
    list[#list + 1] = readable_scripts(folder)
  end
  return list
end

local function find_script(list, wanted)
  local found
  for _, scripts in ipairs(list) do
    for _, script in ipairs(scripts) do
      if script.name == wanted then
        found = script
      end
    end
  end
  return found
end

-- The arguments of all scripts, each name once.
local function fields_of(list)
  local seen, fields = {}, {}
  for _, scripts in ipairs(list) do
    for _, script in ipairs(scripts) do
      for _, field in ipairs(script.header.argv) do
        if not seen[field.name] then
          seen[field.name] = true
          fields[#fields + 1] = field
        end
      end
    end
  end
  table.sort(fields, function(one, other)
    return one.name < other.name
  end)
  return fields
end

local function describe(field)
  if field.type == 'ms' then
    return 'A duration: 30s.'
  elseif field.form then
    return 'Formed from --name unless it is given.'
  elseif field.values then
    return table.concat(field.values, ' or ') .. (field.type == 'verb'
      and '; as the servers receive it unless it is given.' or '.')
  elseif field.min then
    return ('%.0f to %.0f%s.'):format(field.min, field.max,
      field.kind == 'integer' and '' or ' bytes')
  end
  return field.text
end

-- Whether it is trusted is another question, which its being run asks.
local function readable(file)
  local bytes = file and bundle.bytes_of(file)
  return bytes and bundle.read(bytes)
end

function command.configure(parser, arguments, home)
  parser:usage('Usage: latchkey eval [OPTION...] SCRIPT [KEY...] , [ARG...]\n'
    .. '       latchkey eval [OPTION...] SCRIPT --name NAME [--FIELD VALUE...]')
  parser:argument('script', 'The script\'s name; around a comma that stands alone, its keys and '
    .. 'arguments. Write -- before values that begin with a "-".'):args('+')
  parser:option('--name', 'The lock\'s name, from which keys and channels are formed; the '
    .. 'arguments are then given by these options:'):argname('NAME')
  for _, field in ipairs(fields_of(catalogs(home, option_in(arguments, 'dir'),
    readable(option_in(arguments, 'bundle'))))) do
    parser:option('--' .. field.name, describe(field)):target('field_' .. field.name)
      :argname(field.name:upper())
  end
  parser:flag('--mock', 'On the mock engine, which starts empty, and on no server.')
  parser:mutex(
    parser:option('--dir', 'A folder of further scripts.'):argname('DIR'),
    parser:option('--bundle', 'A script of this bundle.'):argname('FILE'))
  trust.options(parser)
  parser:epilog('The reply is shown as redis-cli shows it. Exit code 1: the script answered with '
    .. 'an error.')
end

local function split(words)
  local keys, args = {}, {}
  local list = keys
  for i = 2, #words do
    if words[i] == ',' and list == keys then
      list = args
    else
      list[#list + 1] = words[i]
    end
  end
  return keys, args
end

local function form_argument(field, given, name)
  if given == nil and field.form then
    return names.form(field.form, name)
  elseif given == nil and field.type == 'verb' then
    return field.values[1]
  elseif given == nil and not field.optional then
    return nil, ('--%s is missing: %s'):format(field.name, field.text)
  elseif field.type == 'ms' and given then
    return text.duration(given)
  end
  return given
end

-- Keys and arguments from --name and the header, and the channels whose verb, in these places, the
-- server may want to be another one.
local function form(script, args)
  local good, why = names.check(args.name)
  if not good then
    return nil, why
  end
  local keys, values, known, by_name, told = {}, {}, {}, {}, {}
  for i, field in ipairs(script.header.argv) do
    known['field_' .. field.name] = true
    values[i], why = form_argument(field, args['field_' .. field.name], args.name)
    if why then
      return nil, why
    end
    by_name[field.name] = values[i]
    if field.type == 'verb' and not args['field_' .. field.name] then
      told[i] = by_name.channel
    end
  end
  for i, key in ipairs(script.header.keys) do
    if key.many or key.form.kind == 'slot' then
      return nil, script.name .. ' takes keys that are not formed from the name; write them out'
    end
    keys[i] = names.form(key.form, args.name, by_name)
  end
  for option in pairs(args) do
    if option:find('^field_') and not known[option] then
      return nil, ('%s has no argument "%s"'):format(script.name, option:sub(7))
    end
  end
  return keys, values, told
end

-- A file that has no header runs on the mock, where keys and arguments are written out: there is
-- nothing then that its replies could be held to.
local function without_header(args)
  local file = args.dir and ('%s/%s.lua'):format(args.dir, args.script[1])
  local source = args.mock and not args.name and file and utils.readfile(file, true)
  return source and not source:find(HEADER, 1, true) and { name = args.script[1], source = source }
    or nil
end

-- There may be a file of that name whose header is none.
local function no_script(args, ctx)
  local file = args.dir and ('%s/%s.lua'):format(args.dir, args.script[1])
  if not file or not path.isfile(file) then
    return ctx:fail({ status = 'LK_NO_SCRIPT', message = ('no script is named "%s"'):format(
      args.script[1]), hint = 'latchkey status lists them' })
  end
  local source = utils.readfile(file, true) or ''
  if not source:find(HEADER, 1, true) then
    return ctx:fail({ status = 'LK_NO_SCRIPT', message = file .. ' has no header, from which names '
      .. 'and arguments are known', hint = ('write "%s ..." as its second line; with --mock, and '
      .. 'keys and arguments written out, it runs without'):format(HEADER) })
  end
  local _, findings = catalog.read_file(file)
  return ctx:fail({ status = 'LK_NO_SCRIPT', message = ('%s:%d: %s'):format(file, findings[1].line,
    findings[1].message), hint = ('latchkey lint %s says all of it'):format(args.dir) })
end

-- What the library would call the errors of the mock.
local MOCK_STATUS = { LKARG = 'LK_BADARG', WRONGTYPE = 'LK_WRONGTYPE' }

local function on_mock(ctx, script, keys, values)
  local world = require('latchkey.mock.world').new({ scripts = path.join(ctx.home, 'scripts') })
  local reply, err = world:eval_source(script.source, keys, values)
  if err then
    err.status = MOCK_STATUS[err.code] or 'LK_SCRIPT'
  end
  return world.null, reply, err
end

-- Gives `run` the folder of further scripts; a bundle's are laid out for so long.
local function with_folder(args, contents, run)
  if not contents then
    return run(args.dir)
  end
  local folder = assert(stdlib.mkdtemp((os.getenv('TMPDIR') or '/tmp') .. '/latchkey-eval.XXXXXX'))
  assert(bundle.unpack(contents, folder))
  local function done(good, ...)
    dir.rmtree(folder)
    if not good then
      error((...), 0)
    end
    return ...
  end
  return done(pcall(run, folder))
end

local function on_server(ctx, folder, script, keys, values, told)
  local latchkey = require('latchkey')
  local client, code = ctx:client({ script_dir = folder })
  if not client then
    return nil, nil, nil, code
  end
  for place, channel in pairs(told or {}) do
    values[place] = client:publish_verb(channel)
  end
  local reply, err = client:eval(script.name, keys, values)
  if err and not SCRIPT_ERRORS[err.status] then
    return nil, nil, nil, ctx:fail(err)
  end
  return latchkey.null, reply, err
end

function command.run(args, ctx)
  local contents, why, hint
  if args.bundle then
    contents, why, hint = trust.open(args.bundle, args)
    if not contents then
      return trust.refuse(ctx, why, hint)
    end
  elseif args.dir and not path.isdir(args.dir) then
    return ctx:misuse(('--dir %s is not a folder'):format(args.dir))
  end
  local script = find_script(catalogs(ctx.home, args.dir, contents), args.script[1])
    or without_header(args)
  if not script then
    return no_script(args, ctx)
  end

  local keys, values = split(args.script)
  local told
  if args.name then
    if #args.script > 1 then
      return ctx:misuse('write either --name or keys and arguments')
    end
    keys, values, told = form(script, args)
    if not keys then
      return ctx:misuse(values)
    end
  end

  local null, reply, err, code
  if args.mock then
    null, reply, err = on_mock(ctx, script, keys, values)
  else
    null, reply, err, code = with_folder(args, contents, function(folder)
      return on_server(ctx, folder, script, keys, values, told)
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

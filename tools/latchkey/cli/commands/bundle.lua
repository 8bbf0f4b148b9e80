-- SPDX-License-Identifier: Apache-2.0
local path = require('pl.path')
local utils = require('pl.utils')

local bundle = require('latchkey.bundle')
local cli = require('latchkey.cli')
local evidence = require('latchkey.bundle.evidence')
local sign = require('latchkey.bundle.sign')
local text = require('latchkey.text')
local trust = require('latchkey.bundle.trust')
local whole_file = require('latchkey.whole_file')

local command = { summary = 'write scripts as one file for operations' }

command.exits = {
  { 0, 'the bundle is written' },
  { 1, 'the scripts cannot be packed: a contract that is wrong or undecided, a file '
    .. 'that cannot be written, or a key that cannot sign' },
  { 64, 'wrong use: no such folder, no name and version, or an output that is no regular file' },
}

local OWN_NAME = 'latchkey-scripts'

function command.configure(parser)
  parser:argument('folder', 'A folder of scripts; without one, the project\'s own.'):args('?')
  parser:option('-o --output', 'The file to write; default NAME-VERSION.tar.gz.'):argname('FILE')
  parser:option('--name', ('The bundle\'s name; default %s for the project\'s own.'):format(
    OWN_NAME)):argname('NAME')
  parser:option('--set-version', 'The bundle\'s version; default that of the toolkit for the '
    .. 'project\'s own.'):argname('X.Y.Z')
  parser:option('--licence', 'A file for the bundle\'s LICENSE; default the one in the folder, if '
    .. 'there is one.'):argname('FILE')
  parser:option('--evidence', 'A statement about these scripts, as tools/release writes it; it '
    .. 'travels inside.'):argname('FILE')
  parser:option('--sign', 'Sign it with this SSH key, into FILE.sig.'):argname('KEY')
  parser:epilog('Scripts, manifest.json, function libraries, reference pages and the licence, in '
    .. 'the same bytes every time; FILE.sha256 beside it.')
end

-- A device, a pipe, or a descriptor as the system names it: the bundle would stand among the lines
-- for people, and its digest in /dev. A folder is one that cannot be written.
local function is_stream(file)
  return file:find('^/dev/std%l+$') or file:find('^/dev/fd/') or file:find('^/proc/')
    or path.exists(file) and not path.isfile(file) and not path.isdir(file)
end

-- The words of a file, or nothing where it need not be.
local function licence_of(args, folder)
  local file = args.licence or path.join(folder, 'LICENSE')
  if args.licence or path.isfile(file) then
    local licence, why = utils.readfile(file, true)
    return licence, licence == nil and why or nil
  end
end

-- Name, version, folder and licence; else what is wrong with the call.
local function source_of(args, home)
  local own = args.folder == nil
  local folder = args.folder or path.join(home, 'scripts')
  local about = { name = args.name or own and OWN_NAME, version = args.set_version }
  if own and not about.version then
    about.version = (utils.readfile(path.join(home, 'VERSION')) or ''):match('%S+')
  end
  if not path.isdir(folder) then
    return nil, folder .. ' is not a folder'
  elseif not about.name or not about.version then
    return nil, 'give --name and --set-version'
  end
  local licence, statement
  local why = bundle.check_name(about.name, about.version)
  if not why then
    licence, why = licence_of(args, own and home or folder)
  end
  if not why and args.evidence then
    statement, why = utils.readfile(args.evidence, true)
  end
  if why then
    return nil, why
  end
  return { about = about, folder = folder, licence = licence, statement = statement }
end

-- The signature of a file that is not there yet; false where none is asked for.
local function signature_of(args, bytes)
  if not args.sign then
    return false
  end
  local copy = path.tmpname()
  local signature
  local written, why = whole_file.write(copy, bytes)
  if written then
    signature, why = sign.make(copy, args.sign)
  end
  os.remove(copy)
  return signature, why
end

-- The file, its digest, its signature; nothing of it if it cannot be signed. A signature of other
-- bytes would mislead.
local function write_all(args, file, contents)
  local signature, why = signature_of(args, contents.bytes)
  if signature == nil then
    return nil, why
  end
  local digest = ('%s  %s\n'):format(contents.sha256, path.basename(file))
  local written
  written, why = whole_file.write(file, contents.bytes)
  if written then
    os.remove(file .. '.sig')
    written, why = whole_file.write(file .. '.sha256', digest)
  end
  if written and signature then
    written, why = whole_file.write(file .. '.sig', signature)
  end
  return written, why
end

function command.run(args, ctx)
  if args.output and is_stream(args.output) then
    return ctx:misuse(args.output .. ' is no regular file: a bundle is one, with its digest beside '
      .. 'it')
  end
  local source, wrong = source_of(args, ctx.home)
  if not source then
    return ctx:misuse(wrong)
  end
  local contents, why = bundle.pack(source.about, source.folder, source.licence,
    source.statement)
  if not contents then
    return trust.refuse(ctx, why)
  end
  local about = source.about
  local file = args.output or ('%s-%s.tar.gz'):format(about.name, about.version)
  local written
  written, why = write_all(args, file, contents)
  if not written then
    return trust.refuse(ctx, why)
  end
  local failed = contents.statement and evidence.failed(contents.statement.predicate.parts) or {}
  if #failed > 0 then
    ctx:note('latchkey bundle: the evidence says: ', evidence.tell_failed(failed),
      '; latchkey verify --evidence ends with 1')
  end
  ctx:result({ file = file, name = about.name, version = about.version, sha256 = contents.sha256,
    bytes = #contents.bytes, scripts = #contents.scripts, signed = args.sign ~= nil },
    ('%s: %d scripts, %d bytes\nsha256 %s\n'):format(text.safe(file), #contents.scripts,
      #contents.bytes, contents.sha256))
  return cli.exits.done
end

return command

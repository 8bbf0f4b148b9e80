-- SPDX-License-Identifier: Apache-2.0
local path = require('pl.path')
local utils = require('pl.utils')

local catalog = require('latchkey.script.catalog')
local fragments = require('latchkey.script.fragments')
local text = require('latchkey.text')
local whole_file = require('latchkey.whole_file')

local command = { summary = 'begin a script or a lock of your own, with its specs and its model' }

command.exits = {
  { 0, 'the files are written' },
  { 64, 'wrong use: a name that no script may have, a family of latchkey\'s own, or a file that is '
    .. 'there already or cannot be written' },
}

-- The lines of a script that have its name stay within those that lint allows.
local WORD_MAX = 16

-- Templates in tools/latchkey/new/, and what becomes of each.
local FILES = {
  script = {
    { 'script.lua', 'scripts/@FAMILY@/@VERB@.lua' },
    { 'spec.lua', 'spec/@FAMILY@/@VERB@_spec.lua' },
    { 'model.lua', 'models/@FAMILY@_@VERB@.lua' },
  },
  lock = {
    { 'acquire.lua', 'scripts/@FAMILY@/acquire.lua' },
    { 'renew.lua', 'scripts/@FAMILY@/renew.lua' },
    { 'release.lua', 'scripts/@FAMILY@/release.lua' },
    { 'acquire_spec.lua', 'spec/@FAMILY@/acquire_spec.lua' },
    { 'renew_spec.lua', 'spec/@FAMILY@/renew_spec.lua' },
    { 'release_spec.lua', 'spec/@FAMILY@/release_spec.lua' },
    { 'model.lua', 'models/@FAMILY@.lua' },
  },
}

function command.configure(parser)
  parser:argument('kind', 'One script, or the three of a lock.'):choices({ 'script', 'lock' })
  parser:argument('name', 'FAMILY/VERB of a script, FAMILY of a lock: a letter, then letters, '
    .. ('digits or "_", all small; at most %d for each.'):format(WORD_MAX))
  parser:option('--dir', 'The folder to write them into; it need not be there.', '.'):argname('DIR')
  parser:epilog('Scripts are written into scripts/, their specs into spec/, a model into models/. '
    .. 'What is written passes latchkey lint, spec, check and mutate, and is yours to change. A '
    .. 'file that is there is never overwritten: then nothing is written at all.')
end

local function is_word(word)
  return #word <= WORD_MAX and word:find('^[a-z][a-z0-9_]*$') ~= nil
end

-- What stands for @FAMILY@ and @VERB@; else what is wrong with the name.
local function words_of(kind, name, home)
  local family, slash, verb = name:match('^([^/]*)(/?)(.*)$')
  if kind == 'lock' and slash ~= '' then
    return nil, 'a lock has the name of its family alone: latchkey new lock acme'
  elseif kind == 'script' and slash == '' then
    return nil, 'a script is called FAMILY/VERB: latchkey new script shop/take'
  elseif not is_word(family) or kind == 'script' and not is_word(verb) then
    return nil, ('"%s": a family and a verb are a small letter, then small letters, digits or '
      .. '"_", at most %d for each'):format(name, WORD_MAX)
  end
  for _, own in ipairs(catalog.names(path.join(home, 'scripts'))) do
    if own:match('^[^/]+') == family then
      return nil, ('%s is a family of latchkey\'s own; choose another name'):format(family)
    end
  end
  return { FAMILY = family, VERB = verb }
end

-- The files by their paths, in order; else which is there already.
local function files_of(args, words, home)
  local files = {}
  for i, row in ipairs(FILES[args.kind]) do
    local file = path.normpath(path.join(args.dir, (row[2]:gsub('@(%u+)@', words))))
    if path.link_attrib(file) then
      return nil, ('%s is there already; nothing was written'):format(file)
    end
    local template = path.join(home, 'tools', 'latchkey', 'new', args.kind, row[1] .. '.in')
    local filled = assert(utils.readfile(template, true)):gsub('@(%u+)@', words)
    files[i] = { path = file, text = fragments.refresh(filled, function(name)
      return fragments.read(path.join(home, 'scripts'), name)
    end) }
  end
  return files
end

-- The folders that are to be made, each before the one that it is in.
local function new_folders(files)
  local list, seen = {}, {}
  for _, file in ipairs(files) do
    local folder = path.dirname(file.path)
    while folder ~= '' and not path.exists(folder) and not seen[folder] do
      list[#list + 1], seen[folder] = folder, true
      folder = path.dirname(folder)
    end
  end
  table.sort(list, function(one, other)
    return #one > #other
  end)
  return list
end

-- All of them, or none.
local function write(files)
  local folders = new_folders(files)
  for i, file in ipairs(files) do
    local good, why = whole_file.write_below(file.path, file.text)
    if not good then
      for earlier = 1, i - 1 do
        os.remove(files[earlier].path)
      end
      for _, folder in ipairs(folders) do
        path.rmdir(folder) -- unless somebody else has put something into it
      end
      return nil, why .. '; nothing was written'
    end
  end
  return true
end

function command.run(args, ctx)
  local words, wrong = words_of(args.kind, args.name, ctx.home)
  local files, good
  if words then
    files, wrong = files_of(args, words, ctx.home)
  end
  if files then
    good, wrong = write(files)
  end
  if not good then
    return ctx:misuse(wrong)
  end
  local list, lines = {}, {}
  for i, file in ipairs(files) do
    list[i], lines[i] = file.path, text.safe(file.path) .. '\n'
  end
  ctx:result({ files = list }, table.concat(lines))
  return 0
end

return command

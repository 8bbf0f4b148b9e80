-- SPDX-License-Identifier: Apache-2.0
local path = require('pl.path')
local utils = require('pl.utils')

local catalog = require('latchkey.script.catalog')
local cli = require('latchkey.cli')
local files = require('latchkey.files')

local command = { summary = 'show which wrong versions of the scripts the checks catch' }

command.exits = {
  { 0, 'every mutant was caught, or is listed as harmless' },
  { 1, 'a mutant is alive, or not known to be caught; a row of the list is out of date, or a '
    .. 'script fails as it is' },
  { 64, 'wrong use: a script, a kind or a folder that is not there, a folder without specs, a list '
    .. 'with a line that is no row, or a TMPDIR that cannot be written to' },
  { 70, 'busted or luaposix is not installed' },
}

-- What shells offer behind the command.
function command.words(home)
  return catalog.names(path.join(home, 'scripts'))
end

-- Busted and luaposix are for those who work on scripts, and may not be installed.
local NEEDED = { 'busted', 'posix.unistd' }

function command.configure(parser)
  parser:argument('script', 'The scripts\' names; without one, all.'):args('*')
  parser:option('--sample', 'So many of the mutants, always the same ones.'):convert(cli.number)
    :argname('N')
  parser:option('--kind', 'Only mutants of this kind; several may be given. --kinds lists them.')
    :argname('KIND'):count('*')
  parser:option('--dir', 'A folder of scripts of your own, instead of latchkey\'s.'):argname('DIR')
  parser:option('--spec', 'With --dir: a folder or file of their specs; several may be given.')
    :argname('FOLDER'):count('*')
  parser:option('--model', 'With --dir: a model of theirs; several may be given.')
    :argname('FILE'):count('*')
  parser:option('--equivalent', 'With --dir: a file of the mutants that do no harm, in the form of '
    .. 'latchkey\'s.'):argname('FILE')
  parser:flag('--changed', 'Only scripts that differ from the commit before the last.')
  parser:option('--jobs', 'How many at a time.', '2'):convert(cli.number):argname('N')
  parser:flag('--no-check', 'Leave the model checker out.')
  parser:flag('--list', 'Show the mutants; try none.')
  parser:flag('--kinds', 'Show the kinds of mutants instead.')
  parser:epilog('Each mutant runs the specs of its script on the mock and, when they let it pass, '
    .. 'the model checker. Harmless ones are listed in tools/latchkey/mutate/equivalent.tsv, each '
    .. 'with the reason. Scripts of --dir need --spec or --model; what is named there runs on '
    .. 'each mutant.')
end

local function list_kinds(ctx)
  local kinds = require('latchkey.mutate.mutations').kinds
  local lines = {}
  for i, kind in ipairs(kinds) do
    lines[i] = ('%-18s %s\n'):format(kind.id, kind.what)
  end
  ctx:result({ kinds = kinds }, table.concat(lines))
  return 0
end

-- The scripts that git knows to be other than one commit before, new ones included.
local function changed_scripts(home)
  local names = {}
  local git = 'git -C ' .. utils.quote_arg(home)
  for _, words in ipairs({ 'diff --name-only HEAD~1', 'ls-files --others --exclude-standard' }) do
    local ok, _, out = utils.executeex(('%s %s -- scripts'):format(git, words))
    if not ok then
      return nil, home .. ' is no git work tree with two commits'
    end
    for name in out:gmatch('scripts/([^\n]+)%.lua') do
      names[name] = true
    end
  end
  return names
end

-- Files and folders that are there, but have nothing to go by.
local function without_content(args)
  for _, folder in ipairs(args.spec) do
    local list, problems = files.named({ folder }, '_spec.lua')
    if problems[1] then
      return '--spec ' .. problems[1]
    elseif #list == 0 then
      return ('--spec %s has no specs: files whose names end in _spec.lua'):format(folder)
    end
  end
  if args.equivalent and path.isdir(args.equivalent) then
    return ('--equivalent %s is a folder; name a file in it'):format(args.equivalent)
  end
end

-- What is wrong with the options about scripts of one's own.
local function refuse_own(args)
  local others = #args.spec > 0 and '--spec' or #args.model > 0 and '--model'
    or args.equivalent and '--equivalent'
  if not args.dir then
    return others and ('%s is of scripts of your own: give --dir as well'):format(others) or nil
  elseif args.changed then
    return '--changed is of latchkey\'s own scripts'
  elseif #args.spec + #args.model == 0 then
    return 'give what is to catch the mutants: --spec, --model or both'
  elseif not path.isdir(args.dir) then
    return ('--dir %s is no folder'):format(args.dir)
  end
  local named = { unpack(args.spec) }
  named[#named + 1] = args.equivalent
  for _, file in ipairs(named) do
    if not path.exists(file) then
      return ('there is no file or folder %s'):format(file)
    end
  end
  local wrong = without_content(args)
  if wrong then
    return wrong
  end
  for _, file in ipairs(args.model) do
    local _, why = require('latchkey.checker.words').load(file)
    if why then
      return why
    end
  end
end

-- The scripts, and what looks at them; else what is wrong with the call.
local function subject_of(args, ctx)
  local mutate = require('latchkey.mutate')
  local wrong = refuse_own(args)
  if wrong or not args.dir then
    return not wrong and mutate.own(ctx.home) or nil, wrong
  end
  local scripts, findings = catalog.read_code(args.dir)
  if not scripts then
    return nil, ('%s:%d: %s'):format(findings[1].file, findings[1].line, findings[1].message)
  elseif #scripts == 0 then
    return nil, ('--dir %s has no scripts'):format(args.dir)
  end
  local subject = { root = ctx.home, scripts = args.dir, is_own = false, specs = args.spec,
    models = args.model, equivalent = args.equivalent }
  local no_row = select(3, mutate.equivalent(subject))
  return not no_row and subject or nil, no_row
end

-- Which scripts, as a set; nil: all.
local function wanted(args, ctx, subject)
  if args.changed then
    return changed_scripts(ctx.home)
  end
  local scripts = assert(catalog.read(subject.scripts))
  local names = #args.script > 0 and {} or nil
  for _, name in ipairs(args.script) do
    if not scripts[name] then
      return nil, ('no script is named "%s"'):format(name)
    end
    names[name] = true
  end
  return names
end

-- Those of the kinds that were named, or all; else what is wrong with a name.
local function of_kinds(list, names)
  local known, kept = {}, {}
  for _, kind in ipairs(require('latchkey.mutate.mutations').kinds) do
    known[kind.id] = #names == 0
  end
  for _, name in ipairs(names) do
    if known[name] == nil then
      return nil, ('no mutants are of the kind "%s"; --kinds lists the kinds'):format(name)
    end
    known[name] = true
  end
  for _, mutant in ipairs(list) do
    kept[#kept + 1] = known[mutant.kind] and mutant or nil
  end
  return kept
end

-- Which spec is missing where nothing catches a mutant of this kind.
local function missing_of(mutant)
  for _, kind in ipairs(require('latchkey.mutate.mutations').kinds) do
    if kind.id == mutant.kind then
      return 'a spec ' .. kind.needs
    end
  end
end

local function described(mutant)
  return { id = mutant.id, script = mutant.script, kind = mutant.kind, line = mutant.line,
    before = mutant.before, after = mutant.after, by = mutant.by, reason = mutant.reason,
    unknown = mutant.fate == 'unknown' and mutant.unknown or nil,
    missing = mutant.fate == 'alive' and missing_of(mutant) or nil }
end

local function shown(mutant, folder)
  return ('%s  %s/%s.lua:%d\n  - %s\n  + %s\n'):format(mutant.id, folder or 'scripts',
    mutant.script, mutant.line, mutant.before, mutant.after)
end

-- Rows of the file of harmless mutants that name none, or one that is caught.
local function stale_rows(mutate, subject, all, complete)
  local known, stale = {}, {}
  for _, mutant in ipairs(all) do
    known[mutant.id] = mutant
  end
  for _, id in ipairs(select(2, mutate.equivalent(subject))) do
    local mutant = known[id]
    if mutant and mutant.by then
      stale[#stale + 1] = ('%s is caught (%s)'):format(id, mutant.by)
    elseif not mutant and complete then
      stale[#stale + 1] = id .. ' names no mutant'
    end
  end
  return stale
end

local function tell(ctx, args, list, stale)
  local groups, text = { killed = {}, equivalent = {}, alive = {}, unknown = {} }, {}
  for _, mutant in ipairs(list) do
    table.insert(groups[mutant.fate], described(mutant))
    text[#text + 1] = mutant.fate == 'alive' and ('alive %s  missing: %s\n'):format(
      shown(mutant, args.dir), missing_of(mutant)) or nil
    text[#text + 1] = mutant.fate == 'unknown' and ('not known %s  %s\n'):format(
      shown(mutant, args.dir), mutant.unknown) or nil
  end
  for _, row in ipairs(stale) do
    text[#text + 1] = ('out of date: %s: %s\n'):format(args.equivalent
      or 'tools/latchkey/mutate/equivalent.tsv', row)
  end
  local unknown = #groups.unknown > 0 and (', not known: %d'):format(#groups.unknown) or ''
  text[#text + 1] = ('mutants: %d, killed: %d, equivalent: %d, alive: %d%s\n'):format(#list,
    #groups.killed, #groups.equivalent, #groups.alive, unknown)
  ctx:result({ mutants = #list, killed = #groups.killed, equivalent = #groups.equivalent,
    alive = #groups.alive, unknown = #groups.unknown, survivors = groups.alive,
    undecided = groups.unknown, harmless = groups.equivalent, out_of_date = stale },
    table.concat(text))
  return #groups.alive + #groups.unknown + #stale > 0 and 1 or 0
end

local function progress(ctx, total)
  local caught = 0
  return function()
    caught = caught + 1
    if caught % 500 == 0 then
      ctx:note(('%d of %d caught'):format(caught, total))
    end
  end
end

local function list_mutants(ctx, args, list)
  local rows, text = {}, {}
  for i, mutant in ipairs(list) do
    rows[i], text[i] = described(mutant), shown(mutant, args.dir)
  end
  ctx:result({ mutants = #list, list = rows }, table.concat(text))
  return 0
end

-- Why mutants cannot be tried here, told; nil: they can.
local function unable(args, ctx)
  for _, module in ipairs(NEEDED) do
    if not pcall(require, module) then
      return ctx:fail({ status = 'LK_SYSTEM', message = ('%s is not installed'):format(module),
        hint = 'tools/setup test installs it' })
    end
  end
  if not args.dir and not path.isdir(path.join(ctx.home, 'spec')) then
    return ctx:fail({ status = 'LK_SYSTEM', message = 'there are no specs of these scripts in '
      .. ctx.home, hint = 'they are not installed; LATCHKEY_HOME names a clone of the project' })
  end
end

-- Why the checker will have no folder for wrong scripts, told; nil: it will, or needs none, since
-- no model is asked.
local function no_folder(args, ctx)
  if args.no_check or args.dir and #args.model == 0 then
    return nil
  end
  local folder, remove = require('latchkey.temporary_folder').make('latchkey-mutate')
  if not folder then
    return ctx:fail({ status = 'LK_INVALID', message = 'no folder for wrong scripts: ' .. remove,
      hint = 'TMPDIR names a folder that this user may write to; or leave the checker out: '
        .. '--no-check' })
  end
  remove()
end

function command.run(args, ctx)
  if args.kinds then
    return list_kinds(ctx)
  end
  local code = unable(args, ctx)
  if code then
    return code
  end
  local names
  local subject, wrong = subject_of(args, ctx)
  if subject then
    names, wrong = wanted(args, ctx, subject)
  end
  if wrong then
    return ctx:misuse(wrong)
  elseif args.sample and args.sample < 1 or args.jobs < 1 then
    return ctx:misuse('--sample and --jobs start at 1')
  end
  local mutate = require('latchkey.mutate')
  local list
  list, wrong = of_kinds(mutate.list(subject, names), args.kind)
  if wrong then
    return ctx:misuse(wrong)
  end
  list = args.sample and mutate.sample(list, args.sample) or list
  if args.list then
    return list_mutants(ctx, args, list)
  end
  code = no_folder(args, ctx)
  if code then
    return code
  end
  local tried, why = mutate.run(list, { subject = subject, workers = args.jobs,
    checker = not args.no_check, tell = progress(ctx, #list) })
  if not tried then
    ctx:fail({ status = 'LK_SCRIPT', message = why })
    return 1
  end
  return tell(ctx, args, list, stale_rows(mutate, subject, list,
    not names and not args.sample and #args.kind == 0))
end

return command

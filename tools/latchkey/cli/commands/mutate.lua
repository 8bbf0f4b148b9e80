-- SPDX-License-Identifier: Apache-2.0
local path = require('pl.path')
local utils = require('pl.utils')

local catalog = require('latchkey.script.catalog')
local cli = require('latchkey.cli')

local command = { summary = 'show which wrong versions of the scripts the checks catch' }

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
  parser:flag('--changed', 'Only scripts that differ from the commit before the last.')
  parser:option('--jobs', 'How many at a time.', '2'):convert(cli.number):argname('N')
  parser:flag('--no-check', 'Leave the model checker out.')
  parser:flag('--list', 'Show the mutants; try none.')
  parser:flag('--kinds', 'Show the kinds of mutants instead.')
  parser:epilog('Each mutant runs the specs of its script on the mock and, when they let it pass, '
    .. 'the model checker. Harmless ones are listed in tools/latchkey/mutate/equivalent.tsv, each '
    .. 'with the reason. Exit code 1: a mutant is alive, or a row of that file is out of date.')
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

-- Which scripts, as a set; nil: all.
local function wanted(args, ctx)
  if args.changed then
    return changed_scripts(ctx.home)
  end
  local scripts = assert(catalog.read(ctx.home .. '/scripts'))
  local names = #args.script > 0 and {} or nil
  for _, name in ipairs(args.script) do
    if not scripts[name] then
      return nil, ('no script is named "%s"'):format(name)
    end
    names[name] = true
  end
  return names
end

local function described(mutant)
  return { id = mutant.id, script = mutant.script, kind = mutant.kind, line = mutant.line,
    before = mutant.before, after = mutant.after, by = mutant.by, reason = mutant.reason }
end

local function shown(mutant)
  return ('%s  scripts/%s.lua:%d\n  - %s\n  + %s\n'):format(mutant.id, mutant.script, mutant.line,
    mutant.before, mutant.after)
end

-- Rows of the file of harmless mutants that name none, or one that is caught.
local function stale_rows(mutate, home, all, complete)
  local known, stale = {}, {}
  for _, mutant in ipairs(all) do
    known[mutant.id] = mutant
  end
  for _, id in ipairs(select(2, mutate.equivalent(home))) do
    local mutant = known[id]
    if mutant and mutant.by then
      stale[#stale + 1] = ('%s is caught (%s)'):format(id, mutant.by)
    elseif not mutant and complete then
      stale[#stale + 1] = id .. ' names no mutant'
    end
  end
  return stale
end

local function tell(ctx, list, stale)
  local groups, text = { killed = {}, equivalent = {}, alive = {} }, {}
  for _, mutant in ipairs(list) do
    table.insert(groups[mutant.fate], described(mutant))
    text[#text + 1] = mutant.fate == 'alive' and 'alive ' .. shown(mutant) or nil
  end
  for _, row in ipairs(stale) do
    text[#text + 1] = ('out of date: tools/latchkey/mutate/equivalent.tsv: %s\n'):format(row)
  end
  text[#text + 1] = ('mutants: %d, killed: %d, equivalent: %d, alive: %d\n'):format(#list,
    #groups.killed, #groups.equivalent, #groups.alive)
  ctx:result({ mutants = #list, killed = #groups.killed, equivalent = #groups.equivalent,
    alive = #groups.alive, survivors = groups.alive, harmless = groups.equivalent,
    out_of_date = stale }, table.concat(text))
  return (#groups.alive > 0 or #stale > 0) and 1 or 0
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

function command.run(args, ctx)
  if args.kinds then
    return list_kinds(ctx)
  end
  for _, module in ipairs(NEEDED) do
    if not pcall(require, module) then
      return ctx:fail({ status = 'LK_SYSTEM', message = ('%s is not installed'):format(module),
        hint = 'tools/setup test installs it' })
    end
  end
  if not path.isdir(path.join(ctx.home, 'spec')) then
    return ctx:fail({ status = 'LK_SYSTEM', message = 'there are no specs of these scripts in '
      .. ctx.home, hint = 'they are not installed; LATCHKEY_HOME names a clone of the project' })
  end
  local names, wrong = wanted(args, ctx)
  if wrong then
    return ctx:misuse(wrong)
  elseif args.sample and args.sample < 1 or args.jobs < 1 then
    return ctx:misuse('--sample and --jobs start at 1')
  end
  jit.off() -- as the specs run: compiled loops over pairs() can crash in old LuaJITs
  local mutate = require('latchkey.mutate')
  local list = mutate.list(ctx.home, names)
  list = args.sample and mutate.sample(list, args.sample) or list
  if args.list then
    local described_all, text = {}, {}
    for i, mutant in ipairs(list) do
      described_all[i], text[i] = described(mutant), shown(mutant)
    end
    ctx:result({ mutants = #list, list = described_all }, table.concat(text))
    return 0
  end
  local tried, why = mutate.run(list, { root = ctx.home, workers = args.jobs,
    checker = not args.no_check, tell = progress(ctx, #list) })
  if not tried then
    ctx:fail({ status = 'LK_SCRIPT', message = why })
    return 1
  end
  return tell(ctx, list, stale_rows(mutate, ctx.home, list, not names and not args.sample))
end

return command

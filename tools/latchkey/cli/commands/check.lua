-- SPDX-License-Identifier: Apache-2.0
local path = require('pl.path')
local stringx = require('pl.stringx')
local tablex = require('pl.tablex')
local utils = require('pl.utils')

local cli = require('latchkey.cli')
local mistakes = require('latchkey.checker.mistakes')
local sorted = require('latchkey.sorted')
local terminal = require('latchkey.cli.terminal')
local whole_file = require('latchkey.whole_file')

local command = { summary = 'run scripts in every order, with crashes and lost replies' }

command.exits = {
  { 0, 'every order within the bounds was tried, and no promise was broken' },
  { 1, 'a promise was broken; or a script cannot be run, or the default runs leave '
    .. 'out one of its replies' },
  { 2, 'the memory did not suffice for every order; none that was tried broke a promise' },
  { 64, 'wrong use: a model, a promise, a limit or a folder that is not there, or a trace with a '
    .. 'line that is no event' },
}

-- What shells offer behind the command.
function command.words()
  return require('latchkey.checker').families
end

function command.configure(parser)
  local checker = require('latchkey.checker')
  parser:argument('model', 'Which: ' .. table.concat(checker.families, ', ')
    .. '; without any, the default runs of all.'):args('?')
  parser:option('--clients', 'How many clients.'):argname('N'):convert(cli.number)
  parser:option('--rounds', 'How often each takes the lock.'):argname('N'):convert(cli.number)
  parser:option('--faults', 'How many faults may strike in one run.'):argname('N')
    :convert(cli.number)
  parser:option('--fault', 'Only faults of these kinds, a list with commas; see below.')
    :argname('KIND')
  parser:option('--limit', 'A limit of the model, such as lease=399; may be given several times.')
    :argname('NAME=N'):count('*')
  parser:option('--only', 'Only these promises, a list with commas: G1,G6.'):argname('ID')
  parser:option('--model', 'A model of scripts of your own, a Lua file (docs/reference/model.md).')
    :argname('FILE'):target('model_file')
  parser:option('--scripts --dir', 'Another folder of scripts.'):argname('DIR'):target('scripts')
  parser:option('--beside', 'One more folder of scripts, which every second client uses.')
    :argname('DIR')
  parser:option('--replay', 'Run these steps and show them.'):argname('STEPS')
  parser:flag('--debug', 'Open the debugger where the steps of --replay go wrong.')
  parser:option('--trace', 'Replay what a client wrote of itself (docs/reference/trace.md).')
    :argname('FILE')
  parser:option('--html', 'Write a page with the verdict and a run.'):argname('FILE')
  parser:flag('--no-memo', 'Run every script every time.')
  parser:flag('--no-symmetry', 'Count interchangeable clients as different.')
  parser:flag('--no-spec', 'Write no spec of what is found.')
  parser:option('--workers', 'How many processes; default 2.'):argname('N'):convert(cli.number)
  parser:option('--memory', 'Most megabytes for one process; default 1024.'):argname('MB')
    :convert(cli.number)
  local lines = { 'Faults:' }
  for _, kind in ipairs(checker.faults) do
    lines[#lines + 1] = ('  %-11s %s'):format(kind[1], kind[2])
  end
  lines[#lines + 1] = 'Limits, each of the models that know it:'
  for _, limit in ipairs(require('latchkey.checker.limits').list) do
    lines[#lines + 1] = ('  %-16s %s'):format(limit[1], limit[2])
  end
  parser:epilog(table.concat(lines, '\n'))
end

local function list_of(text)
  return text and stringx.split(text, ',')
end

local function limits_of(list)
  local limits
  for _, text in ipairs(list) do
    local name, value = text:match('^([%l_]+)=(.+)$')
    local meant = name and tonumber(value)
    if not meant and (value == 'true' or value == 'false') then
      meant = value == 'true'
    end
    if meant == nil then
      return nil, ('--limit %s is not NAME=N, NAME=true or NAME=false'):format(text)
    end
    limits = limits or {}
    limits[name] = meant
  end
  return limits
end

local function options_of(args, ctx)
  local limits, wrong = limits_of(args.limit)
  if wrong then
    return nil, wrong
  end
  return { clients = args.clients, rounds = args.rounds, faults = args.faults,
    kinds = list_of(args.fault), only = list_of(args.only), limits = limits,
    scripts = args.scripts or path.join(ctx.home, 'scripts'), beside = args.beside,
    memory_mb = args.memory,
    memo = not args.no_memo, go_on = true, symmetric = not args.no_symmetry,
    workers = args.workers or 2 }
end

local function known(name, list)
  for _, entry in ipairs(list) do
    if entry == name or type(entry) == 'table' and entry[1] == name then
      return true
    end
  end
end

-- A limit that no model knows would be passed over, and the verdict would seem to be about it.
local function refuse_limit(args, options)
  local checker = require('latchkey.checker')
  local has = {}
  for _, model in ipairs(args.model and { args.model } or checker.families) do
    has = tablex.union(has, require('latchkey.checker.limits').of(checker.model(model)))
  end
  for name, value in tablex.sort(options.limits or {}) do
    local wrong = has[name] and require('latchkey.checker.limits').wrong(name, value)
    if wrong then
      return ('--limit %s=%s: it %s'):format(name, tostring(value), wrong)
    elseif not has[name] then
      return ('there is no limit "%s"%s; there are %s'):format(name,
        args.model and ' of ' .. args.model or '', table.concat(sorted(has), ', '))
    end
  end
end

local function refuse_number(args)
  for _, name in ipairs({ 'clients', 'rounds', 'faults', 'workers', 'memory' }) do
    local value = args[name]
    local least = name == 'faults' and 0 or 1
    if value and (value % 1 ~= 0 or value < least or value > 100000) then
      return ('--%s must be a whole number from %d on'):format(name, least)
    end
  end
  return args.clients and args.clients > 6 and 'at most 6 clients' or nil
end

local function refuse_folder(args, options)
  local checker = require('latchkey.checker')
  local models = args.model and { args.model } or checker.families
  for _, option in ipairs({ 'scripts', 'beside' }) do
    local folder = args[option] or args.model_file and options[option]
    if folder and not path.isdir(folder) then
      return ('--%s %s is not a folder'):format(option, folder)
    end
    for _, model in ipairs(folder and not args.trace and models or {}) do
      local why = checker.unreadable(model, folder)
      if why then
        return args.model and why or why .. '; name the model whose scripts the folder has'
      end
    end
  end
end

-- A list of none, such as a variable that is not set: what holds for nothing would hold.
local function refuse_empty(options)
  if options.only and #options.only == 0 then
    return '--only names no promises; name some, such as G1,G6, or leave the option out for all'
  elseif options.kinds and #options.kinds == 0 then
    return '--fault names no faults; name some, such as crash,late, or write --faults 0'
  end
end

local function refuse(args, options)
  local checker = require('latchkey.checker')
  local properties = require('latchkey.checker.properties')
  if args.model_file then
    local _, why = require('latchkey.checker.words').load(args.model_file)
    if why then
      return why
    end
  elseif args.model and not known(args.model, checker.families) then
    return ('there is no model "%s"; there are %s'):format(args.model,
      table.concat(checker.families, ', '))
  end
  for _, kind in ipairs(options.kinds or {}) do
    if not known(kind, checker.faults) then
      return ('there is no fault "%s"; latchkey check --help lists them'):format(kind)
    end
  end
  for _, id in ipairs(options.only or {}) do
    if not properties.names[id] and not (args.model_file and id:find('^P%d+$')) then
      return ('there is no promise "%s"; there are %s'):format(id,
        table.concat(sorted(properties.names), ', '))
    end
  end
  if args.replay and not args.model then
    return '--replay needs the model that it is of'
  elseif args.replay and not args.replay:find('%S') then
    return '--replay has no steps'
  elseif args.debug and not args.replay then
    return '--debug needs the --replay that it opens'
  end
  return refuse_limit(args, options) or refuse_folder(args, options)
end

-- The models that try some of the promises of --only, and a line for each of the others; or what is
-- wrong, where a promise is tried by none.
local function trying(args, options)
  local checker = require('latchkey.checker')
  local models, lines, left = {}, {}, {}
  for _, model in ipairs(args.model and { args.model } or checker.families) do
    local untried, words = checker.untried(model, options), {}
    for i, promise in ipairs(untried) do
      words[i] = ('%s (%s)'):format(promise.id, promise.why)
      left[promise.id] = left[promise.id] or { count = 0, why = promise.why }
      left[promise.id].count = left[promise.id].count + 1
    end
    if not options.only or #untried < #options.only then
      models[#models + 1] = model
    end
    lines[#lines + 1] = #words > 0
      and ('%-10s not tried: %s\n'):format(model, table.concat(words, '; ')) or nil
  end
  for _, id in ipairs(options.only or {}) do
    if left[id] and left[id].count == (args.model and 1 or #checker.families) then
      return nil, nil, ('%s would not be tried: %s'):format(id,
        args.model and left[id].why or 'no model checks it')
    end
  end
  return models, lines
end

local function story_of(model, text, options)
  local checker = require('latchkey.checker')
  local run, why, steps = checker.run(model, text, options)
  if not run then
    return nil, why
  end
  return require('latchkey.checker.show.story').of(steps, run), nil, steps, run
end

local function write_page(ctx, file, page)
  local good, why = whole_file.write(file, page)
  if not good then
    return ctx:misuse(('--html %s: %s'):format(file, why))
  end
end

-- How wide a story may be: in a file or a pipe, as wide as it is.
local function terminal_width()
  return terminal.is_one(1) and select(2, require('latchkey.cli.screen').size()) or nil
end

-- What a replay has to be told so that its words mean the same.
local function hints(verdict, folders)
  local words, options = {}, verdict.options
  for _, name in ipairs({ 'clients', 'rounds', 'faults' }) do
    if options[name] then
      words[#words + 1] = ('--%s %d'):format(name, options[name])
    end
  end
  for _, name in ipairs({ 'scripts', 'beside' }) do
    if folders[name] then
      words[#words + 1] = ('--%s %s'):format(name, utils.quote_arg(folders[name]))
    end
  end
  if options.symmetric == false then
    words[#words + 1] = '--no-symmetry'
  end
  if options.kinds then
    words[#words + 1] = '--fault ' .. table.concat(options.kinds, ',')
  end
  if options.only then
    words[#words + 1] = '--only ' .. table.concat(options.only, ',')
  end
  local limits = {}
  for name, value in pairs(options.limits or {}) do
    limits[#limits + 1] = ('--limit %s=%s'):format(name, tostring(value))
  end
  table.sort(limits)
  return table.concat(tablex.insertvalues(words, limits), ' ')
end

-- The debugger at the line to blame; what was found counts, whatever is typed there.
local function debug_replay(ctx, steps, run)
  local target, order = require('latchkey.debugger.replayed').of(steps, run)
  if not target then
    return ctx:misuse('--debug: no script runs in this replay')
  end
  local code = require('latchkey.debugger.session').run(ctx, target, order)
  return run.finding and 1 or code
end

local function run_replay(args, ctx, options)
  local told, why, steps, run = story_of(args.model, args.replay, options)
  if not told then
    return ctx:misuse(why)
  end
  local about = { scripts = options.scripts, replay = args.replay, model = args.model,
    hints = hints({ options = options }, args), width = terminal_width() }
  local shown = require('latchkey.checker.show.text').show(told, about)
  if args.html then
    local failed = write_page(ctx, args.html, require('latchkey.checker.show.html').of(told, about))
    if failed then
      return failed
    end
  end
  ctx:result({ model = args.model, finding = told.finding, steps = #told.rows }, shown)
  if args.debug then
    return debug_replay(ctx, steps, run)
  end
  return told.finding and 1 or 0
end

-- What tells the runs of a model apart: their bounds, the faults and limits that only some have.
local function within(verdict)
  local bounds, options, kinds, idle = verdict.bounds, verdict.options, {}, {}
  local words = { ('clients=%d rounds=%d faults=%d'):format(bounds.clients, bounds.rounds,
    bounds.faults) }
  for _, kind in ipairs(verdict.idle) do
    idle[kind] = true
  end
  for _, kind in ipairs(options.kinds or {}) do
    kinds[#kinds + 1] = not idle[kind] and kind or nil
  end
  if options.kinds and bounds.faults > 0 then
    words[1] = ('%s of %s'):format(words[1], #kinds > 0 and table.concat(kinds, ',')
      or 'none that can strike')
  end
  for name, value in tablex.sort(options.limits or {}) do
    words[#words + 1] = ('%s=%s'):format(name, tostring(value))
  end
  return table.concat(words, ' ')
end

local function summary(verdict)
  local rate = verdict.seconds > 0 and verdict.transitions / verdict.seconds or 0
  local asked = verdict.executed + verdict.remembered
  local state = verdict.expected
    and (verdict.as_expected and 'found, as it must be' or 'NOT FOUND')
    or #verdict.findings > 0 and 'VIOLATED' or verdict.complete and 'exhaustive'
    or 'incomplete: out of memory'
  return ('%-10s %s within %s: %d states, %d transitions (%.0f a second, %.0f %% of calls '
    .. 'remembered)%s'):format(verdict.model, state, verdict.within, verdict.states,
    verdict.transitions, rate,
    asked > 0 and 100 * verdict.remembered / asked or 0,
    verdict.says and '; ' .. verdict.says or '')
end

local function show_finding(verdict, finding, options, args, ctx)
  local trail = table.concat(finding.trail, ' ')
  local told = trail ~= '' and story_of(verdict.model, trail, verdict.options)
  if not told then
    return ('%s violated: %s\n'):format(finding.property, finding.message)
  end
  local about = { scripts = options.scripts, model = verdict.model, replay = trail,
    hints = hints(verdict, args), verdict = summary(verdict), width = terminal_width() }
  if args.html then
    local page = require('latchkey.checker.show.html').of(told, about)
    local written, why = whole_file.write(args.html, page)
    if not written then -- what was found counts, and is the only document
      ctx.stderr:write(('latchkey check: --html %s\n'):format(why))
    end
  end
  local shown = require('latchkey.checker.show.text').show(told, about)
  if not args.no_spec and not verdict.expected then
    verdict.kinds = {}
    for _, kind in ipairs(verdict.options.kinds
      or require('latchkey.checker').default_kinds(verdict.model)) do
      verdict.kinds[kind] = true
    end
    verdict.limits, verdict.beside = verdict.options.limits, verdict.options.beside
    verdict.symmetric, verdict.only = verdict.options.symmetric, verdict.options.only
    local regress = require('latchkey.checker.regress')
    local file, why = regress.write('spec/regress', verdict, finding)
    shown = shown .. (file and 'written: ' .. file or 'could not be written: ' .. why) .. '\n'
    verdict.kinds, verdict.limits, verdict.beside = nil, nil, nil
    verdict.symmetric, verdict.only = nil, nil
  end
  return shown
end

local function judge(outcome, options, args, ctx)
  local lines, failed, incomplete, seen = {}, false, false, {}
  for _, verdict in ipairs(outcome.runs) do
    verdict.within = within(verdict)
    lines[#lines + 1] = summary(verdict) .. '\n'
    if verdict.expected then
      failed = failed or not verdict.as_expected
    else
      failed = failed or #verdict.findings > 0
      incomplete = incomplete or verdict.out_of_memory
    end
    if not verdict.expected or args.html then
      for _, finding in ipairs(verdict.findings) do
        local id = table.concat({ verdict.model, finding.property, finding.script or '' }, ' ')
        local shown = not seen[id] and show_finding(verdict, finding, options, args, ctx)
        lines[#lines + 1] = shown and not verdict.expected and '\n' .. shown or ''
        seen[id] = true
      end
    end
  end
  return lines, failed, incomplete
end

-- Where nothing was found, the page has a run that went well.
local function write_sample(args, ctx, options, outcome)
  local checker = require('latchkey.checker')
  local model = args.model or 'lock'
  local run, steps = checker.sample(model, options)
  local labels, verdicts = {}, {}
  for i, step in ipairs(run.steps) do
    labels[i] = step.label
  end
  for _, verdict in ipairs(outcome.runs) do
    verdicts[#verdicts + 1] = summary(verdict)
  end
  return write_page(ctx, args.html, require('latchkey.checker.show.html').of(
    require('latchkey.checker.show.story').of(steps, run), { scripts = options.scripts,
      model = model, replay = table.concat(labels, ' '), verdict = table.concat(verdicts, '; ') }))
end

local function show_coverage(outcome, lines)
  local unreached = false
  for model, entry in tablex.sort(outcome.models) do
    -- What a model of somebody's own does not reach is said, and is theirs to judge.
    unreached = unreached or #entry.missing > 0 and not model:find('%.lua$')
    lines[#lines + 1] = ('%-10s %d outcomes and errors reached%s\n'):format(model, entry.reached,
      #entry.missing > 0 and ', never: ' .. table.concat(entry.missing, '; ') or '')
    if #entry.idle > 0 and model:find('%.lua$') then
      lines[#lines + 1] = ('%-10s faults that can strike nowhere: %s\n'):format(model,
        table.concat(entry.idle, ', '))
    end
    for _, unmet in ipairs(entry.unmet) do
      unreached = true
      lines[#lines + 1] = ('%-10s %s: what follows from that was not tried\n'):format(model, unmet)
    end
  end
  return unreached
end

-- Of the faults that --fault names, the first that no model let strike.
local function without_effect(options, outcome)
  local count, idle = 0, {}
  for _, entry in pairs(outcome.models) do
    count = count + 1
    for _, kind in ipairs(entry.idle) do
      idle[kind] = (idle[kind] or 0) + 1
    end
  end
  for _, kind in ipairs(options.kinds or {}) do
    if idle[kind] == count then
      return ('--fault: "%s" can strike nowhere in %s within these bounds; leave it out'):format(
        kind, count == 1 and 'the model' or 'these models')
    end
  end
end

local function exit_of(failed, incomplete)
  return failed and 1 or incomplete and 2 or 0
end

local function run_matrix(args, ctx, options)
  local has_bounds = args.clients or args.rounds or args.faults or args.fault
  local models, untried, wrong = trying(args, options)
  if wrong then
    return ctx:misuse('--only: ' .. wrong)
  end
  local runs = require('latchkey.checker.matrix')
  local outcome = runs.run(models, options, has_bounds and { {} } or nil)
  local lines, failed, incomplete = judge(outcome, options, args, ctx)
  wrong = not failed and not incomplete and without_effect(options, outcome)
  if wrong then
    return ctx:misuse(wrong)
  end
  tablex.insertvalues(lines, untried)
  local unreached = show_coverage(outcome, lines)
  -- Bounds, limits and few promises keep a run from what the default runs reach.
  local is_default = not (has_bounds or options.limits or options.only)
  failed = failed or unreached and is_default and not incomplete
  wrong = args.html and not failed and write_sample(args, ctx, options, outcome)
  if wrong then
    return wrong
  end
  for _, verdict in ipairs(outcome.runs) do
    verdict.options, verdict.covered, verdict.struck, verdict.idle = nil, nil, nil, nil
  end
  ctx:result({ runs = outcome.runs, ok = not failed and not incomplete }, table.concat(lines))
  return exit_of(failed, incomplete)
end

function command.run(args, ctx)
  if args.model and args.model_file then
    return ctx:misuse('name a model, or the file of one')
  end
  args.model_file = args.model_file or args.model and args.model:match('^.+%.lua$')
  args.model = args.model_file or args.model
  local options, wrong = options_of(args, ctx)
  wrong = args.debug and ctx.json and '--debug is for people, --json is not' or wrong
  wrong = wrong or refuse_number(args) or refuse_empty(options) or refuse(args, options)
  if wrong then
    return ctx:misuse(wrong)
  elseif args.trace then
    return require('latchkey.checker.trace').command(args.trace, ctx, options.scripts)
  end
  -- What is wrong in a model file may show only when its functions are called.
  local run = args.replay and run_replay or run_matrix
  local good, code = xpcall(function()
    return run(args, ctx, options)
  end, function(err)
    return mistakes.text(err) and err or debug.traceback(err)
  end)
  local mistake = not good and mistakes.text(code)
  if mistake then
    return ctx:misuse(('%s: %s'):format(args.model, mistake))
  elseif not good then
    error(code, 0)
  end
  return code
end

return command

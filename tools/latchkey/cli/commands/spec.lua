-- SPDX-License-Identifier: Apache-2.0
local path = require('pl.path')

local files = require('latchkey.files')
local modules = require('latchkey.spec.modules')
local text = require('latchkey.text')

local command = { summary = 'run specs of scripts, on the mock or on a server', server = true }

command.exits = {
  { 0, 'every spec passed, or was skipped' },
  { 1, 'a spec failed' },
  { 64, 'wrong use: there are no specs, or the server is not empty' },
  { 69, '--url: the server could not be reached, or refused' },
  { 70, 'busted is not installed' },
}

function command.configure(parser)
  parser:argument('target', 'Folders of busted specs, or files.'):args('+')
  parser:option('--dir', 'The folder of their scripts; without one, the project\'s own.')
    :argname('DIR')
  parser:option('--filter', 'Only specs whose title matches this Lua pattern.'):argname('PATTERN')
  parser:option('--output', 'How it is shown: plainTerminal, utfTerminal, TAP or junit.',
    'plainTerminal'):choices({ 'plainTerminal', 'utfTerminal', 'TAP', 'junit' })
  parser:epilog('A spec requires "helper" and takes its world from helper.world(): the mock, or '
    .. 'with --url a server that keeps nothing, is empty, and is emptied before each case; '
    .. 'LATCHKEY_URL is not used.')
end

local function new_runner()
  local busted = require('busted.core')()
  require('busted')(busted)
  require('busted.luajit')() -- else each file would load the FFI anew, without its declarations
  local counts = { passed = 0, failed = 0, skipped = 0 }
  local failures = {}
  local function fail(element, parent, message)
    local names = { element.name or element.descriptor }
    while parent and parent.name and parent.descriptor ~= 'file' do
      table.insert(names, 1, parent.name)
      parent = busted.context.parent(parent)
    end
    counts.failed = counts.failed + 1
    failures[#failures + 1] = { title = text.safe(table.concat(names, ' ')),
      message = text.safe(tostring(message)) }
    return nil, true
  end
  busted.subscribe({ 'failure' }, fail)
  busted.subscribe({ 'error' }, fail)
  busted.subscribe({ 'test', 'end' }, function(_, _, status)
    if status == 'success' then
      counts.passed = counts.passed + 1
    elseif status == 'pending' then
      counts.skipped = counts.skipped + 1
    end
    return nil, true
  end)
  return busted, counts, failures
end

local function run(busted, list, args, ctx)
  if not ctx.json then
    require('busted.modules.output_handler_loader')()(busted, args.output,
      { defaultOutput = 'plainTerminal', language = 'en', arguments = {}, verbose = true })
  end
  require('busted.modules.filter_loader')()(busted, { tags = {}, excludeTags = {},
    filter = args.filter and { args.filter } or {}, filterOut = {} })
  local load = require('busted.modules.test_file_loader')(busted, { 'lua' })
  load(list, { '_spec%.lua$' }, { excludes = {}, recursive = false, verbose = false })
  require('busted.execute')(busted)(1, { seed = 1, sort = true })
  busted.publish({ 'exit' })
end

-- What specs print goes to standard error meanwhile: the other one is the document's.
local function run_aside(...)
  local unistd = require('posix.unistd')
  io.stdout:flush()
  local own = assert(unistd.dup(1))
  unistd.dup2(2, 1)
  local good, why = pcall(run, ...)
  io.stdout:flush()
  unistd.dup2(own, 1)
  unistd.close(own)
  if not good then
    error(why, 0)
  end
end

-- Why specs must not have a server, which they empty: one that keeps nothing may yet be somebody's
-- cache.
local function not_free(client)
  local said = {}
  for i, words in ipairs({ { 'INFO' }, { 'CONFIG', 'GET', 'save' },
    { 'CONFIG', 'GET', 'appendonly' } }) do
    local reply, err = client:command(unpack(words))
    if not reply then
      return nil, err
    end
    said[i] = words[3] and reply[2] or reply
  end
  return said[1]:find('\ndb%d') and 'has keys'
    or (said[2] ~= '' or said[3] ~= 'no') and 'keeps its data'
    or said[1]:find('role:slave', 1, true) and 'is a replica'
end

local function open_free(ctx)
  local client, code = ctx:client()
  if not client then
    return nil, code
  end
  local why, err = not_free(client)
  if err then
    return nil, ctx:fail(err)
  elseif why then
    return nil, ctx:misuse(('%s %s; specs empty their server, so give them one of their own')
      :format(client:target(), why))
  end
  return client
end

local NO_SPECS = 'there are no specs: files whose names end in _spec.lua'

function command.run(args, ctx)
  for _, target in ipairs(args.target) do
    if not path.exists(target) then
      return ctx:misuse(('there is no file or folder %s'):format(target))
    end
  end
  local list, problems, passed_over = files.named(args.target, '_spec.lua')
  if passed_over[1] then
    ctx:note(files.passed_over(passed_over))
  end
  if problems[1] or #list == 0 then
    return ctx:misuse(problems[1] or NO_SPECS)
  elseif args.dir and not path.isdir(args.dir) then
    return ctx:misuse(('--dir %s is not a folder'):format(args.dir))
  elseif not pcall(require, 'busted') then
    return ctx:fail({ status = 'LK_SYSTEM', message = 'busted is not installed',
      hint = 'install it with the distribution\'s package lua-busted, or luarocks' })
  end
  local client, code
  if args.url then
    client, code = open_free(ctx)
    if not client then
      return code
    end
  end
  modules.set_environment(args.url, args.dir)
  modules.give_way(ctx.home)
  local busted, counts, failures = new_runner()
  local run_all = ctx.json and run_aside or run
  run_all(busted, list, args, ctx)
  -- The last case leaves what the next run would take for somebody's.
  if client then
    client:command('FLUSHALL')
  end
  if counts.passed + counts.failed + counts.skipped == 0 then
    return ctx:misuse(NO_SPECS)
  end
  if ctx.json then
    counts.failures = failures
    ctx:result(counts, '')
  end
  return counts.failed > 0 and 1 or 0
end

return command

-- SPDX-License-Identifier: Apache-2.0
-- The commands, one module each in commands/: finding them, their common options, failures, exit
-- codes.
--
-- A command is a module { summary, configure(parser, arguments), run(args, ctx) -> exit code }, and
-- `server = true` when it talks to one. `configure` may be left out. `several` where the servers of
-- a majority can be asked, one after the other (cli/several.lua). `for_people = true` where there
-- is no document: --json is refused, and not shown. `exits`, { code, what } each, is shown at the
-- end of --help.
local argparse = require('argparse')
local dir = require('pl.dir')
local path = require('pl.path')
local stringx = require('pl.stringx')

local lock_names = require('latchkey.script.names')
local open = require('latchkey.servers.open')
local report = require('latchkey.report')
local text = require('latchkey.text')

local cli = {}

cli.exits = {
  done = 0, found = 1, incomplete = 2, free = 3, use = 64, server = 69, defect = 70, busy = 75,
  lost = 80,
}

-- Commands that are not written in Lua.
cli.BUILT_IN = {
  bench = 'how fast are locks on this server?',
  exec = 'run a command while holding a lock',
}

---@param home string
---@return string[] names of the commands, sorted
function cli.command_names(home)
  local names = { 'bench', 'exec' }
  local folder = path.join(home, 'tools', 'latchkey', 'cli', 'commands')
  for _, file in ipairs(dir.getfiles(folder, '*.lua')) do
    names[#names + 1] = path.splitext(path.basename(file))
  end
  table.sort(names)
  return names
end

local function help(names)
  local lines = {
    'Usage: latchkey COMMAND [OPTION...]',
    '',
    'Distributed locks on Redis and Valkey.',
    '',
  }
  for _, name in ipairs(names) do
    local summary = cli.BUILT_IN[name] or require('latchkey.cli.commands.' .. name).summary
    lines[#lines + 1] = ('  %-10s %s'):format(name, summary)
  end
  lines[#lines + 1] = ''
  lines[#lines + 1] = '  --version  the version of this program'
  lines[#lines + 1] = ''
  lines[#lines + 1] = 'latchkey help COMMAND explains a command,'
  lines[#lines + 1] = 'latchkey explain CODE an exit code.'
  return table.concat(lines, '\n') .. '\n'
end

---@class cli.context
---@field home string the folder of scripts/, tools/ and spec/
---@field json boolean
---@field quiet boolean
---@field verbose boolean
---@field stdout file*
---@field stderr file*
local Context = {}
Context.__index = Context

---Tells of a failure: a JSON document with --json, else two lines on standard error; more where the
---message has several, which only `lines` allows.
---@param err { status: string, message: string, hint: string|nil, lines: boolean|nil }
---@return integer exit code that belongs to the status
function Context:fail(err)
  local message = err.lines and err.message:gsub('[^\n]+', text.safe) or text.safe(err.message)
  if self.json then
    self.stdout:write(report.json(self.command,
      { error = { status = err.status, message = message, hint = err.hint or '' } }))
  else
    self.stderr:write(('latchkey %s: %s\n'):format(self.command, message))
    if (err.hint or '') ~= '' and not err.hint:find('^correct the ') then
      self.stderr:write('  ', err.hint, '\n')
    end
  end
  return self.exit_of(err.status)
end

---@param message string what is wrong with the call
---@return integer exit code
function Context:misuse(message)
  return self:fail({ status = 'LK_INVALID', message = message,
    hint = ('latchkey %s --help lists the options'):format(self.command) })
end

---One sentence for people on standard error, unless --quiet.
---@param ... string parts
function Context:note(...)
  if not self.quiet then
    self.stderr:write(table.concat({ ... }), '\n')
  end
end

---The result: a JSON document with --json, else the text.
---@param fields table of the document
---@param shown string
---@return any written nil where it could not be; the exit code tells of that, too
function Context:result(fields, shown)
  return self.stdout:write(self.json and report.json(self.command, fields) or shown)
end

---The server that the call names, or LATCHKEY_URL; of a majority several. No white space is around
---it: a file of settings leaves a line feed behind it.
---@return string|nil
function Context:url()
  local url = self.args.url or os.getenv('LATCHKEY_URL')
  return url and stringx.strip(url)
end

---A client of the server that the call names. It loads no scripts by being opened.
---@param options? table of latchkey.open
---@return latchkey.client|nil client
---@return integer|nil exit code; the failure has been told
function Context:client(options)
  local client, err = open(self, self:url(), options)
  if not client then
    return nil, self:fail(err)
  end
  return client
end

---The same, for a call that may name a lock: only where that can be one's name.
---@return latchkey.client|nil client
---@return integer|nil exit code; the failure has been told
function Context:client_for(name)
  local good, why = true, nil
  if name then
    good, why = lock_names.check(name)
  end
  if not good then
    return nil, self:fail({ status = 'LK_NAME', message = why })
  end
  return self:client()
end

local function common_options(parser, command)
  if command.server then
    parser:option('--url', 'The server; or LATCHKEY_URL.'):argname('URL')
    parser:option('--password-file', 'Its password, on the first line; or LATCHKEY_PASSWORD.')
      :argname('FILE')
    parser:flag('-v --verbose', 'Say which server it is.')
  end
  parser:flag('--json', 'One machine-readable document.'):hidden(command.for_people or false)
  parser:flag('-q --quiet', 'No messages but errors.')
end

-- The arguments by name; false and a message; or nil when --help stood among them. argparse's own
-- --help ends the process on the spot.
local function parse(parser, arguments)
  local asked = false
  parser:flag('-h --help', 'This text.'):action(function()
    asked = true
    error('help')
  end)
  local returned, parsed, args = pcall(parser.pparse, parser, arguments)
  if asked then
    return nil
  elseif not returned then
    error(parsed, 0)
  elseif not parsed then
    return false, (args:gsub('\nDid you mean (.*)$', '; did you mean %1'))
  end
  return args
end

-- Below 2^53.
local DIGITS_MAX = 15

---For options whose value is a whole number: argparse then says which word is none.
---@param word string
---@return integer|nil
---@return string|nil why
function cli.number(word)
  local number = word:find('^%d+$') and #word <= DIGITS_MAX and tonumber(word) or nil
  return number, number == nil and ('"%s" is not a whole number'):format(text.safe(word)) or nil
end

-- Below what the command's own epilog says.
local function show_exits(parser, exits)
  local lines = { 'Exit codes:' }
  for _, exit in ipairs(exits) do
    lines[#lines + 1] = ('  %-3d %s'):format(exit[1], exit[2])
  end
  parser:epilog((parser._epilog and parser._epilog .. '\n\n' or '') .. table.concat(lines, '\n'))
end

---The parser of a command, --help left out, and its module.
---@param home string
---@param name string
---@param arguments string[] those of the call
---@return table parser of argparse
---@return table command
function cli.parser(home, name, arguments)
  local command = require('latchkey.cli.commands.' .. name)
  local title = command.summary:gsub('^%l', string.upper):gsub('([^.?!])$', '%1.')
  local parser = argparse('latchkey ' .. name, title)
    :usage_max_width(80):help_max_width(80):add_help(false)
  if command.configure then
    command.configure(parser, arguments, home)
  end
  common_options(parser, command)
  if command.exits then
    show_exits(parser, command.exits)
  end
  return parser, command
end

-- Where the arguments cannot be parsed. Words behind "--" are no options.
local function wants_json(arguments)
  for _, argument in ipairs(arguments) do
    if argument == '--json' or argument == '--' then
      return argument == '--json'
    end
  end
  return false
end

local function run(home, name, arguments, exit_of)
  local parser, command = cli.parser(home, name, arguments)
  local ctx = setmetatable({ command = name, home = home, json = wants_json(arguments),
    exit_of = exit_of, stdout = io.stdout, stderr = io.stderr }, Context)
  local args, wrong = parse(parser, arguments)
  if args == nil then
    io.stdout:write(parser:get_help(), '\n')
    return cli.exits.done
  elseif not args then
    return ctx:misuse(wrong)
  end
  ctx.args, ctx.quiet, ctx.verbose = args, args.quiet or false, args.verbose or false
  if type(args.url) == 'string' then
    args.url = stringx.strip(args.url)
  end
  local urls = command.several and stringx.split(ctx:url() or '') or {}
  if #urls > 1 then
    return require('latchkey.cli.several').run(command, ctx, urls)
  end
  return command.run(args, ctx)
end

-- What stands behind the first word. There may be more of them than unpack() takes.
local function rest_of(words)
  local rest = {}
  for i = 2, #words do
    rest[i - 1] = words[i]
  end
  return rest
end

---The program behind `exec`: runs the command that the arguments name.
---@param home string
---@param arguments string[]
---@param exit_of fun(status: string): integer exit code of a status
---@return integer exit code
function cli.main(home, arguments, exit_of)
  local names, name = cli.command_names(home), arguments[1]
  if name == nil or name == '--help' or name == '-h' or name == 'help' then
    io.stdout:write(help(names))
    return cli.exits.done
  end
  for _, known in ipairs(names) do
    if known == name and not cli.BUILT_IN[name] then
      return run(home, name, rest_of(arguments), exit_of)
    end
  end
  local nearest = text.nearest(name, names)
  io.stderr:write(('latchkey: there is no command "%s"%s; latchkey --help lists them\n'):format(
    text.safe(name), nearest and ('; did you mean "%s"?'):format(nearest) or ''))
  return cli.exits.use
end

return cli

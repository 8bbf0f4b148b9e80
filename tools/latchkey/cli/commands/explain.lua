-- SPDX-License-Identifier: Apache-2.0
local tablex = require('pl.tablex')

local cli = require('latchkey.cli')
local exits = require('latchkey.cli.exits')
local text = require('latchkey.text')

local command = { summary = 'what a status or an exit code means, and what to do' }

-- What shells offer behind the command: the names of statuses, and the exit codes.
function command.words()
  local words, seen = {}, {}
  for _, status in ipairs(require('latchkey').statuses()) do
    words[#words + 1] = status.name
  end
  for _, exit in ipairs(exits) do
    if not seen[exit.code] then
      seen[exit.code], words[#words + 1] = true, tostring(exit.code)
    end
  end
  return words
end

function command.configure(parser)
  parser:argument('code', 'LK_BUSY, busy, or a number. Without one, all of them.'):args('?')
  parser:argument('command', 'That ended with this number: only what it means there.'):args('?')
  parser:epilog('A number can be an exit code and a status of the library; both are shown, unless '
    .. 'a command is named.')
end

-- A row that names the command says more than one that names none.
local function is_of(exit, command_name)
  if not command_name or exit.commands then
    return not command_name or tablex.find(exit.commands, command_name)
  end
  return not tablex.find_if(exits, function(other)
    return other.code == exit.code and other.commands and tablex.find(other.commands, command_name)
  end)
end

-- The exit codes that `number` can be, of one command where it is named; all without a number.
local function exit_meanings(number, command_name)
  local found = {}
  for _, exit in ipairs(exits) do
    if (not number or exit.code == number) and is_of(exit, command_name) then
      found[#found + 1] = { exit = exit.code, text = exit.text, hint = exit.hint }
    end
  end
  if number and number > 128 and number <= 192 then
    found[1] = { exit = number, text = ('exec: signal %d ended the command'):format(number - 128),
      hint = ('kill -l %d names the signal'):format(number - 128) }
  end
  return found
end

local function status_meanings(code)
  local found, number = {}, tonumber(code)
  local wanted = code and code:upper():gsub('^LK_', '')
  for _, status in ipairs(require('latchkey').statuses()) do
    if not code or status.number == number or status.name == 'LK_' .. wanted then
      found[#found + 1] = { status = status.name, number = status.number, text = status.text,
        hint = status.hint }
    end
  end
  return found
end

-- Exit codes first: a shell shows numbers, the library's messages show names.
local function meanings_of(code, command_name)
  local number = tonumber(code)
  local found = (number or not code) and exit_meanings(number, command_name) or {}
  if not command_name then
    tablex.insertvalues(found, status_meanings(code))
  end
  return found
end

function command.run(args, ctx)
  local meanings = meanings_of(args.code, args.command)
  if #meanings == 0 then
    return ctx:misuse(('"%s" is neither a status nor an exit code%s'):format(text.safe(args.code),
      args.command and ' of ' .. text.safe(args.command) or ''))
  end
  local lines = {}
  for _, meaning in ipairs(meanings) do
    local title = meaning.status and ('%s (status %d)'):format(meaning.status, meaning.number)
      or ('exit code %d'):format(meaning.exit)
    lines[#lines + 1] = ('%s: %s\n  %s\n'):format(title, meaning.text, meaning.hint)
  end
  ctx:result({ meanings = meanings }, table.concat(lines))
  return cli.exits.done
end

return command

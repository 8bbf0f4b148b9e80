-- SPDX-License-Identifier: Apache-2.0
local cli = require('lib.cli')
local exits = require('lib.exits')
local text = require('lib.text')

local command = { summary = 'what a status or an exit code means, and what to do' }

local EXITS = {}
for _, exit in ipairs(exits) do
  EXITS[exit.code] = exit
end

function command.configure(parser)
  parser:argument('code', 'LK_BUSY, busy, or a number. Without one, all of them.'):args('?')
  parser:epilog('A number can be a status of the library and an exit code; both are shown.')
end

local function exit_meaning(number)
  if EXITS[number] then
    return { exit = number, text = EXITS[number].text, hint = EXITS[number].hint }
  elseif number > 128 and number <= 192 then
    local signal = number - 128
    return { exit = number, text = ('exec: signal %d ended the command'):format(signal),
      hint = ('kill -l %d names the signal'):format(signal) }
  end
end

local function meanings_of(code)
  local found, number = {}, tonumber(code)
  local wanted = code and code:upper():gsub('^LK_', '')
  for _, status in ipairs(require('lib.latchkey').statuses()) do
    if not code or status.number == number or status.name == 'LK_' .. wanted then
      found[#found + 1] = { status = status.name, number = status.number, text = status.text,
        hint = status.hint }
    end
  end
  for exit = 0, 192 do
    local meaning = (exit == number or not code and EXITS[exit]) and exit_meaning(exit)
    if meaning then
      found[#found + 1] = meaning
    end
  end
  return found
end

function command.run(args, ctx)
  local meanings = meanings_of(args.code)
  if #meanings == 0 then
    return ctx:misuse(('"%s" is no status and no exit code'):format(text.safe(args.code)))
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

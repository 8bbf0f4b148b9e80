-- SPDX-License-Identifier: Apache-2.0
-- A session at a terminal or from a pipe, from its first line to its exit code.
local Debugger = require('latchkey.debugger')
local Prompt = require('latchkey.debugger.prompt')
local lines = require('latchkey.repl.input')
local text = require('latchkey.text')

local session = {}

local function in_quotes(list, fields)
  local words = {}
  for i, value in ipairs(list) do
    local field = fields and fields[i]
    words[i] = (field and field.name .. '=' or '') .. text.quoted(value)
  end
  return #words > 0 and table.concat(words, ' ') or '(none)'
end

---@param ctx cli.context
---@param target table
---@param order table of the first run
---@return integer exit code
function session.run(ctx, target, order)
  local function say(line)
    ctx.stdout:write(line, '\n')
    ctx.stdout:flush()
  end
  local source = lines.open(Prompt.completions, 'debug_history')
  local prompt = Prompt.new(target, source, say)
  prompt.debugger = Debugger.new(target, prompt)
  local header = target.header
  say(text.safe(('%s  %s'):format(target.name, target.file)))
  say('KEYS  ' .. in_quotes(target.keys, header and header.keys))
  say('ARGV  ' .. in_quotes(target.args, header and header.argv))
  if source.is_terminal then
    ctx:note('help says what can be typed, quit ends.')
  end
  prompt.debugger:start(order)
  source.close()
  local failed = prompt.failed and not source.is_terminal
  return (failed or prompt.outcome and prompt.outcome.err) and 1 or 0
end

return session

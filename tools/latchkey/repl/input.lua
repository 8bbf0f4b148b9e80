-- SPDX-License-Identifier: Apache-2.0
-- Where lines come from: a terminal, with history and completion where the readline module is
-- installed, or whatever else the standard input is.
local dir = require('pl.dir')
local path = require('pl.path')
local unistd = require('posix.unistd')

local lines = {}

local INPUT = 0
local KEPT_LINES = 1000

local function history_file(name)
  local state = os.getenv('XDG_STATE_HOME')
  local home = os.getenv('HOME')
  local folder = state and state ~= '' and path.join(state, 'latchkey')
    or home and home ~= '' and path.join(home, '.local', 'state', 'latchkey')
  return folder and dir.makepath(folder) and path.join(folder, name) or ''
end

-- A terminal with readline; nil without the module.
local function with_readline(complete, history)
  local found, readline = pcall(require, 'readline')
  if not found then
    return nil
  end
  readline.set_readline_name('latchkey')
  readline.set_options({ histfile = history_file(history), keeplines = KEPT_LINES })
  readline.set_complete_function(function(text, from, to)
    readline.set_completion_append_character('') -- anew: readline forgets it
    return complete(text:sub(from, to))
  end)
  return {
    is_terminal = true,
    read = readline.readline,
    close = readline.save_history,
  }
end

local function plain(is_terminal)
  return {
    is_terminal = is_terminal,
    read = function(prompt)
      if is_terminal then
        io.stdout:write(prompt)
        io.stdout:flush()
      end
      return io.stdin:read('*l')
    end,
    close = function() end,
  }
end

---@param complete fun(word: string): string[]
---@param history? string the file's name; default "history"
---@return table source { is_terminal, read(prompt), close() }
function lines.open(complete, history)
  local is_terminal = unistd.isatty(INPUT) == 1
  return is_terminal and with_readline(complete, history or 'history') or plain(is_terminal)
end

return lines

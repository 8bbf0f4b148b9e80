-- SPDX-License-Identifier: Apache-2.0
-- A whole terminal for a tool that redraws it: its own screen, keys one by one, its size, and the
-- way back to what was there before, also when a signal ends the tool.
local ffi = require('ffi')
local poll = require('posix.poll')
local signal = require('posix.signal')
local termio = require('posix.termio')
local unistd = require('posix.unistd')

ffi.cdef([[
struct latchkey_winsize { unsigned short rows, columns, x, y; };
int ioctl(int fd, unsigned long request, ...);
]])

local Screen = {}
Screen.__index = Screen

local screen = {}

-- TIOCGWINSZ
local GET_SIZE = ffi.os == 'Linux' and 0x5413 or 0x40087468
local ROWS, COLUMNS = 24, 80

-- Signals that end the tool, unless it is told otherwise.
local ENDING = { 'SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGTERM' }

-- luaposix has no name for it; it is the same on Linux, macOS and the BSDs.
local SIGWINCH = 28

-- Own screen and no cursor; and back.
local ENTER, LEAVE = '\27[?1049h\27[?25l', '\27[?25h\27[?1049l'

local KEYS = {
  ['\27[A'] = 'up', ['\27[B'] = 'down', ['\27OA'] = 'up', ['\27OB'] = 'down',
  ['\27[5~'] = 'page up', ['\27[6~'] = 'page down', ['\r'] = 'enter', ['\n'] = 'enter',
  ['\127'] = 'back', ['\8'] = 'back', ['\27'] = 'escape',
}

function Screen:enter()
  local raw = termio.tcgetattr(0)
  raw.lflag = bit.band(raw.lflag, bit.bnot(bit.bor(termio.ICANON, termio.ECHO)))
  raw.cc[termio.VMIN], raw.cc[termio.VTIME] = 1, 0
  termio.tcsetattr(0, termio.TCSANOW, raw)
  io.stdout:write(ENTER)
  io.stdout:flush()
  self.entered = true
end

function Screen:leave()
  if self.entered then
    self.entered = false
    io.stdout:write(LEAVE)
    io.stdout:flush()
    termio.tcsetattr(0, termio.TCSANOW, self.before)
  end
end

-- Stopped by Ctrl-Z, the terminal is somebody else's until the tool goes on.
function Screen:pause()
  self:leave()
  signal.raise(signal.SIGSTOP)
  self:enter()
end

---Takes the terminal on standard input and output.
function screen.open()
  local self = setmetatable({ before = termio.tcgetattr(0), typed = '' }, Screen)
  for _, name in ipairs(ENDING) do
    signal.signal(signal[name], function(number)
      self.ended_by = number
    end)
  end
  signal.signal(signal.SIGTSTP, function()
    self.stop = true
  end)
  -- Only so that it ends a poll.
  signal.signal(SIGWINCH, function() end)
  self:enter()
  return self
end

---Gives the terminal back. A signal that ended the tool then does what it does without one.
function Screen:close()
  self:leave()
  for _, name in ipairs(ENDING) do
    signal.signal(signal[name], signal.SIG_DFL)
  end
  signal.signal(signal.SIGTSTP, signal.SIG_DFL)
  signal.signal(SIGWINCH, signal.SIG_DFL)
  if self.ended_by then
    signal.raise(self.ended_by)
  end
end

---@return integer rows
---@return integer columns
function Screen.size()
  local size = ffi.new('struct latchkey_winsize')
  if ffi.C.ioctl(1, GET_SIZE, size) ~= 0 or size.rows == 0 or size.columns == 0 then
    return ROWS, COLUMNS
  end
  return size.rows, size.columns
end

---Shows lines from the top on; the rest of the screen is empty.
---@param lines string[] no longer than the screen is wide
function Screen.draw(_, lines)
  local parts = { '\27[H' }
  for i, line in ipairs(lines) do
    parts[#parts + 1] = line .. '\27[K' .. (i < #lines and '\r\n' or '')
  end
  io.stdout:write(table.concat(parts), '\27[J')
  io.stdout:flush()
end

-- Takes the first key off what was typed. An escape sequence that is not known is one key, too.
function Screen:take()
  local sequence = self.typed:match('^\27[%[O][%d;]*[%a~]') or self.typed:sub(1, 1)
  self.typed = self.typed:sub(#sequence + 1)
  return KEYS[sequence] or sequence:match('^[%w%p ]$') or 'other'
end

---Waits for a key.
---@param timeout_ms integer
---@return string|nil key a character, or "up", "down", "page up", "page down", "enter", "back",
---  "escape", "other"; nil: none came. ended_by is set when a signal wants the tool to end
function Screen:key(timeout_ms)
  if self.typed ~= '' then
    return self:take()
  end
  local ready = poll.rpoll(0, timeout_ms)
  if self.stop then
    self.stop = false
    self:pause()
    return nil
  elseif ready ~= 1 or self.ended_by then
    return nil
  end
  self.typed = unistd.read(0, 1024) or ''
  if self.typed == '' then
    -- The terminal has gone.
    self.ended_by = signal.SIGHUP
    return nil
  end
  return self:take()
end

return screen

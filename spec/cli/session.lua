-- SPDX-License-Identifier: Apache-2.0
-- A program on a pseudo terminal of a given size, and what a person would see on its screen.
local fcntl = require('posix.fcntl')
local poll = require('posix.poll')
local signal = require('posix.signal')
local stdlib = require('posix.stdlib')
local termio = require('posix.termio')
local unistd = require('posix.unistd')

local program = require('cli.program')

local Session = {}
Session.__index = Session

local session = {}

-- The shell takes the terminal for its own, as its first one, and says how large it is.
local START = [[exec <"$0" >"$0" 2>&1; stty rows "$1" cols "$2"; shift 2; exec "$@"]]

---Starts latchkey on a terminal.
---@param words string[]
---@param options? { rows?: integer, columns?: integer, env?: table }
function session.start(words, options)
  options = options or {}
  local self = setmetatable({ rows = options.rows or 24, columns = options.columns or 80,
    bytes = '', was_shown = '' }, Session)
  self.master = assert(stdlib.openpt(fcntl.O_RDWR + fcntl.O_NOCTTY))
  assert(stdlib.grantpt(self.master))
  assert(stdlib.unlockpt(self.master))
  self.before = termio.tcgetattr(self.master)
  local arguments = { 'sh', '-c', START, stdlib.ptsname(self.master), tostring(self.rows),
    tostring(self.columns), program.path, unpack(words) }
  local env = { TERM = 'xterm', NO_COLOR = false, LATCHKEY_URL = false }
  for name, value in pairs(options.env or {}) do
    env[name] = value
  end
  self.process = program.start_any('setsid', arguments, { env = env })
  self:clear()
  return self
end

function Session:clear()
  self.lines, self.row, self.column = {}, 1, 1
  self.is_drawing = false
end

function Session:put(byte)
  local line = self.lines[self.row] or ''
  line = line .. (' '):rep(self.column - 1 - #line)
  self.lines[self.row] = line:sub(1, self.column - 1) .. byte .. line:sub(self.column + 1)
  self.column = self.column + 1
end

function Session:scroll()
  self.has_scrolled = true
  for row = 1, self.rows do
    self.lines[row] = self.lines[row + 1]
  end
end

-- What the sequences that latchkey writes do; others are an error, since a screen that misread them
-- would prove nothing. A screen is drawn from H to J.
function Session:control(parameters, final)
  if final == 'H' then
    self.row, self.column = 1, 1
    self.is_drawing = true
  elseif final == 'K' then
    self.lines[self.row] = (self.lines[self.row] or ''):sub(1, self.column - 1)
  elseif final == 'J' then
    for row = self.row + 1, self.rows do
      self.lines[row] = nil
    end
    self.lines[self.row] = (self.lines[self.row] or ''):sub(1, self.column - 1)
    self.is_drawing = false
  elseif parameters == '?1049' then
    self.alternate = final == 'h'
    self:clear()
  elseif parameters == '?25' then
    self.is_cursor_hidden = final == 'l'
  elseif final == 'm' then
    self.is_coloured = true
  else
    error('unknown sequence: ' .. parameters .. final)
  end
end

-- Takes complete characters and sequences off the front of what came.
function Session:interpret()
  while #self.bytes > 0 do
    local byte = self.bytes:sub(1, 1)
    if byte == '\27' then
      local parameters, final = self.bytes:match('^\27%[([%d;?]*)(%a)')
      if not final then
        return
      end
      self:control(parameters, final)
      self.bytes = self.bytes:sub(#parameters + 4)
    else
      if byte == '\r' then
        self.column = 1
      elseif byte == '\n' and self.row == self.rows then
        self:scroll()
      elseif byte == '\n' then
        self.row = self.row + 1
      else
        self:put(byte)
      end
      self.bytes = self.bytes:sub(2)
    end
  end
end

-- Reads what is there; false when nothing is.
function Session:read()
  if poll.rpoll(self.master, 0) ~= 1 then
    return false
  end
  -- An error: nobody has the other end any more.
  local bytes = unistd.read(self.master, 65536)
  if not bytes or bytes == '' then
    return false
  end
  self.bytes, self.was_shown = self.bytes .. bytes, self.was_shown .. bytes
  self:interpret()
  return true
end

---The screen as it is now.
---@return string
function Session:text()
  while self:read() do
  end
  local lines = {}
  for row = 1, self.rows do
    lines[row] = (self.lines[row] or ''):gsub('%s+$', '')
  end
  return table.concat(lines, '\n')
end

---Waits until the screen, drawn to its end, shows something; the screen.
---@param pattern string
---@return string text
function Session:shows(pattern)
  local good, text = pcall(program.eventually, 'the screen shows ' .. pattern, function()
    local text = self:text()
    return not self.is_drawing and text:find(pattern) and text
  end)
  return good and text or error(text .. '\n' .. self:text(), 2)
end

function Session:press(keys)
  unistd.write(self.master, keys)
end

---Changes the size of the screen.
function Session:resize(rows, columns)
  self.rows, self.columns = rows, columns
  program.start_any('stty', { '-F', stdlib.ptsname(self.master), 'rows', tostring(rows), 'cols',
    tostring(columns) }):wait()
end

---Waits for the end: { code, signal }.
function Session:wait()
  program.eventually('the program ends', function()
    self:read()
    return self.process:poll()
  end)
  self:text()
  return self.process.result
end

---Does the terminal read lines and echo them, as before?
function Session:is_as_before()
  return termio.tcgetattr(self.master).lflag == self.before.lflag and not self.alternate
    and not self.is_cursor_hidden
end

function Session:kill(name)
  self.process:kill(signal[name])
end

function Session:close()
  unistd.close(self.master)
end

return session

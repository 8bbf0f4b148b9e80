-- SPDX-License-Identifier: Apache-2.0
-- Signals as something to poll for: none comes between a look and a sleep.
local ffi = require('ffi')
local signal = require('posix.signal')
local unistd = require('posix.unistd')

ffi.cdef([[
typedef struct { unsigned long words[16]; } latchkey_signals;
int sigemptyset(latchkey_signals *set);
int sigaddset(latchkey_signals *set, int number);
int sigprocmask(int how, const latchkey_signals *set, latchkey_signals *before);
int signalfd(int fd, const latchkey_signals *set, int flags);
]])

local CLOEXEC, NONBLOCK, INFO_BYTES = 0x80000, 0x800, 128
local SET = 2

local signals = {}
signals.__index = signals

---From now on these signals do nothing but be told by `take`.
---@param ... string such as "SIGTERM"
---@return table|nil signals with the descriptor `fd`
---@return string|nil why
function signals.open(...)
  local set, before = ffi.new('latchkey_signals'), ffi.new('latchkey_signals')
  ffi.C.sigemptyset(set)
  for _, name in ipairs({ ... }) do
    ffi.C.sigaddset(set, signal[name])
  end
  ffi.C.sigprocmask(0, set, before)
  local fd = ffi.C.signalfd(-1, set, CLOEXEC + NONBLOCK)
  if fd < 0 then
    ffi.C.sigprocmask(SET, before, nil)
    return nil, 'no signals can be waited for'
  end
  return setmetatable({ fd = fd, before = before }, signals)
end

-- A number of the system's, without a sign, from its place among the bytes.
local function word(info, place)
  local a, b, c, d = info:byte(place, place + 3)
  return a + b * 2 ^ 8 + c * 2 ^ 16 + d * 2 ^ 24
end

---@return integer|nil number of a signal that has come
---@return boolean|nil from_terminal: from the system, which tells all who are in the foreground
function signals:take()
  local info = unistd.read(self.fd, INFO_BYTES)
  if not info or #info < INFO_BYTES then
    return nil
  end
  local code = word(info, 9)
  return word(info, 1), code > 0 and code < 2 ^ 31
end

---As before `open`: for a child that becomes another program, too.
function signals:restore()
  ffi.C.sigprocmask(SET, self.before, nil)
end

function signals:close()
  self:restore()
  unistd.close(self.fd)
end

return signals

-- SPDX-License-Identifier: Apache-2.0
-- What goes wrong when it is asked for: by a client's MOCK, or by whoever drives the front.
local execute = require('latchkey.mock.front.execute')

local Faults = {}
Faults.__index = Faults

-- How the world is told that it refuses.
local STATES = { OOM = 'set_oom', READONLY = 'set_readonly', MISCONF = 'set_broken_disk' }
local CODES = { LOADING = true, BUSY = true, OOM = true, READONLY = true, MISCONF = true }

---@param front table
function Faults.new(front)
  return setmetatable({ front = front, delay_ms = 0 }, Faults)
end

---The next replies are lost: their commands are done, and nobody learns of it.
---@param count integer
---@param how? 'close'|'silent' the connection ends (default), or stays and says nothing any more
---@param name? string only replies to this command or script; without it, those to scripts and to
---  commands that name keys. One to a transaction is one to any of its commands
function Faults:lose(count, how, name)
  if how and how ~= 'close' and how ~= 'silent' then
    error('a reply is lost by "close" or "silent"', 2)
  end
  self.losing = count > 0 and { count = count, how = how or 'close', name = name } or nil
end

-- Is it a command whose replies are lost? A subcommand has a blank or a bar in its name.
local function is_meant(front, name, command, argv)
  if not name then
    return execute.names_keys(command)
  end
  return name:upper():gsub(' ', '|') == command.name
    or name == front.journal.title(front.world, command, argv)
end

local function is_any_meant(front, name, queue)
  for _, queued in ipairs(queue) do
    if is_meant(front, name, queued.command, queued.argv) then
      return true
    end
  end
  return false
end

---Is the reply to this command one of those?
---@param queue table|nil of the transaction that the command may have ended
---@return 'close'|'silent'|nil
function Faults:loses(command, argv, queue)
  local losing = self.losing
  if not losing or command.control then
    return nil
  elseif not is_meant(self.front, losing.name, command, argv) and not (queue
    and command.name == 'EXEC' and is_any_meant(self.front, losing.name, queue)) then
    return nil
  end
  losing.count = losing.count - 1
  if losing.count == 0 then
    self.losing = nil
  end
  return losing.how
end

---Refuses until told otherwise, as a server does in that state.
---@param code string|nil LOADING, BUSY, OOM, READONLY, MISCONF, or an error of another code such as
---  "MASTERDOWN text", which then is the answer to everything; nil: refuses no more
---@return true|nil ok
---@return string|nil why
function Faults:refuse(code)
  if code and not CODES[code] and not code:find('^%u[%u%d]* .') then
    return nil, 'a refusal is LOADING, BUSY, OOM, READONLY or MISCONF, or a code with a text'
  end
  local world = self.front.world
  for state, set in pairs(STATES) do
    world[set](world, state == code)
  end
  self.refusal = CODES[code] and code or nil
  self.text = code and not CODES[code] and code or nil
  return true
end

---Replies and messages are held back for so long; what they tell of is done at once.
---@param ms integer 0: no more
function Faults:delay(ms)
  self.delay_ms = ms
end

---The server knows no scripts any more, as after a restart.
function Faults:forget()
  self.front.world:script_flush()
end

---Connections end without a word.
---@param kind? 'normal'|'pubsub' default: both
---@param spared? table a connection that stays
---@return integer how many ended
function Faults:close(kind, spared)
  local victims = {}
  for _, conn in ipairs(self.front.connections) do
    local is = conn:is_subscriber() and 'pubsub' or 'normal'
    if conn ~= spared and (not kind or kind == is) then
      victims[#victims + 1] = conn
    end
  end
  for _, conn in ipairs(victims) do
    conn:kill()
  end
  return #victims
end

---Nothing goes wrong any more.
function Faults:clear()
  self:lose(0)
  self:refuse(nil)
  self:delay(0)
end

return Faults

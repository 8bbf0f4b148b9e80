-- SPDX-License-Identifier: Apache-2.0
-- Lines of traces as events (docs/reference/trace.md). Whoever wrote a trace, what comes out of
-- here has the members that the page lists, each of its type: readers use them as they are.
local cjson = require('cjson')
local path = require('pl.path')

local headers = require('latchkey.script.header')

local events = {}

-- Numbers from here on are not exact.
local MOST = 2 ^ 53

local is, words = {}, { text = 'a text', number = 'a number', texts = 'an array of texts',
  reply = 'a reply', script = 'the name of a script', version = 'version 1' }

function is.text(value)
  return type(value) == 'string'
end

function is.number(value)
  return type(value) == 'number' and value > -MOST and value < MOST
end

local function is_array(value, is_element)
  if type(value) ~= 'table' then
    return false
  end
  local count = 0
  for _, element in pairs(value) do
    count = count + 1
    if not is_element(element) then
      return false
    end
  end
  return count == #value
end

function is.texts(value)
  return is_array(value, is.text)
end

function is.reply(value)
  return value == cjson.null or is.text(value) or is.number(value)
    or type(value) == 'table' and is.text(value.error) or is_array(value, is.reply)
end

-- It stands for a file below a folder, and for none beside it.
function is.script(value)
  return is.text(value) and value:find('^[^/%c][^%c]*$') ~= nil
    and not ('/' .. value .. '/'):find('/../', 1, true)
end

function is.version(value)
  return value == 1
end

-- The members that every event has, and those that some do: name, type; a list of texts is one of
-- these.
local EVERY = { { 't', 'number' }, { 'client', 'text' } }
local SOME = { { 'lock', 'text' }, { 'caller', 'number' }, { 'recheck_ms', 'number' },
  { 'owner', 'text' } }

local OPS = { 'acquire', 'release' }
local MEMBERS = {
  trace = { { 'version', 'version' }, { 'recheck_ms', 'number' }, { 'command_ms', 'number' } },
  begin = { { 'lock', 'text' }, { 'op', OPS }, { 'owner', 'text' } },
  name = { { 'lock', 'text' }, { 'owner', 'text' } },
  sent = { { 'call', 'number' }, { 'script', 'script' }, { 'keys', 'texts' }, { 'args', 'texts' },
    { 'copy', 'number' } },
  replied = { { 'call', 'number' }, { 'reply', 'reply' } },
  unanswered = { { 'call', 'number' }, { 'status', 'text' }, { 'copies', 'number' } },
  listen = { { 'channel', 'text' } },
  listening = { { 'channel', 'text' } },
  deaf = { { 'channel', 'text' } },
  message = { { 'channel', 'text' }, { 'text', 'text' } },
  timer = { { 'timer', { 'sleep', 'renew', 'deadline' } } },
  deadline = { { 'owner', 'text' }, { 'until', 'number' } },
  lost = { { 'owner', 'text' }, { 'reason', { 'taken', 'expired', 'unreachable', 'broken' } } },
  undo = { { 'script', 'script' }, { 'owner', 'text' } },
  ['end'] = { { 'lock', 'text' }, { 'op', OPS }, { 'status', 'text' } },
}
-- Further members of events of one `op` or `timer`.
local OF_OP = {
  begin = {
    acquire = { { 'wait_ms', 'number' }, { 'lease_ms', 'number' }, { 'drift_ms', 'number' },
      { 'renew', 'number' } },
    release = { { 'left', 'number' } },
  },
  timer = { renew = { { 'owner', 'text' } }, deadline = { { 'owner', 'text' } } },
}

local function fits(value, kind)
  if type(kind) == 'string' then
    return is[kind](value), words[kind]
  end
  for _, word in ipairs(kind) do
    if value == word then
      return true
    end
  end
  return false, 'one of ' .. table.concat(kind, ', ')
end

local function wrong_member(event, members, may_miss)
  for _, member in ipairs(members or {}) do
    local name, value = member[1], event[member[1]]
    local good, what = fits(value, member[2])
    if value == nil and not may_miss then
      return ('"%s" has no member "%s"'):format(event.e, name)
    elseif value ~= nil and not good then
      return ('"%s" of "%s" is not %s'):format(name, event.e, what)
    end
  end
end

---@param line string
---@return table|nil event
---@return string|nil why not
function events.read(line)
  local decoded, event = pcall(cjson.decode, line)
  if not decoded or type(event) ~= 'table' or not is.text(event.e) then
    return nil, ('no event: %s'):format((line:sub(1, 60):gsub('%c', '?')))
  elseif not MEMBERS[event.e] then
    return nil, ('no event is called "%s"'):format((event.e:sub(1, 60):gsub('%c', '?')))
  end
  local of_op = OF_OP[event.e]
  local wrong = wrong_member(event, EVERY) or wrong_member(event, MEMBERS[event.e])
    or wrong_member(event, of_op and of_op[event.op or event.timer])
    or wrong_member(event, SOME, true)
  if wrong then
    return nil, wrong
  end
  return event
end

---Can the library have named a hold so? Such names have a number.
function events.is_hold(owner)
  return owner:find('^lk%-.-:%d') ~= nil
end

---Does a header list this reply, whose elements are numbers, as those of holds are?
---@param header table
---@param reply any[]
---@return boolean
function events.is_listed(header, reply)
  local copy = { n = #reply }
  for i, value in ipairs(reply) do
    copy[i] = value
    if type(value) ~= 'number' then
      return false
    end
  end
  return headers.reply_shape(header, copy) ~= nil
end

---The lines of a trace.
---@param file string
---@return file*|nil handle
---@return string|nil why not
function events.open(file)
  local handle, why = io.open(file)
  if not handle or path.isdir(file) then
    return nil, why or file .. ' is a folder'
  end
  return handle
end

return events

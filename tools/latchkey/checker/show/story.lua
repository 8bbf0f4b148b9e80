-- SPDX-License-Identifier: Apache-2.0
-- What happened in a run, step by step, for people: rows { at_ms, who, does, answer, changes }.
local Client = require('latchkey.checker.client')
local Server = require('latchkey.checker.server')
local parts = require('latchkey.checker.parts')
local replay = require('latchkey.checker.replay')

local story = {}

local function show(value)
  if type(value) == 'number' then
    return ('%.17g'):format(value)
  elseif type(value) ~= 'table' then
    return tostring(value or nil) -- what is nil within an array is false here
  end
  local list = {}
  for i, element in ipairs(value) do
    list[i] = show(element)
  end
  return '{' .. table.concat(list, ', ') .. '}'
end

-- Moments as their distance from now.
local function relative(text)
  return (tostring(text):gsub('%d+', function(digits)
    local n = tonumber(digits)
    if #digits == 13 and parts.is_moment(n) then
      return ('now%+d'):format(n - parts.START_MS)
    elseif #digits == 16 and parts.is_token(n) then
      return ('now%+d'):format(n - parts.START_MS * 1000)
    end
  end))
end
story.relative = relative

local function show_record(record)
  local text
  if not record then
    return 'gone'
  elseif type(record.value) ~= 'table' then
    text = record.value
  else
    local list = {}
    for i, element in ipairs(record.value) do
      list[i] = show(element)
    end
    text = table.concat(list, ' ')
  end
  return relative(text)
    .. (record.expires_at and (' (%d ms)'):format(record.expires_at - parts.START_MS) or '')
end

local function changes(steps, step)
  local before, after = step.before[steps.KEYS].data, step.state[steps.KEYS].data
  if step.before[steps.KEYS] == step.state[steps.KEYS] then
    return {}
  end
  local list, seen = {}, {}
  for _, keys in ipairs({ before, after }) do
    for _, name in ipairs(parts.sorted_names(keys)) do
      local is_later = step.label:byte() == 43 and after[name]
      local is_same = Server.same_record(before[name], after[name])
      if not (seen[name] or is_same or is_later) then
        list[#list + 1] = { key = name, now = show_record(after[name]) }
      end
      seen[name] = true
    end
  end
  return list
end

local FAULTS = { crash = 'dies', pause = 'stops', slow = 'its call takes long',
  request = 'connection lost, the call never arrived', reply = 'connection lost, with the reply',
  late = 'sends the call again; its first copy is still on its way',
  silence = 'no answer comes', drop = 'the message is lost', delay = 'the message takes long',
  stranger = 'a message for nothing', channel = 'message connection lost, made anew',
  flush = 'the server has forgotten its scripts', ['break'] = 'wants to break the hold' }

local function call_of(data, label)
  if label:find('~') then
    return data.late[tonumber(label:match('#(%d+)$')) or 1]
  end
  for _, call in ipairs(data.pipe) do
    if not call.reply then
      return call
    end
  end
end

local function tell_call(steps, step, row, letter, before)
  local call = call_of(before, step.label)
  local args = table.concat(call.args, ' '):gsub('lk%-@', 'lk-' .. letter)
  row.script, row.late = call.script, step.label:find('~') ~= nil
  row.does = (row.late and 'late: ' or '') .. call.script .. ' ' .. args
  local result = Client.is_script(call)
    and steps.server:run_once(step.before[steps.KEYS], call, letter)
  if result then
    local reply = result.reply
    if result.is_translated then
      reply = result.raw
    end
    row.answer = result.err and result.err.message or relative(show(reply))
    row.messages = result.messages
  end
end

-- What became of the client by the step.
local function tell_state(row, before, after)
  if after.pc ~= before.pc and not row.fault then
    row.state = after.pc
  end
  if after.deadline and after.deadline ~= before.deadline then
    row.state = ('%s, believes for %d ms'):format(after.pc, after.deadline - parts.START_MS)
  elseif before.deadline and not after.deadline then
    row.state = (row.state or after.pc) .. ', believes no more'
  end
end

local function tell(steps, step, row)
  local letter, mark, rest = step.label:match('^(%u?)(%p)(.*)$')
  if mark == '+' then
    return
  elseif letter == '' then
    row.who, row.does, row.fault = 'server', rest, true
    return
  end
  local place = letter:byte() - 64
  local before, after = step.before[place].data, step.state[place].data
  row.who, row.does, row.fault = letter, rest, mark == '!'
  if mark == '.' or mark == '~' then
    tell_call(steps, step, row, letter, before)
  elseif mark == '<' then
    row.does = rest == 'msg' and 'takes note of the message' or 'reply'
  elseif mark == '@' then
    row.does = rest .. ' timer'
  elseif mark == '!' then
    row.does = FAULTS[rest] or rest
  end
  tell_state(row, before, after)
end

---@param steps table
---@param run table of replay.run
---@return table story { rows, finding, blame, letters }
function story.of(steps, run)
  local rows, at_ms = {}, 0
  for _, step in ipairs(run.steps) do
    local ms = tonumber(step.label:match('^%+(%d+)'))
    local row = { at_ms = at_ms, label = step.label, changes = changes(steps, step) }
    tell(steps, step, row)
    if ms then
      at_ms = at_ms + ms
    end
    row.passes = ms
    rows[#rows + 1] = row
  end
  local letters = {}
  for i = 1, steps.n do
    letters[i] = replay.letter(i)
  end
  return { rows = rows, finding = run.finding, letters = letters,
    blame = run.finding and replay.blame(steps, run) }
end

return story

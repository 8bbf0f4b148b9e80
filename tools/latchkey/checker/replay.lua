-- SPDX-License-Identifier: Apache-2.0
-- Runs the steps that a string names, one after the other. A string of the checker names every
-- step; one that a person types may leave out what goes without saying, and shorten names: "A.acq
-- +300 B.acq A.rel".
local splitlines = require('pl.stringx').splitlines
local utils = require('pl.utils')

local Client = require('latchkey.checker.client')
local Steps = require('latchkey.checker.steps')
local redisson = require('latchkey.checker.redisson_calls')

local replay = {}

local DEEPEST = 8

-- What the state allows: array of { label, state, finding }, and what is wrong with the state
-- itself.
local function allowed(steps, state)
  local list = {}
  local finding = steps:each(state, function(label, new, found)
    list[#list + 1] = { label = label, before = state, state = new, finding = found }
  end)
  return list, finding
end

local function matches(label, word)
  return label:sub(1, #word) == word
end

local function find(list, word)
  for _, step in ipairs(list) do
    if step.label == word then
      return step
    end
  end
  for _, step in ipairs(list) do
    if matches(step.label, word) and not word:find('^%+') then
      return step
    end
  end
end

local function is_own(label, letter)
  return label:sub(1, 1) == letter and not label:find('[!~]')
end

-- The shortest way to a step with this name by steps of the same client alone.
local function find_way(steps, state, word)
  local letter = word:sub(1, 1)
  local level = { { state = state, way = {} } }
  for _ = 1, DEEPEST do
    local deeper = {}
    for _, node in ipairs(level) do
      local list = allowed(steps, node.state)
      local found = find(list, word)
      if found then
        table.insert(node.way, found)
        return node.way
      end
      for _, step in ipairs(list) do
        if is_own(step.label, letter) and not step.finding then
          local way = { unpack(node.way) }
          way[#way + 1] = step
          deeper[#deeper + 1] = { state = step.state, way = way }
        end
      end
    end
    level = deeper
  end
end

-- So much time, with whatever cannot wait in between.
local function find_time(steps, state, ms)
  local way = {}
  while ms > 0 do
    local list = allowed(steps, state)
    local chosen
    for _, step in ipairs(list) do
      local passes = tonumber(step.label:match('^%+(%d+)$'))
      if passes and passes <= ms then
        chosen, ms = step, ms - passes
        break
      elseif not passes and step.label:find('[.<@]') and not step.label:find('[!~:]') then
        chosen = chosen or step
      end
    end
    if not chosen then
      return nil
    end
    way[#way + 1] = chosen
    state = chosen.state
    if chosen.finding then
      return way
    end
  end
  return way
end

local function find_steps(steps, state, word)
  local list = allowed(steps, state)
  local step = find(list, word)
  if step then
    return { step }, list
  end
  local ms = tonumber(word:match('^%+(%d+)$'))
  if ms then
    return find_time(steps, state, ms), list
  elseif word:find('^%u[.<@:]') then
    return find_way(steps, state, word), list
  end
  return nil, list
end

local function describe(list)
  local labels = {}
  for i, step in ipairs(list) do
    labels[i] = step.label
  end
  table.sort(labels)
  return #labels > 0 and table.concat(labels, ' ') or 'nothing'
end

---@param steps table as checker.prepare gives it, with `reduce = false`
---@param text string
---@param wanted fun(property: string): boolean the findings that end the run
---@return table|nil run { steps = { { label, before, state } }, finding }
---@return string|nil why which word cannot be, and what could
function replay.run(steps, text, wanted)
  local function kept(finding)
    return finding and wanted(finding.property) and finding or nil
  end
  local state, run, place = steps:first(), { steps = {} }, 0
  for word in text:gmatch('%S+') do
    place = place + 1
    local way, list = find_steps(steps, state, word)
    if not way then
      return nil, ('word %d of the replay, "%s", cannot be there; possible: %s'):format(place, word,
        describe(list))
    end
    for _, step in ipairs(way) do
      table.insert(run.steps, step)
      state = step.state
      run.finding = kept(step.finding) or kept(steps:check_belief(state))
      if run.finding then
        return run
      end
    end
  end
  local _, finding = allowed(steps, state)
  run.finding = kept(finding)
  return run
end

local function is_plain(label)
  return not label:find('[!~]') and not label:find(':quit') and not label:find(':reenter')
end

---A run in which nothing goes wrong, to be looked at.
---@param most integer steps
---@return table run
function replay.sample(steps, most)
  local state, run = steps:first(), { steps = {} }
  for _ = 1, most do
    local chosen
    for _, step in ipairs(allowed(steps, state)) do
      if is_plain(step.label) and (not chosen or chosen.label:find(':leave')) then
        chosen = step
      end
    end
    if not chosen then
      break
    end
    table.insert(run.steps, chosen)
    state = chosen.state
  end
  return run
end

-- What the lines of a script did in one run of it: in the order in which they were run.
local function lines_of(steps, state, call, letter)
  local world = steps.server:world_of(call)
  local store, list, line = world.store, {}, nil
  local wrote, told
  local function look()
    local entry = line and { line = line }
    if entry then
      entry.wrote = #store.undo > (wrote or #store.undo)
      entry.told = #world.outbox > (told or #world.outbox)
      list[#list + 1] = entry
    end
    wrote, told = #store.undo, #world.outbox
  end
  debug.sethook(function(_, number)
    if debug.getinfo(2, 'S').source == '@user_script' then
      look()
      line = number
    end
  end, 'l')
  steps.server:run_once(state[steps.KEYS], call, letter)
  debug.sethook()
  look()
  return list
end

-- The line that wrote last, or where nothing was written, that the script ended with; where nobody
-- was told, the line that should have done so.
local function line_to_blame(lines, property)
  local wrote, told
  for _, entry in ipairs(lines) do
    wrote = entry.wrote and entry.line or wrote
    told = entry.told and entry.line or told
  end
  return property == 'G6' and told or wrote or #lines > 0 and lines[#lines].line or nil
end

local CONDITIONS = { ['if'] = true, ['elseif'] = true, ['for'] = true, ['while'] = true,
  ['until'] = true }

-- The other lines that may be at fault: those that wrote or told, and conditions, but for those of
-- a check of arguments, before the first command.
local function others(lines, blamed, source)
  local texts, list, seen = splitlines(source), {}, { [blamed or 0] = true }
  local has_asked = false
  for _, entry in ipairs(lines) do
    local text = texts[entry.line] or ''
    has_asked = has_asked or text:find('redis.', 1, true)
    local what = entry.wrote and 'wrote' or entry.told and 'told'
      or has_asked and CONDITIONS[text:match('^%s*(%l+)%f[%W]')] and 'decided'
    if what and not seen[entry.line] then
      seen[entry.line] = true
      list[#list + 1] = { line = entry.line, what = what }
    end
  end
  table.sort(list, function(a, b)
    return a.line < b.line
  end)
  return list
end

---The call of a script file that ran last in a run.
---@return table|nil { step, call, letter }
function replay.last_call(run)
  for i = #run.steps, 1, -1 do
    local step = run.steps[i]
    local letter, mark = step.label:match('^(%u)([.~])')
    if letter then
      local place = letter:byte() - 64
      local data = step.before[place].data
      local call = mark == '~' and data.late[tonumber(step.label:match('#(%d+)$')) or 1]
      for _, other in ipairs(mark == '.' and data.pipe or {}) do
        call = call or not other.reply and other
      end
      if Client.is_script(call) and not redisson.has(call.script) then
        return { step = step, call = call, letter = letter }
      end
    end
  end
end

---The script that ran last in a run, and the line in it to look at first.
---@return table|nil { script, line, scripts = its folder, others = further lines { line, what } }
function replay.blame(steps, run)
  local last = replay.last_call(run)
  if last then
    local lines = lines_of(steps, last.step.before, last.call, last.letter)
    local line = run.finding and run.finding.line
      or line_to_blame(lines, run.finding and run.finding.property)
    local folder = steps.server:folder(last.call)
    local source = utils.readfile(('%s/%s.lua'):format(folder, last.call.script), true) or ''
    return { script = last.call.script, line = line, scripts = folder,
      others = others(lines, line, source) }
  end
end

replay.letter = Steps.letter

return replay

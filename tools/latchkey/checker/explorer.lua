-- SPDX-License-Identifier: Apache-2.0
-- Breadth first through all states, so that what is found first is shortest.
local Steps = require('latchkey.checker.steps')
local sorted = require('latchkey.sorted')

local explorer = {}

local CHECK_MEMORY = 20000
-- Most of what is made here stays: the collector need not look so often.
local PAUSE = 300

---Makes the function that gives interchangeable states one key: clients of one role are sorted, and
---their letters go with them.
---@return fun(state: table): string
function explorer.key_of(steps, symmetric)
  local n, concat = steps.n, table.concat
  local buffer, order, letters, ties = {}, {}, {}, {}
  local size = steps.PHASE

  local function plain(state)
    for k = 1, size do
      local part = state[k]
      buffer[k] = type(part) == 'table' and part.id or part and part or 0
    end
    return concat(buffer, ',', 1, size)
  end

  local function in_order(state)
    local moved = false
    for k = 1, n do
      letters[order[k]] = Steps.letter(k)
      moved = moved or order[k] ~= k
    end
    local names = moved and concat(letters, '', 1, n)
    for k = 1, n do
      local part = state[order[k]]
      buffer[k] = moved and steps.pool:rename(part, names).id or part.id
    end
    for k = n + 1, size do
      local part = state[k]
      if type(part) == 'table' then
        part = moved and steps.pool:rename(part, names).id or part.id
      end
      buffer[k] = part or 0
    end
    return concat(buffer, ',', 1, size)
  end

  -- The clients of one role, by the numbers of their parts.
  local function sort(state, first, last)
    for k = first, last do
      local id, place = state[k].id, k
      while place > first and state[order[place - 1]].id > id do
        order[place] = order[place - 1]
        place = place - 1
      end
      order[place] = k
    end
  end

  -- Stretches of clients that are alike, first and last place of each.
  local function note_ties(state, first, last)
    for k = first + 1, last do
      if state[order[k]] == state[order[k - 1]] then
        if ties[#ties] == k - 1 then
          ties[#ties] = k
        else
          ties[#ties + 1], ties[#ties + 2] = k - 1, k
        end
      end
    end
  end

  local best

  -- All orders of the places from..last, and after them those of the ties that follow.
  local function try(state, number, from, last)
    if not from or from >= last then
      if number < #ties then
        return try(state, number + 2, ties[number + 1], ties[number + 2])
      end
      local key = in_order(state)
      best = (not best or key < best) and key or best
      return
    end
    for k = from, last do
      order[from], order[k] = order[k], order[from]
      try(state, number, from + 1, last)
      order[from], order[k] = order[k], order[from]
    end
  end

  -- Sorts the clients of one role; where two are alike, all their orders are tried.
  local function smallest(state)
    local first = 1
    while #ties > 0 do
      ties[#ties] = nil
    end
    while first <= n do
      local last = first
      while last < n and steps.roles[last + 1] == steps.roles[first] do
        last = last + 1
      end
      sort(state, first, last)
      note_ties(state, first, last)
      first = last + 1
    end
    if #ties == 0 then
      return in_order(state)
    end
    best = nil
    try(state, 0)
    return best
  end
  return symmetric and smallest or plain
end

local function trail(parents, labels, at, last)
  local steps = { last }
  while at > 1 do
    table.insert(steps, 1, labels[at])
    at = parents[at]
  end
  return steps
end

-- What clients chose to do, without who did it: "lock" of "A:lock A.acquire".
local function choices_of(taken)
  local choices = {}
  for label in pairs(taken) do
    choices[label:match('^%u:(%S+)') or false] = true
  end
  choices[false] = nil
  return sorted(choices)
end

---@class explorer.options
---@field symmetric boolean
---@field stop_at_first boolean
---@field go_on boolean after a script that fails
---@field memory_kb number
---@field wanted fun(property: string): boolean
---@field clock fun(): number seconds

---@param steps table
---@param options explorer.options
---@return table outcome { states, transitions, choices, findings, complete }
function explorer.run(steps, options)
  local key_of = explorer.key_of(steps, options.symmetric)
  local pause = collectgarbage('setpause', PAUSE)
  local visited, parents, labels, queue, taken = {}, {}, {}, {}, {}
  local outcome = { states = 0, findings = {}, complete = true }
  local reported, found_first = {}, false
  local at

  local function found(finding, label)
    local id = finding.property .. ' ' .. (finding.script or '')
    if not reported[id] then
      reported[id] = true
      finding = { property = finding.property, message = finding.message, script = finding.script,
        line = finding.line, trail = trail(parents, labels, at, label) }
      table.insert(outcome.findings, finding)
      found_first = found_first or not (options.go_on and finding.property == 'G10')
    end
  end

  local function add(state, label)
    local key = key_of(state)
    if visited[key] then
      return
    end
    local n = outcome.states + 1
    visited[key] = true
    outcome.states = n
    parents[n], labels[n], queue[n] = at or 0, label, state
    local finding = steps:check_belief(state)
    if finding then
      if options.wanted(finding.property) then
        found(finding, label)
      end
      queue[n] = false
    end
  end

  local function emit(label, state, finding)
    taken[label] = true
    if finding and (finding.ends_run or options.wanted(finding.property)) then
      return found(finding, label)
    end
    add(state, label)
  end

  add(steps:first(), '')
  local next_state = 1
  while queue[next_state] ~= nil do
    local state = queue[next_state]
    queue[next_state] = false
    if state then
      at = next_state
      local finding = steps:each(state, emit)
      if finding and options.wanted(finding.property) then
        found(finding, nil)
      end
    end
    if found_first and options.stop_at_first then
      outcome.complete = false
      break
    end
    if next_state % CHECK_MEMORY == 0 and collectgarbage('count') > options.memory_kb then
      collectgarbage()
      if collectgarbage('count') > options.memory_kb * 0.9 then
        outcome.complete, outcome.out_of_memory = false, true
        break
      end
    end
    next_state = next_state + 1
  end
  collectgarbage('setpause', pause)
  outcome.transitions, outcome.choices = steps.transitions, choices_of(taken)
  return outcome
end

return explorer

-- SPDX-License-Identifier: Apache-2.0
-- Breadth first through all states, so that what is found first is shortest.
local Steps = require('checker.steps')

local explorer = {}

local CHECK_MEMORY = 20000

-- All orders of the places first..last.
local function orders(list, first, last, visit)
  if first >= last then
    return visit()
  end
  for k = first, last do
    list[first], list[k] = list[k], list[first]
    orders(list, first + 1, last, visit)
    list[first], list[k] = list[k], list[first]
  end
end

---Makes the function that gives interchangeable states one key: clients of one role are sorted, and
---their letters go with them.
---@return fun(state: table): string
function explorer.key_of(steps, symmetric)
  local n, concat = steps.n, table.concat
  local buffer, order, letters = {}, {}, {}
  local size = steps.PHASE

  local function plain(state)
    for k = 1, size do
      local part = state[k]
      buffer[k] = type(part) == 'table' and part.id or part and part or 0
    end
    return concat(buffer, ',', 1, size)
  end

  local function by_id(state)
    return function(a, b)
      return state[a].id < state[b].id
    end
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

  -- Sorts the clients of one role; where two are alike, all their orders are tried.
  local function smallest(state)
    local first = 1
    for k = 1, n do
      order[k] = k
    end
    local ties = {}
    while first <= n do
      local last = first
      while last < n and steps.roles[last + 1] == steps.roles[first] do
        last = last + 1
      end
      local part_of = {}
      for k = first, last do
        part_of[#part_of + 1] = k
      end
      table.sort(part_of, by_id(state))
      for k = first, last do
        order[k] = part_of[k - first + 1]
      end
      for k = first, last do
        local tie = k
        while tie < last and state[order[tie + 1]] == state[order[k]] do
          tie = tie + 1
        end
        if tie > k and (k == first or state[order[k - 1]] ~= state[order[k]]) then
          ties[#ties + 1] = { k, tie }
        end
      end
      first = last + 1
    end
    local best
    local function try(number)
      if number > #ties then
        local key = in_order(state)
        best = (not best or key < best) and key or best
        return
      end
      orders(order, ties[number][1], ties[number][2], function()
        try(number + 1)
      end)
    end
    try(1)
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

---@class explorer.options
---@field symmetric boolean
---@field stop_at_first boolean
---@field go_on boolean after a script that fails
---@field memory_kb number
---@field wanted fun(property: string): boolean
---@field clock fun(): number seconds

---@param steps table
---@param options explorer.options
---@return table outcome { states, transitions, findings, complete, depth }
function explorer.run(steps, options)
  local key_of = explorer.key_of(steps, options.symmetric)
  local visited, parents, labels, queue = {}, {}, {}, {}
  local outcome = { states = 0, findings = {}, complete = true }
  local reported, found_first = {}, false
  local at

  local function found(finding, label)
    local id = finding.property .. ' ' .. (finding.script or '')
    if options.wanted(finding.property) and not reported[id] then
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
      found(finding, label)
      queue[n] = false
    end
  end

  local function emit(label, state, finding)
    if finding and options.wanted(finding.property) then
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
  outcome.transitions = steps.transitions
  return outcome
end

return explorer

-- SPDX-License-Identifier: Apache-2.0
-- What may stand behind the words of a model file. A word that is passed over, or a value that
-- means nothing, would leave out what the check seems to be about.
local parts = require('latchkey.checker.parts')
local ranges = require('latchkey.checker.ranges')
local sorted = require('latchkey.sorted')
local text = require('latchkey.text')

local wording = { DONE = 'done' }

local KINDS = { table = 'a table', string = 'a text', number = 'a number',
  boolean = 'true or false', ['function'] = 'a function' }

local function shown(value)
  return type(value) == 'string' and ('"%s"'):format(value) or KINDS[type(value)] or 'nothing'
end

---@param fail fun(format: string, ...) says what is wrong, and does not return
---@param what string such as 'model.lock'
function wording.table(fail, what, about)
  if type(about) ~= 'table' then
    fail('%s takes a table: %s { ... }', what, what)
  end
end

---@param types table<string, string> word -> what it is in Lua
function wording.types(fail, about, types)
  for _, word in ipairs(sorted(types)) do
    local value = about[word]
    if value ~= nil and type(value) ~= types[word] then
      fail('"%s" is %s, not %s', word, KINDS[types[word]], shown(value))
    end
  end
end

local function check_known(fail, what, about, known)
  for word in pairs(about) do
    if not known[word] then
      fail('%s has no word "%s"; there are %s', what, tostring(word),
        table.concat(sorted(known), ', '))
    end
  end
end

local FOLLOWS = text.set('next wait')

---Why this cannot follow upon a reply.
---@param target any "done", a step or { wait, next }
---@param steps table<string, table>
---@return string|nil why
function wording.wrong_target(target, steps)
  local name = target
  if type(target) == 'table' then
    for word in pairs(target) do
      if not FOLLOWS[word] then
        return ('what follows has no word "%s"; there are next, wait'):format(tostring(word))
      end
    end
    local wait = target.wait
    if wait ~= nil and (type(wait) ~= 'number' or wait % 1 ~= 0 or wait < 0
      or wait > ranges.MOST_WAIT_MS) then
      return ('"wait" is a whole number of milliseconds, 0 to %.0f'):format(ranges.MOST_WAIT_MS)
    end
    name = target.next
    if name == nil then
      return 'it has no "next", the step that follows: { wait = 100, next = "take" }'
    end
  end
  if name ~= wording.DONE and not steps[name or false] then
    return ('there is no step %s'):format(type(name) == 'string' and shown(name)
      or 'but by its name, which is a text')
  end
end

local STEP = text.set('args call on unanswered')
-- Where a client is between its steps, and a call of its own.
local BETWEEN = text.set('absent dead done idle relisten sleep wait')

local function check_step(fail, name, step, steps)
  local what = ('the step "%s"'):format(tostring(name))
  if BETWEEN[name] then
    fail('no step can be called "%s": that is what clients do between steps; nor can one be %s',
      name, table.concat(sorted(BETWEEN), ', '))
  elseif type(step) ~= 'table' or type(step.call) ~= 'string' then
    fail('%s names its script: call = "acme/take"', what)
  elseif type(step.on) ~= 'table' or not next(step.on) then
    fail('%s says what follows from each reply: on = { OK = "done" }', what)
  end
  check_known(fail, what, step, STEP)
  wording.types(fail, step, { args = 'table' })
  local targets = { step.unanswered }
  for _, target in pairs(step.on) do
    targets[#targets + 1] = target
  end
  for _, target in pairs(targets) do
    local wrong = type(target) ~= 'function' and wording.wrong_target(target, steps)
    if wrong then
      fail('%s: %s', what, wrong)
    end
  end
end

---@param steps table<string, table>
function wording.steps(fail, steps)
  for _, name in ipairs(sorted(steps)) do
    check_step(fail, name, steps[name], steps)
  end
end

local function are_texts(value)
  for _, element in ipairs(type(value) == 'table' and value or {}) do
    if type(element) ~= 'string' then
      return false
    end
  end
  return type(value) == 'table'
end

-- What a key of each type has for its value: whether it is that, and how it is written.
local VALUES = {
  string = { function(value)
    return type(value) == 'string'
  end, 'a text' },
  list = { are_texts, "a list of texts: { 'one', 'two' }" },
  set = { are_texts, "a list of texts: { 'one', 'two' }" },
  hash = { function(value)
    return are_texts(value) and #value % 2 == 0
  end, "a flat list of texts, fields and values: { 'field', 'value' }" },
  zset = { function(value)
    for _, entry in ipairs(type(value) == 'table' and value or {}) do
      if type(entry) ~= 'table' or type(entry[1]) ~= 'string' or type(entry[2]) ~= 'number' then
        return false
      end
    end
    return type(value) == 'table'
  end, "a list of pairs, a text and a number each: { { 'member', 1 } }" },
  stream = { function(value)
    return type(value) == 'table'
  end, 'a table' },
}

local RECORD = text.set('type value expires_at')

---The keyspace at the start.
---@param keys table|nil key -> { type, value, expires_at? }
function wording.keys(fail, keys)
  for name, record in pairs(keys or {}) do
    local what = ('keys: "%s"'):format(tostring(name))
    local kind = type(record) == 'table' and VALUES[record.type or false]
    if type(name) ~= 'string' or not kind then
      fail("%s is written { type = 'list', value = { 'one' } }; types are %s", what,
        table.concat(sorted(VALUES), ', '))
    end
    check_known(fail, what, record, RECORD)
    wording.types(fail, record, { expires_at = 'number' })
    if not kind[1](record.value) then
      fail('%s: the value of a %s is %s', what, record.type, kind[2])
    end
  end
end

local function is_before(a, b)
  if type(a) == 'table' and a[2] ~= b[2] then
    return a[2] < b[2]
  end
  return type(a) == 'table' and a[1] < b[1] or type(a) ~= 'table' and a < b
end

---@return table keyspace a copy, in which sets are in the order that a server gives them
function wording.keyspace(keys)
  local copy = parts.copy(keys)
  for _, record in pairs(copy) do
    if record.type == 'set' or record.type == 'zset' then
      table.sort(record.value, is_before)
    end
  end
  return copy
end

---The default runs.
---@param runs table|nil
function wording.runs(fail, runs)
  if runs and #runs == 0 then
    fail('"runs" has no run; without the word, the default ones are made')
  end
  for _, run in ipairs(runs or {}) do
    if type(run) ~= 'table' then
      fail('each of "runs" is a table such as { clients = 3, faults = 0 }')
    end
    wording.types(fail, run, { limits = 'table' })
    local counts = {}
    for name, value in pairs(run) do
      counts[name] = name ~= 'limits' and value or nil
    end
    ranges.check(fail, 'bounds', counts)
    ranges.check(fail, 'limits', run.limits)
  end
end

---Replies that have to come.
---@param reaches table|nil script -> shape, or a list of shapes
function wording.reaches(fail, reaches)
  for script, shapes in pairs(reaches or {}) do
    local list = type(shapes) == 'table' and shapes or { shapes }
    for _, shape in pairs(list) do
      if type(shape) ~= 'string' and type(shape) ~= 'number' then
        fail('reaches: "%s" has a reply, or a list of them: { ["acme/take"] = 1 }',
          tostring(script))
      end
    end
    if type(script) ~= 'string' or #list == 0 then
      fail('"reaches" names a script and its reply: { ["acme/take"] = 1 }')
    end
  end
end

return wording

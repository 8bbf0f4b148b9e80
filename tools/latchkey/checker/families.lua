-- SPDX-License-Identifier: Apache-2.0
-- The words of `model.family`: what a family of scripts with clients of its own kinds is written
-- in, latchkey's as anybody's. Ready-made kinds of clients follow the library step by step.
local both = require('latchkey.checker.roles.both')
local counter = require('latchkey.checker.roles.counter')
local holders = require('latchkey.checker.holders')
local operator = require('latchkey.checker.roles.operator')
local parts = require('latchkey.checker.parts')
local properties = require('latchkey.checker.properties')
local redisson = require('latchkey.checker.roles.redisson')
local taker = require('latchkey.checker.roles.taker')
local visitor = require('latchkey.checker.roles.visitor')
local wording = require('latchkey.checker.wording')

local families = {}

-- What a family must say, and what it may.
local NEEDED = { 'summary', 'roles', 'clients', 'limits', 'bounds', 'verbs' }
local KNOWN = { name = true, summary = true, roles = true, clients = true, limits = true,
  bounds = true, verbs = true, runs = true, key = true, keys = true, holders = true, free = true,
  event = true, ghost = true, observe = true, quiet = true, settle = true, equal = true,
  faults = true, durable = true, unreached = true, past_ms = true, far_ms = true,
  passes_on = true, longest = true, distinct = true, judges = true }

local made = setmetatable({}, { __mode = 'k' })

local TYPES = { summary = 'string', roles = 'table', clients = 'function', limits = 'table',
  bounds = 'table', verbs = 'table', runs = 'table', faults = 'table', judges = 'table',
  unreached = 'table' }

local function wrong_kinds(family)
  local wrong
  local function fail(...)
    wrong = wrong or (...):format(select(2, ...))
  end
  wording.types(fail, family, TYPES)
  if not wrong and family.runs and #family.runs == 0 then
    fail('"runs" has no run; without the word, the default ones are made')
  end
  return wrong
end

---What is wrong with a family; its functions may be added after it was made.
---@return string|nil why
function families.wrong(family)
  if not made[family] then
    return nil
  end
  for _, word in ipairs(NEEDED) do
    if family[word] == nil then
      return ('a family needs "%s"'):format(word)
    end
  end
  for word in pairs(family) do
    if not KNOWN[word] then
      return ('a family has no word "%s"'):format(tostring(word))
    end
  end
  return wrong_kinds(family)
end

families.words = {
  ---A family of scripts, with clients of any kind.
  family = function(about)
    if type(about) ~= 'table' then
      error({ model = 'model.family takes a table: model.family { ... }' }, 0)
    end
    made[about] = true
    return about
  end,
  taker = taker.role, operator = operator.role, visitor = visitor.role, counter = counter.role,
  both = both.role, redisson = redisson, is_first = counter.is_first,
  holders = holders, new_ghost = properties.new_ghost, judged = properties.judged,
  now = parts.START_MS, names = parts.sorted_names, copy = parts.copy, text = parts.text,
  tokens = parts.tokens, token_text = parts.token_text,
}

return families

-- SPDX-License-Identifier: Apache-2.0
-- What a server tolerates and latchkey forbids. A finding is an error text that starts with MOCK.
local convert = require('latchkey.mock.convert')
local headers = require('latchkey.script.header')
local names = require('latchkey.script.names')

-- The name of an argument that may have any value.
local ANY = '*'

local Strict = {}
Strict.__index = Strict

---Keys that a header calls derived are formed as others, but of the script's first key in the place
---of the lock's name; "*" is any text, and so is an argument.
---@param header table|nil
---@param keys string[] the declared keys
---@return string[] patterns one for each of header.derived
function Strict.derived_patterns(header, keys)
  local patterns = {}
  for i, key in ipairs(header and keys[1] and header.derived or {}) do
    local form = { kind = key.form.kind, text = key.form.text:gsub('%*', '\0'),
      plus = key.form.plus:gsub('^[^+]+', ANY) }
    local formed = names.form(form, keys[1], { [ANY] = '\0' })
    patterns[i] = '^' .. formed:gsub('[^%w%z]', '%%%0'):gsub('%z', '.+') .. '$'
  end
  return patterns
end

---@param header table|nil as lib.header parses it; without one only the general rules hold
---@param keys string[] the declared keys
---@param slots table<string, integer> remembered from run to run
---@param most_number number of world.options
function Strict.new(header, keys, slots, most_number)
  local declared = {}
  for i = 1, #keys do
    declared[keys[i]] = true
  end
  return setmetatable({ header = header, keys = keys, declared = declared, slots = slots,
    patterns = Strict.derived_patterns(header, keys), first_key = keys[1], commands = 0,
    times = 0, most_number = most_number }, Strict)
end

function Strict:slot(key)
  local slot = self.slots[key]
  if not slot then
    slot = names.slot(key)
    self.slots[key] = slot
  end
  return slot
end

function Strict:shares_slot(name)
  self.first_key = self.first_key or name
  local may_differ = self.header and self.header.cluster == 'no'
  if may_differ or name == self.first_key or self:slot(name) == self:slot(self.first_key) then
    return nil
  end
  return ('MOCK two slots: "%s" and "%s"'):format(self.first_key, name)
end

---Before the script runs: a cluster refuses keys of two slots at once.
function Strict:start()
  for _, key in ipairs(self.keys) do
    local finding = self:shares_slot(key)
    if finding then
      return finding
    end
  end
end

-- Where commands read a double, in whatever form it is written.
local function of_two(i)
  return i == 3 or i == 4
end

local DOUBLES = {
  -- Scores and members by turns to the end, after the options.
  ZADD = function(i, _, argc)
    return i > 2 and (argc - i) % 2 == 1
  end,
  ZINCRBY = function(i)
    return i == 3
  end,
  ZCOUNT = of_two,
  ZRANGEBYSCORE = of_two,
  ZREVRANGEBYSCORE = of_two,
  ZREMRANGEBYSCORE = of_two,
  ZRANGE = function(i, argv, argc)
    for k = 5, of_two(i) and argc or 0 do
      if tostring(argv[k]):upper() == 'BYSCORE' then
        return true
      end
    end
    return false
  end,
}

---A number that a script hands to redis.call, as the argument at `i`.
function Strict:number(n, i, argv, argc)
  local is_double = DOUBLES[tostring(argv[1]):upper()]
  if is_double and is_double(i, argv, argc) then
    return nil
  end
  if n % 1 ~= 0 or math.abs(n) >= 2 ^ 53 then
    return ('MOCK the argument %s is no exact integer'):format(convert.argument(n))
  elseif n ~= 0 and n % 1e8 == 0 or math.abs(n) >= self.most_number then
    return ("MOCK Redis 7.2.0 to 7.2.4 write numbers as %.0f as 1e+8: hand on its digits, by "
      .. "string.format('%%.0f', n)"):format(n)
  end
end

function Strict:is_declared(key)
  if self.declared[key] then
    return true
  end
  for _, pattern in ipairs(self.patterns) do
    if key:find(pattern) then
      return true
    end
  end
  return false
end

-- The first finding of `check` among the arguments that stand at `positions`.
function Strict:among(positions, argv, check)
  local last = positions[2] < 0 and #argv + 1 + positions[2] or positions[2] + 1
  for i = positions[1] + 1, last, positions[3] do
    local finding = check(self, argv[i], argv[1])
    if finding then
      return finding
    end
  end
end

function Strict:key(key, command)
  if not self:is_declared(key) then
    return ('MOCK %s touches the undeclared key "%s"'):format(command:upper(), key)
  end
  return self:shares_slot(key)
end

function Strict:over_cost()
  local cost = self.header and self.header.cost
  local limit = cost and (cost.max or cost.base)
  if limit and self.commands > limit then
    return ('MOCK more than %d commands: the header says "cost"'):format(limit)
  end
end

local function counted(at, argv)
  return { at, math.min(at + (tonumber(argv[at]) or 0), #argv) - 1, 1 }
end

---@param command table
---@param argv string[]
---@return string|nil finding
function Strict:command(command, argv)
  self.commands = self.commands + 1
  if command.name == 'TIME' then
    self.times = self.times + 1
    if self.times > 1 then
      return 'MOCK a second TIME: it may differ from the first'
    end
  elseif command.write and self.told then
    return ('MOCK %s after a message went out: whoever it woke may look too early')
      :format(command.name)
  end
  self.told = self.told or command.name:find('PUBLISH$') ~= nil
  return command.keys and self:among(command.keys, argv, self.key)
    or command.slots and self:among(command.slots, argv, self.shares_slot)
    or command.counted and self:among(counted(command.counted, argv), argv, self.key)
    or self:over_cost()
end

local function shape_of(reply)
  if type(reply) ~= 'table' then
    return (type(reply) == 'string' or type(reply) == 'number')
      and ('the %s %s'):format(type(reply), tostring(reply)) or 'nil'
  elseif not reply.n then
    return 'the status ' .. tostring(reply.ok)
  end
  return reply.n == 0 and 'an empty array'
    or ('%d elements, the first %s'):format(reply.n, tostring(reply[1]))
end

---What the script returned, an error reply included.
---@return string|nil finding
function Strict:reply(reply, err)
  local header = self.header
  if not header then
    return nil
  elseif err then
    local code = err:match('^%S*')
    for _, listed in ipairs(header.errors) do
      if listed.code == code then
        return nil
      end
    end
    return ('MOCK the header lists no error %s: %s'):format(code, err)
  elseif not headers.reply_shape(header, reply) then
    return ('MOCK the header lists no such reply: %s'):format(shape_of(reply))
  end
end

return Strict

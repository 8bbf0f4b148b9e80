-- SPDX-License-Identifier: Apache-2.0
-- A mock whose scripts are run again, on a copy of what they found, with other names: in whatever
-- state a spec brings them, they must do the same. Names have any bytes, and one may begin like
-- another; a script that cuts or compares them carelessly fails wherever a spec runs it.
local World = require('latchkey.mock.world')
local renamed = require('support.renamed')

local watched = {}

-- Names of owners as the library makes them: a client's, and the serial of a hold.
local CLIENT, OWNER = '^lk%-[^:]+', 'lk%-[%w-]+:%d+'

-- A keyspace. Members of equal scores are in the order of their names.
local function renamed_keys(keys, from, to)
  local new = renamed(keys, from, to)
  for _, record in pairs(new) do
    if record.type == 'zset' then
      table.sort(record.value, function(a, b)
        return a[2] < b[2] or a[2] == b[2] and a[1] < b[1]
      end)
    end
  end
  return new
end

local function first_owner(list, except)
  for _, text in ipairs(list) do
    for name in text:gmatch(OWNER) do
      if name ~= except then
        return name
      end
    end
  end
end

-- All texts of a keyspace, in an order that is always the same.
local function texts_of(keys)
  local list = {}
  local function add(value)
    if type(value) == 'table' then
      for _, part in ipairs(value) do
        add(part)
      end
    elseif type(value) == 'string' then
      list[#list + 1] = value
    end
  end
  for name, record in pairs(keys) do
    list[#list + 1] = name
    add(record.value)
  end
  table.sort(list)
  return list
end

-- Is somebody called so already?
local function has(texts, args, name)
  for _, list in ipairs({ texts, args }) do
    for _, text in ipairs(list) do
      if text:find(name, 1, true) then
        return true
      end
    end
  end
  return false
end

-- What is called otherwise: { from, to } each. Two clients are enough: no script has more owners
-- that it treats in ways of their own.
local function renamings(args, before)
  local list = {}
  local owner = first_owner(args)
  if owner then
    local client = owner:match(CLIENT)
    list[1] = { client, client .. '\0 ' }
    local another = first_owner(args, owner)
    another = another and another:match(CLIENT)
    list[2] = another ~= client and another and { another, another .. '\0 ' } or nil
    local texts = texts_of(before)
    local other = first_owner(texts, owner)
    for _, change in ipairs(other and { { other, owner .. '5' }, { owner, other .. '5' } } or {}) do
      list[#list + 1] = not has(texts, args, change[2]) and change or nil
    end
  end
  return list
end

local function tail(list, from)
  local new = {}
  for i = from + 1, #list do
    new[#new + 1] = list[i]
  end
  return new
end

local function same(a, b)
  if type(a) ~= 'table' or type(b) ~= 'table' then
    return a == b
  end
  for key, value in pairs(a) do
    if key ~= '_text' and not same(value, b[key]) then
      return false
    end
  end
  for key in pairs(b) do
    if key ~= '_text' and a[key] == nil then
      return false
    end
  end
  return true
end

-- One for each folder of scripts: to compile them takes longer than to run them.
local copies = {}

-- Longer numbers go to redis.call by their digits: some servers write round ones with an exponent.
local MOST_NUMBER = 1e8

local function run(options, keys_before, now_ms, name, keys, args)
  local scratch = copies[options.scripts] or World.new(options)
  copies[options.scripts] = scratch
  scratch:replace(keys_before)
  scratch.clock.ms = now_ms
  scratch:messages()
  local reply, err = options.eval(scratch, name, keys, args)
  return { reply = reply, code = err and err.code, keys = scratch:keys(),
    messages = scratch:messages() }
end

---@param world table of latchkey.mock.world
---@param options table that it was made with
function watched.world(world, options)
  local eval, from_folder = world.eval, {}
  options.eval, options.most_number, world.most_number = eval, MOST_NUMBER, MOST_NUMBER
  function world:eval(name, keys, args)
    -- What a spec has put in a script's place, the copy does not know.
    from_folder[name] = from_folder[name] or not self.named[name]
    local texts = {}
    for i, value in ipairs(args) do
      texts[i] = tostring(value)
    end
    -- A debugger would go through the copy as well.
    local is_plain = not (self.full or self.replica or self.broken_disk or self.denied
      or debug.gethook())
      and from_folder[name]
    local before, now_ms, told = {}, self.clock.ms, #self.outbox
    for key, record in pairs(self:keys()) do
      before[key] = record
    end
    local reply, err = eval(self, name, keys, args)
    for _, change in ipairs(is_plain and renamings(texts, before) or {}) do
      local from, to = unpack(change)
      local found = run(options, renamed_keys(before, from, to), now_ms, name,
        renamed(keys, from, to), renamed(args, from, to))
      local expected = renamed({ reply = reply, code = err and err.code,
        messages = tail(self.outbox, told) }, from, to)
      expected.keys = renamed_keys(self:keys(), from, to)
      local is_too_long = found.code == 'LKARG' and not err
      if not is_too_long and not same(expected, found) then
        error(('%s does otherwise where %q is called %q'):format(name, from, to), 2)
      end
    end
    return reply, err
  end
  return world
end

return watched

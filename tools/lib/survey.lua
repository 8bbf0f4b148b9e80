-- SPDX-License-Identifier: Apache-2.0
-- Finding the locks of a server among all of its keys, in steps that each cost it little: SCAN with
-- a bounded COUNT, then a look at each key that may be one. A key whose look would be long (a large
-- string, a hash of something else) is passed over after one short command.
local path = require('pl.path')

local catalog = require('lib.catalog')
local kinds = require('lib.kinds')
local peek = require('lib.peek')
local shapes = require('lib.kinds.shapes')

local Survey = {}
Survey.__index = Survey

local survey = {}

-- So many keys of the table are looked at by one SCAN.
survey.STEP = 250

-- What Redisson keeps beside its locks, for no longer than a call takes.
local FOREIGN = { '^redisson_unlock_latch:' }

local function literally(text)
  return (text:gsub('%p', '%%%0'))
end

-- Patterns of names that are parts of locks: what the headers form from a lock's name.
local function companions(home)
  local patterns, seen = { unpack(FOREIGN) }, {}
  for _, script in ipairs(assert(catalog.read(path.join(home, 'scripts')))) do
    for _, list in ipairs({ script.header.keys, script.header.derived }) do
      for _, key in ipairs(list) do
        local part = literally(key.form.text):gsub('%%%*', '.+')
        local pattern = key.form.kind == 'prefix' and '^' .. part .. ':'
          or key.form.kind == 'suffix' and ':' .. part .. '$'
        if pattern and not seen[pattern] then
          seen[pattern] = true
          patterns[#patterns + 1] = pattern
        end
      end
    end
  end
  return patterns
end

---@class survey
---@field steps integer how many SCANs there were in this pass
---@field done boolean the pass is over

---@param client latchkey.client
---@param home string
---@param options { pattern?: string, kind?: string } without a kind: what is certainly a lock
---@return survey
function survey.new(client, home, options)
  local self = setmetatable({ client = client, home = home, kind = options.kind,
    pattern = options.pattern or '*', parts = companions(home) }, Survey)
  self.type = options.kind and kinds.ROWS[options.kind].type or 'hash'
  self:again()
  return self
end

---Starts another pass over the keys.
function Survey:again()
  self.cursor, self.steps, self.done, self.seen = '0', 0, false, {}
end

function Survey:is_part(name)
  for _, pattern in ipairs(self.parts) do
    if name:find(pattern) then
      return true
    end
  end
  return false
end

-- Is what a short look showed worth a look at the whole?
function Survey:is_candidate(shown)
  if self.type == 'string' then
    return shown and shown >= 1 and shown <= shapes.OWNER_MAX
  elseif not shown or self.kind then
    return shown
  end
  return shown == 'mode' or shapes.is_owner((shown:gsub(':write$', '')))
end

-- Those that may be locks, by the length of a string or any one field of a hash.
function Survey:candidates(names)
  local shown, err = peek.all(self.client, self.type == 'string' and 'STRLEN' or 'HRANDFIELD',
    names)
  if not shown then
    return nil, err
  end
  local found = {}
  for i, name in ipairs(names) do
    if self:is_candidate(shown[i]) then
      found[#found + 1] = name
    end
  end
  return found
end

---One SCAN.
---@return string[]|nil names of its keys that may be locks, but for those that this pass has found
---@return latchkey.error|nil err
function Survey:step()
  local reply, err = self.client:command('SCAN', self.cursor, 'MATCH', self.pattern, 'COUNT',
    survey.STEP, 'TYPE', self.type)
  if not reply then
    return nil, err
  end
  self.cursor, self.steps, self.done = reply[1], self.steps + 1, reply[1] == '0'
  local names = {}
  for i = 1, reply[2].n do
    local name = reply[2][i]
    if not self.seen[name] and not self:is_part(name) then
      names[#names + 1] = name
    end
  end
  return self:candidates(names)
end

-- Of the kinds that fit, the likely one.
function Survey:read(name)
  if self.kind then
    return kinds.read(self.client, self.home, self.kind, name)
  end
  local views, err = kinds.recognize(self.client, self.home, self.type, name)
  if not views then
    return nil, err
  end
  local view = views[1] or { free = true }
  local also = {}
  for i = 2, #views do
    also[#also + 1] = views[i].kind
  end
  view.also = also
  return view
end

-- A lock whose kind is open counts as well: every field of it is an owner.
local function is_sure(view)
  for _, holder in ipairs(view.holders) do
    if not shapes.is_owner((holder.owner:gsub(':write$', ''))) then
      return false
    end
  end
  return view.fits and (#view.holders > 0 or view.mode ~= nil and view.fields > 1)
end

---@param name string
---@return table|boolean|nil view with its name, kind and count of waiters; false: no lock, any more
---@return latchkey.error|nil err
function Survey:look(name)
  local view, err = self:read(name)
  -- The key became something else since it was listed.
  if err and err.status == 'LK_WRONGTYPE' then
    return false
  elseif err then
    return nil, err
  elseif view.free or not view.fits or not self.kind and not is_sure(view) then
    return false
  end
  self.seen[name], view.name = true, name
  view.waiters, err = kinds.waiters(self.client, self.home, view, name)
  if not view.waiters then
    return nil, err
  end
  return view
end

return survey

-- SPDX-License-Identifier: Apache-2.0
-- Finding the locks of a server among all of its keys, in steps that each cost it little: SCAN with
-- a bounded COUNT, then a look at each key that may be one. A key whose look would be long (a large
-- string, a hash of something else) is passed over after one short command. The masters of a
-- cluster are read one after the other; one that fails is left out of the pass, and so is a key
-- that this user may not read, or whose slot is on the move.
local path = require('pl.path')

local catalog = require('latchkey.script.catalog')
local clients = require('latchkey.servers.clients')
local expect = require('latchkey.servers.expect')
local fleet = require('latchkey.servers.fleet')
local glob = require('latchkey.mock.glob')
local kinds = require('latchkey.locks.kinds')
local peek = require('latchkey.locks.peek')
local shapes = require('latchkey.locks.kinds.shapes')

local Survey = {}
Survey.__index = Survey

local survey = {}

-- So many keys of the table are looked at by one SCAN.
survey.STEP = 250

-- Of the keys that are left out so many are named.
survey.NAMED_MAX = 10

-- What Redisson keeps beside its locks, for no longer than a call takes.
local FOREIGN = { type = 'string', form = { kind = 'prefix', text = 'redisson_unlock_latch' } }

-- What stands in the place of the lock's name has a hash tag, its own or that of the form.
local TAGGED = '[^{]*{[^}]+}'

local function literally(text)
  return (text:gsub('%p', '%%%0'))
end

local function pattern_of(key)
  local part = literally(key.form.text):gsub('%%%*', '.+')
  return key.form.kind == 'prefix' and '^' .. part .. ':' .. TAGGED
    or key.form.kind == 'suffix' and '^' .. TAGGED .. '.*:' .. part .. '$' or nil
end

-- Patterns of names that are parts of locks, by the type of the key: what the headers form from a
-- lock's name.
local function companions(home)
  local parts = { hash = {}, string = {} }
  local function add(key)
    local pattern = pattern_of(key)
    for type, patterns in pairs(parts) do
      if pattern and (key.type == type or key.type == 'any') then
        patterns[pattern] = true
      end
    end
  end
  add(FOREIGN)
  for _, script in ipairs(assert(catalog.read(path.join(home, 'scripts')))) do
    for _, list in ipairs({ script.header.keys, script.header.derived }) do
      for _, key in ipairs(list) do
        add(key)
      end
    end
  end
  return parts
end

-- The types of keys that are read one after the other. Permits are found by the leases that they
-- keep in a key beside their own: an integer alone may be anything.
local TYPES = { 'hash', 'zset', 'string' }
-- Among more keys than this, strings are only read when they are asked for: each costs a command.
local FEW = 100000
local LEASES = 'permit/inspect'

-- How long the names of owners are that a mutex has for its value.
local OWNER_LEAST, OWNER_MOST = #'lk-8743c9c0-0795-4907-87fd-6c719a6b4586:1', 60

local function types_of(chosen)
  local list, there = {}, {}
  for _, kind in ipairs(chosen) do
    local type = kinds.ROWS[kind].type
    list[#list + 1] = not there[type] and type or nil
    there[type] = true
  end
  return list
end

---@class survey
---@field steps integer how many SCANs there were in this pass
---@field done boolean the pass is over
---@field failures { target: string, err: latchkey.error }[] masters that this pass leaves out
---@field last string|nil target of the master that was read last
---@field left_out survey.left_out keys that this pass leaves out
---@field possible { strings: integer, hashes: integer, strings_unread: boolean } keys of this pass
---  that may be locks, too

---@class survey.left_out
---@field denied integer how many the user may not read
---@field moving integer how many have a slot that is on the move, or not served
---@field keys { name: string, err: latchkey.error }[] the first of them

---@param client latchkey.client
---@param home string
---@param options { pattern?: string, kinds?: string[] } without kinds: what is certainly a lock
---@return survey
function survey.new(client, home, options)
  local chosen = options.kinds and #options.kinds > 0 and options.kinds or nil
  local self = setmetatable({ client = client, home = home, kinds = chosen,
    pattern = options.pattern or '*', parts = companions(home), homes = {}, types = {}, seen = {},
    people = clients.new(), turns = chosen and types_of(chosen) or TYPES }, Survey)
  self:again()
  return self
end

---Starts another pass over the keys.
function Survey:again()
  local homes, types = {}, {}
  for name in pairs(self.seen) do
    homes[name], types[name] = self.homes[name], self.types[name]
  end
  self.cursor, self.turn, self.steps, self.done, self.seen = '0', 1, 0, false, {}
  self.types, self.possible, self.doubtful = types, { strings = 0, hashes = 0 }, {}
  self.masters, self.failures, self.failed, self.homes = nil, {}, {}, homes
  self.left_out, self.hidden = { denied = 0, moving = 0, keys = {} }, {}
end

-- To the next master that is to be read.
function Survey:move_on()
  local master
  repeat
    self.at = self.at + 1
    master = self.masters[self.at]
  until not master or not self.failed[master:target()]
  self.cursor, self.turn, self.done = '0', 1, master == nil
end

---Leaves a master out of what is left of this pass.
---@param target string
---@param err latchkey.error
---@return true|nil ok
---@return latchkey.error|nil err the first failure, when no master is left
function Survey:give_up(target, err)
  if not self.failed[target] then
    self.failed[target] = true
    table.insert(self.failures, { target = target, err = err })
  end
  local current = self.masters[self.at]
  if current and current:target() == target then
    self:move_on()
  end
  if #self.failures == #self.masters then
    return nil, self.failures[1].err
  end
  return true
end

-- Redis's words for a command that the user may not send, whatever the key. What a script may not
-- do is about the keys of some kinds.
local function is_of_command(err)
  return err.message:find(" run the '", 1, true) and not err.message:find(' in script', 1, true)
end

---Leaves a key out of this pass, if the failure is about that key alone.
---@param name string
---@param err latchkey.error
---@return boolean done
function Survey:leave_out(name, err)
  local why = err.status == 'LK_CLUSTERDOWN' and 'moving'
    or err.status == 'LK_DENIED' and not is_of_command(err) and 'denied'
  if why and not self.hidden[name] then
    local left_out = self.left_out
    self.hidden[name] = true
    left_out[why] = left_out[why] + 1
    if #left_out.keys < survey.NAMED_MAX then
      table.insert(left_out.keys, { name = name, err = err })
    end
  end
  return why and true or false
end

---How many keys there are. A pass begins with this.
---@return integer|nil count
---@return latchkey.error|nil err
function Survey:size()
  local err
  if not self.masters then
    self.masters, err = fleet.masters(self.client)
    self.at = 1
  end
  local total, ok = 0, self.masters ~= nil
  for _, master in ipairs(self.masters or {}) do
    local target = master:target()
    if not self.failed[target] then
      local count
      count, err = expect('integer', 'DBSIZE', master:command('DBSIZE'))
      total = total + (count or 0)
      if not count then
        ok, err = self:give_up(target, err)
      end
    end
  end
  if ok and not self.kinds and self.steps == 0 then
    self.turns = total > FEW and { 'hash', 'zset' } or TYPES
    self.possible.strings_unread = total > FEW
  end
  return ok and total or nil, err
end

function Survey:is_part(name, type)
  for pattern in pairs(self.parts[type]) do
    if name:find(pattern) then
      return true
    end
  end
  return false
end

-- Is what a short look showed worth a look at the whole? What is not, and yet may be a lock of
-- another client's, is counted.
function Survey:is_candidate(shown)
  local is_string = self.turns[self.turn] == 'string'
  if type(shown) ~= (is_string and 'number' or 'string') then
    return false
  elseif is_string then
    local is_short = shown >= 1 and shown <= shapes.OWNER_MAX
    local is_owner = shown >= OWNER_LEAST and shown <= OWNER_MOST
    if is_short and not is_owner and not self.kinds then
      self.possible.strings = self.possible.strings + 1
    end
    return is_short and (is_owner or self.kinds)
  elseif self.kinds or shown == 'mode' or shapes.is_owner((shown:gsub(':write$', ''))) then
    return true
  end
  self.possible.hashes = self.possible.hashes + 1
  return false
end

-- Those that may be locks, by the length of a string or any one field of a hash.
function Survey:candidates(names)
  local turn = self.turns[self.turn]
  if turn == 'zset' then
    return names
  end
  local shown, err = peek.all(self.client, turn == 'string' and 'STRLEN' or 'HRANDFIELD', names)
  if not shown then
    return nil, err
  end
  local found = {}
  for i, name in ipairs(names) do
    if type(shown[i]) == 'table' then
      if not self:leave_out(name, shown[i]) then
        return nil, shown[i]
      end
    elseif self:is_candidate(shown[i]) then
      found[#found + 1] = name
    end
  end
  return found
end

-- The permits that keep their leases in this key, if the call is about such a name; else nil.
function Survey:permits_of(key)
  local name = key:match('^{(.*)}:timeout$') or key:match('^(.*):timeout$')
  if name and name ~= '' and kinds.formed(self.home, LEASES, 'leases', name) == key
    and glob.match(self.pattern, name) then
    return name
  end
end

function Survey:scan(master)
  local type = self.turns[self.turn]
  local reply, err = expect('cursor and list', 'SCAN', master:command('SCAN', self.cursor, 'MATCH',
    type == 'zset' and '*:timeout' or self.pattern, 'COUNT', survey.STEP, 'TYPE', type))
  if not reply then
    return nil, err
  end
  self.cursor, self.steps = reply[1], self.steps + 1
  local names = {}
  for i = 1, reply[2].n do
    local name = reply[2][i]
    if type == 'zset' then
      name = self:permits_of(name)
    end
    if name and self.seen[name] then
      self.homes[name] = master
    elseif name and (type == 'zset' or not self:is_part(name, type)) then
      names[#names + 1] = name
    end
  end
  names, err = self:candidates(names)
  for _, name in ipairs(names or {}) do
    self.homes[name], self.types[name] = master, type == 'hash' and 'hash' or 'string'
  end
  return names, err
end

---One SCAN.
---@return string[]|nil names of its keys that may be locks, but for those that this pass has found
---@return latchkey.error|nil err no master is left
function Survey:step()
  local master = self.masters[self.at]
  self.last = master:target()
  local names, err = self:scan(master)
  if not names then
    local ok
    ok, err = self:give_up(self.last, err)
    return ok and {}, err
  elseif self.cursor == '0' and self.turn < #self.turns then
    self.turn = self.turn + 1
  elseif self.cursor == '0' then
    self:move_on()
  end
  return names
end

-- As each of the kinds that are wanted, the certain one first.
function Survey:read_as_wanted(name, type)
  local views = {}
  for _, kind in ipairs(self.kinds) do
    if kinds.ROWS[kind].type == type then
      local view, err = kinds.read(self.client, self.home, kind, name)
      if not view and (err.status ~= 'LK_WRONGTYPE' or #self.kinds == 1) then
        return nil, err
      elseif view and view.fits and not view.free then
        table.insert(views, view.certain and 1 or #views + 1, view)
      end
    end
  end
  return views
end

-- Of the kinds that fit, the likely one.
function Survey:read(name)
  local type = self.types[name] or self.turns[1]
  local views, err
  if self.kinds then
    views, err = self:read_as_wanted(name, type)
  else
    views, err = kinds.recognize(self.client, self.home, type, name)
  end
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
  if view.kind == 'mutex' or view.kind == 'permit' then
    return view.certain
  end
  for _, holder in ipairs(view.holders) do
    if not shapes.is_owner((holder.owner:gsub(':write$', ''))) then
      return false
    end
  end
  return view.fits and (#view.holders > 0 or view.mode ~= nil and view.fields > 1)
end

---The master that a name was last found on, if it is one still.
---@param name string
---@return latchkey.node|nil
function Survey:home_of(name)
  local master = self.homes[name]
  if #self.masters == 1 then
    return self.masters[1]
  end
  return master and master:is_master() and master or nil
end

---Is it known to be on a master that this pass leaves out?
---@param name string
---@return boolean
function Survey:is_out_of_reach(name)
  local master = self:home_of(name)
  return master ~= nil and self.failed[master:target()] == true
end

-- It looked like a lock, and may be one.
function Survey:doubt(name, view)
  if view.free or self.kinds or self.doubtful[name] then
    return
  end
  self.doubtful[name] = true
  local what = self.types[name] == 'string' and 'strings' or 'hashes'
  self.possible[what] = self.possible[what] + 1
end

---How far this pass is.
---@param total number of keys
---@return integer percent
function Survey:percent(total)
  local steps = self.steps / #self.turns
  return math.min(99, math.floor(100 * steps * survey.STEP / math.max(total, 1)))
end

function Survey:look_at(name)
  local view, err = self:read(name)
  -- The key became something else since it was listed.
  if err and err.status == 'LK_WRONGTYPE' then
    return false
  elseif err and err.message:find('CROSSSLOT', 1, true) then
    -- What is formed of its name is not in its slot: on this cluster it is no lock.
    self:doubt(name, {})
    return false
  elseif err then
    return nil, err
  elseif view.free or not view.fits or not self.kinds and not is_sure(view) then
    self:doubt(name, view)
    return false
  end
  local master = self:home_of(name)
  if not master then
    master, err = fleet.master_of(self.masters, name)
  end
  if not master then
    return nil, err
  end
  self.homes[name] = master
  self.seen[name], view.name = true, name
  view.node = #self.masters > 1 and fleet.place(master) or nil
  view.waiters, err = kinds.waiters(self.client, self.home, view, name, self.masters, master)
  if not view.waiters then
    return nil, err
  end
  self.people:name(view, master)
  return view
end

---@param name string
---@return table|boolean|nil view with its name, kind and count of waiters, and of several masters
---  the `node` that has it; false: no lock, any more, or it is left out
---@return latchkey.error|nil err
function Survey:look(name)
  local view, err = self:look_at(name)
  if view == nil and self:leave_out(name, err) then
    return false
  end
  return view, err
end

return survey

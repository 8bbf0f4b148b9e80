-- SPDX-License-Identifier: Apache-2.0
-- The server of the checker: the mock, which runs the script files on keyspaces that are parts.
-- Calls that are marked `beside` are of a second folder of scripts; Redisson's are no files.
local World = require('latchkey.mock.world')
local catalog = require('latchkey.script.catalog')
local elsewhere = require('latchkey.checker.elsewhere')
local headers = require('latchkey.script.header')
local names = require('latchkey.script.names')
local parts = require('latchkey.checker.parts')
local redisson = require('latchkey.checker.redisson_calls')

local Server = {}
Server.__index = Server

local NAME = 'l'
local MOST_INSTRUCTIONS = 200000
local RECORD_MS = 60000

local function new_world(scripts)
  return scripts and World.new({ scripts = scripts, max_instructions = MOST_INSTRUCTIONS })
end

---@param options { scripts: string, beside: string|nil, pool: table, memo: boolean,
---  symmetric: boolean, each_hour?: boolean, translate?: fun };
---  `translate(script, shape, reply)` gives the replies of somebody else's scripts the form of
---  latchkey's own, and nil where the model does not know one; `each_hour` tries every call at all
---  hours
function Server.new(options)
  return setmetatable({
    world = new_world(options.scripts), other_world = new_world(options.beside),
    scripts = options.scripts, beside = options.beside, pool = options.pool, memo = options.memo,
    headers = {}, beside_headers = {}, translate = options.translate,
    symmetric = options.symmetric, each_hour = options.each_hour, turns = {},
    executed = 0, remembered = 0, covered = {}, name = NAME,
  }, Server)
end

---@param beside? boolean of the second folder
---@return table header of a script
function Server:header(name, beside)
  local list = beside and self.beside_headers or self.headers
  local header = list[name]
  if not header and redisson.has(name) then
    header = redisson.header()
    list[name] = header
  elseif not header then
    local folder = beside and self.beside or self.scripts
    local file, findings = catalog.read_file(('%s/%s.lua'):format(folder, name))
    if not file then
      error(('%s: %s'):format(name, findings[1].message), 0)
    end
    header = file.header
    list[name] = header
  end
  return header
end

---The mock that has a call's script.
function Server:world_of(call)
  return call.beside and self.other_world or self.world
end

---The folder that a call's script is of.
function Server:folder(call)
  return call.beside and self.beside or self.scripts
end

-- Scripts that are not latchkey's call their arguments as they like: where the model is of such,
-- an argument is also known by its type.
local BY_TYPE = { owner = 'owner', lease = 'ms', channel = 'channel' }

---@return table|nil field of that name, or of that meaning
---@return integer|nil place
function Server:field(list, name)
  for place, entry in ipairs(list) do
    if entry.name == name then
      return entry, place
    end
  end
  for place, entry in ipairs(self.translate and BY_TYPE[name] and list or {}) do
    if entry.type == BY_TYPE[name] then
      return entry, place
    end
  end
end

---The name of a script's key or channel, as its header forms it.
---@param of? table { beside, locks } whose script it is, and for the first of which locks
function Server:form(script, field, of)
  local header = self:header(script, of and of.beside)
  for _, list in ipairs({ 'keys', 'argv', 'channels' }) do
    local entry = self:field(header[list], field)
    if entry then
      return names.form(entry.form, of and of.locks and of.locks[1] or NAME, {})
    end
  end
  error(('%s has no "%s"'):format(script, field))
end

local ONE = { NAME }

local function keys_of(self, call, args, target)
  local header, by_name, keys = self:header(call.script, call.beside), {}, {}
  for i, field in ipairs(header.argv) do
    by_name[field.name] = args[i]
  end
  for _, key in ipairs(header.keys) do
    if key.form.kind == 'slot' then
      keys[#keys + 1] = target
    else
      local locks = call.locks or ONE
      for place = 1, key.many and #locks or 1 do
        keys[#keys + 1] = names.form(key.form, locks[place], by_name)
      end
    end
  end
  return keys
end

-- Under which a record and a call have the text that they are known by.
local TEXT, TEXTS = '\0text', '\0texts'
-- They stand between the pieces of a text; what has some itself is written out in quotes.
local MARKS = '[\1-\4]'

local function piece(text)
  return text:find(MARKS) and '\4' .. parts.text(text) or text
end

-- Strings and the flat lists that hashes, lists and sets are.
local function value_text(value)
  if type(value) ~= 'table' then
    return piece(value)
  end
  local all = table.concat(value, '\3')
  return table.concat(value):find(MARKS) and '\4' .. parts.text(value) or all
end

local WITH_TABLES = { zset = true, stream = true }

local function record_text(record)
  local text = record[TEXT]
  if not text then
    text = ('%s\3%s\3%s'):format(record.type, record.expires_at or '',
      WITH_TABLES[record.type] and parts.text(record.value) or value_text(record.value))
    record[TEXT] = text
  end
  return text
end

---Equal keyspaces are one part, whose records may be those of another run.
---@return boolean has the key the same value, and the same end?
function Server.same_record(one, other)
  return one == other or one ~= nil and other ~= nil and record_text(one) == record_text(other)
end

---A keyspace as a part: { key -> record of the mock }.
function Server:keyspace(keys)
  local out = {}
  for i, name in ipairs(parts.sorted_names(keys)) do
    out[i] = piece(name) .. '\1' .. record_text(keys[name])
  end
  return self.pool:part(keys, table.concat(out, '\2'))
end

local function unexpired(records)
  local left = {}
  for name, record in pairs(records) do
    if not (record.expires_at and record.expires_at < parts.START_MS) then
      left[name] = record
    end
  end
  return left
end

---@return table keyspace part after so many ms, without the keys that have expired
function Server:shift(keyspace, ms)
  local later = keyspace.later[ms]
  if not later then
    later = self:keyspace(unexpired(self.pool:shift(keyspace, ms).data))
    keyspace.later[ms] = later
  end
  return later
end

-- A key that ends later than that ends after all that a model of latchkey's does. Models with
-- longer thirds of leases look further ahead, but for records of calls: these stay young.
Server.FAR_MS = RECORD_MS / 2

local function ends_soon(name, record, far_ms)
  local is_record = name:find('^latchkey_seq')
  return record.expires_at
    and record.expires_at < parts.START_MS + (is_record and Server.FAR_MS or far_ms)
end

---The moments at which keys end: their last, and the first without them.
---@param far_ms number what ends later than that counts as without an end
---@return number|nil ms from now
function Server.next(keyspace, far_ms)
  local next_ms = keyspace.next_ms
  if next_ms == nil then
    next_ms = false
    for _, name in ipairs(parts.sorted_names(keyspace.data)) do
      local record = keyspace.data[name]
      if ends_soon(name, record, far_ms) then
        local left = record.expires_at - parts.START_MS
        left = left > 0 and left or left + 1
        next_ms = next_ms and math.min(next_ms, left) or left
      end
    end
    keyspace.next_ms = next_ms
  end
  return next_ms or nil
end

---Records of calls stay as young as they are: what is promised of copies holds within their life,
---and no copy comes later than that.
---@return table keyspace part
function Server:keep_records(keyspace)
  local kept = keyspace.kept
  if not kept then
    local data, ends = {}, parts.START_MS + RECORD_MS
    for _, name in ipairs(parts.sorted_names(keyspace.data)) do
      local record = keyspace.data[name]
      local is_record = name:find('^latchkey_seq') and record.expires_at
      data[name] = is_record and { type = record.type, value = record.value, expires_at = ends }
        or record
    end
    kept = self:keyspace(data)
    keyspace.kept = kept
  end
  return kept
end

-- Nil inside arrays is false here: plain data has no userdata.
local function plain(reply, null)
  if reply == null then
    return false
  elseif type(reply) == 'table' and reply.ok then
    return reply.ok
  elseif type(reply) ~= 'table' then
    return reply
  end
  local new = {}
  for i = 1, reply.n or #reply do
    new[i] = plain(reply[i], null)
  end
  return new
end
Server.plain = plain

local function cover(self, call, reply)
  local script = call.script
  local covered = self.covered[script]
  if not covered then
    covered = {}
    self.covered[script] = covered
  end
  local shape = headers.reply_shape(self:header(script, call.beside), reply)
  covered[shape or '?'] = true
  return shape
end

---The text by which a call is known, with the caller's letter.
function Server.call_text(call, letter)
  local cache = call[TEXTS]
  if not cache then
    cache = {}
    call[TEXTS] = cache
  end
  local text = cache[letter]
  if not text then
    text = (call.script .. (call.beside and '\2' or '\1') .. value_text(call.args)
      .. '\1' .. (call.target or '') .. table.concat(call.locks or {}, '\1'))
      :gsub('lk%-@', 'lk-' .. letter)
    cache[letter] = text
  end
  return text
end

local function args_of(call, letter)
  local args = {}
  for i, value in ipairs(call.args) do
    args[i] = tostring(value):gsub('lk%-@', 'lk-' .. letter)
  end
  return args
end

local function run_on(world, lock, name, keys, args)
  if redisson.has(name) then
    return redisson.run(world, name, lock, args)
  end
  return world:eval(name, keys, args)
end

-- An error that the contract lists is an answer where a model gives its code a meaning. What was
-- written before it stays.
local function failed(self, keyspace, call, result, err)
  local is_listed = false
  for _, listed in ipairs(self.translate and self:header(call.script, call.beside).errors or {}) do
    is_listed = is_listed or listed.code == err.code
  end
  result.reply = is_listed and self.translate(call.script, err.code, err.message) or nil
  if result.reply then
    self.covered[call.script] = self.covered[call.script] or {}
    self.covered[call.script][err.code] = true
    result.raw, result.is_translated = err.message, true
    result.after = result.wrote and self:keyspace(self:world_of(call):keys()) or keyspace
  else
    result.err, result.after = is_listed and { line = err.line,
      message = ('the model gives %s no meaning'):format(err.code) } or err, keyspace
  end
  return result
end

-- One run of a script on a keyspace.
local function run(self, keyspace, call, keys, args)
  local world = self:world_of(call)
  world:replace(parts.shallow(keyspace.data))
  local reply, err = run_on(world, self.name, call.script, keys, args)
  self.executed = self.executed + 1
  local result = { keys = keys, args = args, messages = world:messages(), seen = {},
    wrote = #world.store.undo > 0 }
  if err then
    return failed(self, keyspace, call, result, err)
  end
  result.reply = plain(reply, world.null)
  local is_file = not redisson.has(call.script) -- which may be several commands
  result.after = is_file and not result.wrote and keyspace or self:keyspace(world:keys())
  if is_file then
    local shape = cover(self, call, reply)
    if self.translate then
      result.raw, result.is_translated = result.reply, true
      result.reply = self.translate(call.script, shape, result.reply)
    end
    if not result.reply then
      result.err, result.after = { message = ('the model gives %s no meaning'):format(
        tostring(shape)) }, keyspace
    end
  else
    result.wrote = result.after ~= keyspace
  end
  return result
end

---What a call is sent with.
---@param call table
---@param letter string the caller's
---@return string[] keys
---@return string[] args
function Server:words_of(call, letter)
  local args = args_of(call, letter)
  local target = call.target and call.target:gsub('lk%-@', 'lk-' .. letter)
  return keys_of(self, call, args, target), args
end

-- And once more, to see what a copy of it would do, if its header promises something of that.
local function run_call(self, keyspace, call, letter)
  local keys, args = self:words_of(call, letter)
  local result = run(self, keyspace, call, keys, args)
  local why = self.translate and not result.err and elsewhere.why(self, keyspace, call, result)
  if why then
    result.err, result.after = { message = why, property = 'R2' }, keyspace
  end
  if not result.err and self:header(call.script, call.beside).repeat_ ~= 'no' then
    result.again = run(self, result.after, call, keys, args)
  end
  return result
end

---Runs a call just once, and remembers nothing.
function Server:run_once(keyspace, call, letter)
  local keys, args = self:words_of(call, letter)
  return run(self, keyspace, call, keys, args)
end

local function same_reply(a, b)
  if type(a) ~= 'table' or type(b) ~= 'table' then
    return a == b
  end
  local same = #a == #b
  for i = 1, #a do
    same = same and same_reply(a[i], b[i])
  end
  return same
end

local function same_result(a, b)
  local same = a.after == b.after and not a.err and not b.err and a.wrote == b.wrote
    and same_reply(a.reply, b.reply) and #a.messages == #b.messages
  for i = 1, same and #a.messages or 0 do
    local one, other = a.messages[i], b.messages[i]
    same = same and one.verb == other.verb and one.channel == other.channel
      and one.message == other.message
  end
  return same
end

-- What an onlooker made of a run holds for another that ended alike.
local function known(keyspace, text, result)
  local before = keyspace.memo[text]
  if before and same_result(before, result) and (not before.again and not result.again
    or before.again and result.again and same_result(before.again, result.again)) then
    return before
  end
  keyspace.memo[text] = result
  return result
end

---Runs a call on a keyspace.
---@param keyspace table part
---@param call table { script, args, target }; "lk-@" in it is the caller
---@param letter string the caller's
---@return table result { after = part, reply, err, messages, args, wrote = replicas are told of it,
---  though it may be what they have }; not to be changed
function Server:run(keyspace, call, letter)
  local text = Server.call_text(call, letter)
  if not self.memo then
    return known(keyspace, text, run_call(self, keyspace, call, letter))
  end
  local result = keyspace.memo[text]
  if result then
    self.remembered = self.remembered + 1
    return result
  end
  result = run_call(self, keyspace, call, letter)
  keyspace.memo[text] = result
  return result
end

return Server

-- SPDX-License-Identifier: Apache-2.0
-- A server in memory, with one clock that only moves when told: what specs, the checker and
-- `eval --mock` talk to.
local utils = require('pl.utils')

local Clock = require('latchkey.mock.clock')
local Functions = require('latchkey.mock.functions')
local Library = require('latchkey.mock.library')
local Sandbox = require('latchkey.mock.sandbox')
local Store = require('latchkey.mock.store')
local arrays = require('latchkey.mock.arrays')
local catalog = require('latchkey.script.catalog')
local convert = require('latchkey.mock.convert')
local dispatch = require('latchkey.mock.dispatch')
local redis = require('latchkey.mock.redis')
local runner = require('latchkey.mock.runner')

local World = { null = convert.null }
World.__index = World

local MAX_INSTRUCTIONS = 1e7

---@class world.options
---@field scripts? string the folder of the scripts that `eval` knows by name; default "scripts"
---@field strict? boolean refuse what latchkey forbids; default true
---@field time? 'moving'|'frozen' what a second TIME in one script shows; default "moving"
---@field most_number? number in strict mode numbers of redis.call are below it; default 2^53
---@field max_instructions? integer where a script that does not end is stopped; default 10^7

---@param options? world.options
---@return table world
function World.new(options)
  options = options or {}
  local time = options.time or 'moving'
  if time ~= 'moving' and time ~= 'frozen' then
    error('time is "moving" or "frozen"', 2)
  end
  local self = setmetatable({
    scripts_folder = options.scripts or 'scripts',
    strict = options.strict ~= false,
    most_number = options.most_number or 2 ^ 53,
    max_instructions = options.max_instructions or MAX_INSTRUCTIONS,
    clock = Clock.new(time == 'moving'),
    outbox = {}, named = {}, slots = {},
    full = false, replica = false, broken_disk = false,
  }, World)
  self.store = Store.new(self.clock)
  local function refuse(text)
    self:refuse(text)
  end
  self.sandbox = Sandbox.new(redis(self), refuse)
  self.library = Library.new(self.sandbox)
  self.functions = Functions.new(redis(self), refuse, self.max_instructions)
  return self
end

-- A command or script begins.
function World:begin()
  self.clock:begin()
  self.store:begin()
end

-- Ends the script that runs, whatever it does with the error.
function World:refuse(text)
  self.run.finding = self.run.finding or text
  error(text, 0)
end

local function to_error(text, name)
  text = convert.error_text(text)
  return { code = text:match('^%S*'), message = text, script = name,
    line = tonumber(text:match(' script: [%w_]+, on @user_%l+:(%d+)%.$')) }
end

-- As the LuaJIT binding takes them: a nil hides nothing, up to `count` or the last that is none.
local function to_texts(list, count)
  local texts = {}
  for i = 1, count or table.maxn(list or {}) do
    texts[i] = convert.argument(list[i]) or error('keys and arguments are strings or numbers', 3)
  end
  return texts
end

---Gives a script its name, whatever folder it is of.
---@param name string
---@param source string
---@param header? table without one only the general rules hold
---@return table|nil script
---@return string|nil err
function World:add(name, source, header)
  local compiled, why = self.library:load(source)
  if not compiled then
    return nil, why
  end
  compiled.header = header
  self.named[name] = compiled
  return compiled
end

-- Worlds are made by the thousand, of the same scripts: a text is read again, and parsed again when
-- it has changed.
local parsed = {}

local function read_file(path)
  local known, source = parsed[path], utils.readfile(path, true)
  local _, contract
  if known and source == known.source then
    _, contract = catalog.contract_of(path, source)
  end
  if known and source == known.source and contract == known.contract then
    return known
  end
  local file, findings = catalog.read_file(path)
  parsed[path] = file
  return file, findings
end

local function find_script(self, name)
  if self.named[name] then
    return self.named[name]
  end
  local file, findings = read_file(('%s/%s.lua'):format(self.scripts_folder, name))
  if not file then
    local first = findings[1]
    return nil, ('MOCK %s:%d: %s'):format(first.file, first.line, first.message)
  end
  return self:add(name, file.source, file.header)
end

local function run(self, name, script, keys, args)
  local reply, err = runner.run(self, script, to_texts(keys), to_texts(args), false)
  if err then
    return nil, to_error(err, name)
  end
  return reply
end

---Runs a script of the folder, as a client does that loads what the server does not have.
---@param name string such as "lock/acquire"
---@param keys? (string|number)[]
---@param args? (string|number)[]
---@return any reply as a client sees it
---@return table|nil err { code, message, script, line }
function World:eval(name, keys, args)
  local script, why = find_script(self, name)
  if not script then
    return nil, to_error(why, name)
  end
  self.library:keep(script)
  return run(self, name, script, keys, args)
end

---EVAL.
function World:eval_source(source, keys, args)
  local script, why = self.library:load(source)
  if not script then
    return nil, to_error(why)
  end
  return run(self, nil, script, keys, args)
end

---One command of a client, outside any script; its words one by one, or as one list.
---@return any reply
---@return table|nil err
function World:command(...)
  local first = ...
  local texts = type(first) == 'table' and to_texts(first) or to_texts({ ... }, select('#', ...))
  local reply, err = dispatch.from_client(self, texts)
  if err then
    return nil, to_error(err)
  end
  return reply
end

function World:script_flush()
  self.library:flush()
end

---@param ms integer
function World:advance(ms)
  self.clock:advance(ms)
end

---@return integer
function World:now_ms()
  return self.clock.ms
end

---What was published since the last call: { verb, channel, message } each.
function World:messages()
  local messages = self.outbox
  self.outbox = {}
  return messages
end

local DUMP = {
  string = function(value)
    return value
  end,
  hash = function(pairs_)
    local fields = {}
    for i = 1, #pairs_, 2 do
      fields[pairs_[i]] = pairs_[i + 1]
    end
    return fields
  end,
  list = arrays.copy,
  zset = function(entries)
    local copies = {}
    for i, entry in ipairs(entries) do
      copies[i] = arrays.copy(entry)
    end
    return copies
  end,
  set = function(members)
    local sorted = arrays.copy(members)
    table.sort(sorted)
    return sorted
  end,
  stream = function(entries)
    local copies = {}
    for i, entry in ipairs(entries) do
      copies[i] = { ('%.0f-%.0f'):format(entry[1], entry[2]), unpack(entry[3]) }
    end
    return copies
  end,
}

---Every live key: { type, value, pttl }; a hash as field -> value, a list as an array, a
---sorted set as an array of { member, score }, a set as a sorted array, a stream as an array of
---{ id, field, value ... }, pttl -1 without expiry.
function World:dump()
  self:begin()
  local dump = {}
  for _, key in ipairs(self.store:names()) do
    local record = self.store:get(key)
    dump[key] = { type = record.type, value = DUMP[record.type](record.value),
      pttl = record.expires_at and record.expires_at - self.clock.ms or -1 }
  end
  return dump
end

---A server that is full: what needs memory is refused.
function World:set_oom(on)
  self.full = on
end

---A replica: what writes is refused.
function World:set_readonly(on)
  self.replica = on
end

---A server that cannot save: what writes is refused.
function World:set_broken_disk(on)
  self.broken_disk = on
end

---A user whose scripts may not run a command, or not on one key; without arguments, one who may run
---all.
---@param command? string in capitals
---@param key? string
function World:set_denied(command, key)
  self.denied = command and { command = command, key = key } or nil
end

---Starts from other keys, at the time at which worlds begin: how a checker goes from state to state
---without copying. Nothing else changes.
---@param keys table name -> record as `keys` gives it; is the world's from now on
function World:replace(keys)
  self.clock.ms = Clock.START_MS
  self.store:replace(keys)
end

---@return table name -> record { type, value, expires_at }; a record is never changed
function World:keys()
  return self.store.keys
end

---Keys, time, messages and faults; the scripts that are loaded are no part of it.
function World:snapshot()
  return { keys = self.store:snapshot(), ms = self.clock.ms, outbox = arrays.copy(self.outbox),
    full = self.full, replica = self.replica, broken_disk = self.broken_disk,
    denied = self.denied }
end

---@param snapshot table can be restored any number of times
function World:restore(snapshot)
  self.store:restore(snapshot.keys)
  self.clock.ms = snapshot.ms
  self.outbox = arrays.copy(snapshot.outbox)
  self.full, self.replica = snapshot.full, snapshot.replica
  self.broken_disk, self.denied = snapshot.broken_disk, snapshot.denied
end

return World

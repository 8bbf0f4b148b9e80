-- SPDX-License-Identifier: Apache-2.0
-- A world that is a live server: the mock's methods (../mock/world.lua), through liblatchkey.
local setenv = require('posix.stdlib').setenv

local cjson = require('cjson')

local catalog = require('latchkey.script.catalog')
local bare = require('latchkey.script.bare')
local header = require('latchkey.script.header')
local latchkey = require('latchkey')
local Observer = require('latchkey.spec.observer')
local report = require('latchkey.report')
local values = require('latchkey.spec.values')

-- A sanitizer that is preloaded for the library is not for the programs that specs start.
setenv('LD_PRELOAD', nil)

local World = { null = latchkey.null }
World.__index = World

-- One indivisible look at every key, as a flat array.
local DUMP = [[
local READ = cjson.decode(ARGV[1])
local reply = {}
for _, key in ipairs(redis.call('KEYS', '*')) do
  local kind = redis.call('TYPE', key).ok
  local read = READ[kind]
  local value = redis.call(read[1], key, unpack(read, 2))
  for _, part in ipairs({key, kind, redis.call('PTTL', key), value}) do
    reply[#reply + 1] = part
  end
end
return reply]]

-- Time moves when every lease has that much less left, and every time of 13 digits in a value has
-- come that much nearer; what has nothing left is gone. A stream with groups stays as it is: nobody
-- could write down again what is pending in them.
local ADVANCE = [[
local READ, has_moved = cjson.decode(ARGV[2]), false
local function nearer(value)
  if type(value) == 'table' then
    local parts = {}
    for i, part in ipairs(value) do
      parts[i] = nearer(part)
    end
    return parts
  end
  local text, count = value:gsub('%f[%d]' .. ('%d'):rep(13) .. '%f[%D]', function(time_ms)
    return ('%.0f'):format(time_ms - ARGV[1])
  end)
  has_moved = has_moved or count > 0
  return text
end
local function last_id(key)
  local about = redis.call('XINFO', 'STREAM', key)
  for i = 1, #about, 2 do
    if about[i] == 'last-generated-id' then
      return about[i + 1]
    end
  end
end
local WRITE = {}
function WRITE.string(key, text)
  redis.call('SET', key, text)
end
function WRITE.hash(key, parts)
  for i = 1, #parts, 2 do
    redis.call('HSET', key, parts[i], parts[i + 1])
  end
end
function WRITE.list(key, parts)
  for _, part in ipairs(parts) do
    redis.call('RPUSH', key, part)
  end
end
function WRITE.set(key, parts)
  for _, part in ipairs(parts) do
    redis.call('SADD', key, part)
  end
end
function WRITE.zset(key, parts)
  for i = 1, #parts, 2 do
    redis.call('ZADD', key, parts[i + 1], parts[i])
  end
end
function WRITE.stream(key, entries, last)
  for _, entry in ipairs(entries) do
    redis.call('XADD', key, entry[1], unpack(entry[2]))
  end
  if #entries == 0 then
    redis.call('XADD', key, last, '', '')
    redis.call('XDEL', key, last)
  end
  redis.call('XSETID', key, last)
end
for _, key in ipairs(redis.call('KEYS', '*')) do
  local kind, ends = redis.call('TYPE', key).ok, redis.call('PEXPIRETIME', key)
  local last = kind == 'stream' and last_id(key)
  local stays = last and (last == '0-0' or #redis.call('XINFO', 'GROUPS', key) > 0)
  has_moved = false
  local value = nearer(redis.call(READ[kind][1], key, unpack(READ[kind], 2)))
  last = last and nearer(last)
  if has_moved and not stays then
    redis.call('DEL', key)
    WRITE[kind](key, value, last)
  end
  if ends >= 0 then
    redis.call('PEXPIREAT', key, ends - tonumber(ARGV[1]))
  end
end]]

local function must(reply, err)
  return reply or error(err and err.message or 'the server answered nil', 2)
end

-- Specs empty the server before each case, so only one that keeps nothing is taken.
local function check_private(client)
  local save = must(client:command('CONFIG', 'GET', 'save'))[2]
  local appendonly = must(client:command('CONFIG', 'GET', 'appendonly'))[2]
  if save ~= '' or appendonly ~= 'no' then
    error('LATCHKEY_SPEC_URL names a server that keeps its data; specs would empty it', 0)
  end
end

local function channel_places(scripts)
  local places = {}
  for _, script in ipairs(scripts) do
    for place, argument in ipairs(script.header.argv) do
      if argument.type == 'channel' then
        places[script.name] = place
      end
    end
  end
  return places
end

local live = {}
local shared

---An emptied server. Each call gives the same one.
---@param url string unix:///path or redis://host:port, a server of the specs' own
---@param scripts string the folder that their scripts come from
function live.world(url, scripts)
  if not shared then
    local all, findings = catalog.read(scripts)
    if not all then
      error(report.text(findings), 0)
    end
    local texts = bare.texts(all)
    local client = must(latchkey.open(url, { script_dir = not texts and scripts or nil }))
    check_private(client)
    shared = setmetatable({
      client = client,
      observer = Observer.open(url),
      channel_places = channel_places(all),
      texts = texts,
      outbox = {},
    }, World)
    -- Another file of specs may have left it a replica; a cluster's node refuses this, and is none.
    shared:command('REPLICAOF', 'NO', 'ONE')
  end
  shared:set_readonly(false)
  shared:set_oom(false)
  shared:set_denied()
  must(shared:command('FLUSHALL'))
  shared:messages()
  return shared
end

-- Whoever a message wakes must find the keys as they stay: nothing is written after it.
function World:collect()
  local told
  for _, event in ipairs(self.observer:take()) do
    if event.verb then
      table.insert(self.outbox, event)
      told = true
    elseif told then
      error(('%s: %s after a message went out'):format(event.key, event.event), 0)
    end
  end
end

---Sharded channels are seen only when listened to; that of a script's argument always is.
function World:listen(channel)
  self.observer:listen(channel)
end

-- Runs a script, and holds what has a contract to the replies in it.
local function run(self, name, keys, args)
  local script = self.texts and self.texts[name]
  if not script then
    return self.client:eval(name, keys, args)
  end
  local reply, err = bare.eval(self.client, script.source, keys, args)
  if not err and not header.reply_shape(script.header, reply) then
    error(('%s: the contract lists no such reply'):format(name), 0)
  end
  return reply, err
end

-- Lists that are left out are empty, as on the mock.
function World:eval(name, keys, args)
  keys, args = keys or {}, args or {}
  local channel = args[self.channel_places[name]]
  if channel then
    self:listen(channel)
  end
  self:collect()
  local reply, err = run(self, name, keys, args)
  self:collect()
  return reply, err
end

-- What a command follows is no part of it: another client's message may go before its write.
function World:command(...)
  self:collect()
  return self.client:command(...)
end

function World:eval_source(source, keys, args)
  return bare.eval(self.client, source, keys or {}, args or {})
end

function World:advance(ms)
  assert(select(2, self:eval_source(ADVANCE, {}, { ms, cjson.encode(values.READ) })) == nil)
end

function World:now_ms()
  local time = must(self:command('TIME'))
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

function World:script_flush()
  must(self:command('SCRIPT', 'FLUSH'))
end

function World:set_oom(on)
  must(self:command('CONFIG', 'SET', 'maxmemory', on and 1 or 0))
end

---A user whose scripts may not run a command; without arguments, one who may run all. A part of the
---rule, so not for one key alone.
---@param command? string
function World:set_denied(command)
  local rule = command and '-' .. command or self.denied and '+' .. self.denied
  if rule then
    must(self:command('ACL', 'SETUSER', self.user or 'default', rule))
  end
  self.denied = command
end

-- A replica whose master cannot be reached; a cluster's node never becomes one in this way.
function World:set_readonly(on)
  if on ~= (self.is_readonly or false) then
    must(self:command('REPLICAOF', on and '127.0.0.1' or 'NO', on and 1 or 'ONE'))
    self.is_readonly = on
  end
end

function World:messages()
  self:collect()
  local messages = self.outbox
  self.outbox = {}
  return messages
end

function World:dump()
  local parts, keys = must(self:eval_source(DUMP, {}, { cjson.encode(values.READ) })), {}
  for i = 1, parts.n, 4 do
    local key, kind, pttl, value = parts[i], parts[i + 1], parts[i + 2], parts[i + 3]
    keys[key] = { type = kind, value = values.DECODE[kind](value), pttl = pttl }
  end
  return keys
end

return live

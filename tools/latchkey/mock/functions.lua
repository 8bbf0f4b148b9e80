-- SPDX-License-Identifier: Apache-2.0
-- The libraries of functions that a server has.
local Sandbox = require('latchkey.mock.sandbox')
local methods = require('latchkey.mock.methods')

local Functions = {}
Functions.__index = Functions

local FLAGS = { ['allow-oom'] = true, ['no-writes'] = true, ['allow-stale'] = true,
  ['no-cluster'] = true, ['allow-cross-slot-keys'] = true }
-- What code may use while it is loaded, beside register_function.
local WHILE_LOADED = { 'log', 'setresp', 'REPL_NONE', 'LOG_DEBUG', 'LOG_VERBOSE', 'LOG_NOTICE',
  'LOG_WARNING', 'REDIS_VERSION', 'REDIS_VERSION_NUM' }
local ARGUMENTS = { function_name = true, callback = true, flags = true, description = true }
local BAD_NAME = 'Library names can only contain letters, numbers, or underscores(_) and must be '
  .. 'at least one character long'

---@param redis table the functions of `redis`
---@param refuse function(text) ends the script: it needs what is not modelled
---@param max_instructions integer where code that is loaded and does not end is stopped
function Functions.new(redis, refuse, max_instructions)
  local self = setmetatable({ libraries = {}, functions = {}, refuse = refuse,
    max_instructions = max_instructions }, Functions)
  self.sandbox = Sandbox.new(redis, refuse)
  local narrow = { register_function = function(...)
    return self:register(...)
  end }
  for _, name in ipairs(WHILE_LOADED) do
    narrow[name] = redis[name]
  end
  local missing = { __index = self.sandbox.missing_global }
  self.at_load = setmetatable({ redis = self.sandbox:guard(setmetatable(narrow, missing)) },
    missing)
  return self
end

local function raise(text)
  error({ err = 'ERR ' .. text }, 0)
end

-- Names may be numbers, which are texts in Lua's view.
local function text_of(value, what)
  if type(value) ~= 'string' and type(value) ~= 'number' then
    raise(what)
  end
  return tostring(value)
end

local function read_flags(list)
  if type(list) ~= 'table' then
    raise('flags argument to redis.register_function must be a table representing function flags')
  end
  local flags = { n = 0 }
  for _, flag in ipairs(list) do
    if not FLAGS[flag] then
      raise('unknown flag given')
    elseif not flags[flag] then
      flags[flag], flags.n = true, flags.n + 1
      flags[flags.n] = flag
    end
  end
  return flags
end

local function read_named(given)
  for key in pairs(given) do
    if not ARGUMENTS[key] then
      raise('unknown argument given to redis.register_function')
    end
  end
  local name, callback = given.function_name, given.callback
  if name == nil then
    raise('redis.register_function must get a function name argument')
  elseif callback == nil then
    raise('redis.register_function must get a callback argument')
  elseif type(callback) ~= 'function' then
    raise('callback argument given to redis.register_function must be a function')
  end
  return text_of(name, 'function_name argument given to redis.register_function must be a string'),
    callback, given.description ~= nil and text_of(given.description,
      'description argument given to redis.register_function must be a string') or nil,
    given.flags ~= nil and read_flags(given.flags) or nil
end

local function read_arguments(self, ...)
  local first, second = ...
  local count = select('#', ...)
  if count == 0 then
    raise('wrong number of arguments to redis.register_function')
  elseif count > 2 then
    self.refuse('MOCK redis.register_function with more than two arguments: a server of version '
      .. '7.0 dies of it')
  elseif count == 1 then
    if type(first) ~= 'table' then
      raise('calling redis.register_function with a single argument is only applicable to Lua '
        .. 'table (representing named arguments).')
    end
    return read_named(first)
  end
  local name = text_of(first, 'first argument to redis.register_function must be a string')
  if type(second) ~= 'function' then
    raise('second argument to redis.register_function must be a function')
  end
  return name, second
end

function Functions:register(...)
  local library = self.loading
  local name, callback, description, flags = read_arguments(self, ...)
  if not name:find('^[%w_]+$') then
    raise(BAD_NAME)
  end
  for _, known in ipairs(library.functions) do
    if known.name == name then
      raise('Function already exists in the library')
    end
  end
  table.insert(library.functions, { name = name, callback = callback, description = description,
    flags = flags or { n = 0 } })
end

-- The first line: `#!lua name=LIBRARY`.
local function read_shebang(code)
  if code:sub(1, 2) ~= '#!' then
    return nil, 'ERR Missing library metadata'
  end
  local line = code:match('^#!([^\n]*)\n')
  local engine = line and line:match('^%S+')
  if not engine then
    return nil, 'ERR Invalid library metadata'
  end
  local name
  for word in line:sub(#engine + 1):gmatch('%S+') do
    local value = word:lower():find('^name=') and word:sub(6)
    if not value then
      return nil, 'ERR Invalid metadata value given: ' .. word
    elseif name then
      return nil, 'ERR Invalid metadata value, name argument was given multiple times'
    end
    name = value
  end
  if not name then
    return nil, 'ERR Library name was not given'
  elseif not name:find('^[%w_]+$') then
    return nil, 'ERR ' .. BAD_NAME
  elseif engine:lower() ~= 'lua' then
    return nil, ("ERR Engine '%s' not found"):format(engine)
  end
  return name
end

-- Runs the code, which registers its functions. It has `redis` alone, which its functions find all
-- else beside; a hook that somebody else has set, a coverage tool's, stays.
local function read_functions(self, library, chunk)
  local shared, max = getmetatable(''), self.max_instructions
  local before, is_hooked = shared.__index, debug.gethook() ~= nil
  if not is_hooked then
    debug.sethook(function()
      error(('MOCK the script ran more than %d instructions'):format(max), 0)
    end, '', max)
  end
  self.sandbox:narrow(self.at_load)
  self.loading, shared.__index = library, methods
  local ok, why = pcall(chunk)
  self.loading, shared.__index = nil, before
  self.sandbox:narrow(nil)
  if not is_hooked then
    debug.sethook()
  end
  if ok then
    return #library.functions > 0, 'ERR No functions registered'
  elseif type(why) == 'string' and why:find('^MOCK ') then
    return nil, why
  end
  return nil, 'ERR Error registering functions: '
    .. (type(why) == 'table' and tostring(why.err) or 'ERR ' .. tostring(why))
end

-- Function names are one for all libraries, in upper or lower case.
local function taken(self, library)
  for _, item in ipairs(library.functions) do
    local known = self.functions[item.name:lower()]
    if known and known.library.name ~= library.name then
      return ('ERR Function %s already exists'):format(item.name)
    end
  end
end

---FUNCTION LOAD.
---@param code string
---@param replace boolean
---@return string|nil name of the library
---@return string|nil err
function Functions:load(code, replace)
  local name, bad = read_shebang(code)
  if not name then
    return nil, bad
  elseif self.libraries[name] and not replace then
    return nil, ("ERR Library '%s' already exists"):format(name)
  end
  local chunk, why = self.sandbox:compile(code:gsub('^[^\n]*', '', 1), '@user_function')
  if not chunk then
    return nil, 'ERR Error compiling function: ' .. why
  end
  local library = { name = name, code = code, functions = {} }
  local good, wrong = read_functions(self, library, chunk)
  wrong = not good and wrong or taken(self, library)
  if wrong then
    return nil, wrong
  end
  self:delete(name)
  self.libraries[name] = library
  for _, item in ipairs(library.functions) do
    item.library = library
    self.functions[item.name:lower()] = item
  end
  return name
end

---@return boolean was it there?
function Functions:delete(name)
  local library = self.libraries[name]
  for _, item in ipairs(library and library.functions or {}) do
    self.functions[item.name:lower()] = nil
  end
  self.libraries[name] = nil
  return library ~= nil
end

function Functions:find(name)
  return self.functions[name:lower()]
end

---The libraries in the order of their names.
---@return table[] { name, code, functions }
function Functions:list()
  local list = {}
  for _, library in pairs(self.libraries) do
    list[#list + 1] = library
  end
  table.sort(list, function(a, b)
    return a.name < b.name
  end)
  return list
end

function Functions:flush()
  self.libraries, self.functions = {}, {}
end

return Functions

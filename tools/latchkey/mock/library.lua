-- SPDX-License-Identifier: Apache-2.0
-- The scripts that a server has: compiled, and found by SHA1 until SCRIPT FLUSH.
local digest = require('latchkey.digest')

local Library = {}
Library.__index = Library

local FLAGS = { ['allow-oom'] = true, ['no-writes'] = true, ['allow-stale'] = true,
  ['no-cluster'] = true, ['allow-cross-slot-keys'] = true }

-- SHA1s of sources: many servers, one after the other, are given the same scripts.
local KEPT_MAX = 500
local kept, kept_count = {}, 0

local function sha1_of(source)
  local sha1 = kept[source]
  if not sha1 then
    sha1 = digest.sha1(source)
    if kept_count == KEPT_MAX then
      kept, kept_count = {}, 0
    end
    kept[source], kept_count = sha1, kept_count + 1
  end
  return sha1
end

---@param sandbox table
function Library.new(sandbox)
  return setmetatable({ sandbox = sandbox, compiled = {}, loaded = {} }, Library)
end

local function read_option(option, flags)
  local list = option:match('^flags=(.*)$')
  if not list then
    return 'ERR Unknown lua shebang option: ' .. option
  end
  for flag in (list == '' and '' or list .. ','):gmatch('([^,]*),') do
    if not FLAGS[flag] then
      return 'ERR Unexpected flag in script shebang: ' .. flag
    end
    flags[flag] = true
  end
end

-- The first line of a script that starts with "#!". Without one a script runs as it did before
-- Redis 7: no flags, and no checks before its first command.
local function read_shebang(source)
  if source:sub(1, 2) ~= '#!' then
    return source, nil
  end
  local line, rest = source:match('^([^\n]*)(\n.*)$')
  if not line then
    return nil, nil, 'ERR Invalid script shebang'
  elseif line:find('["\']') then
    return nil, nil, 'ERR Invalid engine in script shebang'
  end
  local engine, options = line:match('^(%S+)(.*)$')
  if engine ~= '#!lua' then
    return nil, nil, 'ERR Unexpected engine in script shebang: ' .. engine
  end
  local flags = {}
  for option in options:gmatch('%S+') do
    local err = read_option(option, flags)
    if err then
      return nil, nil, err
    end
  end
  return rest, flags
end

function Library:compile(source)
  local code, flags, bad = read_shebang(source)
  if bad then
    return nil, bad
  end
  local chunk, why = self.sandbox:compile(code, '@user_script')
  if not chunk then
    return nil, why:find('^MOCK ') and why or 'ERR Error compiling script (new function): ' .. why
  end
  return { chunk = chunk, flags = flags, sha1 = sha1_of(source),
    title = source:match('\nname: *(%S+)') }
end

---SCRIPT LOAD.
---@param source string
---@return table|nil script { chunk, flags, sha1 }
---@return string|nil err
function Library:load(source)
  local script = self.compiled[source]
  if not script then
    local why
    script, why = self:compile(source)
    if not script then
      return nil, why
    end
    self.compiled[source] = script
  end
  self:keep(script)
  return script
end

function Library:keep(script)
  self.loaded[script.sha1] = script
end

function Library:find(sha)
  return self.loaded[sha]
end

function Library:flush()
  self.loaded = {}
end

return Library

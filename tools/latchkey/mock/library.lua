-- SPDX-License-Identifier: Apache-2.0
-- The scripts that a server has: compiled, and found by SHA1 until SCRIPT FLUSH.
local tablex = require('pl.tablex')

local digest = require('latchkey.digest')
local shebang = require('latchkey.script.shebang')

local Library = {}
Library.__index = Library

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

function Library:compile(source)
  local flags, refusal = shebang.flags(source)
  if refusal then
    return nil, 'ERR ' .. refusal
  end
  local code = flags and source:match('\n.*$') or source
  local chunk, why = self.sandbox:compile(code, '@user_script')
  if not chunk then
    return nil, why:find('^MOCK ') and why or 'ERR Error compiling script (new function): ' .. why
  end
  return { chunk = chunk, flags = flags and tablex.makeset(flags), sha1 = sha1_of(source),
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

---SCRIPT FLUSH, by which a server begins Lua anew.
function Library:flush()
  self.compiled, self.loaded = {}, {}
  self.sandbox:renew()
end

return Library

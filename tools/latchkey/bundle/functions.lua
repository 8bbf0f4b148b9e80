-- SPDX-License-Identifier: Apache-2.0
-- A script as a library of Redis Functions: one function, both named lock_acquire_1 after the
-- script and its major version, since function names are global on a server.
local ledger = require('latchkey.script.ledger')

local functions = {}

---@param name string of a script
---@param version string
---@return string
function functions.name(name, version)
  return name:gsub('/', '_') .. '_' .. version:match('^%d+')
end

local function quoted(list)
  local parts = {}
  for i, word in ipairs(list) do
    parts[i] = ("'%s'"):format(word)
  end
  return table.concat(parts, ', ')
end

-- What a server runs of the text, without its first line where that is of flags.
local function code_of(source)
  local is_flags = source:sub(1, 2) == '#!'
  return is_flags and source:gsub('^[^\n]*\n', '', 1) or source, is_flags
end

---The code for FUNCTION LOAD. The first line is the server's, the second registers and goes on with
---the script's second, so that every line of the script keeps its number. Where the script's first
---line is code already, all of them have one more.
---@param script table { name, sha1, source, header }, as of catalog.read
---@return string|nil code
---@return string|nil why
function functions.library(script)
  local body, is_flags = code_of(script.source)
  local first = is_flags and '\n' or ''
  -- LuaJIT reads bytecode without a check: what somebody made up crashes it.
  if script.source:find('^\27') then
    return nil, script.name .. ' is bytecode; a server takes the text of a script'
  end
  local compiled, wrong = loadstring(first .. body, '=' .. script.name)
  if compiled then
    -- A function has no "..." as a script has.
    compiled, wrong = loadstring(('%sreturn function() %s\nend'):format(first, body),
      '=' .. script.name)
  end
  if not compiled then
    return nil, wrong
  end
  local name = functions.name(script.name, script.header.version)
  body = body:gsub('\n$', '')
  return ("#!lua name=%s\nredis.register_function{function_name='%s', description='%s %s %s', "
    .. 'flags={%s}, callback=function(KEYS, ARGV) '):format(name, name, script.name,
    script.header.version, script.sha1, quoted(script.header.flags)) .. body .. '\nend}\n'
end

---What a function's description says of its script.
---@param description any as FUNCTION LIST shows it
---@return table|nil script { name, version, sha1 }; nil: it is none of latchkey's
function functions.described(description)
  local name, version, sha1 =
    tostring(description):match('^([%l%d_]+/[%l%d_]+) (%d+%.%d+%.%d+) (%x+)$')
  return name and #sha1 == 40 and { name = name, version = version, sha1 = sha1 } or nil
end

---What loading a library means for a server.
---@param wanted { name: string, version: string, code: string }
---@param present { description: any, code: string }|nil the library of that name that is there
---@return 'new'|'stays'|'replaces'|'refused' step
---@return string|nil why it is refused unless it is forced
function functions.step(wanted, present)
  if not present then
    return 'new'
  elseif present.code == wanted.code then
    return 'stays'
  end
  local known = functions.described(present.description)
  if not known or known.name ~= wanted.name then
    return 'refused', 'a library of that name is there that is not latchkey\'s'
  elseif known.version == wanted.version then
    return 'refused', ('its %s is there with other bytes'):format(known.version)
  elseif ledger.above(known.version, wanted.version) then
    return 'refused', ('the newer %s is there'):format(known.version)
  end
  return 'replaces'
end

return functions

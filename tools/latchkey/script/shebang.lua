-- SPDX-License-Identifier: Apache-2.0
-- The first line of a script, where it begins with "#!", as a server reads it.
local shebang = {}

local FLAGS = { ['allow-oom'] = true, ['no-writes'] = true, ['allow-stale'] = true,
  ['no-cluster'] = true, ['allow-cross-slot-keys'] = true }

local function add_flags(option, flags)
  local list = option:match('^flags=(.*)$')
  if not list then
    return 'Unknown lua shebang option: ' .. option
  end
  for flag in (list == '' and '' or list .. ','):gmatch('([^,]*),') do
    if not FLAGS[flag] then
      return 'Unexpected flag in script shebang: ' .. flag
    end
    flags[#flags + 1] = flag
  end
end

---@param source string a script
---@return string[]|nil flags nil: it has no such line, and runs as it did before Redis 7
---@return string|nil refusal what a server says of such a line
function shebang.flags(source)
  if source:sub(1, 2) ~= '#!' then
    return nil
  end
  local line = source:match('^([^\n]*)\n')
  if not line then
    return nil, 'Invalid script shebang'
  elseif line:find('["\']') then
    return nil, 'Invalid engine in script shebang'
  end
  local engine, options = line:match('^(%S+)(.*)$')
  if engine ~= '#!lua' then
    return nil, 'Unexpected engine in script shebang: ' .. engine
  end
  local flags = {}
  for option in options:gmatch('%S+') do
    local refusal = add_flags(option, flags)
    if refusal then
      return nil, refusal
    end
  end
  return flags
end

return shebang

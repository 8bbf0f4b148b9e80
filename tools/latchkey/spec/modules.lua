-- SPDX-License-Identifier: Apache-2.0
-- Where the modules of specs are found that are not latchkey's.
local modules = {}

-- Modules of specs are their owner's, found as busted finds them, from the current folder. All of
-- latchkey's are called latchkey.something; `helper` is another name of one where nothing has it.
---@param home string the folder of tools/
function modules.give_way(home)
  local own = ('%s/tools/?.lua;%s/tools/?/init.lua'):format(home, home)
  local function find_own(name)
    local file = (name .. '.'):find('^latchkey%.') and package.searchpath(name, own)
    return file and assert(loadfile(file)) or nil
  end
  local function find_helper(name)
    return name == 'helper' and function()
      return require('latchkey.spec')
    end or nil
  end
  table.insert(package.loaders, 2, find_own)
  table.insert(package.loaders, find_helper)
  local rest = package.path:sub(1, #own) == own and package.path:sub(#own + 2) or package.path
  package.path = './?.lua;./?/init.lua;./src/?.lua;./src/?/?.lua;./src/?/init.lua;' .. rest
end

---What the helper reads when it is loaded.
---@param url string|nil
---@param folder string|nil of scripts
function modules.set_environment(url, folder)
  local setenv = require('posix.stdlib').setenv
  setenv('LATCHKEY_SPEC_URL', url)
  setenv('LATCHKEY_SPEC_SCRIPTS', folder)
end

return modules

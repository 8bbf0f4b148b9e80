-- SPDX-License-Identifier: Apache-2.0
-- A folder of scripts in which one text stands for another; it is gone when the test ends.
local dir = require('pl.dir')
local path = require('pl.path')
local utils = require('pl.utils')

local helper = require('helper')

---@param finally function busted's
---@param families string the script is of the first; such as "lock" or "rw lock"
---@param script string
---@return string folder
return function(finally, families, script, text, by)
  local folder, changed = path.tmpname(), families:match('%S+') .. '/' .. script
  os.remove(folder)
  for family in families:gmatch('%S+') do
    dir.makepath(folder .. '/' .. family)
    for _, file in ipairs(dir.getfiles(helper.scripts .. '/' .. family, '*.lua')) do
      local name = family .. '/' .. path.basename(file)
      local source = utils.readfile(file, true)
      if name == changed .. '.lua' then
        local first, last = source:find(text, 1, true)
        if not first then
          error('the script has no such text', 2)
        end
        source = source:sub(1, first - 1) .. by .. source:sub(last + 1)
      end
      utils.writefile(folder .. '/' .. name, source)
    end
  end
  finally(function()
    dir.rmtree(folder)
  end)
  return folder
end

-- SPDX-License-Identifier: Apache-2.0
-- Runs the specs of a script in this process, with another text in its place, up to the first that
-- fails. Only for a process of its own: nothing here is undone.
local dir = require('pl.dir')
local path = require('pl.path')

local catalog = require('latchkey.script.catalog')
local digest = require('latchkey.digest')
local files = require('latchkey.files')
local modules = require('latchkey.spec.modules')

local specs = {}

-- From here on each file is read and parsed once.
local function remember_files()
  local read_file, known = catalog.read_file, {}
  function catalog.read_file(file)
    local script, why = known[file], nil
    if not script then
      script, why = read_file(file)
      known[file] = script
    end
    return script, why
  end
end

local MODULES = { 'busted', 'busted.core', 'busted.block', 'busted.execute',
  'busted.modules.test_file_loader', 'busted.modules.files.lua', 'luassert', 'helper',
  'latchkey.mock.world', 'latchkey.mock.commands', 'pl.pretty', 'pl.stringx' }

---What all specs need, read once: children of this process have it.
---@param subject mutate.subject
function specs.prepare(subject)
  if subject.is_own then
    package.path = path.join(subject.root, 'spec', '?.lua') .. ';' .. package.path
    require('support.cases')
  else
    modules.set_environment(nil, subject.scripts)
    modules.give_way(subject.root)
  end
  remember_files()
  for _, module in ipairs(MODULES) do
    require(module)
  end
  for _, script in ipairs(assert(catalog.read(subject.scripts))) do
    assert(catalog.read_file(script.path))
  end
end

-- The text of a script, wherever it is read; alone where all scripts are.
local function put_in_place(name, source)
  local read_file, read = catalog.read_file, catalog.read
  local tail = '/' .. name .. '.lua'
  function catalog.read_file(file)
    local script, why = read_file(file)
    if script and file:sub(-#tail) == tail then
      local changed = {}
      for key, value in pairs(script) do
        changed[key] = value
      end
      changed.source, changed.sha1 = source, digest.sha1(source)
      return changed
    end
    return script, why
  end
  function catalog.read(folder)
    local all, why = read(folder)
    if not all then
      return nil, why
    end
    return setmetatable({ all[name] }, { __index = all })
  end
end

-- The script's own specs, what its header promises, and those of its family; or what was named.
local function files_of(subject, name)
  local family, verb = name:match('^([^/]+)/(.+)$')
  local root, list, rest = subject.root, {}, {}
  if not subject.is_own then
    return (files.named(subject.specs, '_spec.lua'))
  end
  for _, file in ipairs(dir.getfiles(path.join(root, 'spec', family), '*_spec.lua')) do
    table.insert(path.basename(file) == verb .. '_spec.lua' and list or rest, file)
  end
  table.sort(rest)
  list[#list + 1] = path.join(root, 'spec', 'contract_spec.lua')
  for _, file in ipairs(rest) do
    list[#list + 1] = file
  end
  return list
end

---Once in a process: busted is not there a second time.
---@param subject mutate.subject
---@param name string
---@param source string the text that stands in the script's place
---@return string|nil failed the title of the spec that fails; nil: none does
function specs.first_failure(subject, name, source)
  put_in_place(name, source)
  local busted = require('busted.core')()
  require('busted')(busted)
  local failed
  local function stop(element, parent)
    local above = parent and parent.name and parent.name .. ': ' or ''
    failed = failed or above .. tostring(element.name)
    busted.skipAll = true
    return nil, true
  end
  busted.subscribe({ 'failure' }, stop)
  busted.subscribe({ 'error' }, stop)
  local load = require('busted.modules.test_file_loader')(busted, { 'lua' })
  for _, file in ipairs(files_of(subject, name)) do
    load({ file }, { '_spec%.lua$' }, { recursive = false, excludes = {}, verbose = false })
  end
  require('busted.execute')(busted)(1, { seed = 1 })
  return failed
end

return specs

-- SPDX-License-Identifier: Apache-2.0
-- Somebody's own scripts as a page shows them, in a folder: the lock of
-- docs/howto/audit-your-lock.md unless another page is named.
local dir = require('pl.dir')
local path = require('pl.path')
local tablex = require('pl.tablex')
local utils = require('pl.utils')

local checker = require('latchkey.checker')
local digest = require('latchkey.digest')
local texts = require('support.texts')

local PAGE = 'docs/howto/audit-your-lock.md'

local own_lock = {}

---@param page? string another page
---@return string folder with scripts/, their contracts and models; to be removed
function own_lock.folder(page)
  local folder = path.tmpname()
  os.remove(folder)
  local text = assert(utils.readfile(page or PAGE))
  for kind, file, content in text:gmatch('\n```(%l+) ([^\n ]+)\n(.-)```') do
    if kind ~= 'repl' then
      dir.makepath(path.dirname(folder .. '/' .. file))
      assert(utils.writefile(folder .. '/' .. file, content))
    end
  end
  return folder
end

---Another text in the place of a script, of which its contract then is.
---@param name string "release", or "family/verb" of another family
---@param change table<string, string>|nil texts of the contract to be replaced by others
function own_lock.write(folder, name, source, change)
  local file = ('%s/scripts/%s'):format(folder, name:find('/') and name or 'acme/' .. name)
  local contract = assert(utils.readfile(file .. '.contract'))
  contract = contract:gsub('sha1:     %x+', 'sha1:     ' .. digest.sha1(source))
  for old, new in pairs(change or {}) do
    contract = texts.with(contract, old, new)
  end
  utils.writefile(file .. '.contract', contract)
  utils.writefile(file .. '.lua', source)
end

local CONTRACT = 'name:     %s\nversion:  1.0.0\nsha1:     %s\nsummary:  What it does.\n%s'
  .. 'cost:     at most 9 commands\ncluster:  one slot\n'

---A script that no page shows, with its contract.
---@param lists table<string, string[]> keys, argv, returns and so on: their lines
function own_lock.add(folder, name, source, lists)
  local text = {}
  for _, list in ipairs({ 'keys', 'derived', 'argv', 'returns', 'errors', 'channels' }) do
    for i, line in ipairs(lists[list] or {}) do
      text[#text + 1] = (i == 1 and list .. ':\n' or '') .. '  - ' .. line .. '\n'
    end
  end
  local file = ('%s/scripts/%s'):format(folder, name)
  dir.makepath(path.dirname(file))
  utils.writefile(file .. '.contract',
    CONTRACT:format(name, digest.sha1(source), table.concat(text)))
  utils.writefile(file .. '.lua', source)
end

---What the default runs of a model come to: the first verdict that has findings or is not complete,
---else the last.
---@param folder string with scripts/
---@param model table
---@return table verdict of the checker, with the `options` of that run
function own_lock.check(folder, model)
  local verdict
  for _, run in ipairs(checker.runs(model)) do
    local options = tablex.copy(run)
    options.scripts = folder .. '/scripts'
    verdict = checker.check(model, options)
    verdict.options = options
    if verdict.findings[1] or not verdict.complete then
      break
    end
  end
  return verdict
end

return own_lock

-- SPDX-License-Identifier: Apache-2.0
-- Bundles: scripts as operations receive them, in one file that is the same bytes wherever it is
-- built. There is one form: what is read must be what writing it again gives, byte for byte.
local path = require('pl.path')

local catalog = require('latchkey.script.catalog')
local digest = require('latchkey.digest')
local evidence = require('latchkey.bundle.evidence')
local gzip = require('latchkey.bundle.gzip')
local header = require('latchkey.script.header')
local manifest = require('latchkey.bundle.manifest')
local pages = require('latchkey.bundle.pages')
local report = require('latchkey.report')
local tar = require('latchkey.bundle.tar')
local whole_file = require('latchkey.whole_file')

local bundle = {}

bundle.BYTES_MAX = 16 * 1024 * 1024
local LIMITS = { files = 4000, bytes = 1024 * 1024 }

---@class bundle.contents
---@field name string
---@field version string
---@field sha256 string of the whole file
---@field bytes string the whole file
---@field files table<string, string> content by path
---@field scripts table[] as of catalog.read
---@field statement table|nil what was shown about them (latchkey.bundle.evidence)

---May a bundle have this name and version?
---@param name string
---@param version string
---@return string|nil why not
function bundle.check_name(name, version)
  if not name:find('^[%l%d][%l%d-]*$') or #name > 63 then
    return ('"%s" cannot name a bundle: write small letters, digits and "-", at most 63'):format(
      name)
  elseif not version:find('^%d+%.%d+%.%d+$') or #version > 31 then
    return ('"%s" is not a version: write MAJOR.MINOR.PATCH'):format(version)
  end
end

local function too_large(what)
  return ('%s is larger than %d bytes'):format(what, bundle.BYTES_MAX)
end

-- What nobody has decided in contracts: whoever receives the bundle would take it for a promise.
local function undecided(scripts)
  local all = {}
  for _, script in ipairs(scripts) do
    for _, finding in ipairs(script.contract and header.undecided(script.contract) or {}) do
      finding.file = catalog.contract_of(script.path, script.source)
      all[#all + 1] = finding
    end
  end
  return all
end

---@param about { name: string, version: string }
---@param folder string of the scripts
---@param licence? string the text of one
---@param statement? string what was shown about the scripts (evidence.write)
---@return bundle.contents|nil contents
---@return string|nil why
function bundle.pack(about, folder, licence, statement)
  local scripts, findings = catalog.read(folder)
  if not scripts then
    return nil, (report.text(findings):gsub('\n$', ''))
  elseif #scripts == 0 then
    return nil, folder .. ' has no scripts'
  end
  findings = undecided(scripts)
  if #findings > 0 then
    return nil, (report.text(findings):gsub('\n$', ''))
  end
  local files = { LICENSE = licence, [evidence.FILE] = statement }
  for _, script in ipairs(scripts) do
    files['scripts/' .. script.name .. '.lua'] = script.source
    files['scripts/' .. script.name .. '.contract'] = script.contract
  end
  for file, page in pairs(pages.all(scripts)) do
    files['docs/' .. file] = page
  end
  local why
  scripts, why = manifest.add(about, files)
  if not scripts then
    return nil, why
  end
  local bytes = gzip.pack(tar.pack(about.name .. '-' .. about.version, files))
  -- A bundle that cannot be read again must not be written.
  return bundle.read(bytes)
end

---@param bytes string a whole file
---@return bundle.contents|nil contents
---@return string|nil why the bundle is refused
function bundle.read(bytes)
  if #bytes > bundle.BYTES_MAX then
    return nil, too_large('it')
  end
  local archive, why = gzip.unpack(bytes)
  if not archive then
    return nil, why
  end
  local folder, files = tar.unpack(archive, LIMITS)
  if not folder then
    return nil, files
  end
  local document, scripts = manifest.check(files)
  if not document then
    return nil, scripts
  end
  local statement
  if files[evidence.FILE] then
    statement, why = evidence.read(files[evidence.FILE], scripts)
    if not statement then
      return nil, why
    end
  end
  why = bundle.check_name(document.name, document.version)
  if why then
    return nil, why
  elseif folder ~= document.name .. '-' .. document.version then
    return nil, ('its folder is %s, its manifest says %s %s'):format(folder, document.name,
      document.version)
  end
  return { name = document.name, version = document.version, sha256 = digest.sha256(bytes),
    bytes = bytes, files = files, scripts = scripts, statement = statement }
end

---The bytes of a file that may be a bundle, or of a pipe, which is read once.
---@param file string
---@return string|nil bytes
---@return string|nil why
function bundle.bytes_of(file)
  if path.isdir(file) then
    return nil, ('%s is a folder; a bundle is a file'):format(file)
  elseif not path.exists(file) then
    return nil, ('there is no file %s'):format(file)
  end
  local handle, why = io.open(file, 'rb')
  if not handle then
    return nil, why
  end
  local bytes = handle:read(bundle.BYTES_MAX + 1) or ''
  handle:close()
  if #bytes > bundle.BYTES_MAX then
    return nil, too_large(file)
  end
  return bytes
end

local function write_script(script, folder)
  local stem = path.join(folder, script.name)
  local written, why = whole_file.write_below(stem .. '.lua', script.source)
  if written and script.contract then
    written, why = whole_file.write(stem .. '.contract', script.contract)
  end
  return written, why
end

---The scripts of a bundle as a folder, for those who take one (script_dir of a client), each with
---the contract that stood beside it.
---@param contents bundle.contents
---@param folder string
---@return true|nil written
---@return string|nil why
function bundle.unpack(contents, folder)
  for _, script in ipairs(contents.scripts) do
    local made, why = write_script(script, folder)
    if not made then
      return nil, why
    end
  end
  return true
end

return bundle

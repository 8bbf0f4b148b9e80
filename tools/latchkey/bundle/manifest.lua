-- SPDX-License-Identifier: Apache-2.0
-- manifest.json: what a bundle says of itself. It follows from the files, byte for byte, so that
-- one that lies is found out by writing it again; a change of its form is another `schema`.
-- manifest.schema.json describes it to others.
local cjson = require('cjson')
local path = require('pl.path')
local tablex = require('pl.tablex')

local digest = require('latchkey.digest')
local functions = require('latchkey.bundle.functions')
local header = require('latchkey.script.header')
local json = require('latchkey.json')
local ledger = require('latchkey.script.ledger')
local sorted = require('latchkey.sorted')

local manifest = {}

manifest.FILE = 'manifest.json'
manifest.SCHEMA = 'latchkey/manifest/1'
-- The oldest servers that run such scripts.
manifest.SERVER = { redis = '7.0.0', valkey = '7.2.0' }

---The version from which on scripts run on the server of which INFO says this; nil where it is one.
---@param fields table<string, string>
---@return string|nil floor
function manifest.wanted_version(fields)
  local product = fields.valkey_version and 'valkey' or 'redis'
  local version, floor = fields[product .. '_version'] or '', manifest.SERVER[product]
  return version:find('^%d+%.%d+%.%d+$') and ledger.above(floor, version) and floor or nil
end

---How a header writes the form of a name.
---@param form { kind: string, text: string, plus: string }
---@return string
function manifest.form(form)
  local base = form.kind == 'pattern' and form.text
    or form.text ~= '' and form.kind .. ':' .. form.text or '{' .. form.kind .. '}'
  return base .. (form.plus ~= '' and '+' .. form.plus or '')
end

local function range(limits)
  return limits and { limits.min, limits.max } or nil
end

local function keys_of(list)
  local keys = {}
  for i, key in ipairs(list) do
    keys[i] = { name = key.name, type = key.type, access = key.access,
      form = manifest.form(key.form), marks = sorted(key.marks), count = range(key.many),
      text = key.text }
  end
  return keys
end

local function arguments_of(list)
  local arguments = {}
  for i, argument in ipairs(list) do
    arguments[i] = { name = argument.name, type = argument.type, optional = argument.optional,
      range = argument.min and range(argument), values = argument.values,
      form = argument.form and manifest.form(argument.form), count = range(argument.many),
      text = argument.text }
  end
  return arguments
end

local function pairs_of(list, name)
  local rows = {}
  for i, row in ipairs(list) do
    rows[i] = { [name] = row[name], text = row.text }
  end
  return rows
end

local function contract_path(file)
  return (file:gsub('%.lua$', '.contract'))
end

local function file_of(files, file)
  return { path = file, bytes = #files[file], sha256 = digest.sha256(files[file]) }
end

local function script_of(script, files)
  local h = script.header
  local name = functions.name(h.name, h.version)
  local contract = contract_path(script.path)
  return {
    contract = script.contract and file_of(files, contract) or nil,
    name = h.name, version = h.version, summary = h.summary, flags = h.flags,
    keys = keys_of(h.keys), derived = keys_of(h.derived), argv = arguments_of(h.argv),
    channels = #h.channels > 0 and arguments_of(h.channels) or nil,
    returns = pairs_of(h.returns, 'shape'), errors = pairs_of(h.errors, 'code'),
    message = h.message, ['repeat'] = h.repeat_, cost = h.cost, dynamic = h.dynamic, uses = h.uses,
    sha1 = script.sha1, file = file_of(files, script.path),
    ['function'] = { name = name, file = file_of(files, 'functions/' .. name .. '.lua') },
  }
end

-- A script by its header, or by the contract beside it.
local function read_script(files, file)
  local source, sha1 = files[file], digest.sha1(files[file])
  local contract = files[contract_path(file)]
  local h, findings = header.of(source, sha1, file, contract)
  if not h then
    local first = findings[1]
    return nil, ('%s, line %d: %s'):format(contract and not first.of_script and contract_path(file)
      or file, first.line, first.message)
  elseif file ~= 'scripts/' .. h.name .. '.lua' then
    return nil, ('%s is not a file of %s'):format(file, h.name)
  end
  return { name = h.name, version = h.version, path = file, source = source, header = h,
    sha1 = sha1, contract = contract }
end

---The scripts among the files of a bundle.
---@param files table<string, string> content by path
---@return table[]|nil scripts as of catalog.read, with their versions, sorted by name
---@return string|nil why
function manifest.scripts(files)
  local scripts = {}
  for file in tablex.sort(files) do
    local is_contract = file:find('^scripts/.*%.contract$')
    if is_contract and not files[file:gsub('%.contract$', '.lua')] then
      return nil, ('%s is a contract of no script'):format(file)
    elseif file:find('^scripts/') and not is_contract then
      local script, why = read_script(files, file)
      if not script then
        return nil, why
      end
      scripts[#scripts + 1] = script
    end
  end
  table.sort(scripts, function(a, b)
    return a.name < b.name
  end)
  return scripts
end

-- What must be under functions/, by path.
local function libraries(scripts)
  local found = {}
  for _, script in ipairs(scripts) do
    local file = ('functions/%s.lua'):format(functions.name(script.name, script.header.version))
    if found[file] then
      return nil, ('%s and another script would be one function, %s'):format(script.name,
        path.splitext(path.basename(file)))
    end
    local code, why = functions.library(script)
    if not code then
      return nil, why
    end
    found[file] = code
  end
  return found
end

---Adds the function libraries and the manifest to scripts, docs and licence.
---@param about { name: string, version: string }
---@param files table<string, string> content by path; changed
---@return table|nil scripts as of manifest.scripts
---@return string|nil why
function manifest.add(about, files)
  local scripts, why = manifest.scripts(files)
  local codes
  if scripts then
    codes, why = libraries(scripts)
  end
  if not codes then
    return nil, why
  end
  for file, code in pairs(codes) do
    files[file] = code
  end

  local rows, others = {}, {}
  for i, script in ipairs(scripts) do
    rows[i] = script_of(script, files)
  end
  for file in tablex.sort(files) do
    if not file:find('^scripts/') and not codes[file] then
      others[#others + 1] = file_of(files, file)
    end
  end
  files[manifest.FILE] = json.encode({ schema = manifest.SCHEMA, name = about.name,
    version = about.version, server = manifest.SERVER, scripts = rows, files = others }, '') .. '\n'
  return scripts
end

-- The first place where two documents differ: "scripts[3].sha1".
local function difference(given, true_one, where)
  if type(given) ~= 'table' or type(true_one) ~= 'table' then
    return given ~= true_one and where or nil
  end
  local names = {}
  for _, document in ipairs({ given, true_one }) do
    for name in pairs(document) do
      names[name] = true
    end
  end
  local list = {}
  for name in pairs(names) do
    list[#list + 1] = name
  end
  table.sort(list, function(a, b)
    return tostring(a) < tostring(b)
  end)
  for _, name in ipairs(list) do
    local step = type(name) == 'number' and ('[%d]'):format(name - 1) or '.' .. name
    local found = difference(given[name], true_one[name], where .. step)
    if found then
      return found
    end
  end
end

---Is the manifest among these files the one that follows from them?
---@param files table<string, string>
---@return table|nil document the manifest
---@return table|string scripts as of manifest.scripts, or why not
function manifest.check(files)
  local text = files[manifest.FILE]
  local decoded, document = pcall(cjson.decode, text or '')
  if not decoded or type(document) ~= 'table' then
    return nil, manifest.FILE .. ' is missing or not JSON'
  elseif type(document.name) ~= 'string' or type(document.version) ~= 'string' then
    return nil, manifest.FILE .. ' has no name or no version'
  elseif document.schema ~= manifest.SCHEMA then
    return nil, ('%s has a form that this version does not know; it knows %s'):format(manifest.FILE,
      manifest.SCHEMA)
  end
  local true_files = {}
  for file, content in pairs(files) do
    if file ~= manifest.FILE and not file:find('^functions/') then
      true_files[file] = content
    end
  end
  local scripts, why = manifest.add(document, true_files)
  if not scripts then
    return nil, why
  end
  for _, list in ipairs({ files, true_files }) do
    for file in tablex.sort(list) do
      if file ~= manifest.FILE and files[file] ~= true_files[file] then
        return nil, file .. ' is missing or not the library of a script that is there'
      end
    end
  end
  if text ~= true_files[manifest.FILE] then
    local where = difference(document, cjson.decode(true_files[manifest.FILE]), '')
    return nil, ('%s does not say what the files are%s'):format(manifest.FILE,
      where and ': look at ' .. where:gsub('^%.', '') or '')
  end
  return document, scripts
end

return manifest

-- SPDX-License-Identifier: Apache-2.0
-- At build time: what a library or program is made of and linked with, as CycloneDX 1.5 in JSON.
-- Read from the linked file, not from what the build asked for.
package.path = 'tools/?.lua;tools/?/init.lua;' .. package.path

local argparse = require('argparse')
local cjson = require('cjson')
local path = require('pl.path')
local tablex = require('pl.tablex')
local utils = require('pl.utils')

local catalog = require('latchkey.script.catalog')
local digest = require('latchkey.digest')

local parser = argparse('tools/sbom.lua', 'The components of a linked file.')
parser:option('--file', 'A shared library or a program.'):argname('FILE'):count(1)
parser:option('--name', 'What it is called.'):argname('NAME'):count(1)
parser:option('--type', 'library or application.'):argname('TYPE'):count(1)
parser:option('--version', 'Of the toolkit.'):argname('X.Y.Z'):count(1)
parser:option('--compiler', 'It knows where libraries lie.'):argname('CC'):default('cc')
parser:option('--objdump', 'It reads the linked file.'):argname('PROGRAM'):default('objdump')
parser:option('--hiredis', 'The version of the hiredis that is built in.'):argname('X.Y.Z')
parser:option('--scripts', 'The folder of the scripts that are built in.'):argname('DIR')
parser:option('--epoch', 'When, in seconds since 1970.'):argname('N'):convert(tonumber):count(1)
parser:option('-o --output', 'The file to write.'):argname('FILE'):count(1)
local args = parser:parse()

local LATCHKEY = { liblatchkey = true }

-- What a program says; nothing when it fails or is not there.
local function said(...)
  local words = {}
  for i, word in ipairs({ ... }) do
    words[i] = utils.quote_arg(word)
  end
  local ok, _, out = utils.executeex(table.concat(words, ' '))
  return ok and out or nil
end

local distribution = (utils.readfile('/etc/os-release') or ''):match('%f[^%z\n]ID=(%l+)')
  or 'debian'

-- What a file may be called in the list of a package: also as before /lib was a link to /usr/lib.
local function names_of(file)
  local real = path.exists(file) and said('realpath', file)
  real = real and real:match('[^\n]+')
  return real and { real, (real:gsub('^/usr', '')) } or {}
end

-- The packages of the distribution that files belong to, where dpkg knows. It goes through the
-- lists of all packages, and fails when it does not find all.
---@param files string[]
---@return table<string, string> owners by the names of files
local function owners_of(files)
  local words, owners = { 'dpkg-query -S' }, {}
  for _, file in ipairs(files) do
    for _, name in ipairs(names_of(file)) do
      words[#words + 1] = utils.quote_arg(name)
    end
  end
  local _, _, out = utils.executeex(table.concat(words, ' '))
  for line in out:gmatch('[^\n]+') do
    owners[line:match(': (/.*)$') or ''] = line:match('^[^:]+')
  end
  return owners
end

local function package_of(file, owners)
  for _, name in ipairs(names_of(file)) do
    local row = owners[name]
      and said('dpkg-query', '-W', '-f', '${Version} ${Architecture}', owners[name])
    if row then
      return owners[name], row:match('^(%S+) (%S+)')
    end
  end
end

local function escaped(text)
  return (text:gsub('[^%w.~-]', function(byte)
    return ('%%%02X'):format(byte:byte())
  end))
end

local function file_of(soname)
  return (said(args.compiler, '-print-file-name=' .. soname) or ''):match('[^\n]+') or ''
end

-- A library that is found when the file is started. Where an older package of latchkey is
-- installed, what the compiler finds is not what is built here.
local function linked(soname, file, owners)
  local component = { type = 'library', name = soname, scope = 'required', ['bom-ref'] = soname }
  if LATCHKEY[soname:match('^[^.]+')] then
    component.version = args.version
    return component
  end
  local owner, version, arch = package_of(file, owners)
  if owner then
    component.version = version
    component.purl = ('pkg:deb/%s/%s@%s?arch=%s'):format(distribution, owner,
      escaped(version), arch)
  end
  return component
end

local components, refs = {}, {}
local function add(component)
  components[#components + 1] = component
  refs[#refs + 1] = component['bom-ref']
end

local headers = assert(said(args.objdump, '-p', args.file), 'objdump cannot read ' .. args.file)
local sonames, files = {}, {}
for soname in headers:gmatch('NEEDED%s+(%S+)') do
  sonames[#sonames + 1], files[#files + 1] = soname, file_of(soname)
end
local owners = owners_of(files)
for i, soname in ipairs(sonames) do
  add(linked(soname, files[i], owners))
end
if args.hiredis then
  add({ type = 'library', name = 'hiredis', version = args.hiredis, scope = 'required',
    licenses = { { license = { id = 'BSD-3-Clause' } } },
    purl = 'pkg:github/redis/hiredis@v' .. args.hiredis, ['bom-ref'] = 'hiredis' })
end
for _, script in ipairs(args.scripts and assert(catalog.read(args.scripts)) or {}) do
  add({ type = 'file', name = 'scripts/' .. script.name .. '.lua', version = script.header.version,
    hashes = { { alg = 'SHA-1', content = script.sha1 },
      { alg = 'SHA-256', content = digest.sha256(script.source) } },
    ['bom-ref'] = 'scripts/' .. script.name })
end

-- cjson writes fields in no order, and one document has one form.
local function encode(value)
  if type(value) ~= 'table' then
    return (cjson.encode(value):gsub('\\/', '/'))
  end
  local parts = {}
  if value[1] ~= nil then
    for i, item in ipairs(value) do
      parts[i] = encode(item)
    end
    return '[' .. table.concat(parts, ',\n') .. ']'
  end
  for name, item in tablex.sort(value) do
    parts[#parts + 1] = encode(name) .. ':' .. encode(item)
  end
  return '{' .. table.concat(parts, ',') .. '}'
end

local about = { type = args.type, name = args.name, version = args.version,
  licenses = { { license = { id = 'Apache-2.0' } } }, ['bom-ref'] = args.name }
assert(utils.writefile(args.output, encode({ bomFormat = 'CycloneDX', specVersion = '1.5',
  version = 1, metadata = { timestamp = os.date('!%Y-%m-%dT%H:%M:%SZ', args.epoch),
    component = about },
  components = components,
  dependencies = { { ref = args.name, dependsOn = refs } } }) .. '\n', true))

-- SPDX-License-Identifier: Apache-2.0
-- The two ways in which a server keeps scripts: under their SHA1 (SCRIPT LOAD), or as libraries of
-- functions (FUNCTION LOAD). Both answer what loading would do, and load one.
local expect = require('latchkey.servers.expect')
local functions = require('latchkey.bundle.functions')
local header = require('latchkey.script.header')

local targets = {}

-- At most so many digests travel in one SCRIPT EXISTS.
local BATCH = 500

---@class bundle.plan
---@field new table[] wanted and not there
---@field stays table[] there already
---@field goes table[] { wanted, version }: gives way to what is wanted
---@field refused table[] { wanted, why }: would go, but only if that is forced

local function empty_plan()
  return { new = {}, stays = {}, goes = {}, refused = {} }
end

local scripts = { what = 'scripts' }

---@param list table[] { name, version, sha1, source }
function scripts.wanted(list)
  return list
end

---@param client latchkey.client
---@param wanted table[]
---@return bundle.plan|nil plan
---@return latchkey.error|nil err
function scripts.plan(client, wanted)
  local plan = empty_plan()
  for first = 1, #wanted, BATCH do
    local digests = {}
    for i = first, math.min(first + BATCH - 1, #wanted) do
      digests[#digests + 1] = wanted[i].sha1
    end
    local reply, err = expect('list', 'SCRIPT EXISTS',
      client:command('SCRIPT', 'EXISTS', unpack(digests)))
    if not reply then
      return nil, err
    end
    for i = 1, #digests do
      table.insert(reply[i] == 1 and plan.stays or plan.new, wanted[first + i - 1])
    end
  end
  return plan
end

---@return true|nil loaded
---@return latchkey.error|nil err
function scripts.put(client, script)
  local reply, err = expect('text', 'SCRIPT LOAD',
    client:command('SCRIPT', 'LOAD', script.source))
  if reply and reply ~= script.sha1 then
    return nil, { status = 'LK_PROTOCOL', hint = '', message = ('script %s: the server keeps it '
      .. 'under another SHA1'):format(script.name) }
  end
  return reply and true, err
end

local libraries = { what = 'functions', is_replicated = true }

---@param list table[] { name, version, sha1, source }
---@return table[]|nil wanted { name, version, sha1, library, code }
---@return string|nil why
function libraries.wanted(list)
  local wanted = {}
  for i, script in ipairs(list) do
    local name = functions.name(script.name, script.version)
    local code, why = functions.library({ name = script.name, sha1 = script.sha1,
      source = script.source, header = script.header or header.parse(script.source) })
    if not code then
      return nil, why
    elseif wanted[name] then
      return nil, ('%s and %s would be one function, %s'):format(wanted[name], script.name, name)
    end
    wanted[name] = script.name
    wanted[i] = { name = script.name, version = script.version, sha1 = script.sha1, library = name,
      code = code }
  end
  return wanted
end

local function fields_of(flat)
  local fields = {}
  for i = 1, type(flat) == 'table' and flat.n or 0, 2 do
    fields[flat[i]] = flat[i + 1]
  end
  return fields
end

---The libraries of a server by name.
---@param client latchkey.client
---@return table<string, { description: any, code: string }>|nil
---@return latchkey.error|nil err
function libraries.present(client)
  local reply, err = expect('list', 'FUNCTION LIST',
    client:command('FUNCTION', 'LIST', 'WITHCODE'))
  if not reply then
    return nil, err
  end
  local present = {}
  for i = 1, reply.n do
    local library = fields_of(reply[i])
    local name, list = library.library_name, library.functions
    if type(name) ~= 'string' or type(list) ~= 'table' then
      return expect('list', 'FUNCTION LIST')
    end
    present[name] = { code = library.library_code, description = fields_of(list[1]).description }
  end
  return present
end

function libraries.plan(client, wanted, forced)
  local present, err = libraries.present(client)
  if not present then
    return nil, err
  end
  local plan = empty_plan()
  for _, library in ipairs(wanted) do
    local there = present[library.library]
    local step, why = functions.step(library, there)
    local known = there and functions.described(there.description)
    if step == 'refused' and not forced then
      plan.refused[#plan.refused + 1] = { wanted = library, why = why }
    elseif step == 'refused' or step == 'replaces' then
      plan.goes[#plan.goes + 1] = { wanted = library, version = known and known.version or '?' }
    else
      table.insert(plan[step], library)
    end
  end
  return plan
end

function libraries.put(client, library, replaces)
  local words = { 'FUNCTION', 'LOAD' }
  if replaces then
    words[#words + 1] = 'REPLACE'
  end
  words[#words + 1] = library.code
  local reply, err = expect('text', 'FUNCTION LOAD', client:command(unpack(words)))
  return reply and true, err
end

targets.scripts, targets.functions = scripts, libraries

return targets

-- SPDX-License-Identifier: Apache-2.0
local path = require('pl.path')
local utils = require('pl.utils')

local adopt = require('latchkey.lint.adopt')
local catalog = require('latchkey.script.catalog')
local header = require('latchkey.script.header')
local text = require('latchkey.text')
local whole_file = require('latchkey.whole_file')

local command = { summary = 'write the contract of a script that has none' }

command.exits = {
  { 0, 'the contracts are written, also where something is left to decide in them' },
  { 64, 'wrong use: there is no such file, it is no Lua, or it has a contract' },
}

function command.configure(parser)
  parser:argument('file', 'Scripts, each in the folder of its family: scripts/acme/acquire.lua.')
    :args('+')
  parser:flag('--force', 'Overwrite a contract that exists.')
  parser:epilog('FILE.contract is written beside FILE.lua, whose text stays as it is. What reading '
    .. 'cannot decide is marked with "?", and latchkey lint names those lines until a person has '
    .. 'decided.')
end

-- acme/acquire, of .../acme/acquire.lua
local function name_of(file)
  local family, verb = path.abspath(file):match('([^/]+)/([^/]+)%.lua$')
  local name = family and family .. '/' .. verb
  return name and name:match('^[a-z][a-z0-9_]*/[a-z][a-z0-9_]*$')
end

local function check(file, args)
  local source, why = utils.readfile(file, true)
  if not source then
    return nil, why
  elseif not name_of(file) then
    return nil, ('%s is not called FAMILY/VERB.lua, in small letters; scripts are named like their '
      .. 'files'):format(file)
  elseif source:match('^[^\n]*\n([^\n]*)') == header.MARK then
    return nil, file .. ' has a header, and needs no contract'
  elseif not args.force and catalog.contract_of(file, source) then
    return nil, ('%s has a contract; --force overwrites it'):format(file)
  end
  return source
end

-- Of all files, before the first is written: { file, contract } each.
local function contracts_of(args)
  local list = {}
  for i, file in ipairs(args.file) do
    local source, why = check(file, args)
    if not source then
      return nil, why
    end
    local contract, wrong, line = adopt.contract(file, source, name_of(file))
    if not contract then
      return nil, ('%s:%d: %s'):format(file, line, wrong)
    end
    list[i] = { file = file, contract = contract }
  end
  return list
end

function command.run(args, ctx)
  local list, why = contracts_of(args)
  if not list then
    return ctx:misuse(why)
  end
  local written, lines = {}, {}
  for _, one in ipairs(list) do
    local file, contract = one.file, one.contract
    local target = file:gsub('%.lua$', '') .. '.contract'
    local good, reason = whole_file.write(target, contract)
    if not good then
      return ctx:misuse(reason)
    end
    local _, open = contract:gsub(' %?[ \n]', '')
    written[#written + 1] = { script = name_of(file), file = target, open = open }
    lines[#lines + 1] = ('%s: %d to decide, marked with "?"\n'):format(text.safe(target), open)
  end
  ctx:result({ contracts = written }, table.concat(lines))
  return 0
end

return command

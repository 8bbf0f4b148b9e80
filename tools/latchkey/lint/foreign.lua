-- SPDX-License-Identifier: Apache-2.0
-- Rules on scripts that have a contract beside them, and on owners.
local header = require('latchkey.script.header')
local names = require('latchkey.script.names')
local owners = require('latchkey.lint.owners')
local parser = require('latchkey.lua51.parser')
local script_of = require('latchkey.lint.script')
local written = require('latchkey.lint.written')

local function decide(script, report)
  for _, finding in ipairs(header.undecided(table.concat(script.contract_lines, '\n'))) do
    report({ contract = script.contract, line = finding.line }, finding.message)
  end
end

-- The place in KEYS or ARGV that a node is, such as `KEYS[2]`.
local function place_of(node)
  if node.tag == 'Index' and node[2].tag == 'Number' then
    for _, array in ipairs({ 'KEYS', 'ARGV' }) do
      if script_of.is_global(node[1], array) then
        return array, node[2].value
      end
    end
  end
end

-- Keys and arguments of code and contract are the same; those that are taken as a whole are not
-- looked at.
local function takes(script, report)
  local used, whole = { KEYS = {}, ARGV = {} }, {}
  parser.walk(script.block, function(node)
    local array, place = place_of(node)
    if array then
      used[array][place] = used[array][place] or node.line
    end
    for i, child in ipairs(node) do
      for _, name in ipairs({ 'KEYS', 'ARGV' }) do
        local is_place = node.tag == 'Index' and i == 1 and node[2].tag == 'Number'
        local is_count = node.tag == 'Unary' and node.op == '#'
        whole[name] = whole[name]
          or type(child) == 'table' and script_of.is_global(child, name) and not is_place
          and not is_count
      end
    end
  end)
  for array, list in pairs({ KEYS = script.header.keys, ARGV = script.header.argv }) do
    for place, line in pairs(used[array]) do
      if not list[place] and not (list[#list] and list[#list].many) then
        report(line, ('%s[%d] is not in the contract'):format(array, place))
      end
    end
    for place, field in ipairs(list) do
      if not used[array][place] and not whole[array] then
        report(script.header.lines[array == 'KEYS' and 'keys' or 'argv'],
          ('the code never reads %s[%d], "%s"'):format(array, place, field.name))
      end
    end
  end
end

local function is_of_kind(shape, kind)
  return shape == kind
    or kind == 'integer' and tonumber(shape) ~= nil or kind == 'text' and shape:find("'") == 1
end

-- Does a line of a contract list a reply? Of what only a run can tell, it does.
local function lists(shape, reply)
  if reply.names then
    for _, name in ipairs(reply.names) do
      if shape.shape == name or reply.is_open and is_of_kind(shape.shape, name) then
        return true
      end
    end
    return false
  end
  return not shape.bare and written.fits(reply, shape)
end

local function shown(reply)
  return reply.names and reply.names[1]
    or ('{%.0f%s} of %d element%s'):format(reply.first, reply.length > 1 and ', ...' or '',
      reply.length, reply.length == 1 and '' or 's')
end

local NO_NUMBER = 'this reply, %s, does not begin with a number, and no line of "returns:" can '
  .. 'list it'

-- What is wrong with an error whose first word is this, or nil.
local function unlisted_error(code, contract)
  if not code:find('^[A-Z][A-Z0-9]*$') then
    return "an error starts with its code: 'LKARG what was wrong'"
  end
  for _, err in ipairs(contract.errors) do
    if err.code == code then
      return nil
    end
  end
  return ('%s is not under "errors:"; add it'):format(code)
end

-- What is wrong with a reply, or nil.
local function unlisted(reply, contract)
  if reply.is_error then
    return reply.code and unlisted_error(reply.code, contract)
  elseif reply.is_text or reply.length == 0 then
    return NO_NUMBER:format(reply.is_text and ("{'%s', ...}"):format(reply.items[1].value) or '{}')
  elseif not (reply.names or reply.first) then
    return nil
  end
  for _, shape in ipairs(contract.returns) do
    if lists(shape, reply) then
      return nil
    end
  end
  return ('%sno line of "returns:" fits this reply, %s; add one'):format(
    reply.is_end and 'the script may get to its end without a return: ' or '', shown(reply))
end

local function answers(script, report)
  for _, reply in ipairs(written.replies(script)) do
    local message = unlisted(reply, script.header)
    if message then
      report(reply.line, message)
    end
  end
end

-- A lock's name and every argument, for which channels of code and contract are compared.
local SAMPLE = 'job'

-- A variable is what it was made of only where it stays so, which `values` knows.
local function channel(script, report)
  local values = script_of.definitions(script.block)
  local function key_of(node)
    local array, place = place_of(node)
    local key = array == 'KEYS' and script.header.keys[place] or nil
    local fixed = key and not key.many and key.form.kind ~= 'slot' and key.form.plus == ''
    return fixed and names.form(key.form, SAMPLE) or nil
  end
  local listed, arguments = {}, {}
  for _, field in ipairs(script.header.argv) do
    arguments[field.name] = SAMPLE
  end
  for _, row in ipairs(script.header.channels) do
    listed[names.form(row.form, SAMPLE, arguments)] = true
  end
  for _, call in ipairs(script.calls) do
    local publishes = call.command and call.command.access == 'publish' and call.node[3]
    local formed = publishes and script_of.text_of(call.node[3], values, key_of)
    if formed and not listed[formed] then
      report(call.line, ('it publishes on "%s" for the lock "%s"; no line of "channels:" forms '
        .. 'that'):format(formed, SAMPLE))
    end
  end
end

-- Who takes an owner's name and neither compares it nor gives it to the server to keep does the
-- same for everybody. What is told to others guards nothing.
local function owner(script, report)
  local is_minded = owners.minded(script)
  for place, argument in ipairs(script.header.argv) do
    if argument.type == 'owner' and not argument.many and not is_minded(place) then
      report(script.header.lines.argv, ('"%s" is taken, but never compared with anything')
        :format(argument.name))
    end
  end
end

return {
  { id = 'decide', wants = 'a contract has no "?" left', needs = 'header', of_contract = true,
    check = decide },
  { id = 'takes', wants = 'the keys and arguments of a contract are those of the code',
    needs = 'both', of_contract = true, check = takes },
  { id = 'answers', wants = 'replies and errors that are written out are those of the contract',
    needs = 'both', of_contract = true, check = answers },
  { id = 'channel', wants = 'a channel that a script forms itself is in its contract',
    needs = 'both', of_contract = true, check = channel },
  { id = 'owner', wants = 'the name of an owner is compared, or given to a command that keeps it',
    needs = 'both', check = owner },
}

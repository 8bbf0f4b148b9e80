-- SPDX-License-Identifier: Apache-2.0
-- The header of a script: its keys, arguments, replies and promises. C tables, mock, specs and docs
-- know a script from what is parsed here, and from nothing else.
local FIELDS = require('latchkey.script.header_fields')
local names = require('latchkey.script.names')
local shebang = require('latchkey.script.shebang')
local split = require('latchkey.script.lines').split
local number_text = require('latchkey.text').number

local header = {}

-- What opens a header in a script; without it, a file beside the script may say the same.
header.MARK = '--[[ latchkey-script'

-- Of one list.
header.FIELDS_MAX = 32

local FLAGS = { ['allow-oom'] = true, ['allow-stale'] = true, ['no-writes'] = true }

local PLACE = {}
for place, field in ipairs(FIELDS) do
  PLACE[field.name] = place
end

local function parse_flags(line, report)
  local flags = {}
  local list = line:match('^#!lua flags=([%l,-]+)$')
  if line ~= '#!lua' and not list then
    report(1, 'the first line is "#!lua" or "#!lua flags=FLAG,FLAG"')
  end
  for flag in (list or ''):gmatch('[^,]+') do
    if FLAGS[flag] then
      flags[#flags + 1] = flag
    else
      report(1, ('unknown flag "%s"; use allow-oom, allow-stale or no-writes'):format(flag))
    end
  end
  return flags
end

-- Fields and items from the line `first` to "]]", or to the end of a contract; the number of the
-- first line after them.
local function parse_fields(h, lines, first, report)
  local place = 0
  local add_item -- nil where no item may stand

  local function add_parsed(number, field, text)
    local parsed, why = field.parse(text)
    if why then
      report(number, why)
    elseif field.list then
      table.insert(h[field.name], parsed)
    else
      h[field.into or field.name] = parsed
    end
  end

  local function start_field(number, name, value)
    local field = FIELDS[PLACE[name]]
    add_item = value == '' and function() end
    if not field or field.contract and not h.contract then
      return report(number, ('unknown field "%s"'):format(name))
    end
    h.lines[name] = h.lines[name] or number
    if PLACE[name] <= place then
      return report(number, ('"%s" is out of order or there twice'):format(name))
    end
    place = PLACE[name]
    if field.list and value ~= '' then
      report(number, ('the items of "%s" start on the next line'):format(name))
    elseif field.list then
      add_item = add_parsed
    elseif value == '' then
      report(number, ('"%s" needs a value on its line'):format(name))
    else
      add_parsed(number, field, value)
    end
  end

  for number = first, #lines do
    local line = lines[number]
    if line == ']]' then
      return number + 1
    end
    local name, value = line:match('^(%l[%l%d]*):%s*(.-)$')
    local item = line:match('^  %- (%S.*)$')
    if line:match('%s$') then
      report(number, 'spaces at the end of the line')
    elseif name then
      start_field(number, name, value)
    elseif item and add_item then
      add_item(number, FIELDS[place], item)
    else
      report(number, 'a header line is "field: value", or "  - item" below a "field:" of items')
    end
  end
  if not h.contract then
    report(#lines, 'the header has no end; close it with "]]" on a line of its own')
  end
  return #lines + 1
end

local function check_replies(h, report)
  local seen = {}
  for _, reply in ipairs(h.returns) do
    local id = reply.bare and reply.shape or reply.first .. '/' .. (reply.arity or '...')
    if seen[id] then
      report(h.lines.returns, ('%s cannot be distinguished from %s'):format(reply.shape, seen[id]))
    end
    seen[id] = reply.shape
  end
end

local function check_arguments(h, report)
  local optional, has_channel, has_command = false, #h.channels > 0, false
  for place, argument in ipairs(h.argv) do
    has_channel = has_channel or argument.kind == 'channel'
    has_command = has_command or argument.kind == 'command'
    if argument.many and place < #h.argv then
      report(h.lines.argv, ('"%s*" stands for many and is not the last argument')
        :format(argument.name))
    end
    if optional and not argument.optional then
      report(h.lines.argv, ('"%s" follows an optional argument: make it optional or move it')
        :format(argument.name))
    end
    optional = optional or argument.optional
  end
  if has_channel ~= (h.lines.message ~= nil) then
    report(h.lines.message or h.lines.channels or h.lines.argv,
      'a script with a channel has a "message:", and no other has one')
  end
  if has_command and #h.dynamic == 0 then
    report(h.lines.argv, 'a script with a command for argument lists the possible ones: "dynamic:"')
  end
end

local function check_names(h, report)
  local seen, arguments = {}, {}
  for _, argument in ipairs(h.argv) do
    arguments[argument.name] = true
  end
  for _, list in ipairs({ 'keys', 'channels', 'argv' }) do
    if #h[list] > header.FIELDS_MAX then
      report(h.lines[list], ('%d fields, at most %d are allowed'):format(#h[list],
        header.FIELDS_MAX))
    end
    for _, field in ipairs(h[list]) do
      if seen[field.name] then
        report(h.lines[list], ('two fields are named "%s"'):format(field.name))
      end
      seen[field.name] = true
      local plus = field.form and names.argument(field.form)
      if plus and not arguments[plus] then
        report(h.lines[list], ('"+%s" names no argument'):format(plus))
      end
    end
  end
end

-- For which the names of keys are formed.
local SAMPLE = 'job'

-- Do the keys of one name come to one slot, as "cluster:" says?
local function check_slots(h, report)
  if h.cluster == 'no' and not h.contract then
    return report(h.lines.cluster, '"no" is for contracts alone: write "one slot"')
  elseif h.cluster == 'no' then
    return
  end
  local first
  for _, key in ipairs(h.keys) do
    local name = key.form.kind ~= 'slot' and key.form.plus == '' and names.form(key.form, SAMPLE)
    first = first or name
    if name and names.slot(name) ~= names.slot(first) then
      return report(h.lines.keys, ('"%s" and "%s" are in two slots of a cluster: where the names '
        .. 'have a tag, write {{name}}; where they have none, "cluster:  no"'):format(first, name))
    end
  end
end

local function names_file(path, name)
  local tail = '/' .. name .. '.lua'
  return ('/' .. path):sub(-#tail) == tail
end

local function new_header()
  return { keys = {}, derived = {}, channels = {}, argv = {}, returns = {}, errors = {},
    dynamic = {}, uses = {}, repeat_ = 'no', lines = {} }
end

-- What holds of a header and of a contract alike.
local function check_all(h, path, report)
  for _, field in ipairs(FIELDS) do
    local is_wanted = field.required or field.contract and h.contract
    if is_wanted and not h.lines[field.name] then
      report(h.contract and 1 or 2, ('the %s has no "%s:"'):format(
        h.contract and 'contract' or 'header', field.name))
    end
  end
  check_replies(h, report)
  check_slots(h, report)
  check_arguments(h, report)
  check_names(h, report)
  if path and h.name and not names_file(path, h.name) then
    report(h.lines.name, ('the script is named %s but its file is %s; name both alike'):format(
      h.name, path), 'name')
  end
end

---Parses a contract: what a header says, in a file beside a script whose text stays as it is.
---@param text string the contract
---@param source string the script
---@param sha1 string of the script
---@param path? string the script's file
---@return table|nil h a header, with `contract` = true
---@return table|nil findings lines are the contract's, but of those that are `of_script`
function header.parse_contract(text, source, sha1, path)
  local findings, h = {}, new_header()
  local function report(line, message, rule)
    findings[#findings + 1] = { line = line, rule = rule or 'header', message = message }
  end
  local flags, refusal = shebang.flags(source)
  if refusal then
    findings[1] = { line = 1, rule = 'header', of_script = true,
      message = 'a server refuses the first line: ' .. refusal }
  end
  if text:find('\r\n', 1, true) then
    report(1, 'lines end with CR LF; save the contract with LF alone')
    return nil, findings
  end
  h.contract, h.flags, h.first_code_line = true, flags or {}, 1
  parse_fields(h, split(text), 1, report)
  check_all(h, path, report)
  if h.sha1 and h.sha1 ~= sha1 then
    report(h.lines.sha1, ('the contract is of another text, %s; this one is %s'):format(h.sha1,
      sha1), 'sha1')
  end
  if #findings > 0 then
    return nil, findings
  end
  return h
end

---A script's header, or what stands for it in the contract beside it.
---@param source string
---@param sha1 string of the source
---@param path? string the script's file
---@param contract? string the text beside it
---@return table|nil h
---@return table|nil findings lines are the contract's, where there is one, but of those that are
---  `of_script`
function header.of(source, sha1, path, contract)
  if contract then
    return header.parse_contract(contract, source, sha1, path)
  end
  return header.parse(source, path)
end

-- What `latchkey adopt` writes where it could not know.
local MARK = '?'

---What a person has still to decide in a contract.
---@param text string the contract
---@return table[] findings { line, rule, message }
function header.undecided(text)
  local findings = {}
  for number, line in ipairs(split(text)) do
    local asked = (line .. ' '):match(' %' .. MARK .. ' (.*)$')
    if asked then
      asked = asked:gsub('%s+$', '')
      findings[#findings + 1] = { line = number, rule = 'decide',
        message = ('a person must decide here: %swrite what is right in the place of "?"'):format(
          asked ~= '' and asked .. '; ' or '') }
    end
  end
  return findings
end

---Parses the header of a script.
---@param source string the whole script
---@param path? string its file, which must be named like the script
---@return table|nil h the header
---@return table|nil findings when the header is wrong: array of { line, rule, message }
function header.parse(source, path)
  local lines = split(source)
  local findings = {}
  local function report(line, message, rule)
    findings[#findings + 1] = { line = line, rule = rule or 'header', message = message }
  end

  local h = new_header()
  h.flags = parse_flags(lines[1], report)
  if lines[2] ~= header.MARK then
    report(2, 'the second line is "--[[ latchkey-script" and opens the header')
    return nil, findings
  end
  h.first_code_line = parse_fields(h, lines, 3, report)
  check_all(h, path, report)
  if #findings > 0 then
    return nil, findings
  end
  return h
end

-- What a reply that is no array may be called, the most exact first.
local function bare_shapes(reply)
  if type(reply) == 'number' or type(reply) == 'cdata' then
    return { number_text(reply), 'integer' }
  elseif type(reply) == 'string' then
    return { ("'%s'"):format(reply), 'text' }
  elseif type(reply) == 'table' then
    return { reply.ok }
  end
  return { 'nil' }
end

-- 1 stands for one reply, 2 for any of a kind or of a length, 3 for any from a length on.
local function vagueness(shape)
  if shape.literal or shape.bare and tonumber(shape.shape) then
    return 1
  end
  return shape.rest and 3 or 2
end

---In the order in which a reply is to be compared with them: what stands for more comes later.
---@param returns table[] of a header
---@return table[]
function header.exact_first(returns)
  local list = {}
  for wanted = 1, 3 do
    for _, shape in ipairs(returns) do
      list[#list + 1] = vagueness(shape) == wanted and shape or nil
    end
  end
  return list
end

---The shape that the header gives a reply of this kind.
---@param h table
---@param reply any as a client sees it
---@return string|nil shape nil: it lists no such reply
function header.reply_shape(h, reply)
  local bare = bare_shapes(reply)
  for _, wanted in ipairs(bare) do
    for _, shape in ipairs(h.returns) do
      if shape.bare and shape.shape == wanted then
        return wanted
      end
    end
  end
  local of_many
  for _, shape in ipairs(type(reply) == 'table' and h.returns or {}) do
    if not shape.bare and reply[1] == shape.first then
      if reply.n == shape.arity then
        return shape.shape
      end
      of_many = shape.rest and shape.shape or of_many
    end
  end
  return of_many
end

return header

-- SPDX-License-Identifier: Apache-2.0
-- Reference pages of scripts, from their headers.
local functions = require('latchkey.bundle.functions')
local names = require('latchkey.script.names')
local text_of = require('latchkey.text')

local pages = {}

local REPEATS = {
  hold = 'A copy of the call leaves the state of one: the caller says which hold count it '
    .. 'ends with.',
  id = 'A copy of the call leaves the state of one: the ids are the caller\'s choice.',
  seq = 'A copy of the call is answered with what the first one was, for 60 s; send it again for '
    .. '20 s at most.',
  pure = 'It changes nothing, so it can be sent again.',
  no = 'Never send it again once it may have been received: each copy counts.',
}

local FLAGS = {
  ['allow-cross-slot-keys'] = 'may use keys of several slots of a cluster',
  ['allow-oom'] = 'runs on a server that is out of memory',
  ['allow-stale'] = 'runs on a replica that has lost its master',
  ['no-cluster'] = 'does not run on a cluster',
  ['no-writes'] = 'only reads',
}

local MESSAGES = {
  ['0'] = '`0`', ['1'] = '`1`', ['0 or 1'] = '`0` or `1`', value = 'the number that is left',
  ticket = 'the ticket of whom it is for, or `0`',
}

local ACCESS = { r = 'read', w = 'written', rw = 'read and written' }

-- A form in words, N being the lock's name.
local function name_of(form)
  local base = ({ name = 'N', slot = 'any of the slot', prefix = form.text .. ':{N}',
    suffix = '{N}:' .. form.text, braces = form.text .. '{N}',
    pattern = form.text:gsub('{name}', 'N') })[form.kind]
  local argument, tail = names.argument(form)
  return argument and ('%s:<%s>%s'):format(base, argument, tail) or base
end

local function cell(text)
  return (text:gsub('|', '\\|'))
end

local function add_table(out, titles, rows)
  if #rows == 0 then
    return
  end
  out[#out + 1] = '| ' .. table.concat(titles, ' | ') .. ' |'
  out[#out + 1] = '|' .. ('---|'):rep(#titles)
  for _, row in ipairs(rows) do
    for i, value in ipairs(row) do
      row[i] = cell(value)
    end
    out[#out + 1] = '| ' .. table.concat(row, ' | ') .. ' |'
  end
  out[#out + 1] = ''
end

local function add_section(out, title, titles, rows)
  if #rows > 0 then
    out[#out + 1] = '## ' .. title .. '\n'
    add_table(out, titles, rows)
  end
end

local function key_row(key, remark)
  local marks = { remark }
  for _, mark in ipairs({ 'private', 'shared', 'permanent', 'absent' }) do
    marks[#marks + 1] = key.marks[mark] and mark or nil
  end
  if key.many then
    marks[#marks + 1] = ('%.0f to %.0f of them'):format(key.many.min, key.many.max)
  end
  marks[#marks + 1] = key.text ~= '' and key.text or nil
  return { '`' .. key.name .. '`', key.type, ACCESS[key.access], '`' .. name_of(key.form) .. '`',
    table.concat(marks, '; ') }
end

local function domain_of(argument)
  if argument.values then
    return '`' .. table.concat(argument.values, '` or `') .. '`'
  elseif argument.form then
    return '`' .. name_of(argument.form) .. '`'
  elseif argument.min then
    return ('%.0f to %.0f%s'):format(argument.min, argument.max,
      argument.type == 'ms' and ' ms' or argument.kind == 'integer' and '' or ' bytes')
  end
  return 'one of the dynamic commands'
end

local function argument_row(argument)
  local name = '`' .. argument.name .. '`'
  if argument.optional then
    name = name .. ', optional'
  elseif argument.many then
    name = ('%s, %.0f to %.0f times'):format(name, argument.many.min, argument.many.max)
  end
  return { name, argument.type, domain_of(argument), argument.text }
end

local function cost_of(cost)
  return cost.per and ('%d commands and %d per %s, at most %d'):format(cost.base, cost.per, cost.of,
    cost.max) or ('at most %d commands'):format(cost.base)
end

local function facts(script)
  local h, rows = script.header, {}
  local function add(name, value)
    rows[#rows + 1] = { name, value }
  end
  add('Version', h.version)
  add('SHA1', '`' .. script.sha1 .. '`')
  add('Redis Function', '`' .. functions.name(h.name, h.version) .. '`')
  for _, flag in ipairs(h.flags) do
    add('Flag `' .. flag .. '`', FLAGS[flag])
  end
  add('Cost on the server', cost_of(h.cost))
  if h.message then
    add('Message on the channel', MESSAGES[h.message])
  end
  add('Sent twice', REPEATS[h.repeat_])
  if #h.dynamic > 0 then
    add('Dynamic commands', '`' .. table.concat(h.dynamic, '` `') .. '`')
  end
  return rows
end

---@param script table as of catalog.read
---@return string page
function pages.one(script)
  local h, out = script.header, {}
  out[1] = '# ' .. h.name .. '\n'
  out[2] = h.summary .. '\n'
  add_table(out, { '', '' }, facts(script))
  local keys, channels, arguments, returns, errors = {}, {}, {}, {}, {}
  for i, key in ipairs(h.keys) do
    keys[i] = key_row(key)
  end
  for _, key in ipairs(h.derived) do
    keys[#keys + 1] = key_row(key, 'derived by the script')
  end
  for i, channel in ipairs(h.channels) do
    channels[i] = argument_row(channel)
  end
  for i, argument in ipairs(h.argv) do
    arguments[i] = argument_row(argument)
  end
  for i, reply in ipairs(h.returns) do
    returns[i] = { '`' .. reply.shape .. '`', reply.text }
  end
  for i, err in ipairs(h.errors) do
    errors[i] = { '`' .. err.code .. '`', err.text }
  end
  add_section(out, 'Keys', { 'key', 'type', 'is', 'name', '' }, keys)
  add_section(out, 'Channels', { 'channel', 'type', 'name', '' }, channels)
  add_section(out, 'Arguments', { 'argument', 'type', 'may be', '' }, arguments)
  add_section(out, 'Replies', { 'reply', 'means' }, returns)
  add_section(out, 'Errors', { 'code', 'means' }, errors)
  return table.concat(out, '\n')
end

---The pages of scripts by file name, README.md being the list of them.
---@param scripts table[] as of catalog.read
---@return table<string, string>
function pages.all(scripts)
  local files, rows = {}, {}
  for i, script in ipairs(scripts) do
    local file = script.name .. '.md'
    files[file] = pages.one(script)
    rows[i] = { ('[%s](%s)'):format(script.name, file), script.header.version,
      text_of.safe(script.header.summary) }
  end
  local out = { '# Scripts\n', 'N is the name of a lock; a name with a hash tag of its own gets no '
    .. 'braces in `{N}`.\n' }
  add_table(out, { 'script', 'version', 'what it does' }, rows)
  files['README.md'] = table.concat(out, '\n')
  return files
end

return pages

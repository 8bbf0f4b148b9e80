-- SPDX-License-Identifier: Apache-2.0
-- The contract of a script that has none, as far as reading it tells. What only a person can know
-- stands there as "?".
local tablex = require('pl.tablex')

local parser = require('latchkey.lua51.parser')
local header = require('latchkey.script.header')
local key_places = require('latchkey.redis.key_places')
local places = require('latchkey.lint.places')
local script_call = require('latchkey.script.call')
local script_of = require('latchkey.lint.script')
local written = require('latchkey.lint.written')

local adopt = {}

local MARK = '?'
local BIGGEST = '9007199254740991'

-- The argument that is a time, by its place behind the key or by the word before it.
local MS_AT = { PEXPIRE = 3, PSETEX = 3 }
local MS_BEHIND = { PX = true }
local COUNT_AT = { EXPIRE = 3, SETEX = 3, INCRBY = 3, DECRBY = 3, LREM = 3 }
local COUNT_BEHIND = { EX = true }

-- What commands answer, where that does not depend on what is there: all that they may.
local ANSWERS = {}
local function answer(shapes, commands)
  for name in commands:gmatch('%S+') do
    ANSWERS[name] = shapes
  end
end
answer({ '1', '0' }, 'EXISTS EXPIRE HEXISTS HSETNX PERSIST PEXPIRE SETNX SISMEMBER')
answer({ 'integer' }, [[APPEND DECR DECRBY DEL HDEL HINCRBY HLEN HSET INCR INCRBY LLEN LPUSH PTTL
  PUBLISH RPUSH SADD SCARD SREM TTL UNLINK ZADD ZCARD ZCOUNT ZREM ZREMRANGEBYSCORE]])
answer({ 'text', 'nil' }, 'GET GETDEL HGET LINDEX LPOP RPOP RPOPLPUSH ZSCORE')
answer({ 'OK' }, 'HMSET LTRIM MSET PSETEX RENAME SET SETEX')

-- What answers how many there were, by the place of the first of them: of one that is 1 or 0.
local HOW_MANY = { DEL = 3, UNLINK = 3, HDEL = 4, SADD = 4, SREM = 4, ZREM = 4 }

local function entry(list, place)
  list[place] = list[place] or {}
  list.n = math.max(list.n or 0, place)
  return list[place]
end

local function note_key(key, use)
  key[use.access] = true
  if use.type ~= 'any' then
    key.type = key.type and key.type ~= use.type and 'any' or use.type
  end
end

-- What the arguments of a command say of ARGV.
local function note_arguments(call, place, args)
  local before
  for i = 3, #call.node do
    local node = call.node[i]
    local array, at = place(node)
    if array == 'ARGV' then
      local argument = entry(args, at)
      local is_ms = MS_AT[call.name] == i - 1 or MS_BEHIND[before or '']
      local is_count = COUNT_AT[call.name] == i - 1 or COUNT_BEHIND[before or '']
      local is_value = call.name == 'SET' and i == 4
      argument.kind = argument.kind or is_ms and 'ms' or is_count and 'count'
        or is_value and 'owner' or nil
    end
    before = node.tag == 'String' and node.value:upper() or nil
  end
end

-- A guess, of each key another, and of several all in one slot.
local function key_form(place, count)
  local name = count > 1 and '{{name}}' or '{name}'
  return place == 1 and name or ('%s:%d'):format(name, place)
end

-- Where the channel of a message comes from; a script that takes it under both names has one.
local function note_channel(node, place, values, args, channels, count)
  local array, at = place(node)
  if array == 'ARGV' then
    entry(args, at).kind = 'channel'
  else
    local form = script_of.text_of(node, values, function(part)
      local of, number = place(part)
      return of == 'KEYS' and key_form(number, count) or nil
    end)
    -- Not every byte may stand in a form.
    form = form and form:find('^[%w_:./@#={}-]+$') and form or '{name}:told'
    channels[1] = { 'channel', form, MARK .. ' how the script forms its name' }
  end
end

local function note_calls(script, place, keys, args, channels)
  local values, count = script_of.definitions(script.block), 0
  parser.walk(script.block, function(node)
    local array, at = place(node)
    count = array == 'KEYS' and math.max(count, at) or count
  end)
  local is_any = places.any_key(script.block)
  for _, call in ipairs(script.calls) do
    local command = call.command
    if command and command.access == 'publish' then
      note_channel(call.node[3] or {}, place, values, args, channels, count)
    elseif command and command.keys ~= 'none' then
      for _, use in ipairs(key_places.of(call)) do
        local array, at = place(use.node)
        if array == 'KEYS' or is_any(use.node) then
          note_key(entry(keys, at or 1), use)
        end
      end
      note_arguments(call, place, args)
    end
  end
end

local ARITHMETIC = { ['+'] = true, ['-'] = true, ['*'] = true, ['/'] = true, ['%'] = true }

-- The arguments that a node takes for numbers.
local function note_numbers(node, place, args)
  local first = node.tag == 'Call' and script_of.is_global(node[1], 'tonumber') and 2
    or node.tag == 'Operator' and ARITHMETIC[node.op] and 1
  for i = first or 1, first and 2 or 0 do
    local array, at = place(node[i] or {})
    if array == 'ARGV' then
      local argument = entry(args, at)
      argument.kind = argument.kind or 'count'
    end
  end
end

-- What is compared with what the server answered is the name of an owner, as likely as not.
local function note_rest(script, place, bound, keys, args)
  parser.walk(script.block, function(node)
    local array, at = place(node)
    if array then
      entry(array == 'KEYS' and keys or args, at)
    end
    note_numbers(node, place, args)
    if node.tag == 'Operator' and (node.op == '==' or node.op == '~=') then
      for i = 1, 2 do
        local side, index = place(node[i])
        local other = node[3 - i]
        if side == 'ARGV' and other.tag ~= 'Number' and other.tag ~= 'String'
          and other.tag ~= 'Nil' then
          local argument = entry(args, index)
          argument.kind = argument.kind or 'owner'
        end
      end
    end
  end)
  local function is_earlier(a, b)
    return bound[a].order < bound[b].order
  end
  for var, known in tablex.sort(bound, is_earlier) do
    local list = known.array == 'KEYS' and keys or args
    if known.is_unpacked then
      entry(list, known.place)
    end
    if list[known.place] and not list[known.place].name then
      list[known.place].name = var.name:lower():gsub('[^a-z0-9_]', '_'):match('^[a-z].*')
    end
  end
end

local function command_shapes(call)
  local place = HOW_MANY[call.name]
  local last = place and #call.node == place and call.node[place].tag
  for i = 5, call.name == 'SET' and #call.node or 0 do
    local word = call.node[i].tag == 'String' and call.node[i].value:upper()
    if word == 'NX' or word == 'XX' then
      return { 'OK', 'nil' }
    end
  end
  return last and last ~= 'Call' and last ~= 'Vararg' and { '1', '0' } or ANSWERS[call.name]
end

-- The word for an element of an array: a variable's name, or that of a field.
local function word_of(node)
  local name = node.tag == 'Name' and node.name
    or node.tag == 'Index' and node[2].tag == 'String' and node[2].value or ''
  return name:lower():match('^[a-z][a-z0-9_]*$') or 'value'
end

-- A reply that is no array, and is called by a word.
local BARE = { integer = true, text = true, ['nil'] = true }

local function array_shape(reply)
  local words = { ('%.0f'):format(reply.first) }
  for i = 2, reply.length do
    words[i] = reply.grows and i == reply.length and 'more...' or word_of(reply.items[i])
  end
  return ('{%s}'):format(table.concat(words, ', '))
end

-- Which of its names a contract is to have: of a number the number, of a text the text where a
-- contract can have it.
local function name_of(reply)
  local first, second = reply.names[1], reply.names[2]
  return second == 'text' and not first:find("^'[%w_.:-]+'$") and 'text'
    or (second or BARE[first] or first:find('^[A-Z]+$')) and first or MARK
end

local function shapes_of(reply, calls)
  local call = calls[reply.node or false]
  if reply.names then
    return { name_of(reply) }
  end
  return reply.first and { array_shape(reply) } or call and command_shapes(call) or { MARK }
end

local function replies_of(script)
  local calls, list, seen, errors = {}, {}, {}, {}
  for _, call in ipairs(script.calls) do
    calls[call.node] = call
  end
  local function add(into, shape)
    if not seen[shape] then
      seen[shape] = true
      into[#into + 1] = shape
    end
  end
  for _, reply in ipairs(written.replies(script)) do
    if reply.is_error then
      add(errors, reply.code and reply.code:match('^[A-Z][A-Z0-9]*$') or MARK)
    else
      for _, shape in ipairs(shapes_of(reply, calls)) do
        add(list, shape)
      end
    end
  end
  return list, errors
end

local DOMAIN = { owner = '1..256', ms = '1..86400000', count = '0..' .. BIGGEST,
  text = '0..512', channel = '{name}:' .. MARK }

local function columns(rows)
  local widths, lines = {}, {}
  for _, row in ipairs(rows) do
    for i, cell in ipairs(row) do
      widths[i] = math.max(widths[i] or 0, #cell)
    end
  end
  for i, row in ipairs(rows) do
    local line = '  -'
    for at, cell in ipairs(row) do
      line = line .. (at == 1 and ' ' or '  ') .. cell .. (' '):rep(widths[at] - #cell)
    end
    lines[i] = line:gsub('%s+$', '') .. '\n'
  end
  return table.concat(lines)
end

-- No two fields of a contract have one name, and no argument that of an option.
local function unique(name, taken)
  while taken[name] do
    name = name .. '2'
  end
  taken[name] = true
  return name
end

-- What is gone through is one line, however many there are.
local SEVERAL = '1..9'

local function key_rows(keys, taken)
  local rows = {}
  for place = 1, keys.n or 0 do
    local key = keys[place] or {}
    local name = key.name or (keys.n == 1 and 'key' or 'key' .. place)
    rows[place] = { unique(name, taken), key.type or 'any',
      (key.r and 'r' or '') .. (key.w and 'w' or not key.r and 'r' or ''), key_form(place, keys.n),
      MARK .. ' how its name is formed, and what it holds' }
  end
  return rows
end

local function all_keys(keys, taken)
  local row = key_rows(keys, taken)[1]
  table.insert(row, 5, SEVERAL)
  row[1] = row[1] .. '*'
  return { row }
end

local function argument_rows(args, taken)
  local rows, has_channel = {}, false
  tablex.update(taken, script_call.OPTIONS)
  for place = 1, args.n or 0 do
    local argument = args[place] or {}
    local kind = argument.kind or 'text'
    has_channel = has_channel or kind == 'channel'
    local domain = kind == 'channel' and '{name}:told' or DOMAIN[kind]
    rows[place] = { unique(argument.name or 'arg' .. place, taken), kind, domain,
      MARK .. ' its range, and what it is' }
  end
  return rows, has_channel
end

local function all_arguments(taken)
  return { { unique('arg', taken) .. '*', 'text', DOMAIN.text, SEVERAL,
    MARK .. ' how many there are, and what they are' } }
end

local function reply_rows(shapes)
  local rows = {}
  for i, shape in ipairs(shapes) do
    rows[i] = { shape == MARK and '{0, more...}' or shape,
      MARK .. (shape == MARK and ' what it answers, and what that says' or ' what that says') }
  end
  return rows
end

-- At most, with as many keys as the line of them has.
local function cost_of(calls, many)
  calls = math.max(calls, 1)
  local cost = many and ('%d + %d per %s, at most %d'):format(calls, calls, many, 10 * calls)
    or ('at most %d commands'):format(calls)
  return ('cost:     %s\ncluster:  one slot\n'):format(cost)
end

-- The first place that no contract has: it has a line for each key and argument up to the last.
local function too_far(block, place)
  local found
  parser.walk(block, function(node)
    local array, at = place(node)
    if array and at > header.FIELDS_MAX and not found then
      found = { line = node.line, message = ('%s[%.0f] is beyond the %d that a contract has')
        :format(array, at, header.FIELDS_MAX) }
    end
  end)
  return found
end

---@param file string
---@param source string
---@param name string family/verb
---@return string|nil contract
---@return string|nil why
---@return integer|nil line
function adopt.contract(file, source, name)
  local script, findings = script_of.read(file, source, true)
  if not script.block then
    for _, finding in ipairs(findings) do
      if finding.rule == 'syntax' or finding.rule == 'dialect' then
        return nil, finding.message, finding.line
      end
    end
    return nil, 'it cannot be read', 0
  end
  local keys, args, channels = {}, {}, {}
  local place, bound = places.of(script.block)
  local far = too_far(script.block, place)
  if far then
    return nil, far.message, far.line
  end
  note_calls(script, place, keys, args, channels)
  note_rest(script, place, bound, keys, args)
  local taken = {}
  -- Where several have a place of their own, what is gone through are these.
  local wholes = places.wholes(script.block)
  local is_many = wholes.KEYS and (keys.n or 0) <= 1
  local key_list = is_many and all_keys(entry(keys, 1) and keys, taken) or key_rows(keys, taken)
  local arguments, has_channel = argument_rows(args, taken)
  if wholes.ARGV and not args.n then
    arguments = all_arguments(taken)
  end
  for _, channel in ipairs(channels) do
    channel[1] = unique(channel[1], taken)
  end
  local replies, errors = replies_of(script)
  local out = { ('name:     %s\nversion:  1.0.0\nsha1:     %s\nsummary:  %s what it does\n'):format(
    name, script.sha1, MARK) }
  local function add(title, rows)
    if #rows > 0 then
      out[#out + 1] = title .. ':\n' .. columns(rows)
    end
  end
  add('keys', key_list)
  add('channels', channels)
  add('argv', arguments)
  add('returns', reply_rows(replies))
  add('errors', reply_rows(errors))
  if has_channel or #channels > 0 then
    out[#out + 1] = 'message:  value\n'
  end
  out[#out + 1] = ('repeat:   no %s does a copy of a call do no harm? hold, id, seq or pure\n')
    :format(MARK)
  out[#out + 1] = cost_of(#script.calls, is_many and key_list[1][1]:sub(1, -2))
  return table.concat(out)
end

return adopt

-- SPDX-License-Identifier: Apache-2.0
-- The fields of a script's header, and how the text of each is read.
local sorted = require('latchkey.sorted')

local BIGGEST = 2 ^ 53 - 1
local NAME_MAX = 63
local WORD = '^[a-z][a-z0-9_]*$'

local KEY_TYPES =
  { any = true, hash = true, list = true, set = true, stream = true, string = true, zset = true }
local ACCESS = { r = true, w = true, rw = true }
local MARKS = { private = true, shared = true, permanent = true, absent = true }
local MESSAGES = { ['0'] = true, ['1'] = true, ['0 or 1'] = true, value = true, ticket = true }
local REPEATS = { hold = true, id = true, seq = true, pure = true, no = true }

-- What an argument's third column says depends on its type.
local ARGUMENT_KINDS = {
  count = 'integer', integer = 'integer', ms = 'integer', seq = 'integer', token = 'integer',
  caller = 'text', id = 'text', owner = 'text', text = 'text',
  reader = 'reader', writer = 'writer',
  channel = 'channel',
  choice = 'choice', verb = 'choice',
  command = 'command',
}

local RANGED = { integer = true, text = true, reader = true, writer = true }

local function sorted_names(set)
  return table.concat(sorted(set), ', ')
end

local function parse_range(text)
  local min, max = text:match('^(%d+)%.%.(%d+)$')
  min, max = tonumber(min), tonumber(max)
  if not max or min > max or max > BIGGEST then
    return nil, ('"%s" is no range; write MIN..MAX, at most 2^53 - 1'):format(text)
  end
  return { min = min, max = max }
end

local function parse_form(text)
  local base, plus = text:match('^([^+]+)%+?(.*)$')
  if base == '{name}' or base == '{slot}' then
    return { kind = base:sub(2, -2), text = '', plus = plus }
  end
  if base and base:find('{name}', 1, true) and base:find('^[%w_:*./@#={}-]+$') then
    return { kind = 'pattern', text = base, plus = plus }
  end
  local kind, part = (base or ''):match('^(%l+):([%w_:*.-]+)$')
  if kind == 'prefix' or kind == 'suffix' or kind == 'braces' then
    return { kind = kind, text = part, plus = plus }
  end
  return nil,
    ('"%s" forms no name; write {name}, {slot}, prefix:P, suffix:S or braces:P, or a text that has '
      .. '{name} in it'):format(text)
end

local function parse_values(text)
  local values = {}
  for value in (text .. '|'):gmatch('([^|]*)|') do
    if value == '' then
      return nil, ('"%s" is no list of values; write A|B'):format(text)
    end
    values[#values + 1] = value
  end
  return values
end

-- What stands between two or more spaces.
local function columns(item)
  local list = {}
  for column in (item .. '  '):gmatch('(%S.-)%s%s+') do
    list[#list + 1] = column
  end
  return list
end

-- Takes the columns of marks off the front; what is left may use the same words as prose.
local function take_marks(list, key)
  while list[1] do
    local many = parse_range(list[1])
    if many then
      key.many = many
    elseif MARKS[list[1]] then
      key.marks[list[1]] = true
    else
      return
    end
    table.remove(list, 1)
  end
end

local function parse_key(item)
  local list = columns(item)
  local name, star = (list[1] or ''):match('^([a-z][a-z0-9_]*)(%*?)$')
  local kind, access = list[2], list[3]
  if not name or not list[4] then
    return nil, 'a key has columns, two spaces apart: "lock  hash  rw  {name}  what it is"'
  elseif not KEY_TYPES[kind] then
    return nil, ('unknown key type "%s"; use one of %s'):format(kind, sorted_names(KEY_TYPES))
  elseif not ACCESS[access] then
    return nil, ('unknown access "%s"; use r, w or rw'):format(access)
  end
  local form, why = parse_form(list[4])
  if not form then
    return nil, why
  end

  local key = { name = name, type = kind, access = access, form = form, marks = {} }
  local rest = { unpack(list, 5) }
  take_marks(rest, key)
  if (star == '*') ~= (key.many ~= nil) then
    return nil, 'a key that stands for many is written "name*" and has a column MIN..MAX'
  elseif #rest > 1 then
    return nil, ('"%s" is one column too many'):format(rest[2])
  end
  key.text = rest[1] or ''
  return key
end

-- A key that the script forms itself.
local function parse_derived(item)
  local key, why = parse_key(item)
  if key and key.form.kind == 'slot' then
    return nil, '{slot} is for keys that the caller names: a derived one has a form of its own'
  end
  return key, why
end

-- A channel that the script forms itself.
local function parse_channel(item)
  local list = columns(item)
  local name = (list[1] or ''):match(WORD)
  if not name or not list[2] then
    return nil, 'a channel has columns, two spaces apart: "bell  acme:{name}:bell  what it is"'
  elseif #list > 3 then
    return nil, ('"%s" is one column too many'):format(list[4])
  end
  local form, why = parse_form(list[2])
  if form and form.kind == 'slot' then
    return nil, '{slot} is for keys: a channel has a form of its own'
  end
  return form and { name = name, type = 'channel', form = form, text = list[3] or '' }, why
end

-- What an argument may be, read into it; else why not.
local function parse_domain(argument, domain)
  local range, why
  if RANGED[argument.kind] then
    range, why = parse_range(domain)
  elseif argument.kind == 'channel' then
    argument.form, why = parse_form(domain)
  elseif argument.kind == 'choice' then
    argument.values, why = parse_values(domain)
  elseif argument.kind ~= 'command' then
    why = ('unknown argument type "%s"; use one of %s'):format(argument.type,
      sorted_names(ARGUMENT_KINDS))
  elseif domain ~= 'dynamic' then
    why = 'the domain of a command is "dynamic": the field of that name lists them'
  end
  if range then
    argument.min, argument.max = range.min, range.max
  end
  return why
end

local function parse_argument(item)
  local list = columns(item)
  local name, mark = (list[1] or ''):match('^([a-z][a-z0-9_]*)([?*]?)$')
  if not name or not list[3] then
    return nil, 'an argument has columns, two spaces apart: "lease  ms  50..86400000  what"'
  end
  local many = mark == '*' and parse_range(list[4] or '') or nil
  if many then
    table.remove(list, 4)
  elseif mark == '*' then
    return nil, 'an argument that stands for many is written "name*" and has a column MIN..MAX'
  end
  if #list > 4 then
    return nil, ('"%s" is one column too many'):format(list[5])
  end
  local argument = { name = name, type = list[2], kind = ARGUMENT_KINDS[list[2]],
    optional = mark == '?', many = many, text = list[4] or '' }
  local why = parse_domain(argument, list[3])
  if why then
    return nil, why
  end
  return argument
end

-- A reply that is no array: an integer, a status such as OK, one text such as 'free', or a word for
-- any of a kind.
local BARE = { ['nil'] = true, text = true, integer = true }

local function parse_bare(item)
  local literal, says = item:match("^'([%w_.:-]+)'%s%s+(%S.*)$")
  if literal then
    return { shape = ("'%s'"):format(literal), literal = literal, bare = true, rest = false,
      text = says }
  end
  local shape, text = item:match('^(%S+)%s%s+(%S.*)$')
  if shape and (BARE[shape] or shape:match('^%-?%d+$') or shape:match('^[A-Z]+$')) then
    return { shape = shape, bare = true, rest = false, text = text }
  end
end

local function parse_return(item)
  local bare = parse_bare(item)
  if bare then
    return bare
  end
  local inside, text = item:match('^{([^{}]+)}%s%s+(%S.*)$')
  if not inside then
    return nil, 'a reply needs a shape and a meaning: "{1, hold}  what it says"'
  end
  local count, rest, first = 0, false, nil
  for element in (inside .. ', '):gmatch('(.-), ') do
    count = count + 1
    if count == 1 then
      first = element:match('^%-?%d+$') and tonumber(element)
    elseif rest then
      return nil, 'only the last element of a shape may stand for many'
    elseif element:match('^[a-z][a-z0-9_]*%.%.%.$') then
      rest = true
    elseif not element:match(WORD) then
      return nil, ('"%s" is no element of a shape; use a lower-case word'):format(element)
    end
  end
  if not first then
    return nil, 'a shape starts with its outcome, an integer: "{1, hold}"'
  end
  local arity = not rest and count or nil
  return { shape = '{' .. inside .. '}', first = first, arity = arity, rest = rest, text = text }
end

local function parse_error(item)
  local code, text = item:match('^([A-Z][A-Z0-9]*)%s%s+(%S.*)$')
  if not code then
    return nil, 'an error needs a code and a meaning: "LKARG  what was wrong"'
  end
  return { code = code, text = text }
end

local function parse_command(item)
  local command = item:match('^[A-Z]+$') or item:match('^([A-Z]+)%s%s+%S')
  if not command then
    return nil, 'a dynamic command is one upper-case word'
  end
  return command
end

local function parse_name(text)
  if #text > NAME_MAX or not text:match('^[a-z][a-z0-9_]*/[a-z][a-z0-9_]*$') then
    return nil, ('"%s" is no script name; write family/verb, lower case, at most %d bytes'):format(
      text, NAME_MAX)
  end
  return text
end

local function parse_version(text)
  for _, part in ipairs({ text:match('^(%d+)%.(%d+)%.(%d+)$') }) do
    if part ~= '0' and part:match('^0') then
      text = ''
    end
  end
  if not text:match('^%d+%.%d+%.%d+$') then
    return nil, 'a version is MAJOR.MINOR.PATCH in plain numbers'
  end
  return text
end

local function parse_sha1(text)
  if not text:match('^%x+$') or #text ~= 40 then
    return nil, 'a SHA1 has 40 hexadecimal digits'
  end
  return text:lower()
end

local function parse_cost(text)
  local base = text:match('^at most (%d+) commands?$')
  if base then
    return { base = tonumber(base) }
  end
  local start, per, of, max = text:match('^(%d+) %+ (%d+) per (%l+), at most (%d+)$')
  if not start then
    return nil, 'write "at most N commands" or "N + M per WORD, at most MAX"'
  end
  return { base = tonumber(start), per = tonumber(per), of = of, max = tonumber(max) }
end

local function parse_uses(text)
  local uses = {}
  for name in (text .. ', '):gmatch('(.-), ') do
    if not name:match(WORD) then
      return nil, 'name the fragments, separated by ", "'
    end
    uses[#uses + 1] = name
  end
  return uses
end

local function one_of(set)
  return function(text)
    text = text:gsub(' %? .*$', '') -- what `latchkey adopt` asks; lint wants it decided
    if set[text] then
      return text
    end
    return nil, ('"%s" is not one of: %s'):format(text, sorted_names(set))
  end
end

local function any_text(text)
  return text
end

-- In the order in which a header has them. parse takes a value, or one item of a list; it gives
-- what that says, or nil and why not.
return {
  { name = 'name', parse = parse_name, required = true },
  { name = 'version', parse = parse_version, required = true },
  { name = 'sha1', parse = parse_sha1, contract = true },
  { name = 'summary', parse = any_text, required = true },
  { name = 'keys', parse = parse_key, list = true },
  { name = 'derived', parse = parse_derived, list = true },
  { name = 'channels', parse = parse_channel, list = true },
  { name = 'argv', parse = parse_argument, list = true },
  { name = 'returns', parse = parse_return, list = true, required = true },
  { name = 'errors', parse = parse_error, list = true },
  { name = 'message', parse = one_of(MESSAGES) },
  { name = 'repeat', parse = one_of(REPEATS), into = 'repeat_' },
  { name = 'cost', parse = parse_cost, required = true },
  { name = 'dynamic', parse = parse_command, list = true },
  { name = 'cluster', parse = one_of({ ['one slot'] = true, no = true }), required = true },
  { name = 'uses', parse = parse_uses },
}

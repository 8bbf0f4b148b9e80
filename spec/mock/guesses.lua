-- SPDX-License-Identifier: Apache-2.0
-- Calls of a script of which nothing is known but its text: how many keys and arguments it reads,
-- of which kind they seem to be, and values of that kind.
local cjson = require('cjson')
local cmsgpack = require('latchkey.mock.cmsgpack')
local known = require('latchkey.redis.commands')

local guesses = {}

-- Where a script counts its keys or arguments, it is given so many beyond those it names.
local FURTHER = 3

local NUMBERS = { '1', '2', '3', '5', '10', '60', '1000', '60000', '0', '-1' }
local TEXTS = { 'a', 'b', 'job', 'owner:1', 'owner:12', '1', '2', '', 'k1', 'wait', '5000' }
local VALUES = {
  { 'a', 'b' }, { a = 1, b = 'x' }, { { id = 'a', n = 1 }, { id = 'b', n = 2 } }, { 1, 2, 3 },
  { id = 'a', data = '{}', opts = { delay = 0, attempts = 3 }, name = 'job', time = 1000 },
  { 'k1', 'a', 'b', 1, 2, 3, { a = 1 }, 'x', 5 },
}
local ABSENT = { '', '0', '1' }

-- What a name in the text stands for: "KEYS[1]" itself, or a local that is only another name.
local function aliases(source)
  local found = {}
  for name, list, place in source:gmatch('local%s+([%a_][%w_]*)%s*=%s*'
    .. '([KA][ER][YG][SV])%[(%d+)%]') do
    found[name] = list .. '[' .. place .. ']'
  end
  for name, inner in source:gmatch('local%s+([%a_][%w_]*)%s*=%s*tonumber%(%s*([^%(%),]+)%s*%)') do
    found[name] = found[name] or inner:match('^[KA][ER][YG][SV]%[%d+%]$')
  end
  return found
end

local function largest(source, list)
  local count = 0
  for place in source:gmatch(list .. '%[%s*(%d+)%s*%]') do
    count = math.max(count, tonumber(place))
  end
  if source:find('#' .. list) or source:find(list .. '%[%s*[%a_#]')
    or source:find('unpack%(%s*' .. list .. '%s*[,)]') or source:find('pairs%(%s*' .. list) then
    count = count + FURTHER
  end
  return math.min(count, 60)
end

-- Every place where a text like this is followed by a key or argument: "ARGV[3]" -> true.
local function after(source, pattern, named)
  local found = {}
  for word in source:gmatch(pattern .. '%s*([%a_][%w_]*%[?%d*%]?)') do
    local what = named[word] or word
    found[what:match('^[KA][ER][YG][SV]%[%d+%]$') or ''] = true
  end
  return found
end

local function numbers_of(source, named)
  local found = after(source, 'tonumber%(', named)
  for _, pattern in ipairs({ '[%+%-%*/<>]', '[eE][xX][pP][iI][rR][eE][%a]*[\'"]%s*,[^,]*,',
    '[\'"]P?X[\'"]%s*,', '[\'"]EX[\'"]%s*,', '[iI][nN][cC][rR][bB][yY][\'"]%s*,[^,]*,' }) do
    for place in pairs(after(source, pattern, named)) do
      found[place] = true
    end
  end
  return found
end

-- The type of each key, by the first command that names it.
local function types_of(source, named)
  local found = {}
  for command, word in source:gmatch('[\'"](%a+)[\'"]%s*,%s*([%a_][%w_]*%[?%d*%]?)') do
    local about, what = known[command:upper()], named[word] or word
    if about and about.type and about.type ~= 'any' and not found[what] then
      found[what] = about.type
    end
  end
  return found
end

---What the text says of its keys and arguments.
---@param source string
---@return table about { keys = types, args = kinds }
function guesses.read(source)
  local named = aliases(source)
  local types, numbers = types_of(source, named), numbers_of(source, named)
  local json, packed = after(source, 'cjson%.decode%(', named), after(source, 'msgpack%.unpack%(',
    named)
  local about = { keys = {}, args = {} }
  for i = 1, largest(source, 'KEYS') do
    about.keys[i] = types[('KEYS[%d]'):format(i)] or 'any'
  end
  for i = 1, largest(source, 'ARGV') do
    local place = ('ARGV[%d]'):format(i)
    about.args[i] = json[place] and 'json' or packed[place] and 'msgpack'
      or numbers[place] and 'number' or 'text'
  end
  return about
end

local MAKE = {
  number = function(pick, now_ms)
    return pick({ pick(NUMBERS), pick(NUMBERS), pick(NUMBERS), ('%.0f'):format(now_ms),
      ('%.0f'):format(math.floor(now_ms / 1000)) })
  end,
  json = function(pick)
    return pick({ false, true, true, true }) and cjson.encode(pick(VALUES)) or pick(TEXTS)
  end,
  msgpack = function(pick)
    return cmsgpack.pack(pick(VALUES))
  end,
  text = function(pick)
    return pick({ pick(TEXTS), pick(TEXTS), pick(NUMBERS), pick(ABSENT) })
  end,
}

local FILL = {
  string = { 'SET K T', 'SET K N', 'SET K N PX 45000' },
  hash = { 'HSET K T N', 'HSET K T T T N', 'HSET K 1 T 2 N' },
  list = { 'RPUSH K T T', 'RPUSH K T' },
  set = { 'SADD K N N', 'SADD K T' },
  zset = { 'ZADD K N T', 'ZADD K N T N T', 'ZADD K N T N T N T' },
  stream = { 'XADD K 1-1 a b' },
}
local KINDS = { 'string', 'hash', 'list', 'set', 'zset' }

---@param about table of `guesses.read`
---@param pick fun(list: table): any
---@param now_ms integer
---@return table call { keys, args, before }
function guesses.call(about, pick, now_ms)
  local call = { keys = {}, args = {}, before = {} }
  for i, kind in ipairs(about.keys) do
    call.keys[i] = ('{k}%d'):format(i)
    if pick({ true, true, false }) then
      local line = pick(FILL[kind == 'any' and pick(KINDS) or kind])
      local argv = {}
      for word in line:gmatch('%S+') do
        argv[#argv + 1] = word == 'K' and call.keys[i] or word == 'T' and MAKE.text(pick)
          or word == 'N' and pick(NUMBERS) or word
      end
      call.before[#call.before + 1] = argv
    end
  end
  for i, kind in ipairs(about.args) do
    call.args[i] = MAKE[kind](pick, now_ms)
  end
  return call
end

return guesses

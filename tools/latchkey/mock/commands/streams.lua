-- SPDX-License-Identifier: Apache-2.0
-- Streams without groups. The value is an array of entries { ms, seq, { field, value ... } }, with
-- the last id that ever was in `last`. A stream that has no entries any more stays.
local arrays = require('latchkey.mock.arrays')
local integers = require('latchkey.mock.integers')

local ONE_KEY = { 1, 1, 1 }
local BAD_ID = 'ERR Invalid stream ID specified as stream command argument'
local NOT_ABOVE_ZERO = 'ERR The ID specified in XADD must be greater than 0-0'
local NO_ID, MAX = { 0, 0 }, 2 ^ 53

local function read(world, key)
  return arrays.read(world, key, 'stream')
end

local function write(world, key, entries)
  local old = world.store:get(key)
  world.store:put(key, { type = 'stream', value = entries, expires_at = old and old.expires_at })
end

local function copy(entries, first)
  local new = arrays.copy(entries, first)
  new.last = entries.last or NO_ID
  return new
end

local function is_less(a, b)
  return a[1] < b[1] or a[1] == b[1] and a[2] < b[2]
end

local function id_text(id)
  return ('%.0f-%.0f'):format(id[1], id[2])
end

local function read_part(text)
  if not text:find('^%d+$') then
    return nil, BAD_ID
  end
  local n, bad = integers.parse((text:gsub('^0+(%d)', '%1')))
  return n, bad == integers.TOO_BIG and bad or bad and BAD_ID
end

-- "ms-seq", or "ms" alone, whose seq is the given one.
local function read_id(text, missing)
  local ms, seq = text:match('^(%d+)%-(%d+)$')
  local n, bad = read_part(ms or text)
  if bad then
    return nil, bad
  elseif not ms then
    return { n, missing }
  end
  local m, bad_seq = read_part(seq)
  return m and { n, m }, bad_seq
end

-- What XADD and XTRIM cut off; options end where something else stands.
local function read_trim(argv, at, options)
  local kind = argv[at]:upper()
  local sign = argv[at + 1]
  if options.kind then
    return nil, 'ERR syntax error, MAXLEN and MINID options at the same time are not compatible'
  elseif (sign == '=' or sign == '~') and argv[at + 2] then
    at = at + 1
    options.is_about = sign == '~'
  end
  local limit = argv[at + 1]
  options.kind = kind
  local bad
  if kind == 'MAXLEN' then
    options.most, bad = integers.parse(limit)
    if not bad and options.most < 0 then
      return nil, 'ERR The MAXLEN argument must be >= 0.'
    end
  else
    options.least, bad = read_id(limit, 0)
  end
  return at + 2, bad
end

local function read_limit(argv, at, options)
  local limit, bad = integers.parse(argv[at + 1] or '')
  if not argv[at + 1] then
    return nil, arrays.SYNTAX
  elseif bad then
    return nil, bad
  elseif limit < 0 then
    return nil, 'ERR The LIMIT argument must be >= 0.'
  end
  options.has_limit, options.limit = true, limit
  return at + 2
end

local function read_options(argv, is_add)
  local options, at = { limit = 0 }, 3
  while at <= #argv do
    local word, bad = argv[at]:upper(), nil
    if (word == 'MAXLEN' or word == 'MINID') and argv[at + 1] then
      at, bad = read_trim(argv, at, options)
    elseif word == 'LIMIT' and argv[at + 1] then
      at, bad = read_limit(argv, at, options)
    elseif is_add and word == 'NOMKSTREAM' then
      options.must_exist, at = true, at + 1
    elseif is_add then
      break
    else
      return nil, arrays.SYNTAX
    end
    if bad then
      return nil, bad
    end
  end
  if options.limit > 0 and not options.kind then
    return nil, 'ERR syntax error, LIMIT cannot be used without specifying a trimming strategy'
  elseif options.has_limit and not options.is_about then
    return nil, 'ERR syntax error, LIMIT cannot be used without the special ~ option'
  elseif not is_add and not options.kind then
    return nil, 'ERR syntax error, XTRIM must be called with trimming options'
  end
  options.at = at
  return options
end

-- A server keeps so many entries together, and about so many bytes, which are not counted here.
local NODE = 100

-- Of these, about so many: whole nodes, and no more than the limit.
local function count_whole(old, all, options)
  local count = 0
  while count < all do
    local node = math.min(NODE, all - count)
    if count + node > old or options.limit > 0 and count + node > options.limit then
      break
    end
    count = count + node
  end
  return count
end

local function count_old(entries, options)
  local old = 0
  if options.most then
    old = math.max(#entries - options.most, 0)
  elseif options.least then
    while entries[old + 1] and is_less(entries[old + 1], options.least) do
      old = old + 1
    end
  end
  return options.is_about and count_whole(old, #entries, options) or old
end

local function next_id(last, now)
  return now > last[1] and { now, 0 } or { last[1], last[2] + 1 }
end

-- The id of a new entry; text "*", "ms-*", or an id.
local function new_id(world, text, last)
  if text == '*' then
    return next_id(last, world.clock.ms)
  end
  local ms = text:match('^(%d+)%-%*$')
  local id, bad = read_id(ms or text, 0)
  if bad then
    return nil, bad
  elseif ms then
    id[2] = id[1] == last[1] and last[2] + 1 or 0
  end
  if id[1] == 0 and id[2] == 0 then
    id[2] = 1
  end
  if not is_less(last, id) then
    return nil, 'ERR The ID specified in XADD is equal or smaller than the target stream top item'
  end
  return id
end

local function xadd(world, argv)
  local options, bad = read_options(argv, true)
  if bad then
    return nil, bad
  end
  local fields = arrays.copy(argv, options.at + 1)
  local text = argv[options.at]
  if text and text ~= '*' then
    local _, bad_id = read_id((text:gsub('%-%*$', '')), 0)
    if bad_id then
      return nil, bad_id
    end
  end
  if #fields == 0 or #fields % 2 == 1 then
    return nil, "ERR wrong number of arguments for 'xadd' command"
  elseif text:find('^0+%-?0*$') then
    return nil, NOT_ABOVE_ZERO
  end
  local old, wrong = read(world, argv[2])
  if wrong then
    return nil, wrong
  elseif options.must_exist and not world.store:get(argv[2]) then
    return false
  end
  local new = copy(old)
  local id, bad_id = new_id(world, text, new.last)
  if bad_id then
    return nil, bad_id
  end
  new[#new + 1] = { id[1], id[2], fields }
  new.last = id
  write(world, argv[2], copy(new, count_old(new, options) + 1))
  return id_text(id)
end

local function xtrim(world, argv)
  local options, bad = read_options(argv, false)
  if bad then
    return nil, bad
  end
  local entries, wrong = read(world, argv[2])
  if wrong then
    return nil, wrong
  end
  local old = count_old(entries, options)
  if old > 0 then
    write(world, argv[2], copy(entries, old + 1))
  end
  return old
end

local function xlen(world, argv)
  local entries, wrong = read(world, argv[2])
  return entries and #entries, wrong
end

local function xdel(world, argv)
  local ids = {}
  local entries, wrong = read(world, argv[2])
  if wrong then
    return nil, wrong
  elseif not world.store:get(argv[2]) then
    return 0
  end
  for i = 3, #argv do
    local id, bad = read_id(argv[i], 0)
    if bad then
      return nil, bad
    end
    ids[id_text(id)] = true
  end
  local left = { last = entries.last }
  for _, entry in ipairs(entries) do
    if not ids[id_text(entry)] then
      left[#left + 1] = entry
    end
  end
  if #left < #entries then
    write(world, argv[2], left)
  end
  return #entries - #left
end

-- One end of a range: "-", "+", an id, or "(" and an id, which is outside.
local function read_end(text, missing)
  if text == '-' then
    return { id = NO_ID }
  elseif text == '+' then
    return { id = { MAX, MAX } }
  end
  local outside = text:sub(1, 1) == '('
  local id, bad = read_id(outside and text:sub(2) or text, missing)
  return id and { id = id, outside = outside }, bad
end

local function shown(entry)
  return { id_text(entry), arrays.copy(entry[3]) }
end

-- How many at most; -1: all.
local function read_count(argv)
  local count = -1
  for i = 5, #argv, 2 do
    if argv[i]:upper() ~= 'COUNT' or not argv[i + 1] then
      return nil, arrays.SYNTAX
    end
    local n, bad = integers.parse(argv[i + 1])
    if bad then
      return nil, bad
    end
    count = math.max(n, 0)
  end
  return count
end

local function is_within(entry, first, last)
  return not is_less(entry, first.id) and not is_less(last.id, entry)
    and not (first.outside and not is_less(first.id, entry))
    and not (last.outside and not is_less(entry, last.id))
end

local function range(is_reverse)
  return function(world, argv)
    local first, bad = read_end(argv[is_reverse and 4 or 3], 0)
    local last, bad_last = read_end(argv[is_reverse and 3 or 4], MAX)
    if bad or bad_last then
      return nil, bad or bad_last
    end
    local count, bad_count = read_count(argv)
    if bad_count then
      return nil, bad_count
    end
    local entries, wrong = read(world, argv[2])
    if wrong or not world.store:get(argv[2]) then
      return entries and {}, wrong
    elseif count == 0 then
      return false
    end
    local found = {}
    for _, entry in ipairs(is_reverse and arrays.reverse(entries) or entries) do
      if is_within(entry, first, last) and #found ~= count then
        found[#found + 1] = shown(entry)
      end
    end
    return found
  end
end

return {
  XADD = { arity = -5, flags = 'write denyoom', keys = ONE_KEY, run = xadd },
  XTRIM = { arity = -4, flags = 'write', keys = ONE_KEY, run = xtrim },
  XLEN = { arity = 2, flags = 'readonly', keys = ONE_KEY, run = xlen },
  XDEL = { arity = -3, flags = 'write', keys = ONE_KEY, run = xdel },
  XRANGE = { arity = -4, flags = 'readonly', keys = ONE_KEY, run = range(false) },
  XREVRANGE = { arity = -4, flags = 'readonly', keys = ONE_KEY, run = range(true) },
}

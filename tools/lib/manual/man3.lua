-- SPDX-License-Identifier: Apache-2.0
-- Manual pages of the library's functions and types in mdoc(7), from the doc comments of the
-- public headers.
local tablex = require('pl.tablex')

local man = require('lib.manual.man')

local man3 = {}

local PARTS = {
  { 'blocks', 'Blocks' }, { 'threads', 'Threads' }, { 'after-io', 'If the reply was lost' },
  { 'since', 'Since' },
}

local function squeeze(text)
  return (text:gsub('%s+', ' '):gsub('^ ', ''):gsub(' $', ''))
end

-- The first sentence, as a title: in lower case, without its end.
local function summary(doc, name)
  local sentence = doc.text:match('^(.-)[.:;] ') or doc.text:gsub('[.:;]$', '')
  sentence = sentence:gsub('^%u%l', string.lower):gsub('[.:;]+$', '')
  return sentence ~= '' and sentence or name
end

-- "lk_status", and each argument as it is declared.
local function signature(item)
  local code = item.code:gsub('/%*.-%*/', ''):gsub('^LK_API ', '')
  local result, arguments = code:match('^(.-)%s*' .. item.name .. '%((.*)%)[^)]*;$')
  local list, depth, from = {}, 0, 1
  for at, char in arguments:gmatch('()([(),])') do
    depth = depth + (char == '(' and 1 or char == ')' and -1 or 0)
    if char == ',' and depth == 0 then
      list[#list + 1] = squeeze(arguments:sub(from, at - 1))
      from = at + 1
    end
  end
  list[#list + 1] = squeeze(arguments:sub(from))
  return squeeze(result), list
end

local function tagged(out, label, text)
  out[#out + 1] = '.It ' .. label
  man.flow(out, text)
end

-- For what its header gives no words of its own.
local function plain_text(item)
  if item.rows then
    return 'What a call came to: each status, its number and its meaning.'
  elseif item.code:find('^typedef struct [%w_]+ [%w_]+;$') then
    return 'A handle of the library. Only the calls below look inside it.'
  end
  return 'Its header says no more.'
end

local function description(out, item)
  local doc = item.doc
  out[#out + 1] = '.Sh DESCRIPTION'
  man.flow(out, doc.text ~= '' and doc.text or plain_text(item))
  local rows = {}
  for _, param in ipairs(doc.params) do
    tagged(rows, 'Fa ' .. param.name, param.text)
  end
  for _, part in ipairs(PARTS) do
    if doc.tags[part[1]] and doc.tags[part[1]] ~= '' then
      tagged(rows, part[2], doc.tags[part[1]])
    end
  end
  if #rows > 0 then
    out[#out + 1] = '.Bl -tag -width Ds'
    for _, line in ipairs(rows) do
      out[#out + 1] = line
    end
    out[#out + 1] = '.El'
  end
end

-- What a table of a header makes of an enum: X(BUSY, 1, 1, "another owner holds the lock", ...).
local function constants_of(rows)
  local list = {}
  for name, number, text in rows:gmatch('X%(([%u_]+), (%d+), %d, "(.-)"') do
    list[#list + 1] = { name = ('LK_%s (%s)'):format(name, number), text = text }
  end
  return list
end

-- Constants and members of which something is said, in their order: { name, text }.
local function members_of(code)
  local body = code:match('{(.*)}')
  local list, separator = {}, code:find('^typedef enum') and ',' or ';'
  for part, comment in ((body or '') .. '/**/'):gmatch('(.-)/%*(.-)%*/') do
    for declared in part:gmatch('[^' .. separator .. ']+') do
      declared = squeeze(declared)
      local name = declared:match('%(%*([%w_]+)%)') or declared:match('^([%u%d_]+) =')
        or declared:match('([%w_]+)$') or declared:match('([%w_]+)%[')
      list[#list + 1] = name and { name = name, text = '' }
    end
    if #list > 0 and comment ~= '' then
      list[#list].text = squeeze((comment:gsub('^%*<', ''):gsub('\n%s*%*', '\n')))
    end
  end
  return tablex.filter(list, function(member)
    return member.text ~= ''
  end)
end

-- The declaration as a program sees it.
local function declare(out, item)
  local code = item.code:gsub('%s*/%*.-%*/', ''):gsub('\n%s*\n', '\n'):gsub('{\n#.*\n}', '{ ... }')
  man.verbatim(out, code)
end

local function members(out, item)
  local list = item.rows and constants_of(item.rows) or members_of(item.code)
  if #list == 0 then
    return
  end
  out[#out + 1] = '.Bl -tag -width Ds'
  for _, member in ipairs(list) do
    local mark = item.code:find('^typedef enum') and 'Dv ' or 'Va '
    tagged(out, mark .. member.name, member.text)
  end
  out[#out + 1] = '.El'
end

local function is_function(item)
  return item.code:find('^LK_API [^(]-' .. item.name .. '%(') ~= nil
end

-- "lk_lock" of "lk_lock_release_async".
local function object_of(name)
  return name:match('^lk_%l+')
end

-- All that an item says, where names of others may be.
local function said_of(item)
  local said = { item.code, item.doc.text }
  for _, param in ipairs(item.doc.params) do
    said[#said + 1] = param.text
  end
  for _, text in pairs(item.doc.tags) do
    said[#said + 1] = text
  end
  return table.concat(said, ' ')
end

-- What nearly every call takes: its page does not list them all.
local FOR_ALL = 40

---Which pages each page leads to, sorted: what an item names, the calls on the same object, and
---for a type the calls that take it.
---@param items table[] of headers.parse that have a name, those of all headers
---@return table names by name
function man3.related(items)
  local known, related, users = {}, {}, {}
  for _, item in ipairs(items) do
    known[item.name], related[item.name], users[item.name] = item, {}, {}
  end
  for _, item in ipairs(items) do
    for name in said_of(item):gmatch('%f[%w_]lk_[%w_]+') do
      if known[name] and name ~= item.name then
        related[item.name][name] = true
        users[name][item.name] = true
      end
    end
    for _, other in ipairs(items) do
      if other ~= item and object_of(other.name) == object_of(item.name) then
        related[item.name][other.name] = true
      end
    end
  end
  for name, list in pairs(users) do
    if not is_function(known[name]) and tablex.size(list) <= FOR_ALL then
      tablex.update(related[name], list)
    end
  end
  return tablex.map(function(set)
    local names = tablex.keys(set)
    table.sort(names)
    return names
  end, related)
end

local function see_also(out, names)
  out[#out + 1] = '.Sh SEE ALSO'
  out[#out + 1] = '.Xr latchkey 1' .. (#names > 0 and ' ,' or '')
  for i, name in ipairs(names) do
    out[#out + 1] = ('.Xr %s 3%s'):format(name, i < #names and ' ,' or '')
  end
end

---@param item table of headers.parse, a function or a type; `rows` of the macro that lists an enum
---@param header string "latchkey/who.h"
---@param date string "November 21, 2026"
---@param related string[] the pages that it leads to
---@return string
function man3.page(item, header, date, related)
  local doc = item.doc
  local out = man.header(item.name, 3, item.name, summary(doc, item.name), date)
  out[#out + 1] = '.Sh SYNOPSIS'
  out[#out + 1] = '.In ' .. header
  if is_function(item) then
    local result, arguments = signature(item)
    out[#out + 1] = '.Ft "' .. result .. '"'
    out[#out + 1] = '.Fo ' .. item.name
    for _, argument in ipairs(arguments) do
      out[#out + 1] = '.Fa "' .. argument .. '"'
    end
    out[#out + 1] = '.Fc'
  else
    declare(out, item)
  end
  description(out, item)
  if not is_function(item) then
    members(out, item)
  end
  if doc.tags['return'] then
    out[#out + 1] = '.Sh RETURN VALUES'
    man.flow(out, doc.tags['return'])
  end
  see_also(out, related)
  return table.concat(out, '\n') .. '\n'
end

return man3

-- SPDX-License-Identifier: Apache-2.0
-- Reference pages of the C interface, from the doc comments of the public headers.
local headers = {}

local TAGS = {
  { 'return', 'Returns' }, { 'blocks', 'Blocks for' }, { 'threads', 'Threads' },
  { 'after%-io', 'If the reply was lost' }, { 'since', 'Since' },
}

local function squeeze(text)
  return (text:gsub('%s+', ' '):gsub('^ ', ''):gsub(' $', ''))
end

-- The text of a comment without its marks.
local function inside(comment)
  return (comment:gsub('^/%*%*?<?', ''):gsub('%*/$', ''):gsub('\n%s*%*', '\n'))
end

-- Words that are names become code; what is markup stays text.
local function prose(text)
  return (squeeze(text):gsub('<', '&lt;'):gsub('|', '\\|'):gsub('%f[%w_]lk_[%w_]+%(?%)?', '`%0`')
    :gsub('%f[%w_]LK_[%u%d_]+', '`%0`'))
end

-- A doc comment as { text, params, tags }. An @ inside of a word is no tag.
local function doc_of(comment)
  local text = ('\n' .. inside(comment or '')):gsub('(%s)@(%l)', '%1\0%2') .. '\0'
  local doc = { text = squeeze(text:match('^[^%z]*')), params = {}, tags = {} }
  for tag, body in text:gmatch('%z([%l-]+)([^%z]*)') do
    if tag == 'param' then
      local name, rest = body:match('^%s*([%w_]+)%s+(.*)$')
      table.insert(doc.params, { name = name, text = rest })
    else
      doc.tags[tag] = squeeze(body)
    end
  end
  return doc
end

-- The end of a declaration that starts at `from`: the semicolon outside of braces.
local function declaration(text, from)
  local depth, at = 0, from
  while true do
    local comment_end = text:match('^/%*.-%*/()', at)
    local char = text:sub(at, at)
    if comment_end then
      at = comment_end - 1
    elseif char == '{' or char == '(' then
      depth = depth + 1
    elseif char == '}' or char == ')' then
      depth = depth - 1
    elseif char == ';' and depth == 0 then
      return text:sub(from, at), at + 1
    elseif char == '' then
      error('a declaration without end')
    end
    at = at + 1
  end
end

local function name_of(code)
  return code:match('^LK_API [^(]-([%w_]+)%(') or code:match('^typedef [^{]-%(%*([%w_]+)%)%(')
    or code:match('([%w_]+);$')
end

-- A table that was drawn in a comment: a row without a first cell goes on with the one before.
local function add_row(rows, line)
  local first, second = line:match('^%s*|%s*(.-)%s*|%s*(.-)%s*|$')
  if first == '' then
    rows[#rows] = rows[#rows]:gsub(' |$', ' ' .. prose(second) .. ' |')
  elseif first:find('^%-+$') then
    rows[#rows + 1] = '|---|---|'
  else
    rows[#rows + 1] = ('| %s | %s |'):format(prose(first), prose(second))
  end
end

-- The comment at a header's top as Markdown: "Word    text" is a paragraph, "| a | b |" a row.
local function intro_of(text)
  local blocks, kind = {}, nil
  for line in (text .. '\n'):gmatch('(.-)\n') do
    local term, rest = line:match('^%s?(%u%l+)  +(%S.*)$')
    local item, meaning = line:match('^   (%l[%l ]-)  +(%S.*)$')
    if line:find('^%s*|') then
      if kind ~= 'rows' then
        blocks[#blocks + 1] = {}
      end
      kind = 'rows'
      add_row(blocks[#blocks], line)
    elseif term or item then
      blocks[#blocks + 1] = (term and '**%s.** %s' or '- **%s**: %s'):format(term or item,
        prose(rest or meaning))
      kind = item and 'item' or 'text'
    elseif not line:find('%S') then
      kind = nil
    elseif not kind and line:find('^%s?%u%l+ ?%l*$') then
      blocks[#blocks + 1] = ('**%s.**'):format(squeeze(line))
      kind = 'text'
    elseif kind == 'text' or kind == 'item' then
      blocks[#blocks] = blocks[#blocks] .. ' ' .. prose(line)
    else
      blocks[#blocks + 1] = prose(line)
      kind = 'text'
    end
  end
  for i, block in ipairs(blocks) do
    blocks[i] = type(block) == 'table' and table.concat(block, '\n') or block
  end
  return table.concat(blocks, '\n\n') .. '\n'
end

local function macro(text, at)
  local line, rest = text:match('^#define (.-[^\\])\n()', at)
  local name, value = line:match('^([%w_]+)%s*(.*)$')
  local note = value:match('/%*%*<(.-)%*/')
  value = squeeze(value:gsub('/%*.-%*/', ''):gsub('\\\n', ' '))
  return { name = name, value = value, text = note and squeeze(note) or '' }, rest
end

---What a header declares, in its order.
---@param text string of the header
---@return table header { intro, items }; an item is { section }, { macro } or { name, code, doc }
function headers.parse(text)
  local head = text:match('\n(/%*.-%*/)')
  local items, at, comment = {}, text:find('extern "C"', 1, true), nil
  while at do
    local start = text:find('\n', at, true)
    if not start then
      break
    end
    at = start + 1
    local line = text:match('^[^\n]*', at)
    if line:find('^/%* %-%-%-') then
      items[#items + 1] = { section = line:match('%-%-+ (.-) %-%- %*/') }
    elseif line:find('^/%*%*') then
      local finish
      comment, finish = text:match('^(/%*%*.-%*/)()', at)
      at = finish
    elseif line:find('^#define LK_') then
      local found
      found, at = macro(text, at)
      items[#items + 1] = { macro = found }
      at = at - 1
    elseif line:find('^typedef') or line:find('^LK_API') then
      local code
      code, at = declaration(text, at)
      items[#items + 1] = { name = name_of(code), code = code, doc = doc_of(comment) }
      comment = nil
    end
  end
  return { intro = inside(head), items = items }
end

local function macros(out, list)
  if #list == 0 then
    return
  end
  out[#out + 1] = '| constant | value | |\n|---|---|---|'
  for _, found in ipairs(list) do
    local value = #found.value <= 40 and '`' .. found.value .. '`' or ''
    out[#out + 1] = ('| `%s` | %s | %s |'):format(found.name, value, prose(found.text))
  end
  out[#out + 1] = ''
end

local function symbol(out, item)
  local doc = item.doc
  out[#out + 1] = ('### `%s`\n'):format(item.name)
  if item.name == 'lk_status' then
    out[#out + 1] = 'Each status has a section of its own: [statuses](../statuses.md).\n'
  elseif doc.text ~= '' then
    out[#out + 1] = prose(doc.text) .. '\n'
  end
  out[#out + 1] = '```c\n' .. item.code:gsub('^LK_API ', '') .. '\n```\n'
  local rows = {}
  for _, param in ipairs(doc.params) do
    rows[#rows + 1] = ('| `%s` | %s |'):format(param.name, prose(param.text))
  end
  for _, tag in ipairs(TAGS) do
    local text = doc.tags[tag[1]:gsub('%%', '')]
    if text then
      rows[#rows + 1] = ('| **%s** | %s |'):format(tag[2], prose(text))
    end
  end
  if #rows > 0 then
    out[#out + 1] = '| | |\n|---|---|\n' .. table.concat(rows, '\n') .. '\n'
  end
end

---@param name string "latchkey.h"
---@param text string of the header
---@return string page
function headers.page(name, text)
  local header = headers.parse(text)
  local out = { ('# %s\n'):format(name), ('```c\n#include <latchkey/%s>\n```\n'):format(name),
    intro_of(header.intro) }
  local pending = {}
  for _, item in ipairs(header.items) do
    if item.macro then
      table.insert(pending, item.macro)
    else
      macros(out, pending)
      pending = {}
      if item.section then
        out[#out + 1] = '## ' .. item.section:gsub('^%l', string.upper) .. '\n'
      else
        symbol(out, item)
      end
    end
  end
  macros(out, pending)
  return table.concat(out, '\n')
end

return headers

-- SPDX-License-Identifier: Apache-2.0
-- Manual pages of concepts in mdoc(7), from pages of the documentation: titles, paragraphs, lists,
-- tables and code, as those pages use them.
local man = require('lib.manual.man')

local man7 = {}

-- The page in docs/, what the manual calls it, and its title.
man7.PAGES = {
  { 'explanation/guarantees.md', 'latchkey-guarantees', 'what locks guarantee, and when' },
  { 'reference/url.md', 'latchkey-url', 'how a server is named' },
  { 'reference/glossary.md', 'latchkey-glossary', 'terms of locks, leases and scripts' },
  { 'reference/wire.md', 'latchkey-wire', 'keys, values and channels on the server' },
  { 'howto/choose-kind.md', 'latchkey-kinds', 'which lock for which task' },
}

-- Without what is markup.
local function plain(text)
  return (text:gsub('!%[([^%]]*)%]%([^)]*%)', '%1'):gsub('%[([^%]]*)%]%([^)]*%)', '%1')
    :gsub('`', ''):gsub('%*%*', ''):gsub('&lt;', '<'):gsub('\\|', '|'))
end

local function cells_of(line)
  local cells = {}
  for cell in line:gsub('\\|', '\1'):gsub('^|', ''):gmatch('%s*([^|]-)%s*|') do
    cells[#cells + 1] = plain((cell:gsub('\1', '|')))
  end
  return cells
end

-- A row is an item: its first cell, and what the others say by the titles of their columns.
local function table_of(out, lines)
  local titles = cells_of(lines[1])
  out[#out + 1] = '.Bl -tag -width Ds'
  for i = 3, #lines do
    local cells, parts = cells_of(lines[i]), {}
    for at = 2, #cells do
      local title = #cells > 2 and titles[at] ~= '' and titles[at] .. ': ' or ''
      parts[#parts + 1] = cells[at] ~= '' and title .. cells[at]:gsub('%.$', '') or nil
    end
    out[#out + 1] = '.It Sy "' ..  cells[1]:gsub('\\', '\\e'):gsub('"', "'") .. '\\&"'
    man.flow(out, table.concat(parts, '; ') .. '.')
  end
  out[#out + 1] = '.El'
end

local function list_of(out, lines)
  local items = {}
  for _, line in ipairs(lines) do
    local text = line:match('^%s*[-*] +(.*)$') or line:match('^%s*%d+%. +(.*)$')
    if text then
      items[#items + 1] = text
    else
      items[#items] = items[#items] .. ' ' .. line
    end
  end
  out[#out + 1] = '.Bl -bullet'
  for _, item in ipairs(items) do
    out[#out + 1] = '.It'
    man.flow(out, plain(item))
  end
  out[#out + 1] = '.El'
end

local function block_of(out, lines, is_first)
  local first = lines[1]
  if first:find('^|') then
    table_of(out, lines)
  elseif first:find('^%s*[-*] ') or first:find('^%s*%d+%. ') then
    list_of(out, lines)
  else
    out[#out + 1] = not is_first and '.Pp' or nil
    man.flow(out, plain(table.concat(lines, ' ')))
  end
end

---@param text string of the page
---@param name string of the manual page
---@param title string
---@param date string
---@return string
function man7.page(text, name, title, date)
  local out = man.header(name, 7, name, title, date)
  out[#out + 1] = '.Sh DESCRIPTION'
  local block, code, is_first = {}, nil, true
  local function finish()
    if #block > 0 then
      block_of(out, block, is_first)
      block, is_first = {}, false
    end
  end
  for line in (text .. '\n\n'):gmatch('(.-)\n') do
    local level, heading = line:match('^(##+) +(.*)$')
    if line:find('^```') and code then
      man.verbatim(out, table.concat(code, '\n'))
      code = nil
    elseif line:find('^```') then
      finish()
      code, is_first = {}, false
    elseif code then
      code[#code + 1] = line
    elseif heading then
      finish()
      heading = plain(heading)
      -- A section NAMES would be taken for a misspelt NAME.
      out[#out + 1] = level == '##' and '.Sh ' .. heading:upper():gsub('^NAMES$', 'KEY NAMES')
        or '.Ss ' .. heading
      is_first = true
    elseif line == '' then
      finish()
    elseif not line:find('^# ') and not line:find('^!%[') then
      block[#block + 1] = line
    end
  end
  finish()
  out[#out + 1] = '.Sh SEE ALSO\n.Xr latchkey 1'
  return table.concat(out, '\n') .. '\n'
end

return man7

-- SPDX-License-Identifier: Apache-2.0
-- The words of pages and messages: what of the rules in CONTRIBUTING.md ("Words") can be seen by a
-- program. A page is split into blocks: paragraphs, items of lists and rows of tables; what stands
-- in fences is left alone.
local stringx = require('pl.stringx')

local texts = require('lib.texts')

local words = {}

---How wide a table may be: the longest unbreakable words of its columns in all, in characters; so
---many fit beside the navigation of a window of 1280 pixels.
words.WIDTH_MAX = 105
words.SENTENCE_MAX = 35
words.CELL_MAX = 60

words.rules = {
  { id = 'header', wants = 'a title for each column of a table' },
  { id = 'cell', wants = 'cells that say what they mean: none is "the same", none has more than '
    .. words.CELL_MAX .. ' words' },
  { id = 'absolute', wants = 'a link to its condition in the block of an absolute: never, always, '
    .. 'whatever, nobody, everybody' },
  { id = 'sentence', wants = ('at most %d words in a sentence'):format(words.SENTENCE_MAX) },
  { id = 'word', wants = 'the word of the field, in pages of the reference and in messages: check, '
    .. 'receive, send, count as valid, be stored, release, again' },
  { id = 'hint', wants = 'hints that say what to do, and do not point back at the message' },
  { id = 'width', wants = ('tables whose longest words have at most %d characters in all'):format(
    words.WIDTH_MAX) },
}

local ABSOLUTES = { 'never', 'always', 'whatever', 'nobody', 'everybody', 'no matter' }

-- What this house wrote in place of the field's words.
local AVOIDED = { 'believes?', 'believed', 'hears?', 'heard', 'speaks?', 'spoken', 'tells?',
  'told', 'gives? back', 'given back', 'gave back', 'giving back', 'anew', 'for ever', 'hush',
  'till', 'mend', 'mends', 'mended', 'looks? for', 'looks? at', 'looked at', 'whoever' }

-- How often one of the patterns stands in a text as words of their own.
local function count_words(text, patterns)
  local count = 0
  local lower = (' ' .. text:lower() .. ' '):gsub('%s+', ' ')
  for _, pattern in ipairs(patterns) do
    local _, found = lower:gsub('%f[%a]' .. pattern .. '%f[^%a]', '')
    count = count + found
  end
  return count
end

-- Without what is no prose: code, and where links lead.
local function prose(text)
  return (text:gsub('<!%-%-.-%-%->', ''):gsub('``.-``', 'x'):gsub('`[^`]*`', 'x')
    :gsub('%]%([^)]*%)', ']'):gsub('<[^>]*>', ''))
end

local function cells_of(line)
  local cells = stringx.split(line:gsub('\\|', '/'):gsub('^%s*|', ''):gsub('|%s*$', ''), '|')
  for i, cell in ipairs(cells) do
    cells[i] = stringx.strip(cell)
  end
  return cells
end

---The blocks of a page: { kind, text, line }; of tables one for each row, the first with `head`.
---@param text string Markdown
---@return table[]
function words.blocks(text)
  local blocks, block, fence, number = {}, nil, false, 0
  local function add(kind, line)
    block = { kind = kind, text = line, line = number }
    blocks[#blocks + 1] = block
  end
  for line in (text .. '\n'):gmatch('(.-)\n') do
    number = number + 1
    if line:find('^%s*```') then
      fence, block = not fence, nil
    elseif fence or line:find('^%s*$') then
      block = nil
    elseif line:find('^#') then
      add('title', line)
      block = nil
    elseif line:find('^|') then
      local head = not (block and block.kind == 'row')
      add('row', line)
      block.head = head
    elseif not block or block.kind == 'row' or line:find('^%s*[-*] ')
      or line:find('^%s*%d+%. ') then
      add('text', line)
    else
      block.text = block.text .. '\n' .. line
    end
  end
  return blocks
end

local function sentences_of(text)
  local list = {}
  local flat = prose(text):gsub('%s+', ' '):gsub('^[-*%d.]+ ', '')
  for sentence in (flat .. '. '):gmatch('(.-[.!?:]) ') do
    list[#list + 1] = sentence
  end
  return list
end

local function number_of_words(text)
  local _, count = text:gsub('%S*%w%S*', '')
  return count
end

local function check_row(row, find)
  for _, cell in ipairs(cells_of(row.text)) do
    if row.head and cell == '' then
      find('header', row, 'a column has no title')
    elseif cell:lower() == 'the same' then
      find('cell', row, 'a cell is "the same"')
    elseif number_of_words(prose(cell)) > words.CELL_MAX then
      find('cell', row, ('a cell has %d words'):format(number_of_words(prose(cell))))
    end
  end
end

-- The longest unbreakable word of each column.
local function widen(widths, row)
  for i, cell in ipairs(cells_of(row.text)) do
    for word in cell:gsub('%]%([^)]*%)', ''):gsub('[`*%[]', ''):gmatch('%S+') do
      widths[i] = math.max(widths[i] or 0, word:find('^%-+$') and 0 or #word)
    end
  end
end

local function check_widths(blocks, find)
  local widths, first
  local function close()
    local sum = 0
    for _, width in pairs(widths or {}) do
      sum = sum + width
    end
    if sum > words.WIDTH_MAX then
      find('width', first, ('the longest words of the columns have %d characters'):format(sum))
    end
    widths = nil
  end
  for _, block in ipairs(blocks) do
    if block.kind ~= 'row' or block.head then
      close()
    end
    if block.kind == 'row' then
      widths = widths or {}
      first = block.head and block or first
      widen(widths, block)
    end
  end
  close()
end

local function check_text(block, is_reference, find)
  local text = prose(block.text)
  if not block.text:find('](', 1, true) then
    for _ = 1, count_words(text, ABSOLUTES) do
      find('absolute', block, 'an absolute without a link to its condition')
    end
  end
  if is_reference then
    for _ = 1, count_words(text, AVOIDED) do
      find('word', block, 'a word that the field does not use')
    end
  end
  for _, sentence in ipairs(block.kind == 'text' and sentences_of(block.text) or {}) do
    local count = number_of_words(sentence)
    if count > words.SENTENCE_MAX then
      find('sentence', block, ('a sentence has %d words'):format(count))
    end
  end
end

---@param file string its name decides whether it belongs to the reference
---@param text string
---@return table[] findings { file, line, rule, message }
function words.page(file, text)
  local findings = {}
  local function find(rule, block, message)
    findings[#findings + 1] = { file = file, line = block.line, rule = rule, message = message }
  end
  local is_reference = file:find('reference/', 1, true) ~= nil
  local blocks = words.blocks(text)
  for _, block in ipairs(blocks) do
    if block.kind == 'row' then
      check_row(block, find)
    end
    if block.kind ~= 'title' then
      check_text(block, is_reference, find)
    end
  end
  check_widths(blocks, find)
  return findings
end

-- Words of a text that are more than a sentence may have, or nil.
local function long_sentence(text)
  local flat = text:gsub('%s%s+', '. '):gsub('%s', ' ') -- columns of help are no sentence
  for sentence in (flat .. '. '):gmatch('(.-[.!?:;]) ') do
    local count = number_of_words(sentence)
    if count > words.SENTENCE_MAX then
      return count
    end
  end
end

---The messages, help and public comments of a source are held to the words of the field; its
---messages and help to the length of sentences, hints to saying what to do.
---@param file string
---@param text string of a C or Lua source
---@return table[] findings
function words.source(file, text)
  local findings = {}
  local function find(rule, line, message)
    findings[#findings + 1] = { file = file, line = line, rule = rule, message = message }
  end
  for _, one in ipairs(texts.of(file, text)) do
    local short = stringx.shorten(one.text:gsub('%s+', ' '), 60)
    for _ = 1, count_words(one.text, AVOIDED) do
      find('word', one.line, ('a word that the field does not use: "%s"'):format(short))
    end
    local count = one.kind == 'literal' and long_sentence(one.text)
    if count then
      find('sentence', one.line, ('a sentence has %d words: "%s"'):format(count, short))
    end
    if one.kind == 'literal' and one.text:lower():find('see the message', 1, true) then
      find('hint', one.line, ('a hint that points back: "%s"'):format(short))
    end
  end
  return findings
end

---What is left of the findings when the list takes off what it allows: no more of a rule in a file
---than there were.
---@param findings table[]
---@param allowed table<string, integer> "FILE RULE" -> how many
---@return table[] findings, table<string, integer> counts "FILE RULE" -> how many there are
function words.beyond(findings, allowed)
  local counts, left = {}, {}
  for _, finding in ipairs(findings) do
    local key = finding.file .. ' ' .. finding.rule
    counts[key] = (counts[key] or 0) + 1
  end
  for _, finding in ipairs(findings) do
    local key = finding.file .. ' ' .. finding.rule
    if counts[key] > (allowed[key] or 0) then
      left[#left + 1] = finding
    end
  end
  return left, counts
end

---@param text string lines of FILE, RULE and COUNT with tabs between
---@return table<string, integer>
function words.read_list(text)
  local allowed = {}
  for file, rule, count in text:gmatch('([^\t\n]+)\t([^\t\n]+)\t(%d+)') do
    allowed[file .. ' ' .. rule] = tonumber(count)
  end
  return allowed
end

---The list with no number above what is there, and no row that is not needed.
---@param allowed table<string, integer>
---@param counts table<string, integer>
---@return string
function words.lowered(allowed, counts)
  local rows = {}
  for key, count in pairs(allowed) do
    local now = math.min(count, counts[key] or 0)
    if now > 0 then
      rows[#rows + 1] = ('%s\t%d\n'):format(key:gsub(' (%S+)$', '\t%1'), now)
    end
  end
  table.sort(rows)
  return 'file\trule\tat most\n' .. table.concat(rows)
end

return words

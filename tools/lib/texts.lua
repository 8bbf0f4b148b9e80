-- SPDX-License-Identifier: Apache-2.0
-- The texts of a source that people read: messages, hints and help are literals of at least three
-- words, what the API says is in the comments of a public header.
local texts = {}

---So many words make a literal a text; fewer are names, formats and commands.
texts.WORDS_MIN = 3

-- What does not count as text in a file of its language: from the first pattern's end to the
-- second, plain.
local C = {
  comments = { { '/*', '*/' }, { '//', '\n' } },
  quotes = { ['"'] = true, ["'"] = true },
  joined = '^%s*$',
}
local LUA = {
  comments = { { '--[[', ']]' }, { '--', '\n' } },
  quotes = { ['"'] = true, ["'"] = true },
  longs = { { '[[', ']]' } },
  joined = '^%s*%.%.%s*$',
}

local function starts(text, at, mark)
  return text:sub(at, at + #mark - 1) == mark
end

-- What begins at `at` and is no code: its kind, where its inside begins and ends, and what follows.
local function piece_at(text, at, language)
  for _, marks in ipairs(language.comments) do
    if starts(text, at, marks[1]) then
      local first = at + #marks[1]
      local from, to = text:find(marks[2], first, true)
      return 'comment', first, (from or #text + 1) - 1, (to or #text) + 1
    end
  end
  for _, marks in ipairs(language.longs or {}) do
    if starts(text, at, marks[1]) then
      local first = at + #marks[1]
      local from, to = text:find(marks[2], first, true)
      return 'literal', first, (from or #text + 1) - 1, (to or #text) + 1
    end
  end
  local quote = text:sub(at, at)
  if language.quotes[quote] then
    local last = at + 1
    while last <= #text and text:sub(last, last) ~= quote do
      last = last + (text:sub(last, last) == '\\' and 2 or 1)
    end
    return 'literal', at + 1, last - 1, last + 1
  end
end

local ESCAPES = { ['\\n'] = '\n', ['\\t'] = ' ', ['\\"'] = '"', ["\\'"] = "'", ['\\\\'] = '\\' }

local function plain(literal)
  return (literal:gsub('\\.', ESCAPES))
end

---Comments and literals in their order; literals that the language joins are one.
---@param text string
---@param language table
---@return table[] pieces { kind, text, at }
local function pieces_of(text, language)
  local pieces, at, code_from = {}, 1, 1
  while at <= #text do
    local kind, first, last, following = piece_at(text, at, language)
    if not kind then
      at = at + 1
    else
      local before = pieces[#pieces]
      local between = text:sub(code_from, at - 1):gsub('\\\n', '\n')
      if kind == 'literal' and before and before.kind == 'literal'
        and between:find(language.joined) then
        before.text = before.text .. plain(text:sub(first, last))
      else
        local inside = text:sub(first, last)
        pieces[#pieces + 1] = { kind = kind, at = at,
          text = kind == 'literal' and plain(inside) or inside }
      end
      at, code_from = following, following
    end
  end
  return pieces
end

local function words_in(text)
  local _, count = text:gsub('%f[%a]%a[%a\']+', '')
  return count
end

-- Where lines begin, to say where a text stands.
local function line_counter(text)
  local line, at = 1, 1
  return function(position)
    local _, more = text:sub(at, position - 1):gsub('\n', '')
    line, at = line + more, position
    return line
  end
end

---@param file string its name says the language, and whether its comments are read
---@param text string
---@return table[] texts { kind 'literal' or 'comment', text, line }
function texts.of(file, text)
  local language = file:find('%.lua$') and LUA or C
  local is_public = file:find('include/', 1, true) ~= nil
  local list, line_of = {}, line_counter(text)
  for _, piece in ipairs(pieces_of(text, language)) do
    local wanted = piece.kind == 'literal' and piece.text:find(' ', 1, true)
      or piece.kind == 'comment' and is_public
    local line = line_of(piece.at)
    if wanted and words_in(piece.text) >= texts.WORDS_MIN then
      list[#list + 1] = { kind = piece.kind, line = line, text = piece.text }
    end
  end
  return list
end

return texts

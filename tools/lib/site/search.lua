-- SPDX-License-Identifier: Apache-2.0
-- The index that the search of a built site uses: whether it leads to each question of a page by
-- each word of it.
local cjson = require('cjson')
local path = require('pl.path')
local utils = require('pl.utils')

local search = {}

-- Without the elements and entities that titles of the index have.
local function words_of(text)
  local words = {}
  for word in text:gsub('<[^>]*>', ' '):gsub('&%w+;', ' '):lower():gmatch('[%w_]+') do
    words[word] = true
  end
  return words
end

---@param page string Markdown whose titles of the third order are questions
---@return string[] titles
function search.questions(page)
  local titles = {}
  for title in ('\n' .. page):gmatch('\n### ([^\n]+)') do
    titles[#titles + 1] = title
  end
  return titles
end

---@param folder string of the site
---@param place string of the page in the site: "howto/questions/"
---@param titles string[]
---@return string[] findings
function search.check(folder, place, titles)
  local text = utils.readfile(path.join(folder, 'search', 'search_index.json'))
  if not text then
    return { 'search/search_index.json is not there' }
  end
  local found, findings = {}, {}
  for _, entry in ipairs(cjson.decode(text).docs) do
    if entry.location:sub(1, #place) == place and entry.location:find('#', 1, true) then
      found[#found + 1] = words_of(entry.title)
    end
  end
  local function is_found(wanted)
    for _, words in ipairs(found) do
      local has_all = true
      for word in pairs(wanted) do
        has_all = has_all and words[word] ~= nil
      end
      if has_all then
        return true
      end
    end
    return false
  end
  for _, title in ipairs(titles) do
    if not is_found(words_of(title)) then
      findings[#findings + 1] = ('the search does not lead to %s by its words: %s'):format(place,
        title)
    end
  end
  return findings
end

return search

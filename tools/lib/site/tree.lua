-- SPDX-License-Identifier: Apache-2.0
-- The pages of the site as one set: those of docs/, those that are made of headers and parsers, and
-- a page for each file of the project that a page leads to.
local dir = require('pl.dir')
local path = require('pl.path')
local stringx = require('pl.stringx')
local utils = require('pl.utils')

local headers = require('lib.site.headers')
local pages = require('latchkey.bundle.pages')
local states = require('lib.site.states')

local tree = {}

local LANGUAGES = { c = 'c', h = 'c', lua = 'lua', sh = 'sh', cmake = 'cmake', json = 'json' }

-- `edit(line)` on each line that stands in no fence, `open(line)` on those that begin one.
local function outside_fences(text, edit, open)
  local lines, fence = {}, nil
  for line in (text .. '\n'):gmatch('(.-)\n') do
    local mark = line:match('^%s*(```+)')
    if mark and not fence then
      fence, line = mark, open(line)
    elseif mark and #mark >= #fence then
      fence = nil
    elseif not fence then
      line = edit(line)
    end
    lines[#lines + 1] = line
  end
  return (table.concat(lines, '\n'):gsub('\n$', ''))
end

-- The front page has neither a list of pages nor one of sections.
local FRONT = '---\nhide:\n  - navigation\n  - toc\n---\n\n'

local Tree = {}
Tree.__index = Tree

-- Where a file of the project stands in the site; files outside of docs/ get pages of their own.
function Tree:place_of(file)
  local in_docs = file:match('^docs/(.*)$')
  local header = file:match('^c/include/latchkey/([^/]+%.h)$')
  if in_docs or header then
    return in_docs or 'reference/c/' .. header .. '.md'
  end
  local full = path.join(self.root, file)
  if path.isdir(full) then
    self.wanted[#self.wanted + 1] = file
    return 'source/' .. file .. '/index.md'
  elseif path.isfile(full) then
    self.wanted[#self.wanted + 1] = file
    return 'source/' .. file .. (file:find('%.md$') and '' or '.md')
  end
  return nil
end

-- A page's links, written for a file of the project, as the site needs them.
function Tree:with_links(text, file, place)
  local function link(target)
    local name, anchor = target:match('^([^#]*)(#?.*)$')
    if name == '' or name:find('^%a+:') then
      return nil
    end
    local there = path.normpath(path.join(path.dirname(file), name)):gsub('/$', '')
    local new = self:place_of(there)
    local from = path.dirname('/docs/' .. place)
    return new and ('](%s%s)'):format(path.relpath('/docs/' .. new, from), anchor)
  end
  return outside_fences(text, function(line)
    return (line:gsub('%]%(([^)%s]+)%)', link))
  end, function(line)
    return (line:gsub('^(```%l+) (%S+)$', '%1 title="%2"'))
  end)
end

function Tree:listing(file)
  local rows = { '# ' .. file .. '\n' }
  local function add(name, is_folder)
    rows[#rows + 1] = ('- [%s](%s)'):format(name, name .. (is_folder and '/' or ''))
  end
  local full = path.join(self.root, file)
  for _, list in ipairs({ dir.getdirectories(full), dir.getfiles(full) }) do
    table.sort(list)
    for _, name in ipairs(list) do
      add(path.basename(name), path.isdir(name))
    end
  end
  return table.concat(rows, '\n')
end

-- The pages of files that others lead to, and of those that these lead to.
function Tree:add_sources()
  local done = {}
  while #self.wanted > 0 do
    local file = table.remove(self.wanted)
    local place = not done[file] and self:place_of(file)
    if place then
      done[file] = true
      local full = path.join(self.root, file)
      local text = path.isdir(full) and self:listing(file) or assert(utils.readfile(full))
      if path.isdir(full) then
        text = self:with_links(text, file .. '/index.md', place)
      elseif file:find('%.md$') then
        text = self:with_links(text, file, place)
      else
        local language = LANGUAGES[file:match('%.(%w+)$')] or 'text'
        text = ('# %s\n\n````%s\n%s````\n'):format(file, language, text)
      end
      self.pages[place] = text
    end
  end
end

-- The page of a family: its diagram, and each script leads to its own page.
local function with_states(text, rows, family)
  text = text:gsub('\n| `([%l_]+/[%l_]+)` |', '\n| [`%1`](scripts/%1.md) |')
  if rows then
    local diagram = '\n### States\n\n' .. states.svg(rows, 'The states of ' .. family) .. '\n'
    text = text:gsub('\n### Scripts\n', function(title)
      return diagram .. title
    end, 1)
  end
  return text
end

function Tree:add_docs()
  local docs = path.join(self.root, 'docs')
  local families = {}
  for _, row in ipairs(states.read(path.join(docs, 'reference/states.tsv'))) do
    families[row.family] = families[row.family] or {}
    table.insert(families[row.family], row)
  end
  for _, full in ipairs(dir.getallfiles(docs, '*.md')) do
    local place = path.relpath(full, docs)
    local text = self:with_links(assert(utils.readfile(full)), 'docs/' .. place, place)
    local family = place:match('^reference/([%l_]+)%.md$')
    if family and path.isdir(path.join(self.root, 'scripts', family)) then
      text = with_states(text, families[family], family)
    end
    self.pages[place] = text
  end
end

function Tree:add_generated(scripts, commands)
  for name, text in pairs(pages.all(scripts)) do
    self.pages['reference/scripts/' .. name:gsub('README', 'index')] = text
  end
  for _, file in ipairs(dir.getfiles(commands, '*.md')) do
    self.pages['reference/commands/' .. path.basename(file)] = assert(utils.readfile(file))
  end
  local rows = { '# The C interface\n', 'From the comments of the headers.\n', '| header | |',
    '|---|---|' }
  local files = dir.getfiles(path.join(self.root, 'c/include/latchkey'), '*.h')
  table.sort(files)
  for _, file in ipairs(files) do
    local name, text = path.basename(file), assert(utils.readfile(file))
    self.pages['reference/c/' .. name .. '.md'] = headers.page(name, text)
    rows[#rows + 1] = ('| [%s](%s.md) | %s |'):format(name, name,
      headers.parse(text).intro:match('%S[^\n]*'):gsub('^latchkey: ', ''))
  end
  self.pages['reference/c/index.md'] = table.concat(rows, '\n') .. '\n'
end

---@param root string the project
---@param scripts table[] as of catalog.read
---@param commands string folder of the commands' pages, as tools/manual.lua writes them
---@return table<string, string> pages by their place in the site
function tree.pages(root, scripts, commands)
  local self = setmetatable({ root = path.abspath(root), pages = {}, wanted = {} }, Tree)
  self:add_docs()
  self:add_generated(scripts, commands)
  self:add_sources()
  self.pages['index.md'] = FRONT .. self.pages['index.md']
  return self.pages
end

local TITLES = { { 'tutorial', 'Tutorial' }, { 'howto', 'How-to' }, { 'reference', 'Reference' },
  { 'explanation', 'Explanation' } }
local GENERATED = { { 'reference/c/', 'C' }, { 'reference/commands/', 'Commands' },
  { 'reference/scripts/', 'Scripts' } }

-- The pages right in a folder: first as the front page leads to them, then the others.
local function in_folder(all, folder)
  local list, known = {}, {}
  local function add(place)
    if all[place] and path.dirname(place) == folder and not known[place] then
      known[place] = true
      list[#list + 1] = place
    end
  end
  for target in all['index.md']:gmatch('%]%(([^)#]+)') do
    add(target)
  end
  local rest = {}
  for place in pairs(all) do
    rest[#rest + 1] = place
  end
  table.sort(rest, function(a, b)
    local a_first, b_first = a:find('/index%.md$') ~= nil, b:find('/index%.md$') ~= nil
    if a_first ~= b_first then
      return a_first
    end
    return a < b
  end)
  for _, place in ipairs(rest) do
    add(place)
  end
  return list
end

-- All pages whose place begins like this; the list of them first.
local function below(all, start)
  local list = {}
  for place in pairs(all) do
    if stringx.startswith(place, start) and place ~= start .. 'index.md' then
      list[#list + 1] = place
    end
  end
  table.sort(list)
  if all[start .. 'index.md'] then
    table.insert(list, 1, start .. 'index.md')
  end
  return list
end

local function add_list(out, indent, list)
  for _, place in ipairs(list) do
    out[#out + 1] = indent .. '- ' .. place
  end
end

-- The pages of the reference that are written: those of kinds, of tools, and the others.
local function parted(all, list)
  local kinds, tools, others = {}, {}, {}
  for _, place in ipairs(list) do
    local part = others
    if all[place]:find('\n## Scripts\n') or place:find('multilock') then
      part = kinds
    elseif all[place]:find('^# latchkey ') or all[place]:find('^# Commands ') then
      part = tools
    end
    part[#part + 1] = place
  end
  return others, { { 'Kinds', kinds }, { 'Tools', tools } }
end

-- The pages that the front page names last are those of contributors.
local function apart(all, list)
  local last, users, internals = all['index.md']:match('\n## How it is built.*$') or '', {}, {}
  for _, place in ipairs(list) do
    table.insert(last:find('](' .. place .. ')', 1, true) and internals or users, place)
  end
  return users, { { 'Internals', internals } }
end

---@param all table<string, string> pages
---@return string yaml the key `nav` of mkdocs.yml
function tree.nav(all)
  local out = { 'nav:', '  - index.md' }
  for _, folder in ipairs(TITLES) do
    out[#out + 1] = ('  - %s:'):format(folder[2])
    local list, parts = in_folder(all, folder[1]), {}
    if folder[1] == 'reference' then
      list, parts = parted(all, list)
      for _, part in ipairs(GENERATED) do
        parts[#parts + 1] = { part[2], below(all, part[1]) }
      end
    elseif folder[1] == 'explanation' then
      list, parts = apart(all, list)
    end
    add_list(out, '      ', list)
    for _, part in ipairs(parts) do
      out[#out + 1] = ('      - %s:'):format(part[1])
      add_list(out, '          ', part[2])
    end
  end
  return table.concat(out, '\n') .. '\n'
end

return tree

-- SPDX-License-Identifier: Apache-2.0
-- A built site: every link leads to a file and an anchor that are there, and no page loads anything
-- from elsewhere.
local dir = require('pl.dir')
local path = require('pl.path')
local utils = require('pl.utils')

local check = {}

-- What a page loads by itself, as against what a reader follows.
local LOADS = { '<script[^>]- src="([^"]*)"', '<img[^>]- src="([^"]*)"',
  '<iframe[^>]- src="([^"]*)"', '<link[^>]- href="([^"]*)"' }

local function is_elsewhere(target)
  return target:find('^%a[%w+.-]*:') ~= nil or target:find('^//') ~= nil
end

local function unescape(text)
  return (text:gsub('%%(%x%x)', function(digits)
    return string.char(tonumber(digits, 16))
  end):gsub('&amp;', '&'))
end

local function anchors_of(text)
  local anchors = {}
  for name in text:gmatch('[%s]id="([^"]*)"') do
    anchors[name] = true
  end
  return anchors
end

-- Says of each thing that a page or style sheet loads, where it is elsewhere.
local function loads(file, text, patterns, find)
  for _, pattern in ipairs(patterns) do
    for target in text:gmatch(pattern) do
      if is_elsewhere(target) and not target:find('^data:') then
        find(file, 'loads %s', target)
      end
    end
  end
end

-- Says of each link of a page where it leads nowhere.
local function links(file, text, anchors, find)
  for target in text:gmatch('<a[^>]- href="([^"]*)"') do
    local name, anchor = unescape(target):match('^([^#]*)#?(.*)$')
    local there = name == '' and file or path.normpath(path.join(path.dirname(file), name))
    there = path.isdir(there) and path.join(there, 'index.html') or there
    local is_here = not is_elsewhere(target)
    if is_here and not path.isfile(there) then
      find(file, 'leads to %s, which is not there', target)
    elseif is_here and anchor ~= '' and anchors[there] and not anchors[there][anchor] then
      find(file, 'leads to %s, an anchor that is not there', target)
    end
  end
end

---@param folder string
---@return string[] findings
function check.site(folder)
  local findings, texts, anchors = {}, {}, {}
  local function find(file, ...)
    findings[#findings + 1] = path.relpath(file, folder) .. ': ' .. (...):format(select(2, ...))
  end
  local files = dir.getallfiles(folder, '*.html')
  table.sort(files)
  for _, file in ipairs(files) do
    texts[file] = assert(utils.readfile(file))
    anchors[file] = anchors_of(texts[file])
  end
  for _, file in ipairs(files) do
    loads(file, texts[file], LOADS, find)
    if path.basename(file) ~= '404.html' then -- its links are those of the root of a server
      links(file, texts[file], anchors, find)
    end
  end
  for _, file in ipairs(dir.getallfiles(folder, '*.css')) do
    loads(file, assert(utils.readfile(file)), { 'url%(["\']?([^)"\']+)' }, find)
  end
  return findings
end

return check

-- SPDX-License-Identifier: Apache-2.0
-- From the front page of the documentation any of these is two clicks away: a link to its page and
-- a title there, or a link to a page that leads to the very place.
local path = require('pl.path')
local stringx = require('pl.stringx')
local utils = require('pl.utils')

local helper = require('helper')

local DOCS = helper.root .. '/docs'

local WANTED = {
  ['What happens on loss, and what does --on-lost do?'] = 'reference/exec.md#when-the-lock-is-lost',
  ['How do I lock on a majority of servers from the shell?'] = 'reference/exec.md#several-servers',
  ['May an exec run inside an exec?'] = 'reference/exec.md#an-exec-inside-an-exec',
  ['Which servers are tested?'] = 'howto/install.md#tested-servers',
  ['Which host holds the lock?'] = 'reference/ls.md#whose-it-is',
  ['What happens when the server restarts?'] =
    'howto/questions.md#what-happens-when-the-server-restarts',
  ['What does this exit code mean?'] = 'reference/statuses.md#exit-codes',
  ['What is LK_LOST?'] = 'reference/statuses.md#lk_lost',
  ['Which alerts do I want?'] = 'howto/monitoring.md#rules-for-prometheus',
  ['Which managed service works?'] = 'howto/questions.md#servers-and-services',
  ['How do I free a stuck lock?'] = 'howto/stuck-lock.md#take-it-away',
  ['Which lock do I need?'] = 'howto/choose-kind.md#choose-a-lock-kind',
  ['How do I use TLS?'] = 'howto/tls-and-acl.md#tls',
  ['Which lease?'] = 'howto/choose-lease.md#from-the-shell',
  ['What can a fail-over lose?'] = 'explanation/fail-over.md#what-happens',
  ['What is promised, and when?'] = 'explanation/guarantees.md#conditions',
  ['What does each C option do, by default?'] = 'reference/options.md#a-lock-lk_lock_options',
  ['What do I check before production?'] = 'howto/production.md#the-server',
  ['How does it compare?'] = '../README.md#what-it-guarantees-and-when-not-to-use-it',
  ['How fast is it?'] = 'explanation/performance.md#in-short',
  ['What is a hold, a lease, a ticket?'] = 'reference/glossary.md#glossary',
  ['How do I share locks with Java?'] = 'howto/share-with-java.md#do',
  ['What was tested with faults?'] = 'explanation/faults.md#what-came-of-it',
}

-- Title -> anchor, as the site and GitHub make it.
local function anchor_of(title)
  local words = title:lower():gsub('`', ''):gsub('%[(.-)%]%b()', '%1')
  return (words:gsub('[^%w _-]', ''):gsub(' ', '-'))
end

local function read(place)
  return utils.readfile(path.normpath(path.join(DOCS, place)))
end

local function has_title(place, anchor)
  for title in ('\n' .. (read(place) or '')):gmatch('\n#+ ([^\n]+)') do
    if anchor_of(title) == anchor then
      return true
    end
  end
  return false
end

-- Where a page leads to, as places in docs/, with their anchors.
local function links_of(place)
  local list = {}
  for target in (read(place) or ''):gmatch('%]%(([^)]+)%)') do
    if not target:find('^%a+:') then
      local file, anchor = target:match('^([^#]*)(.*)$')
      local there = file == '' and place
        or path.normpath(path.join('/', path.dirname(place), file)):sub(2)
      list[#list + 1] = there .. anchor
    end
  end
  return list
end

describe('from the front page, two clicks lead to', function()
  local near, pages = {}, {}
  for _, target in ipairs(links_of('index.md')) do
    near[target] = true
    pages[target:match('^[^#]+')] = true
  end

  for question, target in pairs(WANTED) do
    it(question, function()
      local place, anchor = target:match('^([^#]+)#(.+)$')
      local found = pages[stringx.lstrip(place, './')] or near[target]
      for page in pairs(pages) do
        for _, link in ipairs(found and {} or links_of(page)) do
          found = found or link == target or link == stringx.lstrip(target, './')
        end
      end

      assert.is_true(has_title(place, anchor), target .. ' has no such title')
      assert.truthy(found, target)
    end)
  end
end)

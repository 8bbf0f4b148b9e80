-- SPDX-License-Identifier: Apache-2.0
-- CHANGELOG.md: a section for each release, the newest first. What is not released yet stands under
-- "Unreleased", which a release gives its version.
local changelog = {}

changelog.FILE = 'CHANGELOG.md'
changelog.UNRELEASED = 'Unreleased'

---@param text string of the file
---@return string|nil title of the first section
function changelog.first(text)
  return ('\n' .. text):match('\n## ([^\n]*)')
end

---@param text string of the file
---@param title string
---@return string|nil section without its heading
function changelog.section(text, title)
  local _, start = ('\n' .. text):find('\n## ' .. title .. '\n', 1, true)
  return start and text:sub(start, (text:find('\n## ', start, true) or #text + 1) - 1)
end

---The rows of the table of scripts: "lock/acquire, renew | 1.0.0 | ..." names two.
---@param section string
---@return table<string, string> versions by the scripts' names
function changelog.scripts(section)
  local versions = {}
  for names, version in section:gmatch('| ([%l_]+/[^|]-) | (%d+%.%d+%.%d+) |') do
    local family
    for name in names:gmatch('[^%s,]+') do
      family = name:match('^(.-)/') or family
      versions[name:find('/', 1, true) and name or family .. '/' .. name] = version
    end
  end
  return versions
end

---@param text string of the file, with a section of what is not released
---@param version string of the release
---@return string text
function changelog.released(text, version)
  local from, to = ('\n' .. text):find('\n## ' .. changelog.UNRELEASED .. '\n', 1, true)
  return text:sub(1, from - 1) .. '## ' .. version .. text:sub(to - 1)
end

return changelog

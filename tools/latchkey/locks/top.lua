-- SPDX-License-Identifier: Apache-2.0
-- The locks of a server as they are now, again and again: which are known, in which order they are
-- shown, and what stands on each line.
local latchkey = require('latchkey')
local survey = require('latchkey.locks.survey')
local text = require('latchkey.text')
local words = require('latchkey.locks.kinds.words')

local Top = {}
Top.__index = Top

local top = {}

-- How long the keys of a large server are searched before the screen is drawn again. The first pass
-- goes on at once, later ones leave the server alone until the next refresh.
local SLICE_MS = 200

-- A lock that nobody holds is looked at so many times more, since most are soon held again.
local PATIENCE = 30

local function holds(view)
  local sum = view.held or 0
  for _, holder in ipairs(view.holders) do
    sum = sum + (view.held and 0 or holder.holds)
  end
  return sum
end

local function ends_ms(view)
  local ms = words.left_ms(view)
  return (not ms or ms < 0) and math.huge or ms
end

local COLUMNS = {
  name = function(view) return view.name end,
  kind = function(view) return view.kind end,
  lease = ends_ms,
  waiting = function(view) return -view.waiters end,
  holds = function(view) return -holds(view) end,
}

top.SORTS = { 'name', 'kind', 'lease', 'waiting', 'holds' }

---@param client latchkey.client
---@param home string
---@param options table those of survey.new, and limit, sort, reverse
function top.new(client, home, options)
  return setmetatable({ client = client, scan = survey.new(client, home, options), views = {},
    misses = {}, options = options, filter = '', offset = 0, passes = 0, count = 0,
    is_cut = false }, Top)
end

-- What is known of a name after another look.
function Top:update(name)
  local view, err = self.scan:look(name)
  if view == nil then
    return nil, err
  end
  self.count = self.count + (view and 1 or 0) - (self.views[name] and 1 or 0)
  self.views[name] = view or nil
  self.misses[name] = view and 0 or (self.misses[name] or PATIENCE) + 1
  if self.misses[name] > PATIENCE then
    self.misses[name] = nil
  end
  return true
end

-- After a failure: the master that the name is on is left out; false when it is none of several.
function Top:go_on_without(name, err)
  local master = self.scan:home_of(name)
  if not master then
    return nil, err
  end
  return self.scan:give_up(master:target(), err)
end

-- What is known of locks whose master does not answer stays.
function Top:look_again()
  local names = {}
  for name in pairs(self.misses) do
    names[#names + 1] = name
  end
  for _, name in ipairs(names) do
    if not self.scan:is_out_of_reach(name) then
      local ok, err = self:update(name)
      if not ok then
        ok, err = self:go_on_without(name, err)
      end
      if not ok then
        return nil, err
      end
    end
  end
  return true
end

-- Adds a lock; at the limit, one that is left out is noticed.
function Top:consider(name)
  if self.count < self.options.limit then
    return self:update(name)
  elseif self.is_cut then
    return true
  end
  local view, err = self.scan:look(name)
  self.is_cut = view and true or false
  return view ~= nil, err
end

-- Adds the locks among these names.
function Top:add(names)
  for _, name in ipairs(names) do
    if not self.misses[name] then
      local ok, err = self:consider(name)
      if not ok then
        return self:go_on_without(name, err)
      end
    end
  end
  return true
end

-- Another pass over the keys.
function Top:again()
  self.scan:again()
  self.is_cut = false
end

---Does it have all locks? Not while the search is under way, where the limit left some out, a
---master was not asked, or a key left out.
---@return boolean
function Top:is_complete()
  return self.scan.done and not self.is_cut and words.is_whole(self.scan)
end

-- Further steps of the search, until it is over or the time is.
function Top:search(until_ms)
  while not self.scan.done do
    local names, err = self.scan:step()
    local ok = names
    if names then
      ok, err = self:add(names)
    end
    if not ok then
      return nil, err
    elseif latchkey.now_ms() >= until_ms then
      break
    end
  end
  return true
end

-- What stands in the way, in words.
function Top:trouble_of(err)
  local failure = self.scan.failures[1]
  if err then
    return err.message
  elseif failure then
    return ('%s: %s'):format(failure.target, failure.err.message)
  end
end

---Looks at the servers again. What was known stays when that fails.
---@param whole boolean search to the end
---@return true|nil ok
---@return latchkey.error|nil err
function Top:refresh(whole)
  if self.scan.done then
    self:again()
  end
  local total, err = self.scan:size()
  local ok = total
  if ok then
    self.total = total
    ok, err = self:look_again()
  end
  if ok then
    ok, err = self:search(whole and math.huge or latchkey.now_ms() + SLICE_MS)
  end
  self.trouble = self:trouble_of(not ok and err or nil)
  if not ok then
    self:again()
    return nil, err
  end
  if self.scan.done then
    self.passes = self.passes + 1
  end
  return true
end

---Is the first search still under way?
function Top:is_searching()
  return self.passes == 0 and not self.trouble
end

---The locks that the filter lets through, in order.
---@return table[] views
function Top:rows()
  local column, rows = COLUMNS[self.options.sort], {}
  for _, view in pairs(self.views) do
    local shown = text.safe(view.name) .. ' ' .. view.kind .. ' ' .. words.holders(view)
    if self.filter == '' or shown:lower():find(self.filter:lower(), 1, true) then
      rows[#rows + 1] = view
    end
  end
  table.sort(rows, function(a, b)
    local left, right = column(a), column(b)
    if self.options.reverse then
      left, right = right, left
    end
    if left ~= right then
      return left < right
    end
    return a.name < b.name
  end)
  return rows
end

-- No longer than the screen is wide; what is cut is shown to be.
local function fit(line, width)
  if #line <= width then
    return line
  end
  local cut = line:sub(1, width - 1):gsub('[\192-\255][\128-\191]*$', '')
  return cut .. '~'
end

local ROW = '%-24s %-9s %-8s %7s  '

-- With the node, where there are several.
local function row_of(width, has_nodes, ...)
  local name, kind, lease, waiting, node, holders = ...
  return fit(ROW:format(name, kind, lease, waiting)
    .. (has_nodes and words.NODE:format(node or '') or '') .. holders, width)
end

local function row_text(view, width)
  return row_of(width, view.node, fit(text.safe(view.name), 24), view.kind,
    words.lease(view), view.waiters, view.node, words.holders(view))
end

local function titles(rows)
  return row_of(math.huge, rows[1] and rows[1].node, 'NAME', 'KIND', 'LEASE', 'WAITING', 'NODE',
    'HOLDERS')
end

function Top:summary(rows)
  if self.trouble then
    return 'no answer, trying again: ' .. text.safe(self.trouble)
  end
  local waiting = 0
  for _, view in ipairs(rows) do
    waiting = waiting + view.waiters
  end
  local left_out = words.count_left_out(self.scan.left_out)
  local parts = { #rows > 0 and words.counted(#rows, 'lock', 'locks')
    or not self.scan.done and 'no locks so far'
    or left_out > 0 and 'no locks among what could be read' or 'no locks' }
  if self.filter ~= '' then
    parts[1] = ('%d of %s with "%s"'):format(#rows, words.counted(self.count, 'lock', 'locks'),
      self.filter)
  end
  parts[2] = ('%d waiting'):format(waiting)
  if not self.scan.done and self.total then
    parts[3] = ('%d %% of %.0f keys searched'):format(self.scan:percent(self.total), self.total)
  elseif self.scan.done then
    local more = self.scan.possible.strings + self.scan.possible.hashes
    parts[3] = more > 0 and ('%.0f more may be (--kind)'):format(more) or nil
  end
  if left_out > 0 then
    parts[#parts + 1] = words.counted(left_out, 'key left out', 'keys left out')
  end
  if self.count >= self.options.limit then
    parts[#parts + 1] = 'at the limit'
  end
  return table.concat(parts, ', ')
end

---The frame without a screen: every lock.
---@return string
function Top:text()
  local rows = self:rows()
  local lines = { 'latchkey top  ' .. self.client:target(), self:summary(rows),
    titles(rows) }
  for _, view in ipairs(rows) do
    lines[#lines + 1] = row_text(view, math.huge)
  end
  return table.concat(lines, '\n') .. '\n'
end

local HELP = 'q quit   s sort: %s%s   r reverse   / filter   arrows scroll'

---The frame for a screen of this size.
---@param height integer
---@param width integer
---@param is_coloured boolean
---@return string[] lines
function Top:lines(height, width, is_coloured)
  local rows, room = self:rows(), math.max(0, height - 4)
  self.offset = math.max(0, math.min(self.offset, #rows - room))
  local title = fit(titles(rows), width)
  if is_coloured then
    title = '\27[7m' .. title .. (' '):rep(width - #title) .. '\27[0m'
  end
  local lines = { fit('latchkey top  ' .. self.client:target(), width),
    fit(self:summary(rows), width), title }
  for i = self.offset + 1, math.min(#rows, self.offset + room) do
    lines[#lines + 1] = row_text(rows[i], width)
  end
  for i = #lines + 1, height - 1 do
    lines[i] = ''
  end
  for i = height + 1, #lines do
    lines[i] = nil
  end
  lines[height] = fit(self.typing and 'filter: ' .. self.filter .. '_'
    or HELP:format(self.options.sort, self.options.reverse and ', reversed' or ''), width)
  return lines
end

function Top:next_sort()
  for i, sort in ipairs(top.SORTS) do
    if sort == self.options.sort then
      self.options.sort = top.SORTS[i % #top.SORTS + 1]
      return
    end
  end
end

local function type_filter(self, key)
  if key == 'enter' then
    self.typing = false
  elseif key == 'escape' then
    self.typing, self.filter = false, ''
  elseif key == 'back' then
    self.filter = self.filter:sub(1, -2)
  elseif #key == 1 then
    self.filter = self.filter .. key
  end
end

---What a key does.
---@param key string as of lib/screen
---@param height integer of the screen
---@return boolean go_on
function Top:press(key, height)
  if self.typing then
    type_filter(self, key)
  elseif key == 'q' then
    return false
  elseif key == 's' then
    self:next_sort()
  elseif key == 'r' then
    self.options.reverse = not self.options.reverse
  elseif key == '/' then
    self.typing = true
  elseif key == 'escape' then
    self.filter = ''
  elseif key == 'up' or key == 'down' then
    self.offset = self.offset + (key == 'down' and 1 or -1)
  elseif key == 'page up' or key == 'page down' then
    self.offset = self.offset + (key == 'page down' and 1 or -1) * math.max(1, height - 4)
  end
  return true
end

return top

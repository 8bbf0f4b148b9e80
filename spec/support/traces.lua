-- SPDX-License-Identifier: Apache-2.0
-- Traces as the specs write them, and what the follower says of them.
local cjson = require('cjson')
local helper = require('helper')
local trace = require('latchkey.checker.trace')

local traces = {}

-- What `latchkey check --trace` says of these lines.
function traces.check(lines)
  local i = 0
  return trace.check(function()
    i = i + 1
    return lines[i]
  end, helper.scripts)
end

-- The same of events, which are tables.
function traces.check_events(events)
  local lines = {}
  for i, event in ipairs(events) do
    -- An empty table is an empty list: no event has a member that is an empty object.
    lines[i] = cjson.encode(event):gsub('{}', '[]')
  end
  return traces.check(lines)
end

-- A trace of one client that grows by a line a call: `lines`, and add(at_us, kind, members).
function traces.written()
  local lines = {}
  local function add(at_us, kind, members)
    members.e, members.t, members.client = kind, at_us, 'c1'
    lines[#lines + 1] = cjson.encode(members)
  end
  return lines, add
end

-- What is written after the start of a second, counted in ms.
local START_US = 1000000
function traces.written_in_ms()
  local lines, add = traces.written()
  return lines, function(ms, kind, members)
    add(START_US + ms * 1000, kind, members)
  end
end

return traces

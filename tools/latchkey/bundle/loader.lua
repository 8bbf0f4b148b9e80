-- SPDX-License-Identifier: Apache-2.0
-- Loading a set of scripts into nodes: first a plan for all of them, then one node after the other.
-- A node that fails keeps its error, and the others go on; loading again goes on where it ended.
local ffi = require('ffi')

local loader = {}

ffi.cdef('int poll(struct pollfd *fds, unsigned long nfds, int timeout);')

local CATCH_UP_MS = 5000
local LOOK_AGAIN_MS = 20

---Plans each node that can be reached; the plan, or what went wrong, is kept with it.
---@param list bundle.node[]
---@param target table one of bundle.targets
---@param wanted table[] as of target.wanted
---@param forced? boolean may libraries go that are newer or foreign?
function loader.plan(list, target, wanted, forced)
  for _, node in ipairs(list) do
    if not node.err then
      node.plan, node.err = target.plan(node.client, wanted, forced)
    end
  end
end

---What would have to be forced, as "node: name: why".
---@param list bundle.node[]
---@return string[]
function loader.refused(list)
  local found = {}
  for _, node in ipairs(list) do
    for _, step in ipairs(node.plan and node.plan.refused or {}) do
      found[#found + 1] = ('%s: %s: %s'):format(node.target, step.wanted.library, step.why)
    end
  end
  return found
end

-- What is to be loaded there, in order.
local function steps_of(plan)
  local steps = {}
  for _, item in ipairs(plan.new) do
    steps[#steps + 1] = { item = item }
  end
  for _, gone in ipairs(plan.goes) do
    steps[#steps + 1] = { item = gone.wanted, replaces = true }
  end
  return steps
end

local function is_left(plan)
  return #plan.new + #plan.goes + #plan.refused
end

-- What was loaded must be there now: a server that started anew in between has forgotten it.
local function look_again(node, target, wanted, forced)
  local plan, err = target.plan(node.client, wanted, forced)
  if not plan then
    node.err = err
  elseif is_left(plan) > 0 then
    node.err = { status = 'LK_SERVER', hint = 'load again: what is there is left as it is',
      message = ('of the %d %s loaded, %d are gone again: it was restarted or flushed meanwhile')
        :format(node.loaded, target.what, is_left(plan)) }
  end
end

local function load_node(node, target, wanted, forced, on_step)
  local steps = steps_of(node.plan)
  for i, step in ipairs(steps) do
    on_step(node, i - 1, #steps, step.item)
    local good, err = target.put(node.client, step.item, step.replaces)
    if not good then
      node.err = err
      return
    end
    node.loaded = node.loaded + 1
  end
  on_step(node, #steps, #steps)
  look_again(node, target, wanted, forced)
end

-- A replica is sent what its master has, a moment later.
local function await_replica(node, target, wanted)
  local now_ms = require('latchkey').now_ms
  local deadline_ms = now_ms() + (node.of and node.of.loaded and CATCH_UP_MS or 0)
  local plan, err
  repeat
    if plan then
      ffi.C.poll(nil, 0, LOOK_AGAIN_MS)
    end
    plan, err = target.plan(node.client, wanted)
    if not plan then
      node.err = err
      return
    end
  until is_left(plan) == 0 or now_ms() >= deadline_ms
  if is_left(plan) > 0 then
    node.err = { status = 'LK_READONLY', hint = 'load into its master, then run latchkey status',
      message = ('a replica gets %s from its master; it lacks %d'):format(target.what,
        is_left(plan)) }
  else
    node.loaded = is_left(node.plan)
  end
end

---Loads what the plans say.
---@param list bundle.node[] planned
---@param target table
---@param wanted table[]
---@param options { forced: boolean|nil, on_step: fun(node, done: integer, all: integer, item) }
function loader.run(list, target, wanted, options)
  for _, replicas in ipairs({ false, true }) do
    for _, node in ipairs(list) do
      local waits = target.is_replicated and node.role == 'replica' or false
      if not node.err and waits == replicas then
        node.loaded = 0
        if waits then
          await_replica(node, target, wanted)
        else
          load_node(node, target, wanted, options.forced, options.on_step)
        end
      end
    end
  end
end

return loader

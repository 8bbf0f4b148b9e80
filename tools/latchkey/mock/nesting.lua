-- SPDX-License-Identifier: Apache-2.0
-- Calls inside of one another that go through C functions of the server: it takes 200 of them, and
-- no coroutine yields across one. LuaJIT has no such limit, and where they have taken all of the
-- stack that C has, the process ends. Lua 5.1 counts them itself.
local jit = rawget(_G, 'jit')

local nesting = { coroutine = {} }

local MOST = 200
local OVERFLOW = 'C stack overflow'
nesting.OVERFLOW = OVERFLOW
local BOUNDARY = 'attempt to yield across metamethod/C-call boundary'

-- How deep it is, and how deep it was where the running coroutine began; nil: there is none.
local depth, base = 1, nil

---A script begins.
function nesting.begin()
  depth, base = 1, nil
end

---A C function calls one of the script's.
---@return integer|nil before what `leave` is to be given; nil: that is one too many
function nesting.enter()
  local before = depth
  if before >= MOST - 1 then
    return nil
  end
  depth = before + 1
  return before
end

---It has returned, or what it threw has been caught: it is as deep as before.
function nesting.leave(before, ...)
  depth = before
  return ...
end

local function overflow()
  error(OVERFLOW, 0)
end

---A function that a C function calls, as such a call counts.
function nesting.callback(own)
  return function(...)
    return nesting.leave(nesting.enter() or overflow(), own(...))
  end
end

function nesting.xpcall(code, handler)
  local before = nesting.enter()
  if not before then
    return xpcall(overflow, handler)
  end
  return nesting.leave(before, xpcall(code, handler))
end

local function back(before, before_base, ...)
  depth, base = before, before_base
  return ...
end

local function resume(co, ...)
  if depth >= MOST then
    return false, OVERFLOW
  end
  local before, before_base = depth, base
  depth = before + 1
  base = depth
  return back(before, before_base, coroutine.resume(co, ...))
end

function nesting.coroutine.resume(...)
  if type((...)) ~= 'thread' then
    return coroutine.resume(...) -- says what is wrong
  end
  return resume(...)
end

-- An error has its place once more where the script calls what `wrap` gave.
local function unwrapped(good, ...)
  if good then
    return ...
  end
  local err = ...
  local caller = debug.getinfo(2, 'flS')
  if (type(err) == 'string' or type(err) == 'number') and caller and caller.currentline > 0
    and getfenv(caller.func) ~= _G then
    err = ('%s:%d: %s'):format(caller.short_src, caller.currentline, err)
  end
  error(err, 0)
end

function nesting.coroutine.wrap(...)
  if type((...)) ~= 'function' then
    return coroutine.wrap(...) -- says what is wrong
  end
  local co = coroutine.create((...))
  return function(...)
    return unwrapped(resume(co, ...))
  end
end

function nesting.coroutine.yield(...)
  if not base or depth > base then
    error(BOUNDARY, 0)
  end
  return coroutine.yield(...)
end

if not jit then
  nesting.coroutine = {}
  function nesting.enter()
    return depth
  end
end

return nesting

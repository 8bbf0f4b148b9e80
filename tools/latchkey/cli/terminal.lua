-- SPDX-License-Identifier: Apache-2.0
-- What a tool wants to know of the terminal it may be on, and lines that come and go.
local ffi = require('ffi')

ffi.cdef('int isatty(int fd);')

local terminal = {}

---@param fd integer 0, 1 or 2
---@return boolean
function terminal.is_one(fd)
  return ffi.C.isatty(fd) == 1
end

---Does the terminal know colours, places on the screen, and lines that are rewritten? Without TERM
---nobody says so.
---@return boolean
function terminal.knows_escapes()
  local kind = os.getenv('TERM') or ''
  return kind ~= '' and kind ~= 'dumb'
end

---May there be colours on standard output?
---@return boolean
function terminal.has_colours()
  local refused = os.getenv('NO_COLOR') or ''
  return terminal.is_one(1) and refused == '' and terminal.knows_escapes()
end

local EVERY_MS = 100

---A line on standard error that shows how far something is; silent where that is no
---terminal, or one that rewrites no line.
---@param ctx cli.context
---@return fun(text: string|nil) show nil removes the line
function terminal.progress(ctx)
  if ctx.quiet or ctx.json or not terminal.is_one(2) or not terminal.knows_escapes() then
    return function() end
  end
  local now_ms = require('latchkey').now_ms
  local shown_ms, width = nil, 0
  return function(text)
    if not text and width > 0 then
      ctx.stderr:write('\r', (' '):rep(width), '\r')
      ctx.stderr:flush()
      width = 0
    elseif text and (not shown_ms or now_ms() - shown_ms >= EVERY_MS) then
      ctx.stderr:write('\r', text, (' '):rep(width - #text))
      ctx.stderr:flush()
      shown_ms, width = now_ms(), #text
    end
  end
end

return terminal

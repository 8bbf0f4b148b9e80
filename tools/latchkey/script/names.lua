-- SPDX-License-Identifier: Apache-2.0
-- How key and channel names are formed from a lock's name, so that all of them share a hash slot.
local bit = require('bit')

local names = {}

names.MAX = 512

---Whose value stands in the names of a form with a plus.
---@param form table
---@return string|nil argument
---@return string tail what stands behind the value
function names.argument(form)
  return form.plus:match('^([^+]+)%+?(.*)$')
end

---@param form table { kind, text, plus } as header.parse gives it
---@param name string the lock's name
---@param args? table values of the script's arguments by name, where the form has a plus
---@return string
function names.form(form, name, args)
  if form.kind == 'slot' then
    error('any key of the slot: its name is chosen, not formed', 2)
  end
  local tagged = name:find('{', 1, true)
  local formed = name
  if form.kind == 'prefix' then
    formed = form.text .. ':' .. (tagged and name or '{' .. name .. '}')
  elseif form.kind == 'suffix' then
    formed = (tagged and name or '{' .. name .. '}') .. ':' .. form.text
  elseif form.kind == 'braces' then
    formed = form.text .. '{' .. name .. '}'
  elseif form.kind == 'pattern' then
    formed = form.text:gsub('{name}', (name:gsub('%%', '%%%%')))
  end
  local argument, tail = names.argument(form)
  if argument then
    local value = args and args[argument]
    if value == nil then
      error(('the form needs the argument "%s"'):format(argument), 2)
    end
    formed = formed .. ':' .. value .. tail
  end
  return formed
end

---May this be the name of a lock?
---@param name string
---@return true|nil ok
---@return string|nil why
function names.check(name)
  if name == '' then
    return nil, 'the name is empty'
  end
  if #name > names.MAX then
    return nil, ('the name has %d bytes; at most %d are allowed'):format(#name, names.MAX)
  end
  if name:find('\0', 1, true) then
    return nil, 'the name has a NUL byte'
  end
  if name:find('{', 1, true) then
    if not name:find('^[^{]*{[^}]+}') then
      return nil, 'the first brace of the name opens no hash tag; close it behind one or more bytes'
    end
  elseif name:find('}', 1, true) then
    return nil, 'the name has a "}" without a "{"; the keys formed from it would not share a slot'
  end
  return true
end

-- CRC-16/XMODEM: polynomial 0x1021, start 0, neither reflected nor inverted.
local function crc16(bytes)
  local crc = 0
  for i = 1, #bytes do
    crc = bit.bxor(crc, bit.lshift(bytes:byte(i), 8))
    for _ = 1, 8 do
      crc = bit.lshift(crc, 1)
      if crc >= 0x10000 then
        crc = bit.bxor(crc, 0x11021)
      end
    end
  end
  return crc
end

---The cluster slot of a key: of its hash tag, if it has one that is closed and not empty.
---@param key string
---@return integer slot 0 to 16383
function names.slot(key)
  return crc16(key:match('^[^{]*{([^}]+)}') or key) % 16384
end

return names

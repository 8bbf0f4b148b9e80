-- SPDX-License-Identifier: Apache-2.0
-- gzip (RFC 1952) without compression: stored blocks (RFC 1951, 3.2.4). Compressors give other
-- bytes from version to version; these are the same on every machine. And a reader needs no
-- inflater that a forged file could attack.
local bit = require('bit')

local gzip = {}

-- Deflate, no flags, no time, unknown system: nothing of the machine that wrote it.
local HEAD = '\31\139\8\0\0\0\0\0\0\255'
local BLOCK_MAX = 65535

-- Reflected polynomial of RFC 1952, section 8.
local TABLE = {}
for byte = 0, 255 do
  local crc = byte
  for _ = 1, 8 do
    local shifted = bit.rshift(crc, 1)
    crc = crc % 2 == 1 and bit.bxor(shifted, 0xEDB88320) or shifted
  end
  TABLE[byte] = bit.tobit(crc)
end

local function crc32(bytes)
  local band, bxor, rshift = bit.band, bit.bxor, bit.rshift
  local crc = -1
  for first = 1, #bytes, 4096 do
    local list = { bytes:byte(first, first + 4095) }
    for i = 1, #list do
      crc = bxor(rshift(crc, 8), TABLE[band(bxor(crc, list[i]), 255)])
    end
  end
  return bit.bnot(crc) % 2 ^ 32
end

local function little_endian(number, count)
  local list = {}
  for i = 1, count do
    list[i] = string.char(math.floor(number / 256 ^ (i - 1)) % 256)
  end
  return table.concat(list)
end

local function number_at(bytes, place, count)
  local number = 0
  for i = count - 1, 0, -1 do
    number = number * 256 + (bytes:byte(place + i) or 0)
  end
  return number
end

---@param bytes string
---@return string file
function gzip.pack(bytes)
  local parts, first = { HEAD }, 1
  repeat
    local block = bytes:sub(first, first + BLOCK_MAX - 1)
    first = first + BLOCK_MAX
    parts[#parts + 1] = (first > #bytes and '\1' or '\0') .. little_endian(#block, 2)
      .. little_endian(BLOCK_MAX - #block, 2)
    parts[#parts + 1] = block
  until first > #bytes
  parts[#parts + 1] = little_endian(crc32(bytes), 4) .. little_endian(#bytes, 4)
  return table.concat(parts)
end

---The content of a file that `pack` wrote; any other form of gzip is refused.
---@param file string
---@return string|nil bytes
---@return string|nil why
function gzip.unpack(file)
  if file:sub(1, 2) ~= HEAD:sub(1, 2) then
    return nil, 'it is not a gzip file'
  end
  local parts, place = {}, #HEAD + 1
  while place + 5 <= #file do
    local length = number_at(file, place + 1, 2)
    parts[#parts + 1] = file:sub(place + 5, place + 4 + length)
    local is_last = file:sub(place, place) ~= '\0'
    place = place + 5 + length
    if is_last then
      break
    end
  end
  local bytes = table.concat(parts)
  if number_at(file, #file - 3, 4) ~= #bytes or file ~= gzip.pack(bytes) then
    return nil, 'it is damaged or cut off, or was not written by latchkey bundle'
  end
  return bytes
end

return gzip

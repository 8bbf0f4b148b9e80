-- SPDX-License-Identifier: Apache-2.0
-- SHA-1 as FIPS 180-4 defines it (sections 5.1.1, 5.3.1 and 6.1), the name under which a server
-- keeps a script.
local bit = require('bit')

local band, bnot, bor, bxor, rol = bit.band, bit.bnot, bit.bor, bit.bxor, bit.rol
local tobit, tohex = bit.tobit, bit.tohex

local sha1 = {}

local function word_bytes(n)
  return string.char(math.floor(n / 2 ^ 24) % 256, math.floor(n / 2 ^ 16) % 256,
    math.floor(n / 2 ^ 8) % 256, n % 256)
end

local function padded(bytes)
  local zeros = (55 - #bytes) % 64
  local bits = #bytes * 8
  return bytes .. '\128' .. ('\0'):rep(zeros)
    .. word_bytes(math.floor(bits / 2 ^ 32)) .. word_bytes(bits % 2 ^ 32)
end

local function schedule(message, start)
  local w = {}
  for t = 0, 15 do
    local a, b, c, d = message:byte(start + 4 * t, start + 4 * t + 3)
    w[t] = tobit(((a * 256 + b) * 256 + c) * 256 + d)
  end
  for t = 16, 79 do
    w[t] = rol(bxor(w[t - 3], w[t - 8], w[t - 14], w[t - 16]), 1)
  end
  return w
end

-- f and K of section 4.1.1 and 4.2.1.
local function round(t, b, c, d)
  if t < 20 then
    return bor(band(b, c), band(bnot(b), d)), 0x5a827999
  elseif t < 40 then
    return bxor(b, c, d), 0x6ed9eba1
  elseif t < 60 then
    return bor(band(b, c), band(b, d), band(c, d)), 0x8f1bbcdc
  end
  return bxor(b, c, d), 0xca62c1d6
end

---@param bytes string
---@return string digest 40 lower-case hex digits
function sha1.hex(bytes)
  local message = padded(bytes)
  local h0, h1, h2, h3, h4 = 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0
  for start = 1, #message, 64 do
    local w = schedule(message, start)
    local a, b, c, d, e = h0, h1, h2, h3, h4
    for t = 0, 79 do
      local f, k = round(t, b, c, d)
      a, b, c, d, e = tobit(rol(a, 5) + f + e + k + w[t]), a, rol(b, 30), c, d
    end
    h0, h1, h2 = tobit(h0 + a), tobit(h1 + b), tobit(h2 + c)
    h3, h4 = tobit(h3 + d), tobit(h4 + e)
  end
  return tohex(h0) .. tohex(h1) .. tohex(h2) .. tohex(h3) .. tohex(h4)
end

return sha1

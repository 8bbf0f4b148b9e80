-- SPDX-License-Identifier: Apache-2.0
-- Digests of bytes, from OpenSSL: SHA-1 is the name under which a server keeps a script.
local openssl = require('openssl.digest')

local digest = {}

local function hex(kind, bytes)
  return (openssl.new(kind):final(bytes):gsub('.', function(byte)
    return ('%02x'):format(byte:byte())
  end))
end

---@param bytes string
---@return string digest SHA-1, 40 lower-case hex digits
function digest.sha1(bytes)
  return hex('sha1', bytes)
end

---@param bytes string
---@return string digest SHA-256, 64 lower-case hex digits
function digest.sha256(bytes)
  return hex('sha256', bytes)
end

return digest

-- SPDX-License-Identifier: Apache-2.0
local digest = {}

---@param bytes string
---@return string digest SHA-256, 64 lower-case hex digits
function digest.sha256(bytes)
  -- Commands that need no digest run without the library, too.
  local openssl = require('openssl.digest')
  return (openssl.new('sha256'):final(bytes):gsub('.', function(byte)
    return ('%02x'):format(byte:byte())
  end))
end

return digest

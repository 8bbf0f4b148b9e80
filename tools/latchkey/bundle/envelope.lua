-- SPDX-License-Identifier: Apache-2.0
-- A statement of in-toto in a signed envelope (DSSE 1.0), as cosign and in-toto's libraries read
-- it. Keys are ECDSA on P-256 in PEM. ssh-keygen -m PKCS8 makes such ones: so one key signs bundles
-- and evidence.
local cjson = require('cjson')
local digests = require('openssl.digest')
local pkey = require('openssl.pkey')
local utils = require('pl.utils')

local digest = require('latchkey.digest')

local envelope = {}

envelope.TYPE = 'application/vnd.in-toto+json'
local SIGNATURES_MAX = 10
local ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'

local function base64(bytes)
  local padding = ('='):rep((3 - #bytes % 3) % 3)
  local bits = (bytes .. ('\0'):rep(#padding)):gsub('...', function(three)
    local a, b, c = three:byte(1, 3)
    local number = a * 65536 + b * 256 + c
    local out = {}
    for i = 4, 1, -1 do
      local at = number % 64 + 1
      out[i], number = ALPHABET:sub(at, at), math.floor(number / 64)
    end
    return table.concat(out)
  end)
  return bits:sub(1, #bits - #padding) .. padding
end

-- The bytes of a text in base64, which has one form; else nothing.
local function from_base64(text)
  if type(text) ~= 'string' or #text % 4 ~= 0 or not text:find('^[%w+/]*=?=?$') then
    return nil
  end
  local bytes = text:gsub('=', 'A'):gsub('....', function(four)
    local number = 0
    for i = 1, 4 do
      number = number * 64 + ALPHABET:find(four:sub(i, i), 1, true) - 1
    end
    return string.char(math.floor(number / 65536), math.floor(number / 256) % 256, number % 256)
  end)
  bytes = bytes:sub(1, #bytes - select(2, text:gsub('=', '')))
  return base64(bytes) == text and bytes or nil
end

-- What is signed: both parts with their lengths.
local function to_sign(payload)
  return ('DSSEv1 %d %s %d %s'):format(#envelope.TYPE, envelope.TYPE, #payload, payload)
end

local function hash(payload)
  return digests.new('sha256'):update(to_sign(payload))
end

-- The public half, as in a certificate.
local function der_of(key)
  return from_base64((key:toPEM('public'):gsub('%-%-[^\n]*', ''):gsub('%s', ''))) or ''
end
-- What that begins with where it is an ECDSA key on P-256.
local P256 = from_base64('MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE')

-- A key of the one kind, from a file in PEM.
local function key_from(file, half)
  local text, why = utils.readfile(file, true)
  if not text then
    return nil, why
  elseif text:find('BEGIN OPENSSH PRIVATE KEY', 1, true) then
    return nil, file
      .. ' is in the form of OpenSSH; make a copy in PKCS8: ssh-keygen -p -m PKCS8 -f COPY'
  elseif text:find('ENCRYPTED', 1, true) then
    return nil, file .. ' has a passphrase; sign with a copy that has none, and remove the copy'
  elseif not text:find(half .. ' KEY-----', 1, true) then
    return nil, ('%s is not a %s key in PEM'):format(file, half:lower())
  end
  local read, key = pcall(pkey.new, text, 'PEM')
  if not read or der_of(key):sub(1, #P256) ~= P256 then
    return nil, file
      .. ' is no ECDSA key on P-256; make one with: ssh-keygen -t ecdsa -b 256 -m PKCS8'
  end
  return key
end

-- Keys are called by the SHA-256 of their public half.
local function id_of(key)
  return digest.sha256(der_of(key))
end

---@param statement string its bytes
---@param file string of a private key
---@return string|nil text of the envelope
---@return string|nil why
function envelope.sign(statement, file)
  local key, why = key_from(file, 'PRIVATE')
  if not key then
    return nil, why
  end
  return ('{"payload":"%s","payloadType":"%s","signatures":[{"keyid":"%s","sig":"%s"}]}\n'):format(
    base64(statement), envelope.TYPE, id_of(key), base64(key:sign(hash(statement))))
end

---What lies in an envelope; of a bare statement itself.
---@param text string
---@return string|nil statement
---@return string[] signatures none of a bare statement
function envelope.open(text)
  local decoded, document = pcall(cjson.decode, text)
  if not decoded or type(document) ~= 'table' or document.payloadType == nil then
    return text, {}
  end
  local payload, signatures = from_base64(document.payload), {}
  if document.payloadType ~= envelope.TYPE or not payload or type(document.signatures) ~= 'table'
    or #document.signatures == 0 or #document.signatures > SIGNATURES_MAX then
    return nil, {}
  end
  for i, signature in ipairs(document.signatures) do
    signatures[i] = type(signature) == 'table' and from_base64(signature.sig)
    if not signatures[i] then
      return nil, {}
    end
  end
  return payload, signatures
end

---Is one of the signatures made with this key?
---@param text string an envelope
---@param file string of a public key
---@return string|nil id of the key
---@return string|nil why not
function envelope.check(text, file)
  local key, why = key_from(file, 'PUBLIC')
  if not key then
    return nil, why
  end
  local payload, signatures = envelope.open(text)
  for _, signature in ipairs(signatures) do
    local read, good = pcall(key.verify, key, signature, hash(payload))
    if read and good then
      return id_of(key)
    end
  end
  return nil, #signatures == 0 and 'the evidence is not signed'
    or ('the evidence is not signed with %s'):format(file)
end

return envelope

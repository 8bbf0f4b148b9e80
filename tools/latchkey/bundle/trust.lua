-- SPDX-License-Identifier: Apache-2.0
-- A bundle from a file, as far as the caller trusts it: the digest beside it, its signature, and
-- that it is whole.
local path = require('pl.path')
local utils = require('pl.utils')

local bundle = require('latchkey.bundle')
local digest = require('latchkey.digest')
local sign = require('latchkey.bundle.sign')

local trust = {}

local UNSIGNED = 'unsigned: integrity only'

---Tells that something is refused, which is no failure of a server or of the call.
---@param ctx cli.context
---@param message string
---@param hint? string
---@return integer exit code 1
function trust.refuse(ctx, message, hint)
  local told = setmetatable({ exit_of = function() return 1 end }, { __index = ctx })
  return told:fail({ status = 'REFUSED', message = message, hint = hint or '',
    lines = true })
end

---The options of commands that take a bundle.
function trust.options(parser)
  parser:mutex(
    parser:option('--allowed-signers', 'Who may have signed it, as ssh-keygen(1) describes it.')
      :argname('FILE'),
    parser:flag('--allow-unsigned', 'Accept a bundle without checking its signature.'))
end

-- Why the file is not what the digest beside it says.
local function against_digest(file, bytes)
  local beside = file .. '.sha256'
  if not path.exists(beside) then
    return nil
  end
  local said = (utils.readfile(beside, true) or ''):match('^(%x+)%s')
  if not said or #said ~= 64 then
    return beside .. ' holds no SHA-256'
  elseif said:lower() ~= digest.sha256(bytes) then
    return ('%s is not the file that %s describes'):format(file, beside)
  end
end

---@param file string
---@param args table with the values of trust.options
---@return bundle.contents|nil contents with `signer` when a signature was checked, and `trust`, a
---sentence about it
---@return string|nil why
---@return string|nil hint
function trust.open(file, args)
  local bytes, why = bundle.bytes_of(file)
  why = why or against_digest(file, bytes)
  if why then
    return nil, why
  end
  local signer
  if args.allowed_signers then
    signer, why = sign.check(bytes, file .. '.sig', args.allowed_signers)
    if not signer then
      return nil, why
    end
  end
  local contents
  contents, why = bundle.read(bytes)
  if not contents then
    return nil, ('%s is refused: %s'):format(file, why)
  elseif not signer and not args.allow_unsigned then
    return nil, ('%s: %s'):format(file, UNSIGNED),
      'give --allowed-signers FILE, or --allow-unsigned where the way it came is trusted'
  end
  contents.signer = signer
  contents.trust = signer and 'signed by ' .. signer or UNSIGNED
  return contents
end

---The bundle that a call gives with --bundle; nothing where it gives none.
---@param ctx cli.context
---@param args table
---@return bundle.contents|nil contents
---@return integer|nil exit code; the refusal has been told
function trust.given(ctx, args)
  if not args.bundle then
    return nil
  end
  local contents, why, hint = trust.open(args.bundle, args)
  if not contents then
    return nil, trust.refuse(ctx, why, hint)
  end
  return contents
end

return trust

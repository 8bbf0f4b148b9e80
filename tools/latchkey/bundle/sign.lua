-- SPDX-License-Identifier: Apache-2.0
-- Signatures of bundles: those of OpenSSH (ssh-keygen -Y), in FILE.sig beside the file.
local path = require('pl.path')
local utils = require('pl.utils')

local whole_file = require('latchkey.whole_file')

local sign = {}

-- What is signed for another purpose is no signature of a bundle.
sign.NAMESPACE = 'latchkey-bundle'

-- ssh-keygen ends some lines as terminals in raw mode want them.
local function last_line(text)
  return text:match('([^\r\n]*)[\r\n]*$')
end

-- Runs ssh-keygen with a file for its input.
local function ssh_keygen(input, words)
  local parts = { 'ssh-keygen', '-Y' }
  for _, word in ipairs(words) do
    parts[#parts + 1] = utils.quote_arg(word)
  end
  parts[#parts + 1] = '<' .. utils.quote_arg(input)
  local ok, code, out, err = utils.executeex(table.concat(parts, ' '), true)
  if not ok and code == 127 then
    return nil, 'ssh-keygen is not installed'
  end
  return ok and out or nil, last_line(err ~= '' and err or out)
end

---@param file string
---@param key string file of a private key, or of a public one whose private half an agent has
---@return string|nil signature
---@return string|nil why
function sign.make(file, key)
  return ssh_keygen(file, { 'sign', '-q', '-f', key, '-n', sign.NAMESPACE })
end

-- Is the namespace among these patterns, as ssh-keygen takes them? One with "!" excludes it.
local function is_allowed(patterns)
  local found = false
  for no, pattern in patterns:gmatch('(!?)([^,]+)') do
    local lua = pattern:gsub('%p', '%%%0'):gsub('%%%*', '.*'):gsub('%%%?', '.')
    if sign.NAMESPACE:find('^' .. lua .. '$') then
      if no == '!' then
        return false
      end
      found = true
    end
  end
  return found
end

-- The lines that may be of a bundle's signer. Of a key that stands in several, ssh-keygen finds the
-- first, whatever it is allowed to sign.
local function lines_for_bundles(list)
  local lines = {}
  for line in list:gmatch('[^\n]+') do
    local options = line:match('^%s*"[^"]*"%s+(.*)') or line:match('^%s*%S+%s+(.*)') or ''
    local patterns = options:match('^%S-[nN][aA][mM][eE][sS][pP][aA][cC][eE][sS]="([^"]*)"')
    if not patterns or is_allowed(patterns) then
      lines[#lines + 1] = line .. '\n'
    end
  end
  return table.concat(lines)
end

-- Who in the list has the key of the signature; nobody need have it.
local function principals(signature, allowed)
  local found, why = ssh_keygen('/dev/null', { 'find-principals', '-f', allowed, '-s', signature,
    '-n', sign.NAMESPACE })
  local list = {}
  for line in (found or ''):gmatch('[^\n]+') do
    list[#list + 1] = line
  end
  return list, why
end

---@param bytes string what is said to be signed
---@param signature string file of the signature
---@param allowed string file of the signers, as ssh-keygen(1) describes it: ALLOWED SIGNERS
---@return string|nil signer
---@return string|nil why not
function sign.check(bytes, signature, allowed)
  for _, file in ipairs({ allowed, signature }) do
    if not path.isfile(file) then
      return nil, ('there is no file %s'):format(file)
    end
  end
  -- Copies of its own: nobody changes the files between this look and the next.
  local copy, signers = path.tmpname(), path.tmpname()
  local written, wrong = whole_file.write(copy, bytes)
  if written then
    written, wrong = whole_file.write(signers, lines_for_bundles(utils.readfile(allowed) or ''))
  end
  local list, why = principals(signature, signers)
  local signer
  for _, principal in ipairs(written and list or {}) do
    local good
    good, why = ssh_keygen(copy, { 'verify', '-f', allowed, '-I', principal, '-n', sign.NAMESPACE,
      '-s', signature })
    signer = signer or good and principal
  end
  os.remove(copy)
  os.remove(signers)
  if signer then
    return signer
  end
  return nil, ('the signature is not of a signer in %s: %s'):format(allowed, wrong or why)
end

return sign

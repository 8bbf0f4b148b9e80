-- SPDX-License-Identifier: Apache-2.0
-- Evidence in a signed envelope: what a stock verifier takes, and what is not taken here.
local cjson = require('cjson')
local dir = require('pl.dir')
local utils = require('pl.utils')

local envelope = require('latchkey.bundle.envelope')

local STATEMENT = '{"_type":"https://in-toto.io/Statement/v1","any":"\195\188\\n"}'
-- By in-toto's own library: the signature over what DSSE says, written down here once more.
local VERIFIER = [[
import base64, json, sys
from securesystemslib import keys
envelope = json.load(open(sys.argv[1]))
payload = base64.b64decode(envelope['payload'], validate=True)
kind = envelope['payloadType'].encode()
signed = b'DSSEv1 %d %s %d %s' % (len(kind), kind, len(payload), payload)
key = keys.import_ecdsakey_from_public_pem(open(sys.argv[2]).read().strip())
signature = base64.b64decode(envelope['signatures'][0]['sig'], validate=True)
good = keys.verify_signature(key, {'keyid': key['keyid'], 'sig': signature.hex()}, signed)
sys.exit(0 if good else 1)
]]

describe('an envelope', function()
  local folder, key, public

  local function shell(line, ...)
    return utils.executeex(line:format(...))
  end

  setup(function()
    folder = os.tmpname()
    os.remove(folder)
    dir.makepath(folder)
    key, public = folder .. '/key', folder .. '/key.pem'
    assert(shell("ssh-keygen -q -t ecdsa -b 256 -m PKCS8 -N '' -f %s", key))
    assert(shell('openssl pkey -in %s -pubout -out %s', key, public))
  end)

  teardown(function()
    dir.rmtree(folder)
  end)

  local function sealed()
    return (assert(envelope.sign(STATEMENT, key)))
  end

  local function another_payload()
    return cjson.decode((envelope.sign(STATEMENT .. ' ', key))).payload
  end

  -- The envelope as somebody else would have changed it.
  local function changed(change)
    local document = cjson.decode(sealed())
    change(document)
    return cjson.encode(document)
  end

  for _, length in ipairs({ 0, 1, 2, 3, 255, 256 }) do
    it(('carries %d bytes unchanged'):format(length), function()
      local bytes = ''
      for i = 1, length do
        bytes = bytes .. string.char((i * 37) % 256)
      end

      local text = assert(envelope.sign(bytes, key))

      assert.equal(bytes, (envelope.open(text)))
      assert.matches('^%x+$', assert(envelope.check(text, public)))
    end)
  end

  it('is accepted by openssl', function()
    local document = cjson.decode(sealed())
    local signed = ('DSSEv1 28 application/vnd.in-toto+json %d %s'):format(#STATEMENT, STATEMENT)
    utils.writefile(folder .. '/signed', signed, true)
    utils.writefile(folder .. '/sig64', document.signatures[1].sig .. '\n', true)

    local ok = shell('base64 -d <%s/sig64 >%s/sig && openssl dgst -sha256 -verify %s '
      .. '-signature %s/sig %s/signed', folder, folder, public, folder, folder)

    assert.is_true(ok)
    assert.equal(28, #document.payloadType)
  end)

  it('is accepted by the library of in-toto, and refused once it is changed', function()
    if not shell('/usr/bin/python3 -c "import securesystemslib.keys"') then
      return pending('securesystemslib is not installed, or another version')
    end
    utils.writefile(folder .. '/verify.py', VERIFIER, true)
    utils.writefile(folder .. '/good.json', sealed(), true)
    utils.writefile(folder .. '/bad.json', changed(function(document)
      document.payload = another_payload()
    end), true)

    assert.is_true((shell('/usr/bin/python3 %s/verify.py %s/good.json %s', folder, folder, public)))
    assert.is_false((shell('/usr/bin/python3 %s/verify.py %s/bad.json %s', folder, folder, public)))
  end)

  it('is not believed with another payload', function()
    local text = changed(function(document)
      document.payload = another_payload()
    end)

    local _, why = envelope.check(text, public)

    assert.equal('the evidence is not signed with ' .. public, why)
  end)

  it('is not believed by another key', function()
    assert(shell("ssh-keygen -q -t ecdsa -b 256 -m PKCS8 -N '' -f %s/other", folder))
    assert(shell('openssl pkey -in %s/other -pubout -out %s/other.pem', folder, folder))

    local _, why = envelope.check(sealed(), folder .. '/other.pem')

    assert.matches('^the evidence is not signed with ', why)
  end)

  it('is believed by one good signature of two', function()
    local text = changed(function(document)
      table.insert(document.signatures, 1, { keyid = '', sig = 'AAAA' })
    end)

    assert.is_truthy(envelope.check(text, public))
  end)

  it('leaves a bare statement as it is, which is not signed', function()
    assert.equal(STATEMENT, (envelope.open(STATEMENT)))
    assert.equal('the evidence is not signed', select(2, envelope.check(STATEMENT, public)))
  end)

  for title, change in pairs({
    ['another type'] = function(document) document.payloadType = 'text/plain' end,
    ['a payload that is no base64'] = function(document) document.payload = 'a-b_' end,
    ['a payload with bits beyond its end'] = function(document) document.payload = 'QUJ=' end,
    ['no signature'] = function(document) document.signatures = {} end,
    ['a signature that is none'] = function(document) document.signatures = { 1 } end,
    ['more signatures than anybody needs'] = function(document)
      for i = 1, 11 do
        document.signatures[i] = { sig = 'AAAA' }
      end
    end,
  }) do
    it('is refused with ' .. title, function()
      assert.is_nil((envelope.open(changed(change))))
    end)
  end

  it('is not signed with the public half of a key', function()
    assert.matches('is not a private key in PEM', select(2, envelope.sign(STATEMENT, public)))
  end)

  for title, case in pairs({
    ['the form of OpenSSH'] = { "ssh-keygen -q -t ed25519 -N '' -f %s",
      'ssh%-keygen %-p %-m PKCS8' },
    ['another kind'] = { 'openssl genpkey -algorithm ed25519 -out %s', 'no ECDSA key on P%-256' },
    ['another curve'] = { 'openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-384 -out %s',
      'no ECDSA key on P%-256' },
    ['a passphrase'] = { "ssh-keygen -q -t ecdsa -m PKCS8 -N secret -f %s", 'has a passphrase' },
    ['which there is no file'] = { 'rm -f %s', 'No such file' },
  }) do
    it('is not signed with a key of ' .. title, function()
      local file = folder .. '/' .. title:gsub(' ', '-')
      shell(case[1], file)

      local _, why = envelope.sign(STATEMENT, file)

      assert.matches(case[2], why)
    end)
  end
end)

-- SPDX-License-Identifier: Apache-2.0
local digest = require('latchkey.digest')

describe('SHA-1', function()
  -- From the examples that NIST publishes beside FIPS 180-4, and RFC 3174.
  local examples = {
    { '', 'da39a3ee5e6b4b0d3255bfef95601890afd80709' },
    { 'abc', 'a9993e364706816aba3e25717850c26c9cd0d89d' },
    { 'abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq',
      '84983e441c3bd26ebaae4aa1f95129e5e54670f1' },
    { ('01234567'):rep(80), 'dea356a2cddd90c7a7ecedc5ebb563934f460452' },
  }

  for _, example in ipairs(examples) do
    it(('digests the published example of %d bytes'):format(#example[1]), function()
      assert.equal(example[2], digest.sha1(example[1]))
    end)
  end

  it('agrees with sha1sum at every length around a block, for every byte value', function()
    local bytes = {}
    for i = 0, 255 do
      bytes[i + 1] = string.char(i)
    end
    local text, file = table.concat(bytes), os.tmpname()

    for length = 50, 130 do
      local part = text:sub(256 - length)
      local out = assert(io.open(file, 'wb'))
      out:write(part)
      out:close()
      local pipe = assert(io.popen('sha1sum ' .. file))
      local expected = pipe:read('*l'):match('^%x+')
      pipe:close()

      assert.equal(expected, digest.sha1(part))
    end
    os.remove(file)
  end)
end)

describe('SHA-256', function()
  it('digests the published example of 3 bytes', function()
    assert.equal('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad',
      digest.sha256('abc'))
  end)
end)

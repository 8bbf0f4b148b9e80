-- SPDX-License-Identifier: Apache-2.0
-- What the page on bundles says of sizes is so, within a fiftieth.
local utils = require('pl.utils')

local bundle = require('latchkey.bundle')
local helper = require('helper')

local function read(file)
  return assert(utils.readfile(helper.root .. '/' .. file, true))
end

describe('the page on bundles', function()
  it('says how large the bundle of the scripts is, and how large it would be compressed', function()
    local said = read('docs/reference/bundle.md')
    local contents = assert(bundle.pack({ name = 'latchkey-scripts',
      version = read('VERSION'):match('%S+') }, helper.root .. '/scripts', read('LICENSE')))
    local file = os.tmpname()
    assert(utils.writefile(file, contents.bytes, true))
    local _, _, zipped = utils.executeex(('gzip -dc %s | gzip -9 | wc -c'):format(file))
    os.remove(file)

    local count, whole, compressed = said:match(
      "the project's (%d+) scripts have (%d+) kB in place of (%d+) kB %(`gzip %-9`%)")

    assert.equal(#contents.scripts, tonumber(count))
    assert.near(#contents.bytes / 1000, tonumber(whole), tonumber(whole) / 50)
    assert.near(tonumber(zipped) / 1000, tonumber(compressed), tonumber(compressed) / 50)
  end)
end)

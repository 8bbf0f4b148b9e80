-- SPDX-License-Identifier: Apache-2.0
-- The page of the mock's commands is what its table says.
local dir = require('pl.dir')
local file = require('pl.file')
local helper = require('helper')
local known = require('mock.known_commands')
local path = require('pl.path')

describe('the page of the commands of the mock', function()
  it('is the one that tools/fidelity --commands makes', function()
    assert.equal(known.page(), file.read(helper.root .. '/docs/reference/mock-commands.md'))
  end)

  it('has every group', function()
    local folder = helper.root .. '/tools/latchkey/mock/commands'
    for _, name in ipairs(dir.getfiles(folder, '*.lua')) do
      local group = path.basename(name):gsub('%.lua$', '')

      assert.is_true(group == 'init' or known.groups()[group] == true, group)
    end
  end)
end)

-- SPDX-License-Identifier: Apache-2.0
local utils = require('pl.utils')

describe('tools/fidelity', function()
  for _, wrong in ipairs({ '--seconds 0', '--seconds -1', '--seconds nan', '--seconds soon',
    '--sequences 0', '--sequences nan', '--seed 0', '--seed nan',
    '--scripts spec/mock/foreign_scripts --attempts 0' }) do
    it('refuses to compare nothing: ' .. wrong, function()
      local _, code, out, err = utils.executeex('luajit tools/fidelity '
        .. wrong:gsub(' (%S+)$', '=%1'))

      assert.equal(64, code, out)
      assert.equal('', out)
      assert.matches('^fidelity: ', err)
    end)
  end
end)

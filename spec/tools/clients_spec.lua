-- SPDX-License-Identifier: Apache-2.0
local clients = require('latchkey.servers.clients')

describe('a list of clients', function()
  local function process_of(number)
    local found = clients.parse(('id=3 addr=10.0.0.1:51234 laddr=10.0.0.2:6379 fd=8 '
      .. 'name=latchkey:web-3:%s:1b9d6bcd:billing age=7 idle=0 flags=N\n'):format(number))
    return found['1b9d6bcd'] and found['1b9d6bcd'].process
  end

  it('has the process of each in its name', function()
    assert.equal(4711, process_of('4711'))
    assert.equal(2147483647, process_of('2147483647'))
  end)

  it('has no client in a name whose number no process has', function()
    for _, number in ipairs({ '2147483648', '99999999999', ('9'):rep(400), '-1', '' }) do
      assert.is_nil(process_of(number), number)
    end
  end)
end)

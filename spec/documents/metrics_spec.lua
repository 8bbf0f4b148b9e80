-- SPDX-License-Identifier: Apache-2.0
-- The page of the metrics against what the program writes.
local utils = require('pl.utils')

local program = require('cli.program')

describe('the page of the metrics', function()
  teardown(program.clean)

  it('has each metric, with its type, and no others', function()
    local file, server = program.folder() .. '/metrics', program.server()
    local result = program.run({ 'exec', '--url', server.url, '--metrics', file, 'job', '--',
      'true' })
    assert.equal(0, result.code, result.err)

    local page = assert(utils.readfile(program.root .. '/docs/reference/metrics.md'))
    local shown, written = {}, {}
    for name, kind in page:gmatch('\n| `(latchkey_[%l_]+)` | (%l+) |') do
      shown[name] = kind
    end
    for name, kind in assert(utils.readfile(file)):gmatch('# TYPE (%S+) (%l+)\n') do
      written[name] = kind
    end

    assert.same(written, shown)
  end)
end)

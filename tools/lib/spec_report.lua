-- SPDX-License-Identifier: Apache-2.0
-- What `latchkey spec --json` says: an output handler of busted.
local report = require('lib.report')

local function titles(handler, list)
  local rows = {}
  for i, row in ipairs(list) do
    rows[i] = { title = row.name or handler.getFullName(row), message = tostring(row.message) }
  end
  return rows
end

return function()
  local busted = require('busted')
  local handler = require('busted.outputHandlers.base')()

  handler.suiteEnd = function()
    io.stdout:write(report.json('spec', {
      passed = handler.successesCount, skipped = handler.pendingsCount,
      failures = titles(handler, handler.failures), errors = titles(handler, handler.errors),
    }))
    return nil, true
  end

  busted.subscribe({ 'suite', 'end' }, handler.suiteEnd)
  return handler
end

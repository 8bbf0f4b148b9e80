-- SPDX-License-Identifier: Apache-2.0
-- What the specs of lint stand on.
local dir = require('pl.dir')

local linting = { FIXTURES = 'spec/tools/fixtures/lint/' }

---The rules that findings are of, in their order.
function linting.rules_of(findings)
  local rules = {}
  for i, finding in ipairs(findings) do
    rules[i] = finding.rule
  end
  return rules
end

---A folder, which the spec removes.
function linting.folder()
  local folder = os.tmpname()
  os.remove(folder)
  dir.makepath(folder)
  return folder
end

return linting

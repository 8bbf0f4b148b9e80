-- SPDX-License-Identifier: Apache-2.0
-- The units and manifests that a page shows: systemd and a YAML parser take them, and latchkey has
-- the options that they name.
local path = require('pl.path')
local utils = require('pl.utils')

local document = require('documents.document')
local program = require('cli.program')

local PAGE = program.root .. '/docs/howto/systemd-and-kubernetes.md'

-- The system's, which tools/setup gives its modules.
local PYTHON = '/usr/bin/python3'
local PARSE = [[
import sys, yaml
for name in sys.argv[1:]:
  for one in yaml.safe_load_all(open(name)):
    assert one["apiVersion"] and one["kind"] and one["spec"]
]]

-- A pod whose failure is ignored is replaced, and does not count for backoffLimit.
local COUNTED = [[
import sys, yaml
count = 0
for name in sys.argv[1:]:
  for one in yaml.safe_load_all(open(name)):
    job = one["spec"].get("jobTemplate", {}).get("spec", {})
    for rule in job.get("podFailurePolicy", {}).get("rules", []):
      assert rule["action"] != "Ignore" or "onExitCodes" not in rule, rule
      count += 1
assert count > 0
]]

-- A unit that is no good: where nothing is said of it, nothing was looked at.
local BROKEN = 'latchkey-broken.service'

local function blocks_of(kind)
  local list = {}
  for _, block in ipairs(document.blocks(PAGE)) do
    if block.kind == kind then
      list[#list + 1] = block
    end
  end
  return list
end

-- The blocks as files of a folder; the program may be missing where it is verified.
local function written(kind)
  local folder = program.folder()
  for _, block in ipairs(blocks_of(kind)) do
    local text = block.text:gsub('/usr/bin/latchkey', '/usr/bin/env')
    assert(utils.writefile(path.join(folder, block.argument), text))
  end
  return folder
end

describe('units and manifests', function()
  teardown(program.clean)

  it('are there', function()
    assert.equal(3, #blocks_of('systemd'))
    assert.equal(2, #blocks_of('yaml'))
  end)

  it('name options that latchkey exec has', function()
    local help = program.run({ 'exec', '--help' }).out
    local count = 0
    for _, kind in ipairs({ 'systemd', 'yaml' }) do
      for _, block in ipairs(blocks_of(kind)) do
        for command in block.text:gmatch('latchkey,? exec([^\n]*)') do
          for option in command:gsub(' %-%-[ ,].*', ''):gmatch('%s(%-%-%l[%l-]*)') do
            assert.matches('\n  [^\n]*' .. option:gsub('%-', '%%-') .. '[ ,\n]', help, option)
            count = count + 1
          end
        end
      end
    end
    assert.is_true(count >= 5)
  end)

  it('are taken by systemd', function()
    if not utils.execute('command -v systemd-analyze >/dev/null') then
      pending('systemd-analyze is not installed')
    end
    local folder = written('systemd')
    assert(utils.writefile(path.join(folder, BROKEN), '[Service]\nExecStart=nowhere\n'))
    local verify = ("systemd-analyze verify --man=no '%s'/*"):format(folder)
    local _, _, out, err = utils.executeex(verify)

    -- units of the machine itself may have faults of their own
    local said = out .. err
    if not said:find(BROKEN, 1, true) then
      pending('systemd-analyze does not read units here: ' .. said)
    end
    for _, block in ipairs(blocks_of('systemd')) do
      assert.is_nil(said:find(block.argument, 1, true), said)
    end
  end)

  for _, case in ipairs({
    { 'are taken by a parser of YAML', PARSE },
    { 'let no job begin pods without end', COUNTED },
  }) do
    it(case[1], function()
      if not utils.execute(PYTHON .. " -c 'import yaml' 2>/dev/null") then
        pending('PyYAML is not installed')
      end
      local folder = written('yaml')
      local ok, _, _, err = utils.executeex(("%s -c '%s' '%s'/*"):format(PYTHON, case[2], folder))

      assert.is_true(ok, err)
    end)
  end
end)

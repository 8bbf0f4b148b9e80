-- SPDX-License-Identifier: Apache-2.0
if not rawget(_G, 'jit') then
  return -- it reads LuaJIT's bytecode
end

local Coverage = require('lib.coverage')
local code_lines = require('latchkey.lua51.code_lines')
local header = require('latchkey.script.header')

local SOURCE = [[
#!lua
--[=[ latchkey-script
name:     toy/one
version:  1.0.0
summary:  A script with a function that nobody calls.
returns:
  - {0}         no
  - {1, count}  yes
errors:
  - LKARG   wrong arguments
cost:     at most 1 commands
cluster:  one slot
]=]

local function never()
  return 1
end

if #ARGV == 0 then
  return {0}
end
return {1, 2}
]]

describe('coverage', function()
  local coverage

  before_each(function()
    local h = assert(header.parse((SOURCE:gsub('%[=%[', '[['):gsub('%]=%]', ']]'))))
    local script = { name = 'toy/one', path = 'scripts/toy/one.lua', header = h,
      source = SOURCE }
    coverage = Coverage.new({ script, ['toy/one'] = script })
  end)

  it('knows the lines that have code, those of functions that are never called included', function()
    assert.same({ [16] = true, [17] = true, [19] = true, [20] = true, [22] = true },
      code_lines(SOURCE))
  end)

  it('names lines, replies and errors that were never reached', function()
    for _, line in ipairs({ 17, 19, 20 }) do
      coverage:line('toy/one', line)
    end
    coverage:outcome('toy/one', { 0, n = 1 })

    local report, is_complete = coverage:report()

    assert.is_false(is_complete)
    assert.matches('toy/one +3/5 +1/2 +0/1\n', report)
    assert.matches('scripts/toy/one.lua: lines never reached: 16 22\n', report, 1, true)
    assert.matches('scripts/toy/one.lua: replies never reached: {1, count}\n', report, 1, true)
    assert.matches('scripts/toy/one.lua: errors never reached: LKARG\n', report, 1, true)
  end)

  it('is complete when everything was reached', function()
    for _, line in ipairs({ 16, 17, 19, 20, 22 }) do
      coverage:line('toy/one', line)
    end
    coverage:outcome('toy/one', { 0, n = 1 })
    coverage:outcome('toy/one', { 1, 2, n = 2 })
    coverage:outcome('toy/one', nil, 'LKARG wrong arguments')

    local report, is_complete = coverage:report()

    assert.is_true(is_complete)
    assert.matches('toy/one +5/5 +2/2 +1/1\n1 scripts, 5 of 5 lines, 2 of 2 replies, '
      .. '1 of 1 errors\n$', report)
  end)
end)

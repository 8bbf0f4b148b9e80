-- SPDX-License-Identifier: Apache-2.0
-- The world in which the project's own specs run: it notices scripts that care what owners are
-- called.
local World = require('latchkey.mock.world')
local helper = require('helper')
local mutated = require('support.mutated')
local watched = require('support.watched')

describe('a watched world', function()
  local COMPARISON = "redis.call('GET', lock) ~= owner"

  -- A release of what another holds, with this comparison in the script.
  local function release(finally_, comparison)
    local folder = mutated(finally_, 'mutex', 'release', COMPARISON, comparison)
    local world = watched.world(World.new({ scripts = folder }), { scripts = folder })
    helper.fill(world, { job = helper.string('lk-bob:1', 60000) })
    return world:eval('mutex/release', { 'job' },
      { 'lk-ann:1', 'latchkey_mutex:{job}', 'PUBLISH' })
  end

  it('does as any other where names make no difference', function()
    assert.reply({ -1 }, release(finally, COMPARISON .. ' '))
  end)

  for what, comparison in pairs({
    ['takes a name for another that begins alike'] =
      "string.sub(owner, 1, #(redis.call('GET', lock) or '')) ~= redis.call('GET', lock)",
    ['cuts a name at a blank'] =
      "redis.call('GET', lock) ~= owner and not string.find(owner, ' ', 1, true)",
  }) do
    it('fails a script that ' .. what, function()
      assert.error_matches(function()
        release(finally, comparison)
      end, 'mutex/release does otherwise where "lk%-[^"]*" is called')
    end)
  end
end)

-- SPDX-License-Identifier: Apache-2.0
local catalog = require('latchkey.script.catalog')

local helper = require('helper')

local function sha1sum(path)
  local pipe = assert(io.popen(("sha1sum '%s'"):format(path)))
  local sha = pipe:read('*a'):match('^%x+')
  pipe:close()
  return sha
end

describe('the scripts on a server', function()
  local scripts = assert(catalog.read(helper.scripts))
  local world

  before_each(function()
    world = helper.live_world()
  end)

  for _, script in ipairs(scripts) do
    it(script.name .. ' is known by the SHA1 of its file', function()
      local embedded
      for _, known in ipairs(world.client:scripts()) do
        embedded = known.name == script.name and known or embedded
      end

      local loaded = world:command('SCRIPT', 'LOAD', embedded.source)

      local sha = sha1sum(script.path)
      assert.equal(sha, loaded)
      assert.equal(sha, embedded.sha1)
      assert.equal(sha, script.sha1)
    end)
  end

  it('are all there once a client is open', function()
    for _, script in ipairs(scripts) do
      assert.reply({ 1 }, world:command('SCRIPT', 'EXISTS', script.sha1))
    end
  end)

  it('run although the server has forgotten them, and are there again', function()
    world:script_flush()

    assert.reply({ 1, 1 }, world:eval('lock/acquire', { 'job' }, { 30000, 'lk-ann:1', 1 }))

    assert.left(world, { job = helper.hash({ ['lk-ann:1'] = '1' }, 30000) })
    assert.reply({ 1 }, world:command('SCRIPT', 'EXISTS', scripts['lock/acquire'].sha1))
  end)

  it('are loaded anew by load, and counted', function()
    world:script_flush()

    local report = world.client:load()

    assert.same({ scripts = #scripts, loaded = #scripts }, report)
    for _, script in ipairs(scripts) do
      assert.reply({ 1 }, world:command('SCRIPT', 'EXISTS', script.sha1))
    end
  end)

  it('refuse new holds on a server that is out of memory, with a status to try again on', function()
    world:set_oom(true)

    local reply, err = world:eval('mutex/acquire', { 'job' }, { 30000, 'lk-ann:1' })

    assert.is_nil(reply)
    assert.equal('LK_OOM', err.status)
    assert.is_true(err.retriable)
    assert.left(world, {})
  end)
end)

-- SPDX-License-Identifier: Apache-2.0
local tablex = require('pl.tablex')

local checker = require('latchkey.checker')
local helper = require('helper')
local page = require('latchkey.checker.show.html')
local screen = require('latchkey.checker.show.text')
local story = require('latchkey.checker.show.story')

local REPLAY = 'A:lock B:lock B.acquire !failover A.acquire'

local function told()
  local run, _, steps = checker.run('lock', REPLAY, { scripts = helper.scripts,
    kinds = { 'failover' }, clients = 2, rounds = 1 })
  return story.of(steps, run)
end

local about = { model = 'lock', replay = REPLAY, scripts = helper.scripts }

describe('a counterexample', function()
  it('is a page with verdict, diagram, keys, the line to blame and the replay', function()
    local html = page.of(told(), about)

    for _, part in ipairs({ 'G1 violated: lk%-A:1 was granted', '<svg ', 'client B', 'lock/acquire',
      '<mark id="blame">', "id=\"replay\">latchkey check lock %-%-replay 'A:lock",
      '<td><code>l</code>' }) do
      assert.is_truthy(html:find(part), part)
    end
    assert.is_nil(html:find('<script', 1, true))
    assert.is_nil(html:find('src=', 1, true))
    assert.is_nil(html:find('<nav>', 1, true))
  end)

  it('leads back to the page that it is of', function()
    local of_gallery = tablex.merge(about, { back = { '../gallery.html', 'Gallery' } }, true)

    assert.is_truthy(page.of(told(), of_gallery)
      :find('<nav><a href="../gallery.html">Gallery</a></nav>', 1, true))
  end)

  it('is drawn with room between the clients for what they do', function()
    local story_of_long = told()
    for _, row in ipairs(story_of_long.rows) do
      row.state = row.who == 'A' and ('waits '):rep(20) or row.state
    end

    local html = page.of(story_of_long, about)

    local a, b = html:match('x="(%d+)" y="22"[^>]*>client A.-x="(%d+)" y="22"[^>]*>client B')
    assert.is_true(b - a > 6 * #('waits '):rep(20), b - a)
  end)

  it('is a table with a column for each client, and the line to blame', function()
    local shown = screen.show(told(), about)

    assert.is_truthy(shown:find('G1 violated', 1, true))
    assert.is_truthy(shown:find('ms +A +B +server +keys that change'))
    assert.is_truthy(shown:find('lock/acquire.lua:%d+: '))
    assert.is_nil(shown:match('\nms .-\n\n'):find('>', 1, true))
  end)

  it('cuts columns only where the terminal is too narrow for them', function()
    local run, _, steps = checker.run('lock', 'A:lock A.acquire A<',
      { scripts = helper.scripts, clients = 1, rounds = 1 })
    local granted = story.of(steps, run)
    local narrow = tablex.merge(about, { width = 60 }, true)

    assert.is_truthy(screen.show(granted, about):find('believes for %d+ ms'))
    assert.is_truthy(screen.show(granted, narrow):find('believes for %d+ >'))
  end)
end)

describe('a page of a run that went well', function()
  it('says so', function()
    local run, steps = checker.sample('lock', { scripts = helper.scripts })

    local html = page.of(story.of(steps, run), about)

    assert.is_truthy(html:find('No promise is broken', 1, true))
    assert.is_nil(html:find('id="blame"', 1, true))
  end)
end)

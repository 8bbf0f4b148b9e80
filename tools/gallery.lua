-- SPDX-License-Identifier: Apache-2.0
-- Six classic failures as pages: of scripts with one mistake in them, or of a fault that no lock
-- survives. `luajit tools/gallery.lua FOLDER` writes them.
package.path = 'tools/?.lua;tools/?/init.lua;' .. package.path
jit.off() -- as in the program: c/cli/lua.c

local argparse = require('argparse')
local dir = require('pl.dir')
local path = require('pl.path')
local utils = require('pl.utils')

local checker = require('latchkey.checker')
local page = require('latchkey.checker.show.html')
local story = require('latchkey.checker.show.story')

local FIRST_WAITER = "    if not head or stays_ms > 0 or gone == 100 then"

local ITEMS = {
  { file = 'release-of-anothers-lock', model = 'lock', title = 'A release of another\'s lock',
    words = 'A holder is late: its lease has ended, and another has the lock. Its release does not '
      .. 'ask whose lock it is, and takes it away from the other.',
    edits = { { 'lock/release', "if not redis.call('HGET', lock, owner) then",
      "if redis.call('EXISTS', lock) == 0 then" } },
    options = { clients = 2, rounds = 1, faults = 0, only = { 'G4' },
      limits = { levels = 1, handover = false } } },
  { file = 'lost-wake-up', model = 'lock', title = 'A lost wake-up',
    words = 'A release tells nobody. Whoever waits sleeps on, though the lock is free.',
    edits = { { 'lock/release', "tell(channel, publish, '0')\nreturn {1, 0}", 'return {1, 0}' } },
    options = { clients = 2, rounds = 1, faults = 0, only = { 'G6' },
      limits = { levels = 1, handover = false } } },
  { file = 'fail-over', model = 'lock', title = 'A fail-over that loses the lock',
    words = 'The replica that takes over has not seen the acquire. Nothing is wrong with the '
      .. 'scripts: replication is asynchronous.',
    options = { clients = 2, rounds = 1, kinds = { 'failover' }, only = { 'G2' },
      limits = { levels = 1, handover = false } } },
  { file = 'fencing', model = 'fenced', title = 'Fencing that saves the resource',
    words = 'The same fail-over, with a resource behind fence/admit: both hold the lock, and the '
      .. 'older hold is refused, since its token is the lower one.',
    replay = 'A:lock A.acquire A< !failover B:lock B.acquire B< B:work B.admit B< A:work A.admit',
    options = { clients = 2, rounds = 1, kinds = { 'failover' }, only = { 'G3' } } },
  { file = 'double-count', model = 'lock', title = 'A resent acquire that counts twice',
    words = 'The reply of a re-entry is lost, and the call is sent again. A script that adds one '
      .. 'instead of setting the count counts it twice, and the lock is never free again.',
    edits = { { 'lock/acquire', "if redis.call('HGET', lock, owner) then\n"
      .. "  redis.call('HSET', lock, owner, hold)",
      "if redis.call('HGET', lock, owner) then\n  redis.call('HINCRBY', lock, owner, 1)" } },
    options = { clients = 1, rounds = 1, kinds = { 'reply' }, only = { 'G5' } } },
  { file = 'dead-head', model = 'fair', title = 'A dead head of a fair queue',
    words = 'The first of the queue is dead. A release that drops nobody from the queue passes the '
      .. 'lock to nobody, and the living wait.',
    edits = { { 'fair/release', FIRST_WAITER, '    if true then' },
      { 'fair/wait_renew', FIRST_WAITER, '    if true then' },
      { 'fair/wait_renew_all', FIRST_WAITER, '    if true then' } },
    options = { clients = 3, rounds = 1, kinds = { 'crash' },
      only = { 'G6', 'G7' } } },
}

local function edit(folder, script, text, by)
  local file = ('%s/%s.lua'):format(folder, script)
  local source = utils.readfile(file, true)
  local first, last = source:find(text, 1, true)
  assert(first, script .. ' has no such text')
  utils.writefile(file, source:sub(1, first - 1) .. by .. source:sub(last + 1))
end

local function edited(item)
  if not item.edits then
    return 'scripts'
  end
  local folder = path.tmpname()
  os.remove(folder)
  assert(utils.execute('cp -r scripts ' .. folder))
  for _, change in ipairs(item.edits) do
    edit(folder, unpack(change))
  end
  return folder
end

local function picture(item)
  local options = item.options
  options.scripts = edited(item)
  local replay = item.replay
  if not replay then
    local verdict = checker.check(item.model, options)
    assert(verdict.findings[1], item.file .. ': nothing is found')
    replay = table.concat(verdict.findings[1].trail, ' ')
  end
  local run, why, steps = checker.run(item.model, replay, options)
  assert(run, why)
  local hints = { item.edits and '--scripts CHANGED' or nil }
  hints[#hints + 1] = options.kinds and '--fault ' .. table.concat(options.kinds, ',')
  hints[#hints + 1] = '--only ' .. table.concat(options.only, ',')
  local html = page.of(story.of(steps, run), { model = item.model, title = item.title,
    words = item.words, replay = replay, scripts = options.scripts,
    back = { '../gallery.html', 'The gallery of failures' },
    hints = table.concat(hints, ' ') })
  if item.edits then
    dir.rmtree(options.scripts)
  end
  return html
end

local parser = argparse('luajit tools/gallery.lua', 'Write the pages of the gallery of failures.')
parser:argument('folder', 'Where to.'):args('?'):default('docs/explanation/gallery')
local folder = parser:parse().folder

dir.makepath(folder)
for _, item in ipairs(ITEMS) do
  utils.writefile(('%s/%s.html'):format(folder, item.file), picture(item))
  print(item.file)
end

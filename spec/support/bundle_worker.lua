-- SPDX-License-Identifier: Apache-2.0
-- A process that takes a lock again and again with the scripts of a folder, and while it holds it
-- reads a number from a file and writes the next. Its arguments: URL, folder, file, how often, and
-- "own" to call own/acquire and own/release by name, over and over until the lock is free.
local fcntl = require('posix.fcntl')
local unistd = require('posix.unistd')
local utils = require('pl.utils')

local latchkey = require('latchkey')

local url, scripts, number, rounds = arg[1], arg[2], arg[3], tonumber(arg[4])

local client = assert(latchkey.open(url, { script_dir = scripts }))
local lock = assert(client:lock('lock', 'job'))

local own = {}

function own:acquire()
  self.serial = (self.serial or 0) + 1
  self.owner = ('lk-%d:%d'):format(unistd.getpid(), self.serial)
  local reply
  repeat
    reply = assert(client:eval('own/acquire', { 'job' }, { 30000, self.owner, 1 }))
  until reply[1] == 1
  return true
end

function own:release()
  local reply = assert(client:eval('own/release', { 'job' },
    { 30000, self.owner, 0, 'freed', 'PUBLISH' }))
  return reply[1] == 1, ('own/release answered %s'):format(tostring(reply[1]))
end

if arg[5] == 'own' then
  lock = own
end
for _ = 1, rounds do
  assert(lock:acquire(latchkey.FOREVER))
  -- Nobody else may be between these two lines.
  local inside = assert(fcntl.open(number .. '.inside', fcntl.O_CREAT + fcntl.O_EXCL, 384))
  local count = tonumber(utils.readfile(number))
  assert(utils.writefile(number, tostring(count + 1)))
  unistd.close(inside)
  assert(os.remove(number .. '.inside'))
  assert(lock:release())
end
client:close()

-- SPDX-License-Identifier: Apache-2.0
-- Two versions of the scripts in use at once: whoever has the old bundle and whoever has the new
-- one exclude each other.
local dir = require('pl.dir')
local fcntl = require('posix.fcntl')
local path = require('pl.path')
local unistd = require('posix.unistd')
local utils = require('pl.utils')
local wait = require('posix.sys.wait')

local bundle = require('bundle')
local helper = require('helper')
local latchkey = require('lib.latchkey')

local URL = os.getenv('LATCHKEY_SPEC_URL')
local ROUNDS = 100

describe('old and new bundles at once', function()
  local world, folder

  -- The scripts of lock/ with a higher minor version and other bytes, as a bundle laid out.
  local function newer()
    local source = path.join(folder, 'source')
    assert(dir.makepath(source .. '/lock'))
    for _, file in ipairs(dir.getfiles(helper.scripts .. '/lock', '*.lua')) do
      local text = utils.readfile(file, true):gsub('version:  1%.%d+%.%d+', 'version:  1.99.0')
        :gsub('\n%-%- bind\n', '\n-- names\n')
      assert(utils.writefile(source .. '/lock/' .. path.basename(file), text, true))
    end
    return source
  end

  local function laid_out(name, source)
    local contents = assert(bundle.pack({ name = name, version = '1.0.0' }, source))
    local out = path.join(folder, name)
    assert(bundle.unpack(contents, out))
    return out
  end

  local function open(scripts)
    return assert(latchkey.open(URL, { script_dir = scripts }))
  end

  local function sha1_of(client, name)
    for _, script in ipairs(client:scripts()) do
      if script.name == name then
        return script.sha1
      end
    end
  end

  before_each(function()
    world = helper.live_world()
    folder = os.tmpname()
    os.remove(folder)
  end)

  after_each(function()
    -- Several clients at once: one may write after the message of another.
    pcall(world.messages, world)
    dir.rmtree(folder)
  end)

  it('keep each other out, wait for each other and wake each other', function()
    local old = open(laid_out('old', helper.scripts))
    local new = open(laid_out('new', newer()))
    local first, second = assert(old:lock('lock', 'job')), assert(new:lock('lock', 'job'))

    assert.not_equal(sha1_of(old, 'lock/acquire'), sha1_of(new, 'lock/acquire'))
    for _, pair in ipairs({ { first, second }, { second, first } }) do
      assert(pair[1]:acquire())
      local _, busy = pair[2]:acquire()
      assert.equal('LK_BUSY', busy.status)
      local _, not_held = pair[2]:release()
      assert.equal('LK_NOT_HELD', not_held.status)
      assert(pair[1]:release())
      assert(pair[2]:acquire())
      assert(pair[2]:release())
    end
    assert.equal(0, old:command('EXISTS', 'job'))
    old:close()
    new:close()
  end)

  -- A worker of one of them: reads a number and writes the next, as often as it is told.
  local function work(scripts, number)
    local client = open(scripts)
    local lock = assert(client:lock('lock', 'job'))
    for _ = 1, ROUNDS do
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
  end

  it('lose no count between four processes', function()
    local bundles = { laid_out('old', helper.scripts), laid_out('new', newer()) }
    local number = path.join(folder, 'number')
    assert(utils.writefile(number, '0'))

    local pids = {}
    for i = 1, 4 do
      pids[i] = assert(unistd.fork())
      if pids[i] == 0 then
        local good, why = pcall(work, bundles[i % 2 + 1], number)
        if not good then
          io.stderr:write(tostring(why), '\n')
        end
        unistd._exit(good and 0 or 1)
      end
    end
    local codes = {}
    for i, pid in ipairs(pids) do
      codes[i] = select(3, wait.wait(pid))
    end

    assert.same({ 0, 0, 0, 0 }, codes)
    assert.equal(tostring(4 * ROUNDS), utils.readfile(number))
    assert.equal(0, world.client:command('EXISTS', 'job'))
  end)
end)

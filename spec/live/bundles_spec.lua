-- SPDX-License-Identifier: Apache-2.0
-- Two versions of the scripts in use at once: whoever has the old bundle and whoever has the new
-- one exclude each other.
local dir = require('pl.dir')
local path = require('pl.path')
local stdlib = require('posix.stdlib')
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

  -- A process of its own, beside the same library as this one; for sanitizers, preloaded as it was
  -- when this one started.
  local function start(scripts, number)
    local environment = utils.readfile('/proc/self/environ', true) or ''
    local preloaded = environment:match('%f[^%z]LD_PRELOAD=([^%z]*)')
    local pid = assert(unistd.fork())
    if pid == 0 then
      stdlib.setenv('LD_PRELOAD', preloaded)
      stdlib.setenv('LUA_PATH', package.path)
      unistd.execp('luajit', { helper.root .. '/spec/support/bundle_worker.lua', URL, scripts,
        number, tostring(ROUNDS) })
      unistd._exit(127)
    end
    return pid
  end

  it('lose no count between four processes', function()
    local bundles = { laid_out('old', helper.scripts), laid_out('new', newer()) }
    local number = path.join(folder, 'number')
    assert(utils.writefile(number, '0'))

    local pids = {}
    for i = 1, 4 do
      pids[i] = start(bundles[i % 2 + 1], number)
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

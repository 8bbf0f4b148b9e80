-- SPDX-License-Identifier: Apache-2.0
-- Two versions of the scripts in use at once: whoever has the old bundle and whoever has the new
-- one exclude each other.
local dir = require('pl.dir')
local path = require('pl.path')
local stdlib = require('posix.stdlib')
local unistd = require('posix.unistd')
local utils = require('pl.utils')
local wait = require('posix.sys.wait')

local bundle = require('latchkey.bundle')
local helper = require('helper')
local latchkey = require('latchkey')

local URL = os.getenv('LATCHKEY_SPEC_URL'):match('^[^?]*')
local ROUNDS = 100

local MODES = {
  { what = 'as scripts', query = '' },
  { what = 'as functions', query = '?functions=1' },
}

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

  -- The same scripts under another name and with another major version: what the library has
  -- itself, nothing of another major may stand in for.
  local function renamed(major)
    local source = path.join(folder, 'major' .. major)
    assert(dir.makepath(source .. '/own'))
    for _, name in ipairs({ 'acquire', 'release' }) do
      local text = utils.readfile(('%s/lock/%s.lua'):format(helper.scripts, name), true)
        :gsub('name:     lock/', 'name:     own/')
        :gsub('version:  %d+%.%d+%.%d+', ('version:  %d.0.0'):format(major))
      assert(utils.writefile(('%s/own/%s.lua'):format(source, name), text, true))
    end
    return source
  end

  local function open(scripts, mode)
    return assert(latchkey.open(URL .. mode.query, { script_dir = scripts }))
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
    assert(world.client:command('FUNCTION', 'FLUSH'))
    dir.rmtree(folder)
  end)

  -- A process of its own, beside the same library as this one; for sanitizers, preloaded as it was
  -- when this one started.
  local function start(scripts, number, mode, how)
    local environment = utils.readfile('/proc/self/environ', true) or ''
    local preloaded = environment:match('%f[^%z]LD_PRELOAD=([^%z]*)')
    local pid = assert(unistd.fork())
    if pid == 0 then
      stdlib.setenv('LD_PRELOAD', preloaded)
      stdlib.setenv('LUA_PATH', package.path)
      unistd.execp('luajit', { helper.root .. '/spec/support/bundle_worker.lua', URL .. mode.query,
        scripts, number, tostring(ROUNDS), how })
      unistd._exit(127)
    end
    return pid
  end

  -- Four processes, two with each folder, count to the same number.
  local function count_together(scripts, mode, how)
    local number = path.join(folder, 'number')
    assert(utils.writefile(number, '0'))
    local pids, codes = {}, {}
    for i = 1, 4 do
      pids[i] = start(scripts[i % 2 + 1], number, mode, how)
    end
    for i, pid in ipairs(pids) do
      codes[i] = select(3, wait.wait(pid))
    end

    assert.same({ 0, 0, 0, 0 }, codes)
    assert.equal(tostring(4 * ROUNDS), utils.readfile(number))
    assert.equal(0, world.client:command('EXISTS', 'job'))
  end

  for _, mode in ipairs(MODES) do
    it('keep each other out, ' .. mode.what, function()
      local old = open(laid_out('old', helper.scripts), mode)
      local new = open(laid_out('new', newer()), mode)
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

    it('lose no count between four processes, ' .. mode.what, function()
      count_together({ laid_out('old', helper.scripts), laid_out('new', newer()) }, mode)
    end)
  end

  it('keep each other out where they differ in a major, as functions', function()
    local old, new = open(renamed(1), MODES[2]), open(renamed(2), MODES[2])
    local function acquire(client, owner)
      return client:eval('own/acquire', { 'job' }, { 30000, owner, 1 })
    end
    local function release(client, owner)
      return client:eval('own/release', { 'job' }, { 30000, owner, 0, 'freed', 'PUBLISH' })
    end

    for _, pair in ipairs({ { old, new }, { new, old } }) do
      assert.reply({ 1, 1 }, acquire(pair[1], 'lk-ann:1'))
      assert.reply({ 0, helper.about(30000) }, acquire(pair[2], 'lk-bob:1'))
      assert.reply({ -1 }, release(pair[2], 'lk-bob:1'))
      assert.reply({ 1, 0 }, release(pair[1], 'lk-ann:1'))
    end

    local reply = old:command('FUNCTION', 'LIST', 'LIBRARYNAME', 'own_acquire_*')
    assert.equal(2, reply.n)
    old:close()
    new:close()
  end)

  it('lose no count between four processes where they differ in a major, as functions', function()
    count_together({ renamed(1), renamed(2) }, MODES[2], 'own')

    local reply = world.client:command('FUNCTION', 'LIST', 'LIBRARYNAME', 'own_acquire_*')
    assert.equal(2, reply.n)
  end)
end)

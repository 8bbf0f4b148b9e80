-- SPDX-License-Identifier: Apache-2.0
local path = require('pl.path')
local signal = require('posix.signal')
local unistd = require('posix.unistd')
local utils = require('pl.utils')

local fleet = require('cli.fleet')
local narrow = require('cli.narrow')
local program = require('cli.program')
local session = require('cli.session')

local function load(...)
  return program.run({ 'load', ... })
end

local function json(...)
  local result = load('--json', ...)
  return program.decode(result.out), result.code
end

-- Does the program name this server and why?
local function names(result, server_url, why)
  local at = result.err:find('latchkey load: ' .. server_url, 1, true)
  return at and result.err:find(why, at, true) and true or false
end

local function scripts_in(server)
  return tonumber(server:command('INFO', 'memory'):match('number_of_cached_scripts:(%d+)'))
end

local function libraries_in(server)
  return select(2, server:command('FUNCTION', 'LIST'):gsub('library_name\n', ''))
end

-- The scripts of the project, counted by the program.
local function total()
  return #program.decode(program.run({ 'docs', '--json' }).out).pages - 1
end

local master, replica_of = fleet.server, fleet.replica_of

-- The URL of a server that loads no scripts.
local function stubborn_server(version)
  local at = program.folder() .. '/s'
  program.start_any('luajit', { program.root .. '/spec/cli/stubborn_server.lua', at, version })
  program.eventually('the server listens', function()
    return path.exists(at)
  end)
  return 'unix://' .. at
end

describe('latchkey load', function()
  after_each(program.clean)

  describe('into masters and replicas', function()
    it('loads the replicas of a master as well, and shows which they are', function()
      local server = master()
      local replica = replica_of(server)

      local document, code = json('--url', server.url)
      local status = program.run({ 'status', '--url', server.url })

      assert.equal(0, code)
      assert.equal(total(), scripts_in(server))
      assert.equal(total(), scripts_in(replica))
      assert.same({ 'master', 'replica' }, { document.nodes[1].role, document.nodes[2].role })
      assert.truthy(document.nodes[2].target:find(replica.port, 1, true))
      assert.equal(0, status.code)
      assert.truthy(status.out:find('127.0.0.1:' .. replica.port .. '%S* %(replica of unix:'))
    end)

    it('leaves replicas alone with --no-replicas', function()
      local server = master()
      local replica = replica_of(server)

      local result = load('--no-replicas', '--url', server.url)
      local status = program.run({ 'status', '--url', server.url })

      assert.equal(0, result.code)
      assert.equal(0, scripts_in(replica))
      -- What a replica lacks is shown; only a master that lacks some is a finding.
      assert.equal(0, status.code)
      assert.truthy(status.out:find('has none of', 1, true))
    end)

    it('takes a server once that is named and found', function()
      local server = master()
      local replica = replica_of(server)

      local document = json('--url', replica.url .. ' ' .. server.url .. ' ' .. server.url)

      assert.equal(2, #document.nodes)
    end)

    it('names a replica that cannot be reached, and loads its master', function()
      local server = master()
      replica_of(server, '--replica-announce-port', '1')

      local result = load('--url', server.url)

      assert.equal(2, result.code)
      assert.truthy(result.err:find('127.0.0.1:1', 1, true))
      assert.equal(total(), scripts_in(server))
    end)

    it('loads functions into the master alone, and waits until the replica has them', function()
      local server = master()
      local replica = replica_of(server)

      local document, code = json('--functions', '--url', server.url)

      assert.equal(0, code)
      assert.equal(total(), libraries_in(server))
      assert.equal(total(), libraries_in(replica))
      assert.equal(total(), document.nodes[2].loaded)
    end)

    it('names a replica that is to be given functions by itself', function()
      local server = master()
      local replica = replica_of(server)

      local alone = load('--functions', '--url', replica.url)
      load('--functions', '--url', server.url)
      local later = load('--functions', '--url', replica.url)

      assert.equal(69, alone.code)
      assert.truthy(alone.err:find('a replica gets functions from its master', 1, true))
      assert.equal(0, later.code)
    end)
  end)

  describe('in trouble', function()
    it('names a server whose ACL refuses, and the rest goes on', function()
      local server, other = program.server(), program.server()
      server:command('ACL', 'SETUSER', 'default', '-script|load')

      local result = load('--url', server.url .. ' ' .. other.url)

      assert.equal(2, result.code)
      assert.is_true(names(result, server.url, 'script'), result.err)
      assert.equal(total(), scripts_in(other))
      assert.equal(69, load('--url', server.url).code)
    end)

    it('loads for a user who may not ask what server it is', function()
      local server = program.server()
      server:command('ACL', 'SETUSER', 'default', '-info')

      local result = load('--url', server.url)

      assert.equal(0, result.code)
      assert.truthy(result.out:find(' %d+ scripts loaded, 0 were there'))
    end)

    it('names a server without memory for scripts, and the rest goes on', function()
      local other, stubborn = program.server(), stubborn_server('8.0.0')

      local result = load('--url', stubborn .. ' ' .. other.url)

      assert.equal(2, result.code)
      assert.is_true(names(result, stubborn, 'OOM'), result.err)
      assert.equal(total(), scripts_in(other))
    end)

    it('names a server that is too old for the scripts, and the rest goes on', function()
      local other, old = program.server(), stubborn_server('6.2.14')

      local result = load('--url', old .. ' ' .. other.url)

      assert.equal(2, result.code)
      assert.is_true(names(result, old, 'redis 6.2.14 is too old: scripts need 7.0.0'), result.err)
      assert.equal(total(), scripts_in(other))
    end)

    it('exits 64 for more servers than it goes over', function()
      local urls = {}
      for i = 1, 101 do
        urls[i] = 'unix:///nowhere/' .. i
      end

      assert.equal(64, load('--url', table.concat(urls, ' ')).code)
    end)

    it('names a server without memory for functions, and the rest goes on', function()
      local server, other = program.server('--maxmemory', '1'), program.server()

      local result = load('--functions', '--url', server.url .. ' ' .. other.url)

      assert.equal(2, result.code)
      assert.is_true(names(result, server.url, 'OOM'), result.err)
      assert.equal(total(), libraries_in(other))
    end)

    it('exits 69 when no server can be reached', function()
      local result = load('--url', 'unix:///nowhere/s unix:///nowhere/t')

      assert.equal(69, result.code)
      assert.truthy(result.err:find('unix:///nowhere/s', 1, true))
      assert.truthy(result.err:find('unix:///nowhere/t', 1, true))
    end)

    it('exits 64 for a URL that is none, and loads nothing', function()
      local server = program.server()

      local result = load('--url', server.url .. ' gopher://host')

      assert.equal(64, result.code)
      assert.equal(0, scripts_in(server))
    end)

    it('exits 64 for a folder without scripts, which is the wrong one', function()
      local server = program.server()

      local result = load('--url', server.url, '--dir', program.folder())

      assert.equal(64, result.code)
      assert.truthy(result.err:find('there are no scripts in', 1, true))
      assert.equal(0, scripts_in(server))
    end)

    it('shows no password of a server that cannot be reached', function()
      local result = load('--url', 'redis://user:hush@127.0.0.1:1/0')

      assert.equal(69, result.code)
      assert.falsy((result.out .. result.err):find('hush', 1, true))
    end)
  end)

  describe('that is stopped in the middle', function()
    local start, stopped, finish = narrow.start, narrow.stopped, narrow.finish

    it('names a server that started anew meanwhile, and the rest goes on', function()
      local server, other = program.server(), program.server()
      local process, pipe = start(server.url .. ' ' .. other.url)
      stopped(server, scripts_in)

      server:restart()
      local result, said = finish(process, pipe)

      assert.equal(2, result.code)
      assert.truthy(said:find('latchkey load: ' .. server.url, 1, true))
      assert.equal(total(), scripts_in(other))
      assert.equal(0, load('--url', server.url).code)
      assert.equal(total(), scripts_in(server))
    end)

    it('finds out that a server has forgotten what was loaded', function()
      local server = program.server()
      local process, pipe = start(server.url)
      stopped(server, scripts_in)

      server:command('SCRIPT', 'FLUSH')
      local result, said = finish(process, pipe)

      assert.equal(2, result.code)
      assert.truthy(said:find('are gone again', 1, true))
    end)

    it('goes on where it ended when it is killed and run again', function()
      for _, case in ipairs({ { count = scripts_in, words = {} },
        { count = libraries_in, words = { '--functions' } } }) do
        local server = program.server()
        local process, pipe = start(server.url, case.words[1])
        stopped(server, case.count)

        process:kill(signal.SIGKILL)
        process:wait()
        unistd.close(pipe)
        local there = case.count(server)
        local node = json('--url', server.url, unpack(case.words)).nodes[1]

        assert.is_true(there > 0 and there < total())
        assert.same({ stays = there, loaded = total() - there },
          { stays = node.stays, loaded = node.loaded })
      end
    end)
  end)

  it('shows on a terminal how far it is, and then what was done on each server', function()
    local server, other = program.server(), program.server()
    local count = total()
    local screen = session.start({ 'load', '--url', server.url .. ' ' .. other.url },
      { columns = 120 })

    program.eventually('the program ends', function()
      return screen.process:poll()
    end)
    screen.bytes = unistd.read(screen.master, 65536)
    local progress = ('\r%s?db=0: 0 of %d'):format(server.url, count)
    local at, last = screen.bytes:find(progress, 1, true)
    -- On a slow machine a longer line has come after the first one.
    local removed = screen.bytes:find('\r +\r', last)
    screen:interpret()
    local shown = screen:text():gsub('\n+$', '')
    screen:close()

    assert.equal(0, screen.process.result.code)
    assert.is_true(at == 1 and removed ~= nil)
    assert.equal(('%s?db=0 (master): %d scripts loaded, 0 were there\n'):format(server.url, count)
      .. ('%s?db=0 (master): %d scripts loaded, 0 were there'):format(other.url, count), shown)
  end)

  it('writes no progress where no terminal is', function()
    local server = program.server()

    local result = load('--url', server.url)

    assert.equal('', result.err)
    assert.equal(1, select(2, result.out:gsub('\n', '')))
  end)

  describe('from a bundle', function()
    local server, file

    before_each(function()
      server = program.server()
      file = program.folder() .. '/b.tar.gz'
      assert.equal(0, program.run({ 'bundle', '-o', file }).code)
    end)

    local function from(...)
      return load('--url', server.url, '--bundle', file, ...)
    end

    local function refuses(words, ...)
      local result = from(...)

      assert.equal(1, result.code)
      assert.truthy(result.err:find(words, 1, true), result.err)
      assert.equal(0, scripts_in(server))
      assert.equal(0, libraries_in(server))
    end

    it('loads what is in it, where the way that it came is trusted', function()
      local result = from('--allow-unsigned')

      assert.equal(0, result.code)
      assert.equal(total(), scripts_in(server))
    end)

    it('refuses one whose signature nobody looks at, and loads nothing', function()
      refuses('unsigned: integrity only')
    end)

    it('refuses one without the signature that is asked for, and loads nothing', function()
      local signers = program.folder() .. '/signers'
      assert(utils.writefile(signers, ''))

      refuses('there is no file ' .. file .. '.sig', '--allowed-signers', signers)
    end)

    it('refuses one that is damaged or cut off, and loads nothing', function()
      local bytes = utils.readfile(file, true)
      assert(utils.writefile(file, bytes:sub(1, 3000) .. 'x' .. bytes:sub(3002), true))
      refuses('is not the file that', '--allow-unsigned')

      os.remove(file .. '.sha256')
      refuses('damaged or cut off', '--allow-unsigned')
      refuses('damaged or cut off', '--allow-unsigned', '--functions')

      assert(utils.writefile(file, bytes:sub(1, -2), true))
      refuses('damaged or cut off', '--allow-unsigned')
      os.remove(file)
      refuses('there is no file', '--allow-unsigned')
    end)
  end)
end)

-- SPDX-License-Identifier: Apache-2.0
-- What tools/servers says where it can fetch nothing. That it fetches, `tools/test --matrix` shows.
local dir = require('pl.dir')
local path = require('pl.path')
local utils = require('pl.utils')

local workshop = require('support.workshop')

local lacks = workshop.lacks('apt-get', 'dpkg')
local it = not lacks and it or function(title)
  pending(title .. ': ' .. lacks)
end

local SERVERS = { 'redis-bookworm', 'valkey-bookworm', 'redict-bookworm', 'redis-trixie',
  'valkey-trixie', 'redis-sid', 'valkey-sid' }

describe('tools/servers', function()
  local home

  local function servers(arguments)
    local _, code, out, err = utils.executeex(
      ("LATCHKEY_DEBIAN_MIRROR='file://%s/archive' tools/servers --dir '%s' %s")
      :format(home, home, arguments))
    return code, out, err
  end

  local function keep(name, says)
    dir.makepath(home .. '/' .. name)
    local program = ('%s/%s/server'):format(home, name)
    utils.writefile(program, ("#!/bin/sh\necho '%s'\n"):format(says))
    assert.is_true((utils.execute('chmod +x ' .. program)))
    return program
  end

  before_each(function()
    home = path.tmpname()
    os.remove(home)
    dir.makepath(home .. '/archive')
  end)

  after_each(function()
    dir.rmtree(home)
  end)

  it('tells each server, with the suite that it is from', function()
    local code, out = servers('--list')

    assert.equal(0, code)
    for _, name in ipairs(SERVERS) do
      assert.matches('\n' .. name:gsub('%-', '%%-') .. '\t%l', '\n' .. out)
    end
  end)

  it('gives those that are there, and their versions', function()
    local redis = keep('redis-trixie', 'Redis server v=8.0.2 sha=00000000:0 malloc=jemalloc-5.3.0')
    local valkey = keep('valkey-sid', 'Valkey server v=9.0.1 sha=00000000:0')

    local code, out = servers('--kept redis-trixie valkey-sid')

    assert.equal(0, code)
    assert.equal(('redis-trixie\t%s\tRedis 8.0.2\nvalkey-sid\t%s\tValkey 9.0.1\n'):format(redis,
      valkey), out)
  end)

  it('looks for its folder where one stands', function()
    keep('redis-trixie', 'Redis server v=8.0.2 sha=00000000:0')

    local _, code, out = utils.executeex(("{ root=$PWD && cd '%s/archive' && "
      .. '"$root/tools/servers" --dir .. --kept redis-trixie; }'):format(home))

    assert.equal(0, code)
    assert.equal(('redis-trixie\t%s/redis-trixie/server\tRedis 8.0.2\n'):format(home), out)
  end)

  it('says which are not there, and fails', function()
    keep('redis-sid', 'Redis server v=8.4.0 sha=00000000:0')

    local code, out = servers('--kept')

    assert.equal(1, code)
    assert.matches('\nvalkey%-sid\t%-\tit was not fetched\n', out)
    assert.matches('\nredis%-sid\t/[^\n]+/redis%-sid/server\tRedis 8%.4%.0\n', out)
  end)

  it('takes nothing from an archive that nobody signed, and says so', function()
    local suite = home .. '/archive/dists/trixie'
    dir.makepath(suite .. '/main')
    utils.writefile(suite .. '/Release', 'Suite: trixie\nComponents: main\n')

    local code, out = servers('valkey-trixie')

    assert.equal(1, code)
    assert.matches('^valkey%-trixie\t%-\tThe repository .* is not signed%.\n$', out)
  end)

  it('keeps the server that is there where a newer one cannot be had', function()
    local program = keep('valkey-sid', 'Valkey server v=9.0.1 sha=00000000:0')

    local code, out = servers('--anew valkey-sid')

    assert.equal(1, code)
    assert.matches('^valkey%-sid\t%-\t.+', out)
    assert.is_true(path.exists(program) and true)
  end)

  it('makes a program that starts whatever its folder is called', function()
    local tree = workshop.new("ü's $x/a b")
    finally(function()
      tree:remove()
    end)
    tree:copy('tools/servers', 'tools/lib/quoted.sh', 'tools/lib/mirror.sh',
      'tools/lib/servers.tsv')
    tree:program('bin/apt-get', [[#!/bin/sh
      case "$*" in *install*) : >"$PWD/build/servers/redis-trixie/archives/a.deb" ;; esac
    ]])
    -- The loader says what it was called with.
    tree:program('bin/dpkg', [[#!/bin/sh
      mkdir -p "$3/usr/bin" "$3/usr/lib/x86_64-linux-gnu"
      : >"$3/usr/bin/redis-server"
      printf '#!/bin/sh\nprintf "Redis server v=%s"; printf "|%%s" "$@"\n' 8.0.2 \
        >"$3/usr/lib/ld-linux-x86-64.so.2"
      chmod +x "$3/usr/lib/ld-linux-x86-64.so.2"
    ]])

    local code, said = tree:run('LC_ALL=C LATCHKEY_DEBIAN_MIRROR=file:///none '
      .. 'PATH="$PWD/bin:$PATH" tools/servers redis-trixie; cat build/servers/redis-trixie.log')
    assert.equal(0, code)
    assert.matches('^redis%-trixie\t[^\t]*\tRedis 8%.0%.2', said)

    local own = tree.root .. '/build/servers/redis-trixie'
    code, said = tree:run('LC_ALL=C build/servers/redis-trixie/server --port "1 2"')
    assert.equal(0, code, said)
    assert.equal(('Redis server v=8.0.2|--library-path|%s/root/usr/lib/x86_64-linux-gnu|--argv0|'
      .. 'redis-server|%s/root/usr/bin/redis-server|--port|1 2'):format(own, own), said)
  end)

  it('refuses what it does not know', function()
    for _, wrong in ipairs({ 'memcached', '--fast', '--dir', '--dir a:b --kept' }) do
      local code, _, err = servers(wrong)

      assert.equal(64, code)
      assert.matches('usage: tools/servers', err, 1, true)
    end
  end)
end)

-- SPDX-License-Identifier: Apache-2.0
local nodes = require('latchkey.servers.nodes')

describe('the URL of a replica', function()
  it('is its address with what stands around that of the master', function()
    assert.equal('redis://10.0.0.2:6380', nodes.replica_url('redis://a:6379', '10.0.0.2', '6380'))
    assert.equal('rediss://u:p%40x@b:1/3?cacert=/c&sni=s',
      nodes.replica_url('rediss://u:p%40x@a:6379/3?cacert=/c&sni=s', 'b', '1'))
    assert.equal('redis://[::1]:1/', nodes.replica_url('redis://[::2]:6379/', '::1', '1'))
  end)

  it('of a master that Sentinel names, has nothing in it that is for the sentinels', function()
    local url = 'rediss-sentinel://u:p@s1:1,s2/main/3'
      .. '?sentinel_user=s&tls_min=1.3&sentinel_password=x'

    assert.equal('rediss://u:p@b:1/3?tls_min=1.3', nodes.replica_url(url, 'b', '1'))
    assert.equal('redis://b:1', nodes.replica_url('redis-sentinel://s1/main', 'b', '1'))
    assert.equal('redis://b:1', nodes.replica_url('redis-sentinel://s1/main?sentinel_user=s', 'b',
      '1'))
  end)

  it('of a master at a socket, is reached by TCP', function()
    assert.equal('redis://127.0.0.1:6380', nodes.replica_url('unix:///tmp/s', '127.0.0.1', '6380'))
  end)

  it('of a master at a socket, has its user and password', function()
    assert.equal('redis://u:p%40x@b:1', nodes.replica_url('unix://u:p%40x@/tmp/s?db=3', 'b', '1'))
    assert.equal('redis://:p@b:1', nodes.replica_url('unix://:p@/tmp/s', 'b', '1'))
    assert.equal('redis://b:1', nodes.replica_url('unix:///tmp/a@b', 'b', '1'))
  end)
end)

describe('the servers of a call', function()
  local latchkey, opened, servers

  -- Servers by address: { id, role, replicas }; what two addresses lead to is the same table.
  local function client_of(url)
    local server = servers[url:match('//([^/?]+)')]
    opened[#opened + 1] = url
    if not server then
      return nil, { status = 'LK_INVALID', message = 'the URL is wrong' }
    end
    assert(#opened < 50, 'it goes on and on')
    local client = { url = url }
    function client.close()
      client.is_closed = true
    end
    function client.nodes()
      return {}
    end
    function client.target()
      return url
    end
    function client.command(_, _, section)
      if section == 'server' then
        return ('redis_version:7.0.15\r\nrun_id:%s\r\n'):format(server.id)
      end
      local lines = { 'role:' .. server.role, 'connected_slaves:' .. #server.replicas }
      for i, address in ipairs(server.replicas) do
        lines[#lines + 1] = ('slave%d:ip=%s,port=%s,state=online'):format(i - 1,
          address:match('^(.*):(%d+)$'))
      end
      return table.concat(lines, '\r\n')
    end
    opened[url] = client
    return client
  end

  before_each(function()
    opened = {}
    latchkey, package.loaded.latchkey = package.loaded.latchkey, { open = client_of }
  end)

  after_each(function()
    package.loaded.latchkey = latchkey
  end)

  local function open(url)
    return assert(nodes.open({ args = { url = url }, command = 'status', exit_of = function(status)
      return status
    end }))
  end

  it('are opened once where the address of a replica leads back to its master', function()
    local master = { id = 'm', role = 'master', replicas = { '10.0.0.1:6379' } }
    servers = { ['a:1'] = master, ['10.0.0.1:6379'] = master }

    local list = open('redis://a:1')

    assert.equal(2, #opened)
    assert.is_nil(list[1].err)
    assert.same({ 'redis://10.0.0.1:6379', 'replica', 'LK_UNREACHABLE',
      'the address that its master has of it leads to redis://a:1' },
      { list[2].target, list[2].role, list[2].err.status, list[2].err.message })
    assert.is_true(opened['redis://10.0.0.1:6379'].is_closed)
    assert.is_nil(list[3])
  end)

  it('are opened once where the address of a replica leads to another master', function()
    local master = { id = 'm', role = 'master', replicas = { 'b:1' } }
    servers = { ['a:1'] = master, ['b:1'] = { id = 'n', role = 'master', replicas = { 'b:1' } } }

    local list = open('redis://b:1 redis://a:1')

    assert.equal(4, #list)
    assert.is_nil(list[1].err or list[2].err)
    assert.equal('redis://b:1', list[3].of.target)
    assert.equal('redis://a:1', list[4].of.target)
    assert.truthy(list[3].err.message:find('leads to redis://b:1', 1, true))
  end)

  it('are all there where a replica has an address that is none', function()
    servers = { ['a:1'] = { id = 'm', role = 'master', replicas = { '\27[2J x:1', 'c:1' } },
      ['c:1'] = { id = 'r', role = 'slave', replicas = {} } }

    local list = open('redis://a:1')

    assert.equal(3, #list)
    assert.same({ 'LK_INVALID', 'redis://\\x1b[2J x:1 (replica of redis://a:1)' },
      { list[2].err.status, nodes.title(list[2]) })
    assert.equal('redis://c:1', list[3].target)
  end)

  it('are not left open under a second name', function()
    local replica = { id = 'r', role = 'slave', replicas = {} }
    servers = { ['a:1'] = { id = 'm', role = 'master', replicas = { 'c:1' } }, ['b:1'] = replica,
      ['c:1'] = replica }

    local list = open('redis://b:1 redis://a:1')

    assert.equal(2, #list)
    assert.is_nil(list[1].err or list[2].err)
    assert.is_nil(opened['redis://b:1'].is_closed or opened['redis://a:1'].is_closed)
    assert.is_true(opened['redis://c:1'].is_closed)
  end)
end)

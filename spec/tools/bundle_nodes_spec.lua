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

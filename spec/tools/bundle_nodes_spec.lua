-- SPDX-License-Identifier: Apache-2.0
local nodes = require('bundle.nodes')

describe('the URL of a replica', function()
  it('is its address with what stands around that of the master', function()
    assert.equal('redis://10.0.0.2:6380', nodes.replica_url('redis://a:6379', '10.0.0.2', '6380'))
    assert.equal('rediss://u:p%40x@b:1/3?cacert=/c&sni=s',
      nodes.replica_url('rediss://u:p%40x@a:6379/3?cacert=/c&sni=s', 'b', '1'))
    assert.equal('redis://[::1]:1/', nodes.replica_url('redis://[::2]:6379/', '::1', '1'))
  end)

  it('of a master at a socket, is reached by TCP', function()
    assert.equal('redis://127.0.0.1:6380', nodes.replica_url('unix:///tmp/s', '127.0.0.1', '6380'))
  end)
end)

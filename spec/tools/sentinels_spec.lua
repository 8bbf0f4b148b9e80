-- SPDX-License-Identifier: Apache-2.0
local sentinels = require('latchkey.doctor.sentinels')

describe('the URLs of sentinels', function()
  it('have the user and password for them, and not those of the master', function()
    local urls, name = sentinels.urls(
      'redis-sentinel://app:p@s1:1,s2/ma%2Fin/3?sentinel_user=s&sentinel_password=%40x&connect=1s')

    assert.same({ 'redis://s:%40x@s1:1?connect=1s', 'redis://s:%40x@s2:26379?connect=1s' }, urls)
    assert.equal('ma/in', name)
  end)

  it('need none of both', function()
    local urls = sentinels.urls('rediss-sentinel://s1,[::1]:7/main?functions=1&cacert=/c')

    assert.same({ 'rediss://s1:26379?cacert=/c', 'rediss://[::1]:7?cacert=/c' }, urls)
  end)
end)

-- SPDX-License-Identifier: Apache-2.0
local address = require('latchkey.mock.address')

describe('an address of the mock', function()
  for url, place in pairs({
    ['redis://127.0.0.1:6380'] = { host = '127.0.0.1', shown = '127.0.0.1', port = 6380 },
    ['redis://127.0.0.1'] = { host = '127.0.0.1', shown = '127.0.0.1', port = 0 },
    ['redis://localhost:65535/0'] = { host = '127.0.0.1', shown = '127.0.0.1', port = 65535 },
    ['redis://localhost:1/'] = { host = '127.0.0.1', shown = '127.0.0.1', port = 1 },
    ['redis://[::1]:7000'] = { host = '::1', shown = '[::1]', port = 7000 },
    ['redis://:a%20b@[::1]'] = { host = '::1', shown = '[::1]', port = 0, password = 'a b' },
    ['redis://default:x@y@localhost:2'] = { host = '127.0.0.1', shown = '127.0.0.1', port = 2,
      password = 'x@y' },
    ['unix:///run/a%20b.sock'] = { path = '/run/a b.sock' },
    ['unix:/run/a.sock'] = { path = '/run/a.sock' },
    ['unix:///' .. ('x'):rep(106)] = { path = '/' .. ('x'):rep(106) },
  }) do
    it('is read: ' .. url, function()
      assert.same({ place }, { address.read(url) })
    end)
  end

  for url, why in pairs({
    ['redis://127.0.0.1:65536'] = '"65536" is no port',
    ['redis://127.0.0.1:x'] = 'behind the host stands no port',
    ['redis://127.0.0.1:1x'] = 'behind the host stands no port',
    ['redis://10.0.0.1:1'] = 'not on "10.0.0.1": whoever reaches it may move its time',
    ['redis://[::2]'] = 'not on "[::2]"',
    ['redis://'] = 'not on ""',
    ['redis://127.0.0.1?db=0'] = 'no options behind a "?"',
    ['redis://127.0.0.1/1'] = 'the mock has database 0 alone',
    ['redis://127.0.0.1:1/00'] = 'the mock has database 0 alone',
    ['redis://joe:x@127.0.0.1'] = 'the mock knows one user',
    ['redis://@127.0.0.1'] = 'the mock knows one user',
    ['redis://default@127.0.0.1'] = 'the mock knows one user',
    ['rediss://127.0.0.1'] = 'write redis://127.0.0.1:PORT or unix:///PATH',
    ['unix:a'] = 'write redis://127.0.0.1:PORT or unix:///PATH',
    ['unix:/'] = 'write redis://127.0.0.1:PORT or unix:///PATH',
    ['unix://a'] = 'write redis://127.0.0.1:PORT or unix:///PATH',
    ['unix:///a?b'] = 'write redis://127.0.0.1:PORT or unix:///PATH',
    ['unix:///a%00b'] = 'no NUL byte',
    ['unix:///' .. ('x'):rep(107)] = 'at most 107 bytes',
  }) do
    it('is refused: ' .. url, function()
      local place, said = address.read(url)

      assert.is_nil(place)
      assert.truthy(said:find(why, 1, true), said)
    end)
  end

  it('is written as clients take it', function()
    assert.equal('unix:///run/a%20b%25.sock', address.url({ path = '/run/a b%.sock' }))
    assert.equal('redis://127.0.0.1:7', address.url({ shown = '127.0.0.1' }, 7))
    assert.equal('redis://default:a%2Fb%40@[::1]:7',
      address.url({ shown = '[::1]', password = 'a/b@' }, 7))
  end)
end)

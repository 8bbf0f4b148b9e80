-- SPDX-License-Identifier: Apache-2.0
local poll = require('posix.poll')
local resource = require('posix.sys.resource')
local socket = require('posix.sys.socket')
local stat = require('posix.sys.stat')
local stdlib = require('posix.stdlib')
local unistd = require('posix.unistd')

local Front = require('latchkey.mock.front')
local Listener = require('latchkey.mock.listener')
local World = require('latchkey.mock.world')
local address = require('latchkey.mock.address')

describe('a listener', function()
  local folder, path, where
  local opened = {}

  before_each(function()
    folder = assert(stdlib.mkdtemp((os.getenv('TMPDIR') or '/tmp') .. '/latchkey-mock.XXXXXX'))
    path = folder .. '/socket'
    where = { family = socket.AF_UNIX, path = path }
  end)

  after_each(function()
    for _, fd in ipairs(opened) do
      unistd.close(fd)
    end
    opened = {}
    unistd.unlink(path)
    unistd.rmdir(folder)
  end)

  local function new_socket()
    local fd = assert(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0))
    opened[#opened + 1] = fd
    return fd
  end

  it('leaves a socket that has come in the place of its own', function()
    local first = assert(Listener.open({ { path = path } }))
    assert(unistd.unlink(path))
    local second = assert(Listener.open({ { path = path } }))

    first:close()
    assert.truthy(stat.stat(path))
    second:close()
    assert.is_nil(stat.stat(path))
  end)

  for host, family in pairs({ ['127.0.0.1'] = socket.AF_INET, ['[::1]'] = socket.AF_INET6 }) do
    it('takes connections on ' .. host, function()
      local place = assert(address.read(('redis://%s:0'):format(host)))
      local listener = assert(Listener.open({ place }))
      local port = tonumber(listener.urls[1]:match(':(%d+)$'))
      local fd = assert(socket.socket(family, socket.SOCK_STREAM, 0))
      opened[#opened + 1] = fd

      assert(socket.connect(fd, { family = family, addr = place.host, port = port }))
      listener:close()
    end)
  end

  it('does not wait for a server whose queue is full', function()
    local fd = new_socket()
    assert(socket.bind(fd, where))
    assert(socket.listen(fd, 0))
    assert(socket.connect(new_socket(), where))

    local listener, why = Listener.open({ { path = path } })

    assert.is_nil(listener)
    assert.truthy(why:find('another server answers there', 1, true), why)
  end)

  -- A listener and a client, which has sent this.
  local function with_client(bytes)
    local listener, client = assert(Listener.open({ { path = path } })), new_socket()
    assert(socket.connect(client, where))
    assert(socket.send(client, bytes))
    return listener, client
  end

  it('sends all of an answer, also where a socket takes but a part of it', function()
    local listener, client = with_client('PING\r\n')
    local own = socket.send
    function socket.send(fd, bytes)
      return own(fd, bytes:sub(1, math.max(#bytes - 1, 1)))
    end
    listener:watch(client, function()
      listener:stop()
    end)
    local good, why = pcall(listener.run, listener, Front.new({ world = World.new() }))
    socket.send = own

    assert(good, why)
    assert.equal('+PONG\r\n', socket.recv(client, 100))
    listener:close()
  end)

  it('waits until something is due, and not at all where that is past', function()
    local listener, front = assert(Listener.open({ { path = path } })), Front.new({
      world = World.new(), flows = true })
    local own, waits, due_ms = poll.poll, {}, { 5000, -5000, false }
    front.flows = true
    function front.due_ms()
      local ms = due_ms[#waits + 1]
      return ms and front:now_ms() + ms or nil
    end
    function poll.poll(_, timeout)
      waits[#waits + 1] = timeout
      if #waits == #due_ms then
        listener:stop()
      end
      return 0
    end
    local good, why = pcall(listener.run, listener, front)
    poll.poll = own
    listener:close()

    assert(good, why)
    assert.same({ 5000, 0, -1 }, waits)
  end)

  -- How long it waits each time, while there is a client and no descriptor for it.
  local function waits_without_descriptors(listener, count)
    local front, own, waits = Front.new({ world = World.new() }), poll.poll, {}
    function poll.poll(fds, timeout)
      waits[#waits + 1] = timeout
      if #waits == count then
        listener:stop()
      end
      return own(fds, timeout)
    end
    local limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert(resource.setrlimit(resource.RLIMIT_NOFILE, { rlim_cur = 3, rlim_max = limit.rlim_max }))
    local good, why = pcall(listener.run, listener, front)
    assert(resource.setrlimit(resource.RLIMIT_NOFILE, limit))
    poll.poll = own
    assert(good, why)
    return waits
  end

  it('rests where there are no descriptors, and takes who waited when there are', function()
    local listener = assert(Listener.open({ { path = path } }))
    local client = new_socket()
    assert(socket.connect(client, where))
    assert(socket.send(client, 'PING\r\n'))

    assert.same({ -1, 100, -1, 100 }, waits_without_descriptors(listener, 4))

    listener.stopped = nil
    listener:watch(client, function()
      listener:stop()
    end)
    listener:run(Front.new({ world = World.new() }))
    assert.equal('+PONG\r\n', socket.recv(client, 100))
    listener:close()
  end)
end)

-- SPDX-License-Identifier: Apache-2.0
-- tools/interop and its driver, without a Redisson: against interfaces of the same shape, whose
-- locks are always free and whose unlocks fail.
local dir = require('pl.dir')
local path = require('pl.path')
local utils = require('pl.utils')

local helper = require('helper')
local workshop = require('support.workshop')

local MS = ', java.util.concurrent.TimeUnit unit)'

-- What the driver calls, as Redisson's interface has it.
local STUBS = {
  ['org/redisson/Redisson'] = [[
    public class Redisson {
      public static org.redisson.api.RedissonClient create(org.redisson.config.Config config) {
        return (org.redisson.api.RedissonClient) of(org.redisson.api.RedissonClient.class);
      }
      static Object of(Class<?> type) {
        return java.lang.reflect.Proxy.newProxyInstance(type.getClassLoader(),
            new Class<?>[] {type}, (self, method, arguments) -> {
              if (method.getReturnType().isInterface()) return of(method.getReturnType());
              if (method.getName().equals("tryLock")) return true;
              if (method.getName().equals("getHoldCount")) return 2;
              if (method.getName().equals("await")) Thread.sleep(60000);
              if (method.getReturnType() == String.class) return null;
              throw new IllegalMonitorStateException("not\n locked");
            });
      }
    }]],
  ['org/redisson/config/Config'] = [[
    public class Config {
      public Config setCodec(Object codec) { return this; }
      public SingleServerConfig useSingleServer() { return new SingleServerConfig(); }
      public Config setLockWatchdogTimeout(long ms) { return this; }
    }]],
  ['org/redisson/config/SingleServerConfig'] = [[
    public class SingleServerConfig {
      public SingleServerConfig setAddress(String address) { return this; }
    }]],
  ['org/redisson/client/codec/Codec'] = 'public interface Codec {}',
  ['org/redisson/client/codec/StringCodec'] = [[
    public class StringCodec implements Codec {
      public static final StringCodec INSTANCE = new StringCodec();
    }]],
  ['org/redisson/api/RedissonClient'] = [[
    public interface RedissonClient {
      RLock getLock(String name); RLock getSpinLock(String name); RLock getFairLock(String name);
      RReadWriteLock getReadWriteLock(String name); RLock getMultiLock(RLock... locks);
      <V> RBucket<V> getBucket(String name, org.redisson.client.codec.Codec codec);
      RSemaphore getSemaphore(String name); RCountDownLatch getCountDownLatch(String name);
      RPermitExpirableSemaphore getPermitExpirableSemaphore(String name);
    }]],
  ['org/redisson/api/RLock'] = [[
    public interface RLock {
      boolean tryLock(long wait, long lease]] .. MS .. [[ throws InterruptedException;
      java.util.concurrent.Future<Boolean> tryLockAsync(long wait, long lease]] .. MS .. [[;
      boolean tryLock(); boolean isLocked(); void lock();
      void lock(long lease]] .. MS .. [[; void unlock(); int getHoldCount(); boolean forceUnlock();
    }]],
  ['org/redisson/api/RBucket'] = 'public interface RBucket<V> { V get(); void set(V value); }',
  ['org/redisson/api/RReadWriteLock'] = [[
    public interface RReadWriteLock { RLock readLock(); RLock writeLock(); }]],
  ['org/redisson/api/RSemaphore'] = [[
    public interface RSemaphore {
      boolean trySetPermits(int permits); boolean tryAcquire(int permits); int availablePermits();
      void acquire() throws InterruptedException; void release();
      void acquire(int permits) throws InterruptedException; void release(int permits);
    }]],
  ['org/redisson/api/RPermitExpirableSemaphore'] = [[
    public interface RPermitExpirableSemaphore {
      boolean trySetPermits(int permits); boolean tryRelease(String id); int availablePermits();
      String tryAcquire(long wait, long lease]] .. MS .. [[ throws InterruptedException;
      String acquire(long lease]] .. MS .. [[ throws InterruptedException;
      String acquire() throws InterruptedException; void release(String id);
    }]],
  ['org/redisson/api/RCountDownLatch'] = [[
    public interface RCountDownLatch {
      boolean trySetCount(long count); void countDown(); long getCount();
      void await() throws InterruptedException;
    }]],
}

local function run(format, ...)
  local words = { ... }
  for i, word in ipairs(words) do
    words[i] = utils.quote_arg(word)
  end
  local _, code, out, err = utils.executeex(('cd %s && ' .. format):format(
    utils.quote_arg(helper.root), unpack(words)))
  return code, out, err
end

local function is_there(program)
  return (run('command -v %s', program)) == 0
end

describe('tools/interop', function()
  it('shows its use, with the exit codes', function()
    local code, out = run('tools/interop --help')

    assert.equal(0, code)
    assert.matches('^usage: tools/interop %-%-jar FILE', out)
    assert.matches('exit codes  0 .* 1 .* 64 .* 69 ', out)
  end)

  for _, case in ipairs({
    { 'no jar', '' },
    { 'a jar that is not there', '--jar /nowhere.jar' },
    { 'an unknown option', '--jar tools/interop --fast' },
    { 'a port that is none', '--jar tools/interop --port many' },
    { 'a build that is not there', '--jar tools/interop --build-dir /nowhere' },
  }) do
    it(('refuses %s as wrong use'):format(case[1]), function()
      local code, out, err = run('tools/interop ' .. case[2])

      assert.equal(64, code)
      assert.equal('', out)
      assert.matches('^interop: .*\nusage: ', err)
    end)
  end

  describe('in a tree of its own', function()
    local tree

    -- Java says what it was called with; busted does what the case says, beside a server or not.
    local function prepare(busted, with_server)
      tree:copy('tools/interop', 'tools/lib/quoted.sh')
      tree:write('build/liblatchkey.so', '')
      tree:write("my 'jars'/ü 1.jar", '')
      tree:write('my jar', '')
      for _, name in ipairs({ 'javac', 'busted', 'redis-server' }) do
        tree:program('bin/' .. name, '#!/bin/sh\n')
      end
      tree:program('bin/java', '#!/bin/sh\nprintf "%s|" "$@" >>called; echo >>called; echo 4.7\n')
      tree:program('bin/luajit', '#!/bin/sh\n' .. busted .. '\n')
      tree:program('tools/lib/test/with_server.sh', '#!/bin/sh\n' .. (with_server or 'exec "$@"'))
    end

    local function interop(words)
      return tree:run('LC_ALL=C PATH="$PWD/bin:$PATH" tools/interop ' .. words)
    end

    before_each(function()
      tree = workshop.new()
    end)

    after_each(function()
      tree:remove()
    end)

    it('has jars whatever their folders are called', function()
      prepare('sh -c "$LATCHKEY_REDISSON_DRIVER" >/dev/null; echo "ok 1 - it agrees"')

      local code, said = interop([[--jar "my 'jars'/ü 1.jar" --jar "my jar" --port 7000]])

      assert.equal(0, code, said)
      local class_path = (":%s/my 'jars'/ü 1.jar:%s/my jar|RedissonDriver|redis://127.0.0.1:")
        :format(tree.root, tree.root)
      local calls = tree:read('called')
      assert.equal(3, select(2, calls:gsub('\n', '')))
      for call in calls:gmatch('[^\n]+') do
        assert.truthy(call:find(class_path, 1, true), call)
      end
    end)

    it('says that its server could not be started', function()
      prepare('echo "ok 1 - it agrees"', 'echo "Address already in use" >&2; exit 1')

      for _, only in ipairs({ '', ' --only lock' }) do
        local code, said = interop('--jar "my jar" --port 7000' .. only)

        assert.equal(69, code, said)
        assert.matches('Address already in use\n', said)
        assert.matches('\ninterop: no server could be started at port 7000, as it says above', said)
      end
    end)

    it('says that no scenario is called so', function()
      prepare('exit 0')

      local code, said = interop('--jar "my jar" --only nosuch')

      assert.equal(64, code, said)
      assert.matches("interop: no scenario's name matches nosuch\n", said)
    end)

    it('fails where no scenario was run', function()
      prepare('exit 3')

      local code, said = interop('--jar "my jar"')

      assert.equal(1, code, said)
      assert.matches('\ninterop: no scenario was run', said)
    end)

    it('fails where one does not agree', function()
      prepare('echo "not ok 1 - it agrees"; exit 1')

      assert.equal(1, (interop('--jar "my jar"')))
    end)
  end)

  local name = 'compiles its driver against Redisson\'s interface, and has it called line by line'
  if not (is_there('javac') and is_there('java')) then
    pending(name .. ': javac is not installed')
    return
  end

  it(name, function()
    local folder = os.tmpname()
    os.remove(folder)
    local sources = {}
    for class, text in pairs(STUBS) do
      local file = path.join(folder, class .. '.java')
      dir.makepath(path.dirname(file))
      utils.writefile(file, ('package %s;\n%s\n'):format(
        path.dirname(class):gsub('/', '.'), text))
      sources[#sources + 1] = file
    end
    table.sort(sources)
    table.insert(sources, 'tools/lib/interop/RedissonDriver.java')
    local code, _, err = run('javac -Xlint:all -Werror -d %s' .. (' %s'):rep(#sources), folder,
      unpack(sources))
    assert.equal(0, code, err)

    local calls = '1\tlock\ttry_lock\tjob\t30000\n1\tread\thold_count\tjob\n'
      .. '1\tfair\tunlock\tjob\n1\tpermit\ttry_acquire\tjob\t30000\n1\tnone\tlock\tjob\n'
      .. '1\tlock\tnone\tjob\nbegin\t2\tcountdown\twait\tjob\nawait\t2\t10\nversion\nlacks\n'
      .. '1\tfenced\tlock\tjob\n'
    local _, out = run('printf %s | timeout 60 java -cp %s RedissonDriver redis://127.0.0.1:1',
      calls, folder)
    dir.rmtree(folder)

    assert.equal('= 1\n= 2\n! java.lang.IllegalMonitorStateException: not locked\n= nil\n'
      .. '! java.lang.IllegalArgumentException: no kind is called none\n'
      .. '! java.lang.IllegalArgumentException: a lock has no none\n= begun\n'
      .. '! no answer in time\n= null\n= fenced\n'
      .. '! java.lang.UnsupportedOperationException: this Redisson has no fenced locks\n', out)
  end)
end)

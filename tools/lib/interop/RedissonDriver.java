// SPDX-License-Identifier: Apache-2.0
// Calls a real Redisson as it is told on standard input, a call a line, its words between tabs:
//   THREAD KIND METHOD NAME ARGUMENT...   runs it on that thread: "= VALUE", or "! WHY"
//   begin THREAD KIND METHOD ...          starts it there, and answers "= begun" at once
//   await THREAD MS                       what the call that was begun there answered
//   version                               Redisson's
//   lacks                                 the kinds that this version does not have; nil: none
// Started with the server's address and, if it is not Redisson's default, the watchdog's lease in
// milliseconds; with --version instead, it says Redisson's and ends. Locks belong to threads, so each THREAD is one of its own; each name has one object,
// as applications keep it. Times are microseconds since 1970. Ids of permits are in hexadecimal.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.redisson.Redisson;
import org.redisson.api.RBucket;
import org.redisson.api.RCountDownLatch;
import org.redisson.api.RLock;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RSemaphore;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.Config;

public final class RedissonDriver {
  private static final TimeUnit MS = TimeUnit.MILLISECONDS;
  private static final long CALL_MS = 100000;

  private final RedissonClient client;
  private final Map<String, Object> objects = new ConcurrentHashMap<>();
  private final Map<String, ExecutorService> threads = new HashMap<>();
  private final Map<String, Future<String>> begun = new HashMap<>();

  private RedissonDriver(RedissonClient client) {
    this.client = client;
  }

  public static void main(String[] arguments) throws Exception {
    if (arguments.length > 1 && arguments[1].equals("--version")) {
      System.out.println(version());
      return;
    }
    Config config = new Config();
    config.setCodec(StringCodec.INSTANCE);
    config.useSingleServer().setAddress(arguments[0]);
    if (arguments.length > 1) {
      config.setLockWatchdogTimeout(Long.parseLong(arguments[1]));
    }
    RedissonDriver driver = new RedissonDriver(connect(config));
    BufferedReader calls =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = calls.readLine(); line != null; line = calls.readLine()) {
      System.out.println(driver.answer(line.split("\t")));
      System.out.flush();
    }
    System.exit(0);
  }

  // Some versions, 3.49.0 among them, draw the pace of their timer, and fail where it comes to 0 ms.
  private static RedissonClient connect(Config config) {
    for (int tries = 1; ; tries++) {
      try {
        return Redisson.create(config);
      } catch (IllegalArgumentException why) {
        if (tries == 5) {
          throw why;
        }
      }
    }
  }

  private String answer(String[] words) {
    try {
      switch (words[0]) {
        case "version":
          return "= " + version();
        case "lacks":
          return "= " + (fencedClass() == null ? "fenced" : "nil");
        case "begin":
          begun.put(words[1], start(Arrays.copyOfRange(words, 1, words.length)));
          return "= begun";
        case "await":
          return "= " + begun.remove(words[1]).get(Long.parseLong(words[2]), MS);
        default:
          return "= " + start(words).get(CALL_MS, MS);
      }
    } catch (ExecutionException why) {
      return "! " + oneLine(why.getCause());
    } catch (TimeoutException why) {
      return "! no answer in time";
    } catch (Exception why) {
      return "! " + oneLine(why);
    }
  }

  private static String version() {
    return Redisson.class.getPackage().getImplementationVersion();
  }

  private static String oneLine(Throwable why) {
    return String.valueOf(why).replaceAll("\\s+", " ");
  }

  private Future<String> start(String[] words) {
    ExecutorService thread =
        threads.computeIfAbsent(words[0], label -> Executors.newSingleThreadExecutor());
    String[] arguments = Arrays.copyOfRange(words, 4, words.length);
    return thread.submit(() -> text(call(words[1], words[2], words[3], arguments)));
  }

  private static String text(Object value) {
    if (value instanceof Boolean) {
      return (Boolean) value ? "1" : "0";
    }
    return value == null ? "nil" : value.toString();
  }

  private static long nowUs() {
    return ChronoUnit.MICROS.between(Instant.EPOCH, Instant.now());
  }

  // ------------------------------------------------------------------------------------ objects

  private Object open(String kind, String name) {
    switch (kind) {
      case "lock":
        return client.getLock(name);
      case "spin":
        return client.getSpinLock(name);
      case "fair":
        return client.getFairLock(name);
      case "fenced":
        return fencedLock(name);
      case "read":
        return client.getReadWriteLock(name).readLock();
      case "write":
        return client.getReadWriteLock(name).writeLock();
      case "multi":
        return multiLock(name.split(","));
      case "semaphore":
        return client.getSemaphore(name);
      case "permit":
        return client.getPermitExpirableSemaphore(name);
      case "countdown":
        return client.getCountDownLatch(name);
      default:
        throw new IllegalArgumentException("no kind is called " + kind);
    }
  }

  private RLock multiLock(String[] names) {
    RLock[] members = new RLock[names.length];
    for (int i = 0; i < names.length; i++) {
      members[i] = client.getLock(names[i]);
    }
    return client.getMultiLock(members);
  }

  // Fenced locks came with Redisson 3.18, so nothing here names their class.
  private static Class<?> fencedClass() {
    try {
      return Class.forName("org.redisson.api.RFencedLock");
    } catch (ClassNotFoundException none) {
      return null;
    }
  }

  private RLock fencedLock(String name) {
    try {
      return (RLock) RedissonClient.class.getMethod("getFencedLock", String.class)
          .invoke(client, name);
    } catch (ReflectiveOperationException why) {
      throw new UnsupportedOperationException("this Redisson has no fenced locks", why);
    }
  }

  private static Object fencedToken(RLock lock, long leaseMs) throws ReflectiveOperationException {
    return fencedClass()
        .getMethod("tryLockAndGetToken", long.class, long.class, TimeUnit.class)
        .invoke(lock, 0L, leaseMs, MS);
  }

  // -------------------------------------------------------------------------------------- calls

  private Object call(String kind, String method, String name, String[] arguments)
      throws Exception {
    Object object = objects.computeIfAbsent(kind + " " + name, key -> open(kind, name));
    if (object instanceof RSemaphore) {
      return semaphore((RSemaphore) object, method, arguments);
    } else if (object instanceof RPermitExpirableSemaphore) {
      return permit((RPermitExpirableSemaphore) object, method, arguments);
    } else if (object instanceof RCountDownLatch) {
      return countdown((RCountDownLatch) object, method, arguments);
    }
    return lock((RLock) object, method, arguments);
  }

  // Without a lease the watchdog renews.
  private static void take(RLock lock, String[] arguments) {
    if (arguments.length > 0) {
      lock.lock(Long.parseLong(arguments[0]), MS);
    } else {
      lock.lock();
    }
  }

  private Object lock(RLock lock, String method, String[] arguments) throws Exception {
    switch (method) {
      case "try_lock":
        return arguments.length > 0
            ? lock.tryLock(0, Long.parseLong(arguments[0]), MS) : lock.tryLock();
      case "lock":
        take(lock, arguments);
        return true;
      case "lock_at":
        take(lock, arguments);
        return nowUs();
      case "try_for":
        return lock.tryLock(Long.parseLong(arguments[0]), Long.parseLong(arguments[1]), MS);
      case "try_async":
        return lock.tryLockAsync(Long.parseLong(arguments[0]), Long.parseLong(arguments[1]), MS)
            .get();
      case "try_lock_and_get_token":
        return fencedToken(lock, Long.parseLong(arguments[0]));
      case "unlock":
        lock.unlock();
        return true;
      case "unlock_at":
        long at = nowUs();
        lock.unlock();
        return at;
      case "storm":
        return storm(lock, arguments[0], Long.parseLong(arguments[1]), Long.parseLong(arguments[2]));
      case "hold_count":
        return lock.getHoldCount();
      case "is_locked":
        return lock.isLocked();
      case "force_unlock":
        return lock.forceUnlock();
      default:
        throw new IllegalArgumentException("a lock has no " + method);
    }
  }

  // Takes the lock again and again, and raises a number by a step that is not indivisible: so many
  // times, and how long the longest of its waits was.
  private String storm(RLock lock, String counter, long forMs, long holdMs)
      throws InterruptedException {
    RBucket<String> number = client.getBucket(counter, StringCodec.INSTANCE);
    long endUs = nowUs() + forMs * 1000;
    long taken = 0;
    long longestUs = 0;
    while (nowUs() < endUs) {
      long askedUs = nowUs();
      lock.lock();
      longestUs = Math.max(longestUs, nowUs() - askedUs);
      String before = number.get();
      Thread.sleep(holdMs);
      number.set(String.valueOf(before == null ? 1 : Long.parseLong(before) + 1));
      lock.unlock();
      taken++;
    }
    return taken + " " + longestUs;
  }

  private static Object semaphore(RSemaphore semaphore, String method, String[] arguments)
      throws InterruptedException {
    int permits = arguments.length > 0 ? Integer.parseInt(arguments[0]) : 1;
    switch (method) {
      case "try_set":
        return semaphore.trySetPermits(permits);
      case "try_acquire":
        return semaphore.tryAcquire(permits);
      case "acquire":
        semaphore.acquire(permits);
        return true;
      case "lock_at":
        semaphore.acquire();
        return nowUs();
      case "release":
        semaphore.release(permits);
        return true;
      case "unlock_at":
        long at = nowUs();
        semaphore.release();
        return at;
      case "available":
        return semaphore.availablePermits();
      default:
        throw new IllegalArgumentException("a semaphore has no " + method);
    }
  }

  private Object permit(RPermitExpirableSemaphore semaphore, String method, String[] arguments)
      throws InterruptedException {
    switch (method) {
      case "try_set":
        return semaphore.trySetPermits(Integer.parseInt(arguments[0]));
      case "try_acquire":
        return semaphore.tryAcquire(0, Long.parseLong(arguments[0]), MS);
      case "acquire":
        return semaphore.acquire(Long.parseLong(arguments[0]), MS);
      case "lock_at":
        objects.put("held permit", semaphore.acquire());
        return nowUs();
      case "try_release":
        return semaphore.tryRelease(arguments[0]);
      case "unlock_at":
        long at = nowUs();
        semaphore.release((String) objects.remove("held permit"));
        return at;
      case "available":
        return semaphore.availablePermits();
      default:
        throw new IllegalArgumentException("a permit has no " + method);
    }
  }

  private static Object countdown(RCountDownLatch latch, String method, String[] arguments)
      throws InterruptedException {
    switch (method) {
      case "try_set":
        return latch.trySetCount(Long.parseLong(arguments[0]));
      case "count_down":
        latch.countDown();
        return true;
      case "unlock_at":
        long at = nowUs();
        latch.countDown();
        return at;
      case "count":
        return latch.getCount();
      case "wait":
        latch.await();
        return true;
      case "lock_at":
        latch.await();
        return nowUs();
      default:
        throw new IllegalArgumentException("a latch has no " + method);
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
// Calls a real Redisson as it is told on standard input, a call a line, its words between tabs:
//   THREAD KIND METHOD NAME ARGUMENT...   runs it on that thread: "= VALUE", or "! WHY"
//   begin THREAD KIND METHOD ...          starts it there, and answers "= begun" at once
//   await THREAD MS                       what the call that was begun there answered
//   version                               Redisson's
// Locks belong to threads, so each THREAD is one of its own. Ids of permits are in hexadecimal.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.redisson.Redisson;
import org.redisson.api.RCountDownLatch;
import org.redisson.api.RFencedLock;
import org.redisson.api.RLock;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RSemaphore;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.Config;

public final class RedissonDriver {
  private static final TimeUnit MS = TimeUnit.MILLISECONDS;
  private static final long CALL_MS = 20000;

  private final RedissonClient client;
  private final Map<String, ExecutorService> threads = new HashMap<>();
  private final Map<String, Future<String>> begun = new HashMap<>();

  private RedissonDriver(RedissonClient client) {
    this.client = client;
  }

  public static void main(String[] arguments) throws Exception {
    Config config = new Config();
    config.setCodec(StringCodec.INSTANCE);
    config.useSingleServer().setAddress(arguments[0]);
    RedissonClient client = Redisson.create(config);
    RedissonDriver driver = new RedissonDriver(client);
    BufferedReader calls =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = calls.readLine(); line != null; line = calls.readLine()) {
      System.out.println(driver.answer(line.split("\t")));
      System.out.flush();
    }
    System.exit(0);
  }

  private String answer(String[] words) {
    try {
      if (words[0].equals("version")) {
        return "= " + Redisson.class.getPackage().getImplementationVersion();
      } else if (words[0].equals("begin")) {
        begun.put(words[1], start(Arrays.copyOfRange(words, 1, words.length)));
        return "= begun";
      } else if (words[0].equals("await")) {
        return "= " + begun.remove(words[1]).get(Long.parseLong(words[2]), MS);
      }
      return "= " + start(words).get(CALL_MS, MS);
    } catch (ExecutionException why) {
      return "! " + oneLine(why.getCause());
    } catch (TimeoutException why) {
      return "! no answer in time";
    } catch (Exception why) {
      return "! " + oneLine(why);
    }
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

  private Object call(String kind, String method, String name, String[] arguments)
      throws InterruptedException {
    switch (kind) {
      case "lock":
        return lock(client.getLock(name), method, arguments);
      case "spin":
        return lock(client.getSpinLock(name), method, arguments);
      case "fair":
        return lock(client.getFairLock(name), method, arguments);
      case "read":
        return lock(client.getReadWriteLock(name).readLock(), method, arguments);
      case "write":
        return lock(client.getReadWriteLock(name).writeLock(), method, arguments);
      case "fenced":
        return fenced(client.getFencedLock(name), method, arguments);
      case "semaphore":
        return semaphore(client.getSemaphore(name), method, arguments);
      case "permit":
        return permit(client.getPermitExpirableSemaphore(name), method, arguments);
      case "countdown":
        return countdown(client.getCountDownLatch(name), method, arguments);
      default:
        throw new IllegalArgumentException("no kind is called " + kind);
    }
  }

  private static Object lock(RLock lock, String method, String[] arguments)
      throws InterruptedException {
    switch (method) {
      case "try_lock":
        return lock.tryLock(0, Long.parseLong(arguments[0]), MS);
      case "lock":
        lock.lock(Long.parseLong(arguments[0]), MS);
        return true;
      case "unlock":
        lock.unlock();
        return true;
      case "hold_count":
        return lock.getHoldCount();
      case "force_unlock":
        return lock.forceUnlock();
      default:
        throw new IllegalArgumentException("a lock has no " + method);
    }
  }

  private static Object fenced(RFencedLock lock, String method, String[] arguments)
      throws InterruptedException {
    if (method.equals("try_lock_and_get_token")) {
      return lock.tryLockAndGetToken(0, Long.parseLong(arguments[0]), MS);
    }
    return lock(lock, method, arguments);
  }

  private static Object semaphore(RSemaphore semaphore, String method, String[] arguments)
      throws InterruptedException {
    int permits = arguments.length > 0 ? Integer.parseInt(arguments[0]) : 0;
    switch (method) {
      case "try_set":
        return semaphore.trySetPermits(permits);
      case "try_acquire":
        return semaphore.tryAcquire(permits);
      case "acquire":
        semaphore.acquire(permits);
        return true;
      case "release":
        semaphore.release(permits);
        return true;
      case "available":
        return semaphore.availablePermits();
      default:
        throw new IllegalArgumentException("a semaphore has no " + method);
    }
  }

  private static Object permit(
      RPermitExpirableSemaphore semaphore, String method, String[] arguments)
      throws InterruptedException {
    switch (method) {
      case "try_set":
        return semaphore.trySetPermits(Integer.parseInt(arguments[0]));
      case "try_acquire":
        return semaphore.tryAcquire(0, Long.parseLong(arguments[0]), MS);
      case "acquire":
        return semaphore.acquire(Long.parseLong(arguments[0]), MS);
      case "try_release":
        return semaphore.tryRelease(arguments[0]);
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
      case "count":
        return latch.getCount();
      case "wait":
        latch.await();
        return true;
      default:
        throw new IllegalArgumentException("a latch has no " + method);
    }
  }
}

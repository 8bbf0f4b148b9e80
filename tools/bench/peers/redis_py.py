# SPDX-License-Identifier: Apache-2.0
"""redis_py.py PORT pairs|contended OWNERS SECONDS SECTION_MS: redis-py's Lock, a thread an owner."""
import json
import sys
import threading
import time

import redis

port, mode, owners, seconds, section = (
    int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), float(sys.argv[4]), float(sys.argv[5]) / 1000)
pool = redis.ConnectionPool(host='127.0.0.1', port=port)
released = [0.0, -1]
took, pairs, until = [[] for _ in range(owners)], [0] * owners, [0.0]
warm, go = [threading.Barrier(owners + 1, timeout=60) for _ in range(2)]


def run(me):
    name = 'bench:py' if mode == 'contended' else 'bench:py:%d' % me
    lock = redis.Redis(connection_pool=pool).lock(name, timeout=30)
    lock.acquire()
    lock.release()
    warm.wait()
    go.wait()
    while time.monotonic() < until[0]:
        asked = time.monotonic()
        lock.acquire()
        taken = time.monotonic()
        if mode == 'contended':
            if released[1] not in (-1, me):
                took[me].append(taken - released[0])
            time.sleep(section)
            released[0], released[1] = time.monotonic(), me
        lock.release()
        if mode != 'contended':
            took[me].append(time.monotonic() - asked)
        pairs[me] += 1


def part(values, which):
    return sorted(values)[int(which * (len(values) - 1))] * 1e6 if values else 0


threads = [threading.Thread(target=run, args=(i,)) for i in range(owners)]
for thread in threads:
    thread.start()
warm.wait()
began, cpu = time.monotonic(), time.process_time()
until[0] = began + seconds
go.wait()
for thread in threads:
    thread.join()
result = {'seconds': time.monotonic() - began, 'pairs': sum(pairs),
          'client_cpu_us': (time.process_time() - cpu) * 1e6}
every = [value for some in took for value in some]
kind = 'handoff_' if mode == 'contended' else ''
result[kind + 'p50_us'], result[kind + 'p99_us'] = part(every, 0.5), part(every, 0.99)
if mode == 'contended':
    result['handoffs'] = len(every)
print(json.dumps(result))

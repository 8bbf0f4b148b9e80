// SPDX-License-Identifier: Apache-2.0
// ioredis.js PORT redlock|redis-semaphore pairs|contended OWNERS SECONDS SECTION_MS: one connection,
// each owner a chain of promises.
'use strict';
const { Redis } = require('ioredis');

const [port, library, mode, owners, seconds, section] = process.argv.slice(2);
const contended = mode === 'contended';
const now = () => Number(process.hrtime.bigint()) / 1000;
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

function makeLock(io, name) {
  if (library === 'redlock') {
    const Redlock = require('redlock');
    const locks = new Redlock([io], { retryCount: 1e6 });
    return { acquire: () => locks.lock(name, 30000), release: (held) => held.unlock() };
  }
  const { Mutex } = require('redis-semaphore');
  const mutex = new Mutex(io, name, { acquireTimeout: 1e6, lockTimeout: 30000 });
  return { acquire: () => mutex.acquire(), release: () => mutex.release() };
}

function part(values, which) {
  values.sort((a, b) => a - b);
  return values.length ? values[Math.floor(which * (values.length - 1))] : 0;
}

async function main() {
  const io = new Redis({ port: Number(port), host: '127.0.0.1' });
  await io.ping();
  const took = [];
  let pairs = 0, releasedAt = 0, releasedBy = -1;
  const cpu = process.cpuUsage(), began = now(), until = began + Number(seconds) * 1e6;
  const run = async (me) => {
    const lock = makeLock(io, contended ? 'bench:node' : `bench:node:${me}`);
    while (now() < until) {
      const asked = now();
      const held = await lock.acquire();
      if (contended) {
        if (releasedBy !== -1 && releasedBy !== me) took.push(now() - releasedAt);
        await sleep(Number(section));
        releasedAt = now();
        releasedBy = me;
      }
      await lock.release(held);
      if (!contended) took.push(now() - asked);
      pairs++;
    }
  };
  await Promise.all(Array.from({ length: Number(owners) }, (_, i) => run(i)));
  const used = process.cpuUsage(cpu), kind = contended ? 'handoff_' : '';
  const result = { seconds: (now() - began) / 1e6, pairs, client_cpu_us: used.user + used.system };
  result[`${kind}p50_us`] = part(took, 0.5);
  result[`${kind}p99_us`] = part(took, 0.99);
  if (contended) result.handoffs = took.length;
  console.log(JSON.stringify(result));
  io.disconnect();
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});

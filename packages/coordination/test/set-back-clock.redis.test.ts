// Redis' clock is set back by ten minutes, for good, while something waits there for its time to be over.
import { FakeWallClock } from "@idmint/testkit";
import { RedisServer } from "@idmint/testkit/redis";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { createElection, createLocks, type ElectionEvent, type LockEvent } from "../src/index.ts";
import { mustTake, TestQueue } from "./queue/support.ts";
import { TestSignals } from "./signal/support.ts";
import { sleep, until } from "./support.ts";

const BACK_MS = 600_000;

let clock: FakeWallClock;
let server: RedisServer;

beforeAll(async () => {
  clock = new FakeWallClock(0);
  // libc's own allocator: jemalloc reads the clock before the library that fakes it is ready.
  const env = { ...clock.env, LD_PRELOAD: `${clock.env["LD_PRELOAD"]} libc.so.6` };
  server = await RedisServer.start({ env });
});

beforeEach(() => clock.set(0));

afterAll(async () => {
  await server.close();
  clock[Symbol.dispose]();
});

/** By how much Redis' clock was set back, as events tell it; each tells it once. */
function setBack(
  events: readonly { readonly type: string; readonly byMs?: number }[],
): readonly (number | undefined)[] {
  return events.filter(({ type }) => type === "clock-set-back").map(({ byMs }) => byMs);
}

function aboutTenMinutes(byMs: number | undefined): boolean {
  return byMs !== undefined && byMs > BACK_MS - 60_000 && byMs <= BACK_MS;
}

test("the lock of a dead holder is free after its ttl, whatever the ttl of who waits", async () => {
  const events: LockEvent[] = [];
  const onEvent = (event: LockEvent): number => events.push(event);
  await using dead = createLocks({ nodes: server.url, ttlMs: 1_500, isExtended: false });
  await using others = createLocks({ nodes: server.url, ttlMs: 300, onEvent });
  const grant = await dead.lock("dead").acquire();
  clock.set(-BACK_MS);
  const start = performance.now();
  await using next = await others.lock("dead").acquire({ waitMs: 8_000 });
  expect(grant.remainingMs).toBe(0);
  expect(performance.now() - start).toBeLessThan(4_000);
  expect(next.token > grant.token).toBe(true);
  const told = events.find(({ type }) => type === "clock-set-back");
  expect(told).toMatchObject({ lock: "dead", node: `127.0.0.1:${server.port}` });
  expect(setBack(events).map(aboutTenMinutes)).toEqual([true]);
});

test("the lock of a holder that lives is its own while the clock is set back", async () => {
  await using locks = createLocks({ nodes: server.url, ttlMs: 1_200 });
  await using others = createLocks({ nodes: server.url, ttlMs: 1_000, nodeTimeoutMs: 900 });
  await using grant = await locks.lock("alive").acquire();
  clock.set(-BACK_MS);
  await expect(others.lock("alive").acquire({ waitMs: 3_000 })).rejects.toThrow(/LOCK_HELD/);
  grant.assert();
});

test("a dead leader is followed after its ttl, and a Redis that was silent elects nobody before", async () => {
  const events: ElectionEvent[] = [];
  const ttlMs = 1_000;
  const options = { node: server.url, name: "dead", ttlMs };
  const one = createElection(options);
  const leader = await one.campaign();
  await one.close();
  clock.set(-BACK_MS);
  const start = performance.now();
  await using two = createElection({ ...options, onEvent: (event) => events.push(event) });
  await using next = await two.campaign({ waitMs: 8_000 });
  expect(leader.remainingMs).toBe(0);
  expect(performance.now() - start).toBeLessThan(4 * ttlMs);
  expect(next.term > leader.term).toBe(true);
  expect(setBack(events).map(aboutTenMinutes)).toEqual([true]);
  await next.resign();
  // The words of the leader are kept for ten minutes more, but were said too long ago to know who leads elsewhere.
  clock.set(-2 * BACK_MS);
  await sleep(2 * ttlMs);
  await using three = createElection({ ...options, onEvent: (event) => events.push(event) });
  events.length = 0;
  await using last = await three.campaign({ waitMs: 8_000 });
  expect(events.map(({ type }) => type)).toContain("settling");
  expect(last.term > next.term).toBe(true);
});

test("candidates with a new ttl wait no longer than the old one", async () => {
  const options = { node: server.url, name: "mismatch" };
  const one = createElection({ ...options, ttlMs: 800 });
  await one.campaign();
  await one.close();
  clock.set(-BACK_MS);
  await using two = createElection({ ...options, ttlMs: 700 });
  const elected = async (): Promise<boolean> =>
    two.campaign({ waitMs: 2_000 }).then(
      () => true,
      () => false,
    );
  await expect.poll(elected, { timeout: 8_000 }).toBe(true);
});

test("messages of a silent consumer come back after its ttl, and not before", async () => {
  const there = new TestQueue(server.url);
  const other = there.open({ consumerTtlMs: 1_000 });
  await other.push("first");
  await mustTake(other);
  // As a process with another ttl leaves it that died.
  await there.redis.lpush(`${there.keys.pendingPrefix}dead`, "0:1:of the dead");
  await there.redis.zadd(there.keys.consumers, Date.now() + 2_000, "dead");
  clock.set(-BACK_MS);
  const start = performance.now();
  const message = await other.take({ timeoutMs: 8_000 });
  expect(message?.data).toBe("of the dead");
  expect(performance.now() - start).toBeLessThan(6_000);
  expect(performance.now() - start).toBeGreaterThan(900);
  expect(setBack(there.events).map(aboutTenMinutes)).toEqual([true]);
  expect(there.events.filter(({ type }) => type === "consumer-expired")).toEqual([]);
});

test("a signal that a waiter did not come for goes to the next one after the lease", async () => {
  const there = new TestSignals(server.url);
  const signals = there.open({ leaseMs: 600 });
  const keys = `${there.prefix}:signal:one:{job}`;
  // A waiter whose process hangs: its channel is heard, and it does not come.
  await there.redis.subscribe(`${there.prefix}:signal:wake:hung`);
  await signals.signalOne("job", "first");
  await signals.waitOne("job");
  const look = there.redis.duplicate();
  await look.zadd(`${keys}:waiters`, Date.now() + 600, "hung/1");
  expect(await signals.signalOne("job", "second")).toBe("given");
  clock.set(-BACK_MS);
  const start = performance.now();
  const signal = await signals.tryWaitOne("job", { timeoutMs: 8_000 });
  look.disconnect();
  expect(signal?.data).toBe("second");
  expect(performance.now() - start).toBeLessThan(4_000);
  await until("it is told", () => setBack(there.events).length > 0);
  expect(setBack(there.events).map(aboutTenMinutes)).toEqual([true]);
});

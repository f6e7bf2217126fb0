import { randomUUID } from "node:crypto";
import { RedisServer, sharedRedisUrl } from "@idmint/testkit/redis";
import { Redis } from "ioredis";
import { expect, onTestFinished, test } from "vitest";
import { CoordinationError, createLocks, type LockEvent, type LockGrant } from "../../src/index.ts";
import { redisLockNode } from "../../src/lock/lock-node.ts";
import { RedisNode } from "../../src/redis/node.ts";
import { failure, sleep, until } from "../support.ts";

const url = await sharedRedisUrl();

function freshName(): string {
  return `test-${randomUUID()}`;
}

test("one holder at a time, and each grant's token is larger", async () => {
  await using locks = createLocks({ nodes: url, retryMaxMs: 25 });
  const lock = locks.lock(freshName());
  let inside = 0;
  const tokens: bigint[] = [];
  const work = async (): Promise<void> =>
    lock.run(async ({ token }) => {
      expect(++inside).toBe(1);
      tokens.push(token);
      await sleep(2);
      inside--;
    });
  await Promise.all(Array.from({ length: 12 }, work));
  expect(tokens).toHaveLength(12);
  expect(tokens).toEqual(tokens.toSorted((a, b) => Number(a - b)));
  expect(new Set(tokens).size).toBe(12);
});

test("a lock that is held is refused within the wait, and is not freed by others", async () => {
  await using locks = createLocks({ nodes: url });
  await using others = createLocks({ nodes: url });
  const name = freshName();
  const grant = await locks.lock(name).acquire();
  expect(await failure(others.lock(name).acquire({ waitMs: 0 }))).toMatchObject({
    reason: "LOCK_HELD",
    code: "UNAVAILABLE",
  });
  expect(await failure(others.lock(name).acquire({ waitMs: 100 }))).toMatchObject({
    reason: "LOCK_HELD",
  });
  const signal = AbortSignal.timeout(50);
  const cancelled = await failure(others.lock(name).acquire({ signal }));
  expect(cancelled).toMatchObject({ reason: "CALL_CANCELLED", code: "CANCELLED" });
  await grant.extend();
  await grant.release();
  await grant.release();
  expect(() => grant.assert()).toThrow("LOCK_LOST");
  expect(grant.signal.aborted).toBe(false);
  await using next = await others.lock(name).acquire({ waitMs: 0 });
  expect(next.token > grant.token).toBe(true);
});

test("many locks may be held on one connection, and leave nothing on it", async () => {
  const warnings: string[] = [];
  const onWarning = ({ name }: Error): number => warnings.push(name);
  process.on("warning", onWarning);
  onTestFinished(() => void process.off("warning", onWarning));
  await using server = await RedisServer.start();
  const options = { enableOfflineQueue: false, autoResendUnfulfilledCommands: false };
  const redis = new Redis(server.url, { ...options, maxRetriesPerRequest: 0 });
  redis.on("error", () => undefined);
  onTestFinished(() => redis.disconnect());
  await until("there is a connection", () => redis.status === "ready");
  await using locks = createLocks({ nodes: redis });
  const name = freshName();
  const before = redis.listenerCount("close");
  const take = async (_: unknown, i: number): Promise<LockGrant> =>
    locks.lock(`${name}-${i}`).acquire();
  const grants = await Promise.all(Array.from({ length: 100 }, take));
  expect(grants.every(({ isOrdered }) => isOrdered)).toBe(true);
  await Promise.all(grants.splice(50).map((grant) => grant.release()));
  // The others all hear of a connection that breaks.
  await server.kill();
  await until("all locks may be lost", () => grants.every(({ signal }) => signal.aborted));
  expect(redis.listenerCount("close")).toBe(before);
  // Node tells warnings a turn later.
  await sleep(10);
  expect(warnings).toEqual([]);
});

test("who lost a lock neither keeps it alive for the next holder nor frees it", async () => {
  await using connection = new RedisNode(url);
  const node = redisLockNode(connection, "idmint");
  const limits = { timeoutMs: 1_000 };
  const [mine, theirs] = [20, 5_000].map((ttlMs) => ({
    lock: freshName(),
    owner: `of ${ttlMs}`,
    ttlMs,
  }));
  const next = { ...theirs!, lock: mine!.lock };
  await node.take(mine!, { isMinting: true }, limits);
  await expect.poll(() => node.holds(mine!, limits)).toBe(false);
  await node.take(next, { isMinting: true }, limits);
  expect(await node.extend({ ...mine!, ttlMs: 3_600_000 }, limits)).toBe(false);
  const leftMs = Number(await connection.redis.call("PTTL", `idmint:lock:{${mine!.lock}}`));
  expect(leftMs).toBeLessThanOrEqual(5_000);
  expect(await node.release(mine!, limits)).toBe(false);
  expect(await node.holds(next, limits)).toBe(true);
  expect(await node.extend(next, limits)).toBe(true);
});

test("a lock is extended by itself; without that it is over in time and says so", async () => {
  const events: LockEvent[] = [];
  await using locks = createLocks({ nodes: url, ttlMs: 900 });
  await using short = createLocks({
    nodes: url,
    ttlMs: 300,
    nodeTimeoutMs: 200,
    isExtended: false,
    onEvent: (event) => events.push(event),
  });
  const kept = await locks.lock(freshName()).acquire();
  const name = freshName();
  const left = await short.lock(name).acquire();
  expect(left.remainingMs).toBeGreaterThan(0);
  expect(left.remainingMs).toBeLessThan(297);
  await sleep(1_200);
  kept.assert();
  expect(left.signal.aborted).toBe(true);
  expect(left.signal.reason).toBeInstanceOf(CoordinationError);
  expect(() => left.assert()).toThrow("LOCK_LOST");
  expect(await failure(left.extend())).toMatchObject({ reason: "LOCK_LOST", code: "ABORTED" });
  await left.release();
  expect(events.map(({ type }) => type)).toEqual(["lock-taken", "lock-lost", "lock-released"]);
  expect(events.at(-1)).toMatchObject({ isComplete: false });
  await kept.release();
});

test("work that outlasts its lock is told", async () => {
  await using locks = createLocks({
    nodes: url,
    ttlMs: 200,
    nodeTimeoutMs: 150,
    isExtended: false,
  });
  const error = await failure(locks.lock(freshName()).run(() => sleep(250)));
  expect(error).toMatchObject({ reason: "LOCK_LOST" });
});

test("tokens may come from elsewhere, and one that is not new is refused", async () => {
  let next = 41n;
  await using locks = createLocks({ nodes: url, tokenSource: async () => ++next });
  const lock = locks.lock(freshName());
  expect(await lock.run(async ({ token }) => token)).toBe(42n);
  expect(await lock.run(async ({ token }) => token)).toBe(43n);
  next = 42n;
  const error = await failure(lock.acquire());
  expect(error).toMatchObject({ reason: "TOKEN_WENT_BACK", code: "FAILED_PRECONDITION" });
  expect(await lock.run(async ({ token }) => token)).toBe(44n);
});

test("a node knows the last token before it asks for one, and confirms only a larger one", async () => {
  await using connection = new RedisNode(url);
  const node = redisLockNode(connection, "idmint");
  const limits = { timeoutMs: 1_000 };
  const claim = { lock: freshName(), owner: "me", ttlMs: 60_000 };
  const taking = { isMinting: false };
  expect(await node.take(claim, taking, limits)).toBe(0n);
  // Larger than what Lua counts exactly, and with one digit more than the one before.
  const tokens = [9n, 10n, 99_999_999_999_999_998n, 99_999_999_999_999_999n];
  for (const [i, value] of tokens.entries()) {
    expect(await node.confirm(claim, { value, isNew: true }, limits)).toBe(true);
    for (const known of tokens.slice(0, i + 1)) {
      expect(await node.confirm(claim, { value: known, isNew: true }, limits)).toBe(false);
    }
    await node.release(claim, limits);
    expect(await node.take(claim, taking, limits)).toBe(value);
  }
  await node.release(claim, limits);
});

test("a Redis that comes back empty costs the lock, and no token comes twice", async () => {
  await using server = await RedisServer.start();
  await using locks = createLocks({ nodes: server.url, isExtended: false, nodeTimeoutMs: 200 });
  const lock = locks.lock("l");
  const grant = await lock.acquire();
  await server.kill();
  await server.start();
  await until("the loss is known", () => grant.signal.aborted);
  const next = await lock.acquire();
  expect(next.token > grant.token).toBe(true);
  // A connection that only broke costs nothing.
  await server.command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
  await sleep(400);
  next.assert();
});

test("a Redis that is paused is no reason to wait for long", async () => {
  await using server = await RedisServer.start();
  await using locks = createLocks({ nodes: server.url, ttlMs: 300, nodeTimeoutMs: 100 });
  const grant = await locks.lock("l").acquire();
  server.pause();
  const start = performance.now();
  const error = await failure(locks.lock("other").acquire({ waitMs: 0 }));
  expect(error).toMatchObject({ reason: "NO_MAJORITY" });
  expect(error.nodes[0]).toMatchObject({
    node: `127.0.0.1:${server.port}`,
    error: { reason: "NODE_UNAVAILABLE" },
  });
  expect(performance.now() - start).toBeLessThan(300);
  await until("the lock is over", () => grant.signal.aborted);
  server.resume();
  await using again = await locks.lock("l").acquire();
  expect(again.token > grant.token).toBe(true);
});

test("scripts survive that somebody empties Redis' cache of them", async () => {
  await using server = await RedisServer.start();
  await using locks = createLocks({ nodes: server.url });
  await locks.lock("l").run(async () => undefined);
  await server.command("SCRIPT", "FLUSH");
  await locks.lock("l").run(async () => undefined);
});

test("options and names are checked", async () => {
  expect(() => createLocks({ nodes: [url, url] })).toThrow("nodes must be an odd number");
  expect(() => createLocks({ nodes: [] })).toThrow("nodes must be an odd number");
  expect(() => createLocks({ nodes: url, ttlMs: 5 })).toThrow(
    "ttlMs must be a whole number from 20",
  );
  expect(() => createLocks({ nodes: url, ttlMs: 100, nodeTimeoutMs: 100 })).toThrow(
    "1 to 99, got 100",
  );
  const misspelt = { nodes: url, tll: 5 };
  expect(() => createLocks(misspelt)).toThrow("options.tll is not an option");
  await using locks = createLocks({ nodes: url });
  expect(() => locks.lock("{a}")).toThrow("name must be");
  expect(await failure(locks.lock("a").acquire({ waitMs: -1 }))).toMatchObject({
    reason: "INVALID_ARGUMENT",
    metadata: { field: "waitMs" },
  });
});

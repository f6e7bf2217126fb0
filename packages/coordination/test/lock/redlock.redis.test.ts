// Locks on five independent Redis nodes.
import { RedisServer } from "@idmint/testkit/redis";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { createLocks, type LockGrant, type Locks, type LocksOptions } from "../../src/index.ts";
import { redisLockNode } from "../../src/lock/lock-node.ts";
import { RedisNode } from "../../src/redis/node.ts";
import { failure, sleep, until } from "../support.ts";
import { loseToLateTake } from "./late-take.ts";

let servers: RedisServer[];
const stopped = new Set<RedisServer>();

beforeAll(async () => {
  servers = await Promise.all(Array.from({ length: 5 }, () => RedisServer.start()));
});

afterEach(async () => {
  for (const server of stopped) await server.start();
  stopped.clear();
});

afterAll(async () => {
  for (const server of servers) await server.close();
});

async function kill(...which: readonly number[]): Promise<void> {
  for (const i of which) {
    await servers[i]!.kill();
    stopped.add(servers[i]!);
  }
}

async function untilKept(server: RedisServer, key: string): Promise<void> {
  for (let look = 0; (await server.command("GET", key)) === null; look++) {
    if (look > 500) throw new Error(`${key} is not there`);
    await sleep(5);
  }
}

function locksOn(options: Partial<LocksOptions> = {}): Locks {
  return createLocks({
    nodes: servers.map(({ url }) => url),
    ttlMs: 2_000,
    nodeTimeoutMs: 400,
    retryMaxMs: 50,
    ...options,
  });
}

test("with two of five nodes down it works and stays exclusive", async () => {
  await using locks = locksOn();
  await using others = locksOn();
  const before = await locks.lock("two").run(async ({ token }) => token);
  await kill(1, 3);
  const grant = await locks.lock("two").acquire();
  expect(grant.token > before).toBe(true);
  expect(await failure(others.lock("two").acquire({ waitMs: 0 }))).toMatchObject({
    reason: "LOCK_HELD",
  });
  await grant.extend();
  await sleep(600);
  grant.assert();
  await grant.release();
  await using next = await others.lock("two").acquire();
  expect(next.token > grant.token).toBe(true);
});

test("with three down it refuses with each node's cause, and leaves nothing behind", async () => {
  await using locks = locksOn();
  await locks.lock("three").run(async () => undefined);
  const held = await locks.lock("held").acquire();
  await kill(0, 2, 4);
  await until("the lock may be lost", () => held.signal.aborted);
  expect(held.signal.reason).toMatchObject({ reason: "LOCK_LOST" });
  const error = await failure(locks.lock("three").acquire({ waitMs: 0 }));
  expect(error).toMatchObject({ reason: "NO_MAJORITY", code: "UNAVAILABLE" });
  const down = [0, 2, 4].map((i) => `127.0.0.1:${servers[i]!.port}`);
  expect(error.nodes.map(({ node }) => node).toSorted()).toEqual(down.toSorted());
  for (const node of down) expect(error.message).toContain(node);
  for (const i of [1, 3]) {
    expect(await servers[i]!.command("GET", "idmint:lock:{three}")).toBeNull();
  }
});

test("with one node's clock ten seconds ahead, whose lock is gone there, it stays exclusive", async () => {
  await using locks = locksOn({ ttlMs: 8_000 });
  await using others = locksOn({ ttlMs: 8_000 });
  const grant = await locks.lock("clock").acquire();
  // A majority is enough for a grant. With one node less, the others must have it too.
  await Promise.all(servers.map((server) => untilKept(server, "idmint:lock:{clock}")));
  // What a step of its clock does: the key is past its time.
  await servers[2]!.command("PEXPIRE", "idmint:lock:{clock}", "0");
  const error = await failure(others.lock("clock").acquire({ waitMs: 300 }));
  expect(error).toMatchObject({ reason: "LOCK_HELD" });
  // And its counter is ahead, as of its clock: tokens go on above it.
  const ahead = `${(Date.now() + 10_000) * 1_000}`;
  await servers[2]!.command("SET", "idmint:lock:{clock}:token", ahead);
  await grant.extend();
  await grant.release();
  let last = grant.token;
  for (let i = 0; i < 10; i++) {
    // Different majorities each time.
    const { token } = await others.lock("clock").run(async (next) => next);
    expect(token > last).toBe(true);
    last = token;
  }
});

test("tokens rise over restarts of all nodes, one after the other, each empty", async () => {
  await using locks = locksOn();
  let last = 0n;
  for (const [i, server] of servers.entries()) {
    const { token } = await locks.lock("restarts").run(async (grant) => grant);
    expect(token > last).toBe(true);
    last = token;
    await kill(i);
    await server.start();
    stopped.delete(server);
  }
});

test("nodes of unequal clocks, one of which loses its data, keep the order of a source's tokens only", async () => {
  const nodes = servers.slice(0, 3).map(({ url }) => url);
  let last = 0n;
  await using minting = locksOn({ nodes });
  await using asking = locksOn({ nodes, tokenSource: async () => ++last });
  // The first node's clock is a minute ahead, and with it what it counts.
  const ahead = `${(Date.now() + 60_000) * 1_000}`;
  await servers[0]!.command("SET", "idmint:lock:{minted}:token", ahead);
  const takeBoth = async (): Promise<readonly LockGrant[]> => {
    const grants = [];
    for (const [locks, name] of [
      [minting, "minted"],
      [asking, "asked"],
    ] as const) {
      const grant = await locks.lock(name).acquire();
      await grant.release();
      grants.push(grant);
    }
    return grants;
  };
  await kill(2);
  const [minted, asked] = await takeBoth();
  await kill(0, 1);
  for (const i of [1, 2]) await servers[i]!.start();
  for (const i of [1, 2]) stopped.delete(servers[i]!);
  const [mintedNext, askedNext] = await takeBoth();
  expect(askedNext!.token > asked!.token).toBe(true);
  expect([asked!.isOrdered, askedNext!.isOrdered]).toEqual([true, true]);
  // Nobody who could be asked knew of the earlier one, so its order is not promised.
  expect(mintedNext!.token < minted!.token).toBe(true);
  expect([minted!.isOrdered, mintedNext!.isOrdered]).toEqual([false, false]);
});

test("a source of tokens that went back is told, also with two of five nodes down", async () => {
  let last = 100n;
  await using locks = locksOn({ tokenSource: async () => ++last });
  const lock = locks.lock("back");
  expect(await lock.run(async ({ token }) => token)).toBe(101n);
  const wentBack = { reason: "TOKEN_WENT_BACK", code: "FAILED_PRECONDITION", retryable: false };
  last = 100n;
  expect(await failure(lock.acquire())).toMatchObject(wentBack);
  await kill(0, 1);
  last = 50n;
  expect(await failure(lock.acquire())).toMatchObject(wentBack);
  last = 101n;
  expect(await lock.run(async ({ token }) => token)).toBe(102n);
});

test.each([
  ["a token that a later one overtook is a lost race, not a source that went back", 102n],
  ["a token that a source repeats to who takes late is not given out twice", 101n],
])("%s", async (_what, late) => {
  await using n0 = new RedisNode(servers[0]!.url);
  await using n1 = new RedisNode(servers[1]!.url);
  await using n2 = new RedisNode(servers[2]!.url);
  const nodes = [
    redisLockNode(n0, "idmint"),
    redisLockNode(n1, "idmint"),
    redisLockNode(n2, "idmint"),
  ] as const;
  const error = await loseToLateTake(nodes, `late-${late}`, { early: 101n, late });
  expect(error).toMatchObject({ reason: "LOCK_HELD", retryable: true });
});

test("contenders on five nodes take turns", async () => {
  await using one = locksOn();
  await using two = locksOn();
  let inside = 0;
  const tokens: bigint[] = [];
  const work = async (locks: Locks): Promise<void> => {
    for (let i = 0; i < 5; i++) {
      await locks.lock("turns").run(async ({ token }) => {
        expect(++inside).toBe(1);
        tokens.push(token);
        await sleep(1);
        inside--;
      });
    }
  };
  await Promise.all([work(one), work(two), work(one)]);
  expect(tokens).toEqual(tokens.toSorted((a, b) => Number(a - b)));
  expect(new Set(tokens).size).toBe(15);
});

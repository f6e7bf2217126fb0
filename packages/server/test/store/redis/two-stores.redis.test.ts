// Servers of two stores on one Redis, whose tags have the same names and generations.
import { COUNTERS_PER_MS } from "@idmint/core/kinds";
import type { CountingRedis, RedisDoubt } from "@idmint/core/server";
import { expect, test } from "vitest";
import { begin, hashOf, ownRedis, redisServerAt } from "./support.ts";

const tag = "orders";
const generation = 5n;
const LIMIT_MS = Date.UTC(2100, 0);
/** What a server of the other store may believe of Redis. */
const doubt: RedisDoubt = { status: "other-generation", generation };
const asked = { tag, generation, seen: 0, dataCenter: 0 };
const lease = { ...asked, instance: "i", reserveAheadMs: 1_000, workerIds: 4 };
const key = { ...asked, workerId: 0, token: 1n };

interface Kind {
  readonly start: (redis: CountingRedis) => Promise<unknown>;
  /** Whatever changes a tag of the kind in Redis. */
  readonly uses: (redis: CountingRedis) => Readonly<Record<string, () => Promise<unknown>>>;
}

const kinds: Readonly<Record<string, Kind>> = {
  sequence: {
    start: ({ sequences }) => begin(sequences, { tag, generation, cur: 0n, max: 100n }),
    uses: ({ sequences }) => ({
      issue: () => sequences.issue({ tag, generation, count: 1, seen: 0n }),
      "issue of a higher generation": () =>
        sequences.issue({ tag, generation: 9n, count: 1, seen: 0n }),
      seed: () => sequences.seed({ tag, generation: 9n, cur: 500n, max: 600n, doubt }),
      raise: () => sequences.raise({ tag, generation, max: 900n }),
    }),
  },
  redis_snowflake: {
    start: async ({ snowflakes }) => {
      const first = Date.now() * COUNTERS_PER_MS;
      const missing = await snowflakes.issue({ tag, generation, count: 0, seen: 0 });
      if (missing.status !== "missing") throw new Error(missing.status);
      return snowflakes.seed({ tag, generation, first, limitMs: LIMIT_MS - 1, doubt: missing });
    },
    uses: (redis) => ({
      issue: () => redis.snowflakes.issue({ tag, generation, count: 1, seen: 0 }),
      seed: () =>
        redis.snowflakes.seed({ tag, generation: 9n, first: 0, limitMs: LIMIT_MS, doubt }),
      raise: () => redis.raiseLimit({ tag, generation, limitMs: LIMIT_MS }),
    }),
  },
  "worker ids": {
    start: async ({ workers }) => {
      const missing = await workers.lease(lease);
      if (missing.status !== "missing") throw new Error(missing.status);
      const limitMs = LIMIT_MS - 1;
      await workers.seed({ tag, generation, afterMs: 0, limitMs, doubt: missing });
      return workers.lease(lease);
    },
    uses: (redis) => ({
      lease: () => redis.workers.lease(lease),
      renew: () =>
        redis.workers.renew({ ...key, reserveUntilMs: LIMIT_MS - 1, reserveAheadMs: 1_000 }),
      release: () => redis.workers.release(key),
      seed: () => redis.workers.seed({ tag, generation: 9n, afterMs: 0, limitMs: LIMIT_MS, doubt }),
      raise: () => redis.raiseLimit({ tag, generation, limitMs: LIMIT_MS }),
    }),
  },
};

for (const [kind, { start, uses }] of Object.entries(kinds)) {
  test(`${kind}: a hash of another store is refused, and stays as it was`, async () => {
    const redis = await ownRedis();
    const own = await redisServerAt(redis.url, 500, "a", "store-a");
    const other = await redisServerAt(redis.url, 500, "a", "store-b");
    await start(own);
    const before = await hashOf(redis, tag);
    expect(before["store"]).toBe("store-a");
    const changes = {
      ...uses(other),
      retire: () => other.retire(tag),
      forget: () => other.forget(tag),
    };
    for (const [name, change] of Object.entries(changes)) {
      await expect(change(), name).rejects.toMatchObject({
        code: "FAILED_PRECONDITION",
        reason: "STORE_REFUSED",
        message: expect.stringMatching(
          /idmint:\{orders\}.*its id is store-a,.*belongs to store-b;.*another database number/,
        ) as string,
      });
      expect(await hashOf(redis, tag), name).toEqual(before);
    }
    for (const [name, use] of Object.entries(uses(own))) {
      await expect(use(), name).resolves.toBeDefined();
    }
  });

  test(`${kind}: a hash without a store counts for nobody until it is given a new start`, async () => {
    const redis = await ownRedis();
    const own = await redisServerAt(redis.url, 500, "a", "store-a");
    await start(own);
    await redis.command("HDEL", `idmint:{${tag}}`, "store");
    const before = await hashOf(redis, tag);
    const { issue, lease: leased, raise, seed } = uses(own);
    const restarted = { status: "restarted", generation };
    expect(await (issue ?? leased)?.()).toMatchObject(restarted);
    expect(await raise?.()).toBe(false);
    expect(await hashOf(redis, tag)).toEqual(before);
    expect(await seed?.()).toEqual({ status: "seeded" });
    expect(await hashOf(redis, tag)).toMatchObject({ generation: "9", store: "store-a" });
  });
}

test("a seed that comes after another store's is refused, though both met the same emptiness", async () => {
  const redis = await ownRedis();
  const { sequences } = await redisServerAt(redis.url, 500, "a", "store-a");
  const { sequences: others } = await redisServerAt(redis.url, 500, "a", "store-b");
  const ask = { tag, generation, count: 0, seen: 0n };
  const [missing, same] = [await sequences.issue(ask), await others.issue(ask)];
  if (missing.status !== "missing" || same.status !== "missing") throw new Error(missing.status);
  expect(same).toEqual(missing);
  const seed = { tag, cur: 0n, max: 100n };
  await sequences.seed({ ...seed, generation, doubt: missing });
  await expect(others.seed({ ...seed, generation: 9n, doubt: same })).rejects.toMatchObject({
    reason: "STORE_REFUSED",
  });
  expect(await sequences.issue({ ...ask, count: 1 })).toMatchObject({ last: 1n });
});

test("readings, rates and lists leave out what is another store's", async () => {
  const redis = await ownRedis();
  const own = await redisServerAt(redis.url, 500, "a", "store-a");
  const other = await redisServerAt(redis.url, 500, "a", "store-b");
  await begin(own.sequences, { tag, generation, cur: 0n, max: 100n });
  const rates = [{ tag, generation, recently: 7, longTerm: 7 }];
  await other.sequences.writeRates(rates);
  expect(await other.sequences.read([tag])).toEqual([undefined]);
  expect(await own.sequences.read([tag])).toMatchObject([{ max: 100n, longTermRate: 0 }]);
  await own.sequences.writeRates(rates);
  expect(await own.sequences.read([tag])).toMatchObject([{ longTermRate: 7 }]);
  await own.forget(tag);
  await redis.command("DEL", `idmint:{${tag}}`);
  await kinds["worker ids"]?.start(own);
  const query = { tag, after: undefined, limit: 10 };
  expect(await own.workers.list(query)).toHaveLength(1);
  expect(await other.workers.list(query)).toEqual([]);
});

test("a tag that moved away is still its store's", async () => {
  const redis = await ownRedis();
  const own = await redisServerAt(redis.url, 500, "a", "store-a");
  const other = await redisServerAt(redis.url, 500, "a", "store-b");
  await own.retire(tag);
  await expect(other.forget(tag)).rejects.toMatchObject({ reason: "STORE_REFUSED" });
  await own.forget(tag);
  expect(await hashOf(redis, tag)).toEqual({});
});

test("nothing is counted before the store was heard", async () => {
  const redis = await ownRedis();
  const heard: { id?: string } = {};
  const { sequences } = await redisServerAt(redis.url, 500, "a", () => heard.id);
  const ask = { tag, generation, count: 0, seen: 0n };
  await expect(sequences.issue(ask)).rejects.toMatchObject({
    reason: "STORE_UNAVAILABLE",
    message: expect.stringContaining("the store has not answered") as string,
  });
  expect(await hashOf(redis, tag)).toEqual({});
  heard.id = "store-a";
  expect(await sequences.issue(ask)).toMatchObject({ status: "missing" });
});

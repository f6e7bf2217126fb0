// What the scripts of sequences promise, on a real Redis.
import { once } from "node:events";
import { type AddressInfo, createServer, connect, type Socket } from "node:net";
import { inspect } from "node:util";
import { MAX_SAFE_ID } from "@idmint/core";
import type { RedisDoubt } from "@idmint/core/server";
import { expect, onTestFinished, test } from "vitest";
import { CountingRedisClient } from "../../../src/store/redis/counting-redis.ts";
import { begin, hashOf, ownRedis, redisServerAt } from "./support.ts";

const tag = "orders";
const seed = { tag, generation: 1n, cur: 0n, max: 100n };

test("issues after a seed, checks before it counts, and never runs past the maximum", async () => {
  const redis = await ownRedis();
  const { sequences } = await redisServerAt(redis.url);
  const ask = { tag, generation: 1n, seen: 0n };
  expect(await sequences.issue({ ...ask, count: 1 })).toMatchObject({ status: "missing" });
  expect(await begin(sequences, seed)).toEqual({ status: "seeded" });
  expect(await sequences.issue({ ...ask, count: 60 })).toEqual({
    status: "issued",
    before: 0n,
    last: 60n,
    max: 100n,
  });
  for (let tries = 0; tries < 3; tries++) {
    expect(await sequences.issue({ ...ask, count: 41 })).toEqual({
      status: "exhausted",
      cur: 60n,
      max: 100n,
    });
  }
  expect(await sequences.issue({ ...ask, count: 40 })).toMatchObject({ before: 60n, last: 100n });
  expect(await sequences.issue({ ...ask, count: 1 })).toMatchObject({ status: "exhausted" });
  expect(await hashOf(redis, tag)).toMatchObject({
    cur: "100",
    max: "100",
    generation: "1",
    seq_recently: "0",
    seq_long_term: "0",
  });
});

test("counts exactly up to the last id that Lua's numbers hold", async () => {
  const redis = await ownRedis();
  const { sequences } = await redisServerAt(redis.url);
  await begin(sequences, { ...seed, cur: MAX_SAFE_ID - 3n, max: MAX_SAFE_ID });
  const ask = { tag, generation: 1n, seen: MAX_SAFE_ID - 3n };
  const ids: bigint[] = [];
  for (let i = 0; i < 3; i++) {
    const answer = await sequences.issue({ ...ask, count: 1 });
    if (answer.status === "issued") ids.push(answer.last);
  }
  expect(ids).toEqual([MAX_SAFE_ID - 2n, MAX_SAFE_ID - 1n, MAX_SAFE_ID]);
  expect(await sequences.issue({ ...ask, count: 1_000_000_000 })).toMatchObject({
    status: "exhausted",
    cur: MAX_SAFE_ID,
  });
});

test("believes only the generation it was seeded for, and takes only a newer one", async () => {
  const redis = await ownRedis();
  const { sequences } = await redisServerAt(redis.url);
  await begin(sequences, { ...seed, generation: 5n, cur: 500n, max: 600n });
  const ask = { tag, count: 1, seen: 0n };
  for (const generation of [4n, 6n]) {
    expect(await sequences.issue({ ...ask, generation })).toEqual({
      status: "other-generation",
      generation: 5n,
    });
  }
  for (const generation of [4n, 5n]) {
    expect(await sequences.seed({ ...seed, generation, doubt: doubtOf(5n) })).toEqual({
      status: "other-generation",
      generation: 5n,
    });
  }
  expect(await sequences.seed({ ...seed, generation: 6n, doubt: doubtOf(5n) })).toEqual({
    status: "seeded",
  });
});

test("raises only its own generation, and only upwards", async () => {
  const redis = await ownRedis();
  const { sequences } = await redisServerAt(redis.url);
  await begin(sequences, { ...seed, generation: 2n });
  expect(await sequences.raise({ tag, generation: 1n, max: 900n })).toBe(false);
  expect(await sequences.raise({ tag, generation: 3n, max: 900n })).toBe(false);
  expect(await sequences.raise({ tag, generation: 2n, max: 99n })).toBe(false);
  expect(await sequences.raise({ tag, generation: 2n, max: 200n })).toBe(true);
  expect(await sequences.raise({ tag: "other", generation: 2n, max: 200n })).toBe(false);
  expect(await hashOf(redis, tag)).toMatchObject({ max: "200", cur: "0" });
});

test("refuses when it counts below what the caller has seen answered", async () => {
  const redis = await ownRedis();
  const { sequences } = await redisServerAt(redis.url);
  await begin(sequences, seed);
  await sequences.issue({ tag, generation: 1n, count: 50, seen: 0n });
  await redis.command("HSET", `idmint:{${tag}}`, "cur", "40");
  expect(await sequences.issue({ tag, generation: 1n, count: 1, seen: 50n })).toEqual({
    status: "behind",
    generation: 1n,
  });
});

test("refuses an older snapshot of the same generation, since another process wrote it", async () => {
  const redis = await ownRedis();
  const { sequences } = await redisServerAt(redis.url);
  await begin(sequences, seed);
  await sequences.issue({ tag, generation: 1n, count: 10, seen: 0n });
  await redis.command("SAVE");
  await sequences.issue({ tag, generation: 1n, count: 10, seen: 10n });
  await redis.kill();
  await redis.start();
  const again = (await redisServerAt(redis.url)).sequences;
  expect(await hashOf(redis, tag)).toMatchObject({ cur: "10" });
  const doubt = { status: "restarted", generation: 1n };
  expect(await again.issue({ tag, generation: 1n, count: 1, seen: 0n })).toEqual(doubt);
  expect(await again.issue({ tag, generation: 2n, count: 1, seen: 0n })).toEqual(doubt);
  await begin(again, { ...seed, generation: 2n, cur: 100n, max: 200n });
  expect(await again.issue({ tag, generation: 2n, count: 1, seen: 20n })).toMatchObject({
    status: "issued",
    last: 101n,
  });
});

test("refuses after a fail-over, and after the old master followed the new one for a while", async () => {
  const master = await ownRedis();
  const replica = await ownRedis();
  const first = (await redisServerAt(master.url)).sequences;
  const ask = { tag, generation: 1n, count: 1, seen: 0n };
  await begin(first, seed);
  await replica.follow(master);
  // A first replica gives the master a new history, so it is seeded again before it counts on.
  expect(await first.issue(ask)).toMatchObject({ status: "restarted" });
  await begin(first, { ...seed, generation: 2n });
  await first.issue({ ...ask, generation: 2n, count: 10 });
  await until(async () => (await hashOf(replica, tag))["cur"] === "10");
  await replica.promote();
  const second = (await redisServerAt(replica.url)).sequences;
  expect(await second.issue({ ...ask, generation: 2n })).toMatchObject({ status: "restarted" });
  // The old master goes on counting what belongs to its generation.
  expect(await first.issue({ ...ask, generation: 2n, count: 10 })).toMatchObject({ last: 20n });
  // Then it takes over the lagging state, in which its own run_id stands, and becomes the master again.
  await master.follow(replica);
  await master.promote();
  expect(await hashOf(master, tag)).toMatchObject({ cur: "10" });
  const third = (await redisServerAt(master.url)).sequences;
  expect(await third.issue({ ...ask, generation: 2n })).toMatchObject({ status: "restarted" });
});

test("emptied by FLUSHALL, it knows nothing of the tag", async () => {
  const redis = await ownRedis();
  const { sequences } = await redisServerAt(redis.url);
  await begin(sequences, seed);
  await redis.command("FLUSHALL");
  const ask = { tag, generation: 1n, count: 1, seen: 0n };
  expect(await sequences.issue(ask)).toMatchObject({ status: "missing" });
  expect(await sequences.raise({ tag, generation: 1n, max: 900n })).toBe(false);
  await sequences.writeRates([{ tag, generation: 1n, recently: 1, longTerm: 1 }]);
  // Nothing but the note that there is nothing.
  expect(Object.keys(await hashOf(redis, tag))).toEqual(["vacant"]);
});

test("a seed that comes late does not start an emptied Redis anew", async () => {
  const redis = await ownRedis();
  const { sequences } = await redisServerAt(redis.url);
  const ask = { tag, generation: 1n, count: 1, seen: 0n };
  const doubt = await sequences.issue(ask);
  if (doubt.status !== "missing") throw new Error(doubt.status);
  // Another server is faster, ids are issued, and Redis is emptied; then the seed arrives.
  await begin(sequences, { ...seed, generation: 2n, cur: 100n, max: 200n });
  await redis.command("FLUSHALL");
  expect(await sequences.seed({ ...seed, doubt })).toMatchObject({ status: "missing" });
  const again = await sequences.issue(ask);
  expect(again).toMatchObject({ status: "missing" });
  expect(again).not.toEqual(doubt);
  expect(await sequences.seed({ ...seed, doubt })).toEqual(again);
});

test("at its memory limit it issues nothing and counts nothing, and goes on afterwards", async () => {
  const redis = await ownRedis({ settings: { "maxmemory-policy": "noeviction" } });
  const { sequences } = await redisServerAt(redis.url);
  await begin(sequences, seed);
  const ask = { tag, generation: 1n, count: 1, seen: 0n };
  await sequences.issue(ask);
  await redis.command("CONFIG", "SET", "maxmemory", "1");
  await expect(sequences.issue(ask)).rejects.toMatchObject({ reason: "STORE_UNAVAILABLE" });
  await redis.command("CONFIG", "SET", "maxmemory", "0");
  expect(await sequences.issue(ask)).toMatchObject({ status: "issued", before: 1n, last: 2n });
});

test("what was in flight when the connection broke is not sent again", async () => {
  const redis = await ownRedis();
  const { sequences } = await redisServerAt(redis.url, 300);
  await begin(sequences, seed);
  const ask = { tag, generation: 1n, count: 1, seen: 0n };
  redis.pause();
  const inFlight = Array.from({ length: 3 }, () => sequences.issue(ask));
  const outcomes = await Promise.allSettled(inFlight);
  expect(outcomes.map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
  await redis.kill();
  await expect(sequences.issue(ask)).rejects.toMatchObject({ reason: "STORE_UNAVAILABLE" });
  await redis.start();
  await until(async () => {
    const answer = await sequences.issue(ask).catch(() => undefined);
    return answer?.status === "missing";
  });
  const stats = String(await redis.command("INFO", "commandstats"));
  // Nothing but what was asked after the start, all of which found nothing.
  expect(stats).not.toContain("cmdstat_hincrby");
});

test("what was done and not answered when the connection broke is not done again", async () => {
  const redis = await ownRedis();
  const line = await Line.to(redis.port);
  const redisServer = await redisServerAt(line.url, 300);
  const { sequences } = redisServer;
  await begin(sequences, seed);
  const ask = { tag, generation: 1n, count: 1, seen: 0n };
  await sequences.issue(ask);
  line.isDeaf = true;
  const inFlight = Array.from({ length: 3 }, () => sequences.issue(ask));
  await until(async () => (await hashOf(redis, tag))["cur"] === "4");
  line.cut();
  const outcomes = await Promise.allSettled(inFlight);
  // In our words: those of the driver are about its own options.
  const broke = {
    status: "rejected",
    reason: {
      message: 'STORE_UNAVAILABLE: Redis "default": the connection broke before it answered',
    },
  };
  expect(outcomes).toMatchObject([broke, broke, broke]);
  line.isDeaf = false;
  expect(await redisServer.connected(10_000)).toBe(true);
  // The connection is good, and nothing but this was asked on it.
  expect(await sequences.issue(ask)).toMatchObject({ status: "issued", before: 4n, last: 5n });
});

test("lists what it was seeded for, reads it, and writes the rates of what is still there", async () => {
  const redis = await ownRedis();
  const { sequences } = await redisServerAt(redis.url);
  await begin(sequences, seed);
  await begin(sequences, { ...seed, tag: "users", max: 7n });
  expect(new Set((await sequences.list("0", 100)).tags)).toEqual(new Set([tag, "users"]));
  await sequences.writeRates([
    { tag, generation: 1n, recently: 12.345, longTerm: 0.5 },
    { tag: "users", generation: 9n, recently: 1, longTerm: 1 },
  ]);
  expect(await sequences.read([tag, "users", "none"])).toEqual([
    { cur: 0n, max: 100n, generation: 1n, longTermRate: 0.5 },
    { cur: 0n, max: 7n, generation: 1n, longTermRate: 0 },
    undefined,
  ]);
  expect(await hashOf(redis, tag)).toMatchObject({ seq_recently: "12.35", seq_long_term: "0.5" });
  // The next generation goes on with the long-term rate.
  await begin(sequences, { ...seed, generation: 2n });
  expect((await sequences.read([tag]))[0]).toMatchObject({ longTermRate: 0.5 });
  await sequences.unlist("users");
  expect((await sequences.list("0", 100)).tags).toEqual([tag]);
});

test("a tag that moves away is neither counted nor seeded, and starts anew when that is forgotten", async () => {
  const redis = await ownRedis();
  const redisServer = await redisServerAt(redis.url);
  const { sequences } = redisServer;
  await begin(sequences, seed);
  const ask = { tag, generation: 1n, count: 1, seen: 0n };
  // Only what was told to move is forgotten.
  await redisServer.forget(tag);
  expect(await sequences.issue(ask)).toMatchObject({ status: "issued" });
  await redisServer.retire(tag);
  const moved = { status: "moved", generation: 1n };
  expect(await sequences.issue(ask)).toMatchObject(moved);
  expect(await begin(sequences, { ...seed, generation: 9n })).toMatchObject(moved);
  expect((await sequences.list("0", 100)).tags).toEqual([]);
  await redisServer.forget(tag);
  expect(await sequences.issue(ask)).toMatchObject({ status: "missing" });
  expect(await begin(sequences, { ...seed, generation: 2n })).toEqual({ status: "seeded" });
  expect((await sequences.list("0", 100)).tags).toEqual([tag]);
});

test("errors hold neither the password nor what was sent", async () => {
  const redis = await ownRedis({ settings: { requirepass: "very-secret" } });
  const config = { name: "a", password: undefined, timeoutMs: 300 };
  const url = `${redis.url.replace("//", "//:wrong-secret@")}/0`;
  const redisServer = new CountingRedisClient({ ...config, url }, () => "store-a");
  await redisServer.connected(500);
  const asked = redisServer.sequences.issue({ tag, generation: 1n, count: 1, seen: 0n });
  const [outcome] = await Promise.allSettled([asked]);
  await redisServer.close();
  expect(outcome).toMatchObject({
    reason: {
      reason: "STORE_UNAVAILABLE",
      message: expect.stringMatching(/WRONGPASS.*the password in IDMINT_REDIS_PASSWORD/) as string,
    },
  });
  expect(inspect(outcome, { depth: 9, showHidden: true })).not.toContain("secret");
  const none = new CountingRedisClient({ ...config, url: `${redis.url}/0` }, () => "store-a");
  await none.connected(500);
  await expect(
    none.sequences.issue({ tag, generation: 1n, count: 1, seen: 0n }),
  ).rejects.toMatchObject({
    message: expect.stringContaining("it wants a password, and none is configured") as string,
  });
  await none.close();
});

/** A line to a Redis that a test can cut, and on which it can hold answers back. */
class Line {
  isDeaf = false;
  readonly url: string;
  readonly #sockets: Set<Socket>;

  private constructor(port: number, sockets: Set<Socket>) {
    this.url = `redis://127.0.0.1:${port}`;
    this.#sockets = sockets;
  }

  static async to(port: number): Promise<Line> {
    const sockets = new Set<Socket>();
    const server = createServer((near) => {
      const far = connect(port, "127.0.0.1");
      for (const [from, to] of [
        [near, far],
        [far, near],
      ] as const) {
        sockets.add(from);
        from.on("error", () => undefined);
        from.on("close", () => to.destroy());
        from.on("data", (bytes) => {
          if (from === near || !line.isDeaf) to.write(bytes);
        });
      }
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const line = new Line((server.address() as AddressInfo).port, sockets);
    onTestFinished(() => {
      line.cut();
      server.close();
    });
    return line;
  }

  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#sockets.clear();
  }
}

function doubtOf(generation: bigint): RedisDoubt {
  return { status: "other-generation", generation };
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + 20_000;
  while (!(await holds())) {
    if (performance.now() > end) throw new Error("it never came about");
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

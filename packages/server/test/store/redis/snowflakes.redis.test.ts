// What the scripts of redis_snowflake promise, on a real Redis.
import { COUNTERS_PER_MS, positionOf, runsOf } from "@idmint/core/kinds";
import type { RedisSnowflakes } from "@idmint/core/server";
import { expect, test } from "vitest";
import { SNOWFLAKE_ISSUE } from "../../../src/store/redis/scripts.ts";
import { hashOf, ownRedis, redisServerAt } from "./support.ts";

const tag = "events";
const generation = 1n;
const FAR_AHEAD_MS = 3_600_000;

async function seeded(
  snowflakes: RedisSnowflakes,
  { firstMs, limitMs }: { firstMs?: number; limitMs?: number } = {},
): Promise<number> {
  const doubt = await snowflakes.issue({ tag, generation, count: 0, seen: 0 });
  if (doubt.status !== "missing") throw new Error(doubt.status);
  const { nowMs } = doubt;
  const answer = await snowflakes.seed({
    tag,
    generation,
    first: positionOf(nowMs + (firstMs ?? 0), 0),
    limitMs: nowMs + (limitMs ?? FAR_AHEAD_MS),
    doubt,
  });
  expect(answer).toEqual({ status: "seeded" });
  return nowMs;
}

test("counts 1,024 in a millisecond and goes on in the next, without a hole and never twice", async () => {
  const redis = await ownRedis();
  const { snowflakes } = await redisServerAt(redis.url);
  // A start ahead of the clock stands still, so that milliseconds overflow for sure.
  const nowMs = await seeded(snowflakes, { firstMs: 40 });
  const seen = new Set<number>();
  let next = positionOf(nowMs + 40, 0);
  for (const count of [1_000, 23, 2, 3_000]) {
    const answer = await snowflakes.issue({ tag, generation, count, seen: 0 });
    if (answer.status !== "issued") throw new Error(answer.status);
    if (answer.nowMs < nowMs + 40) expect(answer.first).toBe(next);
    for (const run of runsOf(answer.first, count)) {
      expect(run.counter + run.count).toBeLessThanOrEqual(COUNTERS_PER_MS);
      for (let i = 0; i < run.count; i++) seen.add(positionOf(run.atMs, run.counter + i));
    }
    next = answer.first + count;
  }
  expect(seen.size).toBe(4_025);
});

test("goes at most 50 ms ahead of the clock, and says how far it would", async () => {
  const redis = await ownRedis();
  const { snowflakes } = await redisServerAt(redis.url);
  await seeded(snowflakes);
  let issued = 0;
  for (let call = 0; call < 20; call++) {
    const answer = await snowflakes.issue({ tag, generation, count: 20_000, seen: 0 });
    if (answer.status === "issued") {
      issued++;
      const lastMs = Math.floor((answer.first + 19_999) / COUNTERS_PER_MS);
      expect(lastMs - answer.nowMs).toBeLessThanOrEqual(50);
    } else {
      expect(answer).toMatchObject({ status: "ahead" });
      if (answer.status === "ahead") expect(answer.aheadMs).toBeGreaterThan(50);
    }
  }
  expect(issued).toBeGreaterThan(0);
  expect(issued).toBeLessThan(20);
});

test("never passes the reservation, and goes on when it is extended", async () => {
  const redis = await ownRedis();
  const redisServer = await redisServerAt(redis.url);
  const { snowflakes } = redisServer;
  const nowMs = await seeded(snowflakes, { limitMs: -1 });
  const ask = { tag, generation, count: 1, seen: 0 };
  const before = await hashOf(redis, tag);
  expect(await snowflakes.issue(ask)).toMatchObject({ status: "limit", limitMs: nowMs - 1 });
  expect(await hashOf(redis, tag)).toEqual(before);
  expect(await redisServer.raiseLimit({ tag, generation: 2n, limitMs: nowMs + 9_000 })).toBe(false);
  expect(await redisServer.raiseLimit({ tag, generation, limitMs: nowMs - 2 })).toBe(false);
  expect(await redisServer.raiseLimit({ tag, generation, limitMs: nowMs + FAR_AHEAD_MS })).toBe(
    true,
  );
  expect(await snowflakes.issue(ask)).toMatchObject({ status: "issued" });
});

test("issues the last position of the reservation, and not the one after it", async () => {
  const redis = await ownRedis();
  const { snowflakes } = await redisServerAt(redis.url);
  // So far ahead that Redis' clock plays no part; of the time ids may be ahead as well.
  const nowMs = await seeded(snowflakes, { firstMs: FAR_AHEAD_MS, limitMs: FAR_AHEAD_MS + 1 });
  const limitMs = nowMs + FAR_AHEAD_MS + 1;
  const key = `idmint:{${tag}}`;
  const issue = async (count: number): Promise<readonly string[]> => {
    const args = ["1", count, "0", 2 * FAR_AHEAD_MS, "store-a"];
    const answer = await redis.command("EVAL", SNOWFLAKE_ISSUE.lua, 1, key, ...args);
    return answer as readonly string[];
  };
  const all = 2 * COUNTERS_PER_MS;
  const refused = ["limit", "", String(limitMs)];
  expect((await issue(all + 1)).slice(0, 3)).toEqual(refused);
  const first = positionOf(limitMs - 1, 0);
  expect((await issue(all - 1)).slice(0, 2)).toEqual(["issued", String(first)]);
  expect((await issue(2)).slice(0, 3)).toEqual(refused);
  const last = positionOf(limitMs, COUNTERS_PER_MS - 1);
  expect((await issue(1)).slice(0, 2)).toEqual(["issued", String(last)]);
  const used = await hashOf(redis, tag);
  for (const count of [1, COUNTERS_PER_MS]) {
    expect((await issue(count)).slice(0, 3)).toEqual(refused);
  }
  expect(await hashOf(redis, tag)).toEqual(used);
  // Nothing is asked of the reservation by who asks for nothing.
  expect((await issue(0))[0]).toBe("issued");
});

test("a clock that goes back is carried on logically, and beyond 50 ms refused", async () => {
  const redis = await ownRedis();
  const { snowflakes } = await redisServerAt(redis.url);
  await seeded(snowflakes);
  const ask = { tag, generation, count: 1, seen: 0 };
  const first = await snowflakes.issue(ask);
  if (first.status !== "issued") throw new Error(first.status);
  // The clock cannot be set back here; the tag's own time is put forward instead, which is the same to the script.
  const aheadMs = first.nowMs + 30;
  await redis.command("HSET", `idmint:{${tag}}`, "last_ms", aheadMs, "seq", 1_023);
  const carried = await snowflakes.issue({ ...ask, count: 2 });
  if (carried.status !== "issued") throw new Error(carried.status);
  if (carried.nowMs < aheadMs) expect(carried.first).toBe(positionOf(aheadMs, 1_023));
  await redis.command("HSET", `idmint:{${tag}}`, "last_ms", first.nowMs + 60_000, "seq", 0);
  expect(await snowflakes.issue(ask)).toMatchObject({ status: "ahead" });
});

test("refuses an older snapshot, another generation, and a position below what was seen", async () => {
  const redis = await ownRedis();
  const { snowflakes } = await redisServerAt(redis.url);
  await seeded(snowflakes);
  const ask = { tag, generation, count: 1, seen: 0 };
  const first = await snowflakes.issue(ask);
  if (first.status !== "issued") throw new Error(first.status);
  expect(await snowflakes.issue({ ...ask, generation: 2n })).toMatchObject({
    status: "other-generation",
    generation: 1n,
  });
  // A millisecond that is not over holds positions that were answered and positions that were not.
  const aheadMs = first.nowMs + 1_000;
  await redis.command("HSET", `idmint:{${tag}}`, "last_ms", aheadMs, "seq", 5);
  const within = { ...ask, count: 0, seen: positionOf(aheadMs, 6) };
  expect(await snowflakes.issue(within)).toMatchObject({ status: "behind" });
  expect(await snowflakes.issue({ ...within, seen: positionOf(aheadMs, 5) })).toMatchObject({
    status: "issued",
  });
  const seen = first.first + 1_000_000_000;
  expect(await snowflakes.issue({ ...ask, seen })).toMatchObject({ status: "behind" });
  await redis.command("SAVE");
  await snowflakes.issue(ask);
  await redis.kill();
  await redis.start();
  const again = (await redisServerAt(redis.url)).snowflakes;
  expect(await again.issue(ask)).toMatchObject({ status: "restarted", generation: 1n });
  await redis.command("FLUSHALL");
  expect(await again.issue(ask)).toMatchObject({ status: "missing" });
});

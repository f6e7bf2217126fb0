// Counters of several servers on one real Redis, over a store in memory that fails on demand.
import { decode, IdmintError, type Segment } from "@idmint/core";
import { composeId } from "@idmint/core/kinds";
import type { TagSettings } from "@idmint/core/server";
import { MemoryStore } from "@idmint/testkit";
import type { RedisServer } from "@idmint/testkit/redis";
import { expect, test } from "vitest";
import { realSystem } from "../../../src/main/system.ts";
import { moveTag } from "../../../src/service/redis/move.ts";
import { placeOf } from "../../../src/service/redis/place.ts";
import { RedisWatch } from "../../../src/service/redis/watch.ts";
import { begin, ownRedis } from "../../store/redis/support.ts";
import { commitSoon, serverOn } from "./counting-servers.ts";
import { sequenceSettings } from "./redis-tags.ts";

const TAG = "orders";
const CEILING = 2n ** 53n - 1n;
const orders = sequenceSettings(TAG, { step: 100, ceiling: CEILING });
const origin = Date.UTC(2026, 0);
const events: TagSettings = {
  name: "events",
  description: "",
  order: "UNORDERED",
  ceiling: 2n ** 63n - 1n,
  kind: { kind: "redis_snowflake", shard: 7, timeOriginMs: origin, redisServer: "a" },
};

test.each(["before", "after"])(
  "a server that has not heard of another time_origin makes no snowflakes by the old one, %s one that has",
  async (order) => {
    const redis = await ownRedis();
    const store = new MemoryStore();
    await store.createTag(events);
    const deaf = (await serverOn(store, { a: redis })).snowflake(events);
    const kind = { ...events.kind, timeOriginMs: origin - 86_400_000 } as typeof events.kind;
    const settings = { order: events.order, ceiling: events.ceiling, kind };
    const tag = await store.updateTag("events", { settings }, undefined);
    const server = (await serverOn(store, { a: redis })).snowflake(events);
    server.update(tag);
    if (order === "after") await commitSoon(server, 1);
    const refused = await deaf.commit(1).catch((thrown: unknown) => thrown);
    expect(refused).toMatchObject({ reason: "SEGMENT_NOT_READY" });
    const before = await commitSoon(server, 1);
    deaf.update(tag);
    expect(await commitSoon(deaf, 1)).toBeGreaterThan(before);
  },
);

test("two servers share one sequence, and one that starts later goes on with it", async () => {
  const redis = await ownRedis();
  const store = new MemoryStore();
  await store.createTag(orders);
  const one = (await serverOn(store, { a: redis })).sequence(orders);
  const two = (await serverOn(store, { a: redis })).sequence(orders);
  const bases: bigint[] = [];
  for (let call = 0; call < 10; call++) {
    bases.push((await one.commit(3)).base, (await two.commit(2)).base);
  }
  expect(bases).toEqual(bases.toSorted((a, b) => (a < b ? -1 : 1)));
  expect(bases[0]).toBe(1n);
  // No gap: the second server took over the first one's generation.
  expect(bases.at(-1)).toBe(49n);
});

test("servers that give Redis a new start at once never give the same one, and agree at once", async () => {
  const redis = await ownRedis();
  const store = new MemoryStore();
  await store.createTag(orders);
  const servers = await Promise.all(
    Array.from({ length: 4 }, async () => (await serverOn(store, { a: redis })).sequence(orders)),
  );
  const issued = new Set<bigint>();
  for (let round = 0; round < 5; round++) {
    await redis.command("FLUSHALL");
    const answers = await Promise.all(servers.map((server) => commitSoon(server, 2)));
    for (const base of answers) issued.add(base).add(base + 1n);
    expect(issued.size).toBe((round + 1) * 8);
  }
  // Each server raised at most once or twice a round, not in a chain.
  expect(store.count("raise")).toBeLessThanOrEqual(5 * 4 * 2);
});

test("with max_skip no more is left below the maximum, and no new start skips more", async () => {
  const redis = await ownRedis();
  const store = new MemoryStore();
  const maxSkip = 100;
  const short = sequenceSettings(TAG, { step: 10, maxSkip, ceiling: CEILING });
  await store.createTag(short);
  const places = await Promise.all([1, 2, 3].map(() => serverOn(store, { a: redis })));
  const servers = places.map((server) => server.sequence(short));
  const leftNow = async (): Promise<number> => {
    const [cur, max] = (await redis.command("HMGET", `idmint:{${TAG}}`, "cur", "max")) as string[];
    return Number(max) - Number(cur);
  };
  const [{ raises, redisServers }] = places as [(typeof places)[number]];
  const { clock, timers } = realSystem;
  // The loop sees an hour's worth wanted at any rate, and raises beside the servers.
  const watch = new RedisWatch(
    {
      redisServer: redisServers.get("a")!,
      isLeader: () => true,
      raises,
      getTags: (names) => store.getTags(names),
      clock,
      timers,
      emit: () => undefined,
    },
    { raiseBelowMs: 3_600_000, raiseByMs: 7_200_000 },
  );
  for (let round = 0; round < 4; round++) {
    let last = 0n;
    for (let call = 0; call < 12; call++) {
      const answers = await Promise.all([
        ...servers.map((server) => commitSoon(server, 3)),
        watch.turn().then(() => 0n),
      ]);
      for (const base of answers) if (base + 2n > last) last = base + 2n;
      expect(await leftNow()).toBeLessThanOrEqual(maxSkip);
    }
    const left = await leftNow();
    expect(left).toBeGreaterThan(0);
    await redis.kill();
    await redis.start();
    // One server gives it a new start, so that none is given twice.
    const next = await commitSoon(servers[0]!, 1);
    expect(Number(next - last)).toBe(left + 1);
  }
  // A call that asks for more is served, and with no more than it asks for.
  const big = await commitSoon(servers[1]!, 5_000);
  expect(await leftNow()).toBeLessThanOrEqual(5_000);
  expect(await commitSoon(servers[1]!, 1)).toBe(big + 5_000n);
}, 30_000);

test("an older snapshot is left behind: the next id is above every one that was issued", async () => {
  const redis = await ownRedis();
  const store = new MemoryStore();
  await store.createTag(orders);
  const server = await serverOn(store, { a: redis });
  const counter = server.sequence(orders);
  await counter.commit(10);
  await redis.command("SAVE");
  const { base } = await counter.commit(20);
  await redis.kill();
  await redis.start();
  const after = await commitSoon(counter, 1);
  expect(after).toBeGreaterThan(base + 19n);
  expect(server.heard).toContainEqual(
    expect.objectContaining({ type: "redis-seeded", why: "restarted", from: after - 1n }),
  );
  // A server that never saw the ids above the snapshot does not believe it either.
  const fresh = (await serverOn(store, { a: redis })).sequence(orders);
  expect(await commitSoon(fresh, 1)).toBe(after + 1n);
});

test("a server notices at once that Redis has less than it was answered, whatever others were told", async () => {
  const redis = await ownRedis({ settings: { "enable-debug-command": "yes" } });
  const store = new MemoryStore();
  await store.createTag(orders);
  const server = await serverOn(store, { a: redis });
  const counter = server.sequence(orders);
  await counter.commit(10);
  await redis.command("SAVE");
  const { base } = await counter.commit(20);
  await redis.command("DEBUG", "RELOAD", "NOSAVE");
  expect((await counter.commit(1)).base).toBeGreaterThan(base + 19n);
  expect(server.heard).toContainEqual(
    expect.objectContaining({ type: "redis-seeded", why: "behind", isLoss: true }),
  );
});

test("a server that never asked before knows what others were answered before it asks", async () => {
  const redis = await ownRedis({ settings: { "enable-debug-command": "yes" } });
  const store = new MemoryStore();
  await store.createTag(orders);
  const server = await serverOn(store, { a: redis });
  const counter = server.sequence(orders);
  await counter.commit(10);
  await redis.command("SAVE");
  const { base } = await counter.commit(20);
  await server.marks.turn();
  await redis.command("DEBUG", "RELOAD", "NOSAVE");
  const fresh = await serverOn(store, { a: redis });
  expect(await commitSoon(fresh.sequence(orders), 1)).toBeGreaterThan(base + 19n);
  // Without the store nobody could tell, so nothing is asked.
  store.faults = { before: () => Promise.reject(down()) };
  const blind = (await serverOn(store, { a: redis })).sequence(orders);
  await expect(blind.commit(1)).rejects.toMatchObject({ reason: "STORE_UNAVAILABLE" });
});

test("a tag that moves between a raise and the new start is not started in its old Redis server", async () => {
  const redis = { a: await ownRedis(), b: await ownRedis() };
  const store = new MemoryStore();
  await store.createTag(orders);
  const counter = (await serverOn(store, redis)).sequence(orders);
  const { base } = await counter.commit(10);
  await redis.a.command("FLUSHALL");
  const moved = sequenceSettings(TAG, { step: 100, ceiling: CEILING, server: "b" });
  // The row says the new Redis server from the moment on in which the raise is durable.
  const operator = new MemoryStore({ database: store.database });
  store.faults = {
    after: async (operation) => {
      if (operation !== "raise") return;
      store.faults = {};
      await operator.updateTag(TAG, { settings: moved }, undefined);
    },
  };
  expect((await counter.commit(1)).base).toBeGreaterThan(base + 9n);
  const startedIn = (server: RedisServer) => server.command("HEXISTS", `idmint:{${TAG}}`, "cur");
  expect([await startedIn(redis.a), await startedIn(redis.b)].map(Number)).toEqual([0, 1]);
});

test("what an earlier store left in Redis is not believed, even with a higher or the same generation", async () => {
  for (const left of [1n, 5n, 2n ** 40n]) {
    const redis = await ownRedis();
    const store = new MemoryStore();
    await store.createTag(orders);
    const server = await serverOn(store, { a: redis });
    const { sequences } = server.redisServers.get("a")!;
    await begin(sequences, { tag: TAG, generation: left, cur: 7_000n, max: 1_000_000n });
    const counter = server.sequence(orders);
    expect(await commitSoon(counter, 1)).toBe(1n);
    const [row] = await store.getTags([TAG]);
    expect(row?.generation).toBeGreaterThan(left);
    const fresh = (await serverOn(store, { a: redis })).sequence(orders);
    expect(await commitSoon(fresh, 1)).toBe(2n);
  }
});

test("with only the store down it goes on up to the maximum, and then fails fast", async () => {
  const redis = await ownRedis();
  const store = new MemoryStore();
  await store.createTag(orders);
  const counter = (await serverOn(store, { a: redis })).sequence(orders);
  await counter.commit(1);
  store.faults = { before: () => Promise.reject(down()) };
  for (let id = 2n; id <= 100n; id++) expect((await counter.commit(1)).base).toBe(id);
  const start = performance.now();
  for (let tries = 0; tries < 5; tries++) {
    await expect(counter.commit(1)).rejects.toMatchObject({
      reason: "MAX_NOT_RAISED",
      code: "UNAVAILABLE",
      retryAfterMs: expect.any(Number) as number,
    });
  }
  expect(performance.now() - start).toBeLessThan(1_000);
  store.faults = {};
  expect(await commitSoon(counter, 1)).toBe(101n);
});

test("with the store down, a Redis that came back older or empty issues nothing", async () => {
  const redis = await ownRedis();
  const store = new MemoryStore();
  await store.createTag(orders);
  const counter = (await serverOn(store, { a: redis })).sequence(orders);
  await counter.commit(10);
  await redis.command("SAVE");
  const { base } = await counter.commit(10);
  store.faults = { before: () => Promise.reject(down()) };
  await redis.kill();
  await redis.start();
  for (let tries = 0; tries < 10; tries++) {
    await expect(counter.commit(1)).rejects.toMatchObject({ reason: "STORE_UNAVAILABLE" });
    await new Promise((resolve) => setTimeout(resolve, 30));
  }
  store.faults = {};
  expect(await commitSoon(counter, 1)).toBeGreaterThan(base + 9n);
});

test("ends at its ceiling with TAG_EXHAUSTED, having issued every id up to it", async () => {
  const redis = await ownRedis();
  const store = new MemoryStore();
  const small = sequenceSettings("small", { step: 7, ceiling: 20n });
  await store.createTag(small);
  const counter = (await serverOn(store, { a: redis })).sequence(small);
  for (let id = 1n; id <= 20n; id++) expect(await commitSoon(counter, 1)).toBe(id);
  await expect(counter.commit(1)).rejects.toMatchObject({ reason: "TAG_EXHAUSTED" });
});

test("a maximum that only the store heard of is told to Redis at the ceiling too", async () => {
  const redis = await ownRedis();
  const store = new MemoryStore();
  const small = sequenceSettings("small", { step: 10, ceiling: 20n });
  await store.createTag(small);
  const server = await serverOn(store, { a: redis });
  const counter = server.sequence(small);
  await counter.commit(1);
  // The raise is durable, and whoever made it dies before Redis hears of it.
  await server.raises.raise({ tag: "small", by: 10n, atLeast: 0n, newGeneration: false });
  for (let id = 2n; id <= 20n; id++) expect(await commitSoon(counter, 1)).toBe(id);
});

test("one server watches: it writes the rates and raises ahead of use", async () => {
  const redis = await ownRedis();
  const store = new MemoryStore();
  await store.createTag(orders);
  const server = await serverOn(store, { a: redis });
  const counter = server.sequence(orders);
  await counter.commit(20);
  const [redisServer] = server.redisServers.values();
  let leads = false;
  let nowMs = 0;
  const watch = new RedisWatch(
    {
      redisServer: redisServer!,
      isLeader: () => leads,
      raises: server.raises,
      getTags: (names) => store.getTags(names),
      clock: { now: () => nowMs },
      timers: { after: () => () => undefined },
      emit: (event) => server.heard.push(event),
    },
    { raiseBelowMs: 10_000, raiseByMs: 60_000 },
  );
  const readings = () => redisServer!.sequences.read([TAG]);
  const [before] = await readings();
  await watch.turn();
  nowMs += 1_000;
  await counter.commit(20);
  await watch.turn();
  expect((await readings())[0]).toEqual({ ...before, cur: 40n });
  leads = true;
  await watch.turn();
  nowMs += 1_000;
  await counter.commit(20);
  await watch.turn();
  const [after] = await readings();
  // 20 ids a second: 40 are not enough for 10 s, and a minute's worth is 1,200.
  expect(after).toMatchObject({ cur: 60n, max: 1_300n });
  const [row] = await store.getTags([TAG]);
  expect(row?.floor).toBe(1_300n);
  expect(await redis.command("HGET", `idmint:{${TAG}}`, "seq_recently")).toBe("20");
  expect(server.heard).toContainEqual(
    expect.objectContaining({ type: "redis-raised", max: 1_300n, rate: 20 }),
  );
});

test("a tag moves between Redis servers at once, in order, and back", async () => {
  const redis = { a: await ownRedis(), b: await ownRedis() };
  const store = new MemoryStore();
  await store.createTag(orders);
  const one = await serverOn(store, redis);
  const mover = await serverOn(store, redis);
  // One server keeps asking and is never told of a move; the other is new each time.
  const counter = one.sequence(orders);
  let last = 0n;
  for (const redisServer of ["b", "a", "a", "b", "a"]) {
    const [tag] = await store.getTags([TAG]);
    await moveTag({ store, redisServers: mover.redisServers }, tag!, {
      redisServer,
      force: false,
      validateOnly: false,
    });
    const base = (await counter.commit(3)).base;
    expect(base).toBeGreaterThan(last);
    const [moved] = await store.getTags([TAG]);
    expect(placeOf(moved!).redisServer).toBe(redisServer);
    const fresh = (await serverOn(store, redis)).sequence({ ...orders, kind: moved!.kind });
    last = (await fresh.commit(1)).base;
    expect(last).toBe(base + 3n);
  }
});

test("an old Redis server that is gone holds up a move, unless it is forced", async () => {
  const redis = { a: await ownRedis(), b: await ownRedis() };
  const store = new MemoryStore();
  await store.createTag(orders);
  const server = await serverOn(store, redis);
  const counter = server.sequence(orders);
  const { base } = await counter.commit(5);
  await redis.a.kill();
  const ports = { store, redisServers: server.redisServers };
  const [tag] = await store.getTags([TAG]);
  await expect(
    moveTag(ports, tag!, { redisServer: "b", force: false, validateOnly: false }),
  ).rejects.toMatchObject({
    reason: "STORE_UNAVAILABLE",
  });
  const moved = await moveTag(ports, tag!, { redisServer: "b", force: true, validateOnly: false });
  counter.update(moved);
  expect((await counter.commit(1)).base).toBeGreaterThan(base + 4n);
});

test("snowflakes of two servers are unique, tell their parts, and outlive what Redis forgets", async () => {
  const redis = await ownRedis();
  const store = new MemoryStore();
  await store.createTag(events);
  const servers = [await serverOn(store, { a: redis }), await serverOn(store, { a: redis })];
  const counters = servers.map((server) => server.snowflake(events));
  const ids = new Set<bigint>();
  let total = 0;
  const mint = async (count: number): Promise<void> => {
    for (const counter of counters) {
      const base = await commitSoon(counter, count);
      const segments: readonly Segment[] = counter.segmentsOf({
        base,
        count,
        epoch: 1n,
        period: undefined,
      });
      for (const segment of segments) {
        for (let at = 0; at < segment.count; at++) ids.add(segment.base + BigInt(at));
      }
      total += count;
    }
  };
  for (const count of [1, 500, 1_024, 5_000, 10_000]) await mint(count);
  await redis.command("SAVE");
  for (const count of [1, 5_000]) await mint(count);
  await redis.kill();
  await redis.start();
  const start = performance.now();
  await mint(1);
  console.log(`snowflakes again after ${Math.round(performance.now() - start)} ms`);
  await redis.command("FLUSHALL");
  await mint(100);
  expect(ids.size).toBe(total);
  const nowMs = Date.now();
  const layout = {
    timeOriginMs: origin,
    timeUnitMs: 1,
    timeBits: 41,
    extensionBits: 0,
    dataCenterBits: 0,
    workerBits: 12,
    sequenceBits: 10,
  };
  for (const id of ids) {
    const { tick, worker, sequence } = decode(layout, id);
    expect(worker).toBe(7);
    expect(Math.abs(origin + tick - nowMs)).toBeLessThan(60_000);
    expect(composeId({ shard: 7, timeOriginMs: origin }, origin + tick, sequence)).toBe(id);
  }
}, 20_000);

test("snowflakes go on within their reservation while the store is down, and then fail fast", async () => {
  const redis = await ownRedis();
  const store = new MemoryStore();
  await store.createTag(events);
  const counter = (await serverOn(store, { a: redis })).snowflake(events);
  await counter.commit(1);
  store.faults = { before: () => Promise.reject(down()) };
  const start = performance.now();
  let answered = 0;
  let refused: IdmintError | undefined;
  while (refused === undefined) {
    try {
      await counter.commit(1);
      answered++;
    } catch (thrown) {
      refused = IdmintError.from(thrown);
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  const heldMs = performance.now() - start;
  expect(refused).toMatchObject({ reason: "MAX_NOT_RAISED" });
  expect(answered).toBeGreaterThan(10);
  // Three seconds were reserved, or what was left of them.
  expect(heldMs).toBeGreaterThan(1_500);
  expect(heldMs).toBeLessThan(4_500);
  store.faults = {};
  await commitSoon(counter, 1);
});

test("many new starts in a row do not push the reservation into the future", async () => {
  const redis = await ownRedis();
  const store = new MemoryStore();
  await store.createTag(events);
  const counter = (await serverOn(store, { a: redis })).snowflake(events);
  for (let round = 0; round < 10; round++) {
    await redis.command("FLUSHALL");
    await counter.commit(1).catch(() => undefined);
  }
  await commitSoon(counter, 1, 4_000);
}, 20_000);

function down(): IdmintError {
  return new IdmintError("STORE_UNAVAILABLE", "down", { retryAfterMs: 1 });
}

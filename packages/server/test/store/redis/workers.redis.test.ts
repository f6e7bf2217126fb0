// The registry of worker ids in Redis, below bounds that a store in memory keeps.
import { IdmintError, maxIdOf, tickAt, type WorkerLease } from "@idmint/core";
import type { SnowflakeKind } from "@idmint/core/kinds";
import { type CountingRedis, type Tag, tagNotFound, tagPaused } from "@idmint/core/server";
import { MemoryDatabase, MemoryStore, storeIsDown } from "@idmint/testkit";
import type { RedisServer } from "@idmint/testkit/redis";
import {
  leaseOf,
  type OpenRegistry,
  reasonOf,
  type RegistryHarness,
  renewalOf,
  snowflakeOf,
  workerSuite,
} from "@idmint/testkit/store-suite";
import { walkRegistry } from "@idmint/testkit/store-model";
import { expect, test, vi } from "vitest";
import { RedisWorkerRegistry } from "../../../src/service/redis/worker-registry.ts";
import { countingPorts } from "../../service/redis/counting-servers.ts";
import { hashOf, ownRedis, redisServerAt } from "./support.ts";

vi.setConfig({ testTimeout: 60_000 });

const PLACE = { registry: "REDIS", redisServer: "a" } as const;

/** What one server makes of its tags, which it looks up anew for every call; one that `isDeaf` hears of no change. */
function openOn(store: MemoryStore, redisServer: CountingRedis, isDeaf = false): OpenRegistry {
  const registries = new Map<string, RedisWorkerRegistry>();
  const ports = countingPorts(store, new Map([["a", redisServer]]));
  // As the directory and the service of workers do.
  const of = (name: string): RedisWorkerRegistry => {
    const tag = store.database.rows.get(name);
    if (tag === undefined || tag.state === "DELETED") throw tagNotFound(name);
    if (tag.kind.kind !== "snowflake") throw new IdmintError("WRONG_KIND", "no workers");
    if (tag.state === "PAUSED") throw tagPaused(name);
    const known = registries.get(name) ?? new RedisWorkerRegistry(tag, ports);
    registries.set(name, known);
    if (!isDeaf) known.update(tag);
    return known;
  };
  return {
    createTag: (settings) => store.createTag(settings),
    getTags: (names) => store.getTags(names),
    listTags: (query) => store.listTags(query),
    recentTags: (limit) => store.recentTags(limit),
    updateTag: (...args) => store.updateTag(...args),
    advanceTag: (...args) => store.advanceTag(...args),
    returnToPeriod: (...args) => store.returnToPeriod(...args),
    setTagState: (...args) => store.setTagState(...args),
    accept: (gap) => store.accept(gap),
    leaseWorker: async (request) => of(request.tag).leaseWorker(request),
    renewWorker: async (renewal) => of(renewal.tag).renewWorker(renewal),
    releaseWorker: async (key) => of(key.tag).releaseWorker(key),
    listWorkers: async (query) => {
      if (!store.database.rows.has(query.tag)) return [];
      return of(query.tag).listWorkers(query);
    },
    close: async () => undefined,
  };
}

const SHIFT = `local ms = tonumber(ARGV[1])
local flat = redis.call('HGETALL', KEYS[1])
for at = 1, #flat, 2 do
  local name, value = flat[at], flat[at + 1]
  local instance, token, reserved, expires = string.match(value, '^(%S+) (%S+) (%S+) (%S+)$')
  if instance then
    redis.call('HSET', KEYS[1], name, instance .. ' ' .. token .. ' ' ..
      string.format('%.0f', reserved - ms) .. ' ' .. string.format('%.0f', expires - ms))
  elseif string.sub(name, 1, 2) == 'f:' or name == 'start_ms' then
    redis.call('HSET', KEYS[1], name, string.format('%.0f', value - ms))
  end
end
return 'OK'`;

interface Harness extends RegistryHarness {
  readonly redis: RedisServer;
  readonly store: MemoryStore;
  /** Opens a handle over a store of its own, which may fail on demand. */
  openOver(store: MemoryStore): Promise<OpenRegistry>;
  /** Opens one that hears of no change of a tag it knows. */
  openDeaf(): Promise<OpenRegistry>;
}

async function redisHarness(): Promise<Harness> {
  const database = new MemoryDatabase();
  const redis = await ownRedis();
  const store = new MemoryStore({ database });
  const openOver = async (over: MemoryStore): Promise<OpenRegistry> =>
    openOn(over, await redisServerAt(redis.url, 2_000, "a"));
  return {
    place: PLACE,
    redis,
    store,
    openOver,
    open: () => openOver(new MemoryStore({ database })),
    openDeaf: async () => openOn(store, await redisServerAt(redis.url, 2_000, "a"), true),
    pass: async (ms) => {
      for (const tag of database.rows.keys()) {
        await redis.command("EVAL", SHIFT, 1, `idmint:{${tag}}`, ms);
      }
    },
    remove: async () => undefined,
  };
}

workerSuite("redis", redisHarness);

test("the registry in Redis leases as the reference does, step by step, from several handles", async () => {
  await walkRegistry(redisHarness, { runs: 5, steps: 80 });
});

/** The last millisecond of which the store has reserved all ids. */
function boundOf({ store }: Harness, tag = "t"): number {
  const row = store.database.rows.get(tag) as Tag;
  const { layout } = row.kind as SnowflakeKind;
  const per = maxIdOf({ ...layout, timeBits: 0 }) + 1n;
  return layout.timeOriginMs + Number((row.floor + 1n) / per) * layout.timeUnitMs - 1;
}

/** Asks until it is answered, within the time in which Redis must be of use again. */
async function soon<T>(work: () => Promise<T>, withinMs = 8_000): Promise<T> {
  const end = performance.now() + withinMs;
  for (;;) {
    try {
      return await work();
    } catch (thrown) {
      const error = IdmintError.from(thrown);
      if (!error.retryable || performance.now() > end) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

test("what Redis reserves never passes what the store has for it", async () => {
  const harness = await redisHarness();
  const registry = await harness.open();
  await registry.createTag(snowflakeOf("t", harness));
  let lease = await registry.leaseWorker(leaseOf("a"));
  expect(boundOf(harness)).toBeGreaterThanOrEqual(lease.reservedUntilMs);
  for (let round = 1; round <= 40; round++) {
    const reserveUntilMs = lease.nowMs + 3_000 + round * 200;
    const renewed = await registry.renewWorker(renewalOf(lease, { reserveUntilMs }));
    lease = { ...lease, ...renewed };
    expect(boundOf(harness)).toBeGreaterThanOrEqual(renewed.reservedUntilMs);
  }
  const hash = await hashOf(harness.redis, "t");
  expect(Number(hash["limit_ms"])).toBeLessThanOrEqual(boundOf(harness));
  // The store is asked now and then, not each time.
  expect(harness.store.database.rows.get("t")?.version).toBeLessThan(20n);
});

test("a lease or renewal past the limit changes nothing until the limit is raised", async () => {
  const redis = await ownRedis();
  const redisServer = await redisServerAt(redis.url);
  const { workers } = redisServer;
  const under = { tag: "t", generation: 1n, seen: 0, dataCenter: 0 };
  const wish = { ...under, instance: "a", reserveAheadMs: 3_000, workerIds: 2 };
  const doubt = await workers.lease(wish);
  if (doubt.status !== "missing") throw new Error(`an empty Redis answered ${doubt.status}`);
  const nowMs = Date.now();
  const seed = { tag: "t", generation: 1n, afterMs: nowMs - 9_000, limitMs: nowMs + 500, doubt };
  expect(await workers.seed(seed)).toEqual({ status: "seeded" });
  const refused = await workers.lease(wish);
  expect(refused).toMatchObject({ status: "limit" });
  expect(Object.keys(await hashOf(redis, "t"))).not.toContain("w:0:0");
  const raise = { tag: "t", generation: 1n, limitMs: nowMs + 20_000 };
  expect(await redisServer.raiseLimit({ ...raise, generation: 2n })).toBe(false);
  expect(await redisServer.raiseLimit(raise)).toBe(true);
  const lease = await workers.lease(wish);
  if (lease.status !== "done") throw new Error(`a lease was answered ${lease.status}`);
  expect(lease).toMatchObject({ workerId: 0, notBeforeMs: seed.afterMs + 1, changes: 1 });
});

/** What Redis may lose, and how. */
const LOSSES: readonly (readonly [string, (redis: RedisServer) => Promise<unknown>])[] = [
  ["was emptied", (redis) => redis.command("FLUSHALL")],
  [
    "was killed and came back empty",
    async (redis) => {
      await redis.kill();
      await redis.start();
    },
  ],
  [
    "came back with an older snapshot",
    async (redis) => {
      await redis.kill();
      await redis.start();
    },
  ],
];

for (const [what, lose] of LOSSES) {
  test(`when Redis ${what}, leases begin above all that was reserved, and old ones are lost`, async () => {
    const harness = await redisHarness();
    const { redis } = harness;
    const registry = await harness.open();
    await registry.createTag(snowflakeOf("t", harness));
    const before: WorkerLease[] = [];
    for (const instance of ["a", "b"]) before.push(await registry.leaseWorker(leaseOf(instance)));
    if (what.includes("snapshot")) {
      await redis.command("SAVE");
      const [first] = before as [WorkerLease];
      const reserveUntilMs = first.nowMs + 12_000;
      const renewed = await registry.renewWorker(renewalOf(first, { reserveUntilMs }));
      before[0] = { ...first, ...renewed };
    }
    const bound = boundOf(harness);
    for (const { reservedUntilMs } of before) expect(reservedUntilMs).toBeLessThanOrEqual(bound);
    await lose(redis);
    const other = await harness.open();
    const leases = await Promise.all(
      ["x", "y"].map((instance) => soon(() => other.leaseWorker(leaseOf(instance)))),
    );
    for (const lease of leases) expect(lease.notBeforeMs).toBeGreaterThan(bound);
    expect(new Set(leases.map(({ workerId }) => workerId)).size).toBe(2);
    for (const lease of before) {
      const work = soon(() => registry.renewWorker(renewalOf(lease)));
      expect(await reasonOf(work)).toBe("WORKER_LEASE_LOST");
    }
    expect(await soon(() => registry.leaseWorker(leaseOf("a")))).toMatchObject({ workerId: 2 });
  });
}

test("an older state put back by hand is noticed, and given a new start", async () => {
  const harness = await redisHarness();
  const { redis } = harness;
  const registry = await harness.open();
  await registry.createTag(snowflakeOf("t", harness));
  const lease = await registry.leaseWorker(leaseOf("a"));
  const old = Object.entries(await hashOf(redis, "t")).flat();
  const reserveUntilMs = lease.nowMs + 9_000;
  await registry.renewWorker(renewalOf(lease, { reserveUntilMs }));
  const bound = boundOf(harness);
  await redis.command("DEL", "idmint:{t}");
  await redis.command("HSET", "idmint:{t}", ...old);
  const again = await registry.leaseWorker(leaseOf("a"));
  expect(again.notBeforeMs).toBeGreaterThan(bound);
});

test("without the store Redis reserves to its limit and no further; in doubt it leases nothing", async () => {
  const harness = await redisHarness();
  const { redis, store } = harness;
  const registry = await harness.openOver(store);
  await registry.createTag(snowflakeOf("t", harness));
  let lease = await registry.leaseWorker(leaseOf("a"));
  await new Promise((resolve) => setTimeout(resolve, 200));
  const bound = boundOf(harness);
  store.faults = { before: () => storeIsDown() };
  const inside = renewalOf(lease, { reserveUntilMs: bound - 100 });
  lease = { ...lease, ...(await registry.renewWorker(inside)) };
  expect(lease.reservedUntilMs).toBe(bound - 100);
  const beyond = renewalOf(lease, { reserveUntilMs: bound + 1 });
  expect(await reasonOf(registry.renewWorker(beyond))).toBe("STORE_UNAVAILABLE");
  // The token was not used up by the refusal.
  const kept = await registry.renewWorker(renewalOf(lease, { reserveUntilMs: 0 }));
  expect(kept.reservedUntilMs).toBe(bound - 100);
  await redis.command("FLUSHALL");
  expect(await reasonOf(registry.leaseWorker(leaseOf("b")))).toBe("STORE_UNAVAILABLE");
  store.faults = {};
  const next = await soon(() => registry.leaseWorker(leaseOf("b")));
  expect(next.notBeforeMs).toBeGreaterThan(bound);
});

test("a layout in another unit of time is bounded by whole units", async () => {
  const harness = await redisHarness();
  const registry = await harness.open();
  const more = { timeUnitMs: 1_000, timeBits: 34, workerBits: 4 };
  const settings = snowflakeOf("t", harness, more);
  await registry.createTag(settings);
  const lease = await registry.leaseWorker(leaseOf("a"));
  expect(boundOf(harness)).toBeGreaterThanOrEqual(lease.reservedUntilMs);
  const bound = boundOf(harness);
  await harness.redis.command("FLUSHALL");
  const next = await registry.leaseWorker(leaseOf("a"));
  const { layout } = settings.kind as SnowflakeKind;
  expect(tickAt(layout, next.notBeforeMs)).toBeGreaterThan(tickAt(layout, bound));
});

test.each(["before", "after"])(
  "a server that has not heard of another layout leases and raises nothing, %s one that has",
  async (order) => {
    const harness = await redisHarness();
    const { redis } = harness;
    const [deaf, registry] = [await harness.openDeaf(), await harness.open()];
    await registry.createTag(snowflakeOf("t", harness));
    expect(await deaf.listWorkers({ tag: "t", after: undefined, limit: 1 })).toEqual([]);
    const { kind, ceiling } = snowflakeOf("t", harness, { workerBits: 4, sequenceBits: 10 });
    const settings = { order: "UNORDERED", ceiling, kind } as const;
    await registry.updateTag("t", { settings }, undefined);
    if (order === "after") await registry.leaseWorker(leaseOf("a"));
    expect(await reasonOf(deaf.leaseWorker(leaseOf("b")))).toBe("SEGMENT_NOT_READY");
    const held = { dataCenter: 0, workerId: 0, token: 1n, extension: 0, nowMs: Date.now() };
    expect(await reasonOf(deaf.renewWorker(renewalOf(held)))).toBe("SEGMENT_NOT_READY");
    const lease = await soon(() => registry.leaseWorker(leaseOf("a")));
    expect(lease.reservedUntilMs).toBeLessThanOrEqual(boundOf(harness));
    expect(Object.keys(await hashOf(redis, "t"))).not.toContain("i:0:b");
  },
);

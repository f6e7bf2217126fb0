import { decode, IdmintError, idsOf, SNOWFLAKE_PRESETS, timeOf } from "@idmint/core";
import { expect, test } from "vitest";
import type { IdClientEvent } from "../../src/index.ts";
import { fakeWorld, settle, WALL_START_MS } from "../fake-transport.ts";
import { FakeRegistry, leasedWorld, refuseAllocation, workerOf } from "./snowflake-support.ts";
import { reasonOf, refusal, thrown, UNTOLD } from "../support.ts";
import { learn } from "./uncached-support.ts";

const JS53 = { layout: SNOWFLAKE_PRESETS.js53 };
const ONE_WORKER = { layout: { ...SNOWFLAKE_PRESETS["41-10-12"], workerBits: 0 } };

test("a tag of kind snowflake leases a worker id and makes its ids here", async () => {
  const world = fakeWorld({
    address: "a:1",
    worker: { instance: "pod-7", dataCenter: 3, reserveAheadMs: 5_000 },
  });
  const registry = new FakeRegistry(world, { layout: SNOWFLAKE_PRESETS["41-5-5-12"] });
  const tag = world.client.tag("t");
  const first = tag.next();
  await learn(world, "snowflake");
  const [lease] = world.transport.leasing;
  expect(lease?.request).toEqual({
    tag: "t",
    instance: "pod-7",
    dataCenter: 3,
    reserveAhead: { seconds: 5n, nanos: 0 },
  });
  await registry.serve();
  const parts = decode(registry.layout, await first);
  expect(parts).toMatchObject({ extension: 0, dataCenter: 3, worker: 0, sequence: 0 });
  expect(timeOf(registry.layout, parts.tick)).toBeGreaterThanOrEqual(WALL_START_MS);
  expect(registry.leases).toBe(1);
});

test("ids increase and are each made once, in every way they are asked for", async () => {
  const { tag, first } = await leasedWorld({}, JS53);
  const ids = [first, await tag.next(), BigInt(await tag.nextString())];
  ids.push(BigInt(await tag.nextNumber()), tag.nextSync(), BigInt(tag.nextNumberSync()));
  ids.push(BigInt(tag.nextStringSync()), ...idsOf(await tag.take(1_000)), await tag.next());
  for await (const id of tag) {
    ids.push(id);
    break;
  }
  expect(ids).toEqual(ids.toSorted((a, b) => (a < b ? -1 : 1)));
  expect(new Set(ids).size).toBe(1_009);
});

test("ids taken together are segments as long as a tick has sequences", async () => {
  const { tag, registry, time } = await leasedWorld();
  time.advance(10);
  const segments = await tag.take(10_000);
  expect(segments.map(({ count }) => count)).toEqual([4_096, 4_096, 1_808]);
  expect(new Set(segments.map(({ base }) => decode(registry.layout, base).tick)).size).toBe(3);
});

test("synchronous calls find ids after warm, and start the lease before", async () => {
  const world = fakeWorld({ address: "a:1" });
  const registry = new FakeRegistry(world);
  const tag = world.client.tag("t");
  expect(thrown(() => tag.nextSync()).reason).toBe("SEGMENT_NOT_READY");
  const warm = tag.warm();
  await learn(world, "snowflake");
  await registry.serve();
  await warm;
  expect(tag.nextSync()).toBeLessThan(tag.nextSync());
  // And they are kept ready, however long nobody asks.
  for (let seconds = 0; seconds < 70; seconds++) {
    await registry.pass(1_000);
    world.tick();
  }
  expect(tag.nextSync()).toBeGreaterThan(0n);
  expect(world.transport.releasedLeases).toEqual([]);
});

test("a layout past 53 bits refuses numbers before any is made", async () => {
  const { tag, first } = await leasedWorld();
  expect(thrown(() => tag.nextNumberSync()).reason).toBe("UNSAFE_INTEGER");
  expect(await reasonOf(tag.nextNumber())).toBe("UNSAFE_INTEGER");
  expect(await tag.next()).toBe(first + 1n);
});

test("a lease is renewed ahead of use, three times in what it reserves", async () => {
  const { tag, registry, transport } = await leasedWorld();
  await registry.pass(30_000);
  expect([registry.leases, registry.renewals]).toEqual([1, 30]);
  expect(await tag.next()).toBeGreaterThan(0n);
  await registry.pass(900);
  registry.isSilent = true;
  await registry.pass(100);
  // No endpoint may use up the time that is reserved.
  expect(transport.renewing[0]?.timeoutMs).toBe(1_000);
});

test("when the reservation cannot be extended ids end with it, and go on when it can be", async () => {
  const { tag, registry, time } = await leasedWorld();
  registry.refusal = new IdmintError("STORE_UNAVAILABLE", "down", { retryAfterMs: 100 });
  const ids = [];
  for (let ms = 0; ms < 2_900; ms += 100) {
    await registry.pass(100);
    ids.push(tag.nextSync());
  }
  await registry.pass(300);
  const error = thrown(() => tag.nextSync());
  expect([error.reason, error.retryable]).toEqual(["SEGMENT_NOT_READY", true]);
  const shared = error.cause as IdmintError;
  expect((shared.cause as IdmintError).reason).toBe("STORE_UNAVAILABLE");
  const waiting = tag.next();
  const refused = refusal(tag.next({ deadlineMs: 300 }));
  await registry.pass(400);
  expect((await refused).reason).toBe("SEGMENT_NOT_READY");
  registry.refusal = undefined;
  await registry.pass(2_100);
  ids.push(await waiting);
  expect(registry.leases).toBe(1);
  expect(new Set(ids).size).toBe(ids.length);
  expect(time.now()).toBeLessThan(10_000);
});

test("a lost lease is followed by another, above all that was reserved", async () => {
  const events: IdClientEvent[] = [];
  const onEvent = (event: IdClientEvent): void => void events.push(event);
  const { registry, tag, first } = await leasedWorld({ onEvent, worker: { instance: "pod" } });
  // Somebody else under the same name.
  const [row] = registry.rows;
  registry.rows[0] = { ...row!, token: row!.token + 1n };
  await registry.pass(1_500);
  const id = await tag.next();
  expect(registry.leases).toBe(2);
  const { tick } = decode(registry.layout, id);
  expect(timeOf(registry.layout, tick)).toBeGreaterThan(row!.reservedUntilMs);
  expect(id).toBeGreaterThan(first);
  const told = events.filter(({ type }) => type.startsWith("worker-"));
  expect(told).toMatchObject([
    { type: "worker-leased", tag: "t", workerId: 0, dataCenter: 0, extension: 0 },
    { type: "worker-lost", error: { reason: "WORKER_LEASE_LOST" } },
    { type: "worker-leased", workerId: 0 },
  ]);
});

test.each(["is lost", "ends, and the tag is looked up anew"])(
  "ids go on above one's own after a registry went back and the lease %s",
  async (how) => {
    const world = fakeWorld({ address: "a:1", worker: { instance: "pod" } });
    const registry = new FakeRegistry(world);
    const reservedUntilMs = WALL_START_MS + 8_000;
    const place = { dataCenter: 0, workerId: 0, extension: 0, instance: "pod" };
    registry.rows.push({ ...place, token: 1n, reservedUntilMs, expiresAtMs: 0 });
    const tag = world.client.tag("t");
    const first = tag.next();
    await learn(world, "snowflake");
    await registry.serve();
    expect(timeOf(registry.layout, decode(registry.layout, await first).tick)).toBe(
      reservedUntilMs + 1,
    );
    registry.rows.length = 0;
    if (how === "is lost") {
      await registry.pass(2_500);
      expect(registry.leases).toBe(2);
    } else {
      registry.refusal = new IdmintError("TAG_NOT_FOUND", "not there yet");
      await registry.pass(1_200);
      registry.refusal = undefined;
    }
    const next = tag.next();
    if (how !== "is lost") await refuseAllocation(world, "snowflake");
    await registry.pass(2_500);
    expect(decode(registry.layout, await next).worker).toBe(0);
    expect(await next).toBeGreaterThan(await first);
  },
);

test("close gives the worker id back, and refuses whoever waits", async () => {
  const { tag, registry, client, transport, time } = await leasedWorld();
  registry.isSilent = true;
  await registry.pass(3_500);
  const waiting = reasonOf(tag.next());
  transport.renewing.length = 0;
  const { tag: other, client: otherClient, ...well } = await leasedWorld();
  await other.next();
  await otherClient.close();
  expect(well.transport.releasedLeases.map(({ request }) => request)).toEqual([
    { tag: "t", dataCenter: 0, workerId: 0, token: well.registry.rows[0]!.token },
  ]);
  expect(await reasonOf(other.next())).toBe("CLIENT_CLOSED");
  expect(thrown(() => other.nextSync()).reason).toBe("CLIENT_CLOSED");
  const closing = client.close();
  await settle();
  time.advance(500);
  await closing;
  expect(await waiting).toBe("CLIENT_CLOSED");
  // A token that may be used up is no longer proof of anything.
  expect(transport.releasedLeases).toEqual([]);
});

test("close keeps the connection until the worker id is given back, for half a second", async () => {
  const { client, transport } = await leasedWorld();
  const release = Promise.withResolvers<object>();
  transport.releaseLeaseOutcome = () => release.promise;
  const closing = client.close();
  await settle();
  expect([transport.releasedLeases.length, transport.isClosed]).toEqual([1, false]);
  release.resolve({});
  await closing;
  expect(transport.isClosed).toBe(true);
  const silent = await leasedWorld();
  silent.transport.releaseLeaseOutcome = () => new Promise(() => undefined);
  const bounded = silent.client.close();
  await settle();
  expect(silent.transport.isClosed).toBe(false);
  silent.time.advance(500);
  await bounded;
});

test("a worker id that comes after close is given back at once", async () => {
  const world = fakeWorld({ address: "a:1" });
  const registry = new FakeRegistry(world);
  const call = reasonOf(world.client.tag("t").next());
  await learn(world, "snowflake");
  const closing = world.client.close();
  await registry.serve();
  await closing;
  expect(await call).toBe("CLIENT_CLOSED");
  expect(world.transport.releasedLeases).toMatchObject([{ request: { workerId: 0, token: 1n } }]);
});

test("when all worker ids are taken, calls are refused at once until one is free", async () => {
  const world = fakeWorld({ address: "a:1" });
  const registry = new FakeRegistry(world, ONE_WORKER);
  const taken = new FakeRegistry(world, ONE_WORKER);
  const tag = world.client.tag("t");
  registry.refusal = new IdmintError("WORKER_IDS_EXHAUSTED", "all 1 worker ids are taken");
  const first = refusal(tag.next());
  await learn(world, "snowflake");
  await registry.serve();
  const error = await first;
  expect([error.reason, error.retryable]).toEqual(["WORKER_IDS_EXHAUSTED", false]);
  expect(thrown(() => tag.nextSync()).reason).toBe("WORKER_IDS_EXHAUSTED");
  world.time.advance(2_000);
  const next = tag.next();
  await learn(world, "snowflake");
  await taken.serve();
  expect(await next).toBeGreaterThan(0n);
});

test("a paused tag is refused within a renewal, and goes on after it was resumed", async () => {
  const { tag, registry } = await leasedWorld();
  registry.refusal = new IdmintError("TAG_PAUSED", "paused");
  await registry.pass(1_200);
  expect(await reasonOf(tag.next())).toBe("TAG_PAUSED");
  expect(thrown(() => tag.nextSync()).reason).toBe("TAG_PAUSED");
  registry.refusal = undefined;
  registry.epoch = 3n;
  await registry.pass(2_500);
  expect(await tag.next()).toBeGreaterThan(0n);
});

test("a tag that became one of another kind is asked for anew", async () => {
  const { tag, registry, transport, ...world } = await leasedWorld();
  registry.refusal = new IdmintError("TAG_NOT_FOUND", "deleted");
  await registry.pass(1_200);
  const next = tag.next();
  await settle();
  expect(transport.pending).toHaveLength(1);
  transport.pending.shift()!.answer({
    segments: [{ base: 7n, count: 10, increment: 1 }],
    epoch: 9n,
    releaseToken: "",
    maxAge: { seconds: 600n, nanos: 0 },
    order: 1,
    maxCount: 1_000,
    ...UNTOLD,
  });
  expect(await next).toBe(7n);
  expect(tag.nextSync()).toBe(8n);
  expect(world.time.now()).toBeLessThan(2_000);
});

test("ids are never made by settings of an older epoch", async () => {
  const world = await leasedWorld();
  const { tag, registry } = world;
  // Deleted, and made again with another layout.
  registry.kind = { ...registry.kind, layout: SNOWFLAKE_PRESETS.js53 };
  registry.epoch = 3n;
  await registry.pass(1_200);
  const next = tag.next();
  await refuseAllocation(world, "snowflake");
  await registry.serve();
  const parts = decode(registry.layout, await next);
  expect(parts).toMatchObject({ dataCenter: 0, worker: 0 });
  expect(timeOf(registry.layout, parts.tick)).toBeGreaterThan(WALL_START_MS);
});

test("a worker id that nobody uses is given back after a minute, and leased again when somebody does", async () => {
  const world = await leasedWorld({}, ONE_WORKER);
  const { tag, registry, transport } = world;
  for (let seconds = 0; seconds < 62; seconds++) {
    await registry.pass(1_000);
    world.tick();
  }
  expect(transport.releasedLeases).toHaveLength(1);
  const next = tag.next();
  await refuseAllocation(world, "snowflake");
  await registry.serve();
  expect(workerOf(world, await next)).toBe(0);
});

test("a clock that went back too far is told of, and refused", async () => {
  const events: IdClientEvent[] = [];
  const onEvent = (event: IdClientEvent): void => void events.push(event);
  const { tag, wall } = await leasedWorld({ onEvent });
  wall.offsetMs = -60_000;
  const error = await refusal(tag.next());
  expect([error.reason, error.retryable]).toEqual(["CLOCK_MOVED_BACKWARDS", true]);
  expect(events.at(-1)).toMatchObject({ type: "clock-back", tag: "t" });
  wall.offsetMs = 0;
  expect(await tag.next()).toBeGreaterThan(0n);
});

test("with backups the ids go on under another worker id", async () => {
  const world = await leasedWorld(
    { worker: { instance: "pod" } },
    { clockPolicy: "BACKUP_WORKER" },
  );
  world.wall.offsetMs = -60_000;
  const next = world.tag.next();
  await world.registry.pass(200);
  expect(workerOf(world, await next)).toBe(1);
  expect(world.registry.rows.map(({ instance }) => instance)).toEqual(["pod", "pod#1"]);
});

test("what a snowflake has no answer to is refused", async () => {
  const { tag } = await leasedWorld();
  expect(await reasonOf(tag.nextPeriodId())).toBe("WRONG_KIND");
  const named = await refusal(tag.nextString({ name: "x" }));
  expect(named.violations.map(({ field }) => field)).toEqual(["name"]);
});

test("a lease without settings that are understood is not used", async () => {
  const world = fakeWorld({ address: "a:1" });
  const registry = new FakeRegistry(world);
  const wire = registry.wire();
  registry.wire = () => ({ ...wire, clockPolicy: 99 as never });
  const call = reasonOf(world.client.tag("t").next());
  await learn(world, "snowflake");
  await registry.serve();
  expect(await call).toBe("INTERNAL");
});

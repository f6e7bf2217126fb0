// What a server foretells of its tags, by a clock of the test.
import { MAX_ID } from "@idmint/core";
import type { TagKind, TicketKind } from "@idmint/core/kinds";
import { FakeTime, MemoryStore, storeIsDown } from "@idmint/testkit";
import { expect, test } from "vitest";
import { AdminGate } from "../../../src/service/admin-gate.ts";
import type { ServerEvent } from "../../../src/service/events.ts";
import { CapacityService } from "../../../src/service/tags/capacity.ts";
import { WatchedTags } from "../../../src/service/tags/watched-tags.ts";
import { SEQUENCE, SETTINGS, settled } from "../directory-world.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const START_MS = Date.UTC(2026, 10, 22);

function setUp(lastTicketOf: (kind: TicketKind) => Promise<bigint | undefined> = absent) {
  const time = new FakeTime();
  const store = new MemoryStore();
  const events: ServerEvent[] = [];
  const inUse: string[] = [];
  const capacity = new CapacityService({
    store,
    tagsInUse: (limit) => inUse.slice(0, limit),
    lastTicketOf,
    listWorkers: () => Promise.reject(new Error("there is no snowflake tag")),
    gate: new AdminGate(time, 1_000),
    // Longer than time passes at once.
    storeTimeoutMs: 2 * HOUR_MS,
    clock: time,
    wallClock: () => START_MS + time.now(),
    timers: time,
    emit: (event) => events.push(event),
  });
  const call = { deadline: Infinity, signal: new AbortController().signal };
  const take = async (tag: string, count: number): Promise<void> => {
    const request = { kind: "segment", minCount: 1, after: 0n, seenVersion: 0n } as const;
    await store.grant([{ ...request, tag, count }]);
  };
  /** Time passes, and ids are taken again and again. */
  const pass = async (
    ms: number,
    tag: string,
    { everyMs, count }: { everyMs: number; count: number },
  ): Promise<void> => {
    for (let left = ms; left > 0; left -= everyMs) {
      await take(tag, count);
      time.advance(everyMs);
      await settled();
    }
  };
  const capacityOf = (name: string) => capacity.capacity(name, call);
  return { time, store, events, inUse, capacity, capacityOf, take, pass };
}

function absent(): Promise<undefined> {
  return Promise.resolve(undefined);
}

test("a tag drained at a known rate has its date within 5 %, and is told of at 30 and at 7 days, once each", async () => {
  const it = setUp();
  // 100 ids a minute, for 46 days.
  const hourly = 100 * 60;
  const endMs = START_MS + 46 * DAY_MS;
  await it.store.createTag({ ...SETTINGS, ceiling: BigInt(46 * 24 * hourly) });
  it.inUse.push("orders");
  it.capacity.start();
  const offs: number[] = [];
  for (let day = 1; day <= 45; day++) {
    await it.pass(DAY_MS, "orders", { everyMs: HOUR_MS, count: hourly });
    const { rate, horizons } = await it.capacityOf("orders");
    expect(rate?.idsPerSecond).toBeGreaterThan(100 / 60 / 1.05);
    const nowMs = START_MS + it.time.now();
    const inMs = (horizons[0]?.runsOutAtMs ?? 0) - nowMs;
    offs.push(Math.abs(inMs / (endMs - nowMs) - 1));
  }
  expect(Math.max(...offs)).toBeLessThan(0.05);
  const told = it.events.filter((event) => event.type === "tag-runs-out");
  expect(told).toMatchObject([
    { tag: "orders", limit: "CEILING", days: 30 },
    { tag: "orders", limit: "CEILING", days: 7 },
  ]);
  for (const { runsOutAtMs } of told) {
    expect(Math.abs(runsOutAtMs - endMs)).toBeLessThan(1.5 * DAY_MS);
  }
});

test("a rate is unknown until ids are used, and after an operator raised the floor", async () => {
  const it = setUp();
  await it.store.createTag(SETTINGS);
  const first = await it.capacityOf("orders");
  expect(first.rate).toBeUndefined();
  expect(first.horizons.at(-1)).toMatchObject({ limit: "CEILING", left: MAX_ID });
  expect(first.horizons.at(-1)?.runsOutAtMs).toBeUndefined();
  it.time.advance(MINUTE_MS);
  await it.take("orders", 600);
  expect((await it.capacityOf("orders")).rate?.idsPerSecond).toBeCloseTo(10);
  await it.store.advanceTag("orders", 1_000_000n, {
    maxRaise: MAX_ID,
    expectedRevision: undefined,
  });
  it.time.advance(MINUTE_MS);
  expect((await it.capacityOf("orders")).rate).toBeUndefined();
});

test("a store that is away costs no more than a gap between looks", async () => {
  const it = setUp();
  await it.store.createTag(SETTINGS);
  it.inUse.push("orders");
  it.capacity.start();
  await it.pass(HOUR_MS, "orders", { everyMs: MINUTE_MS, count: 60 });
  it.store.faults = { before: (call) => (call === "getTags" ? storeIsDown() : undefined) };
  await it.pass(HOUR_MS, "orders", { everyMs: MINUTE_MS, count: 60 });
  it.store.faults = {};
  await it.pass(HOUR_MS, "orders", { everyMs: MINUTE_MS, count: 60 });
  expect((await it.capacityOf("orders")).rate?.idsPerSecond).toBeCloseTo(1, 1);
  it.capacity.stop();
  expect(it.time.pending).toBe(0);
});

test("what Redis counted is told by its marks, and what ticket databases gave out by them", async () => {
  const it = setUp(() => Promise.resolve(4_711n));
  const redis: TagKind = {
    kind: "sequence",
    start: 1n,
    periods: undefined,
    redis: { server: "a", step: 1_000 },
  };
  await it.store.createTag({ ...SEQUENCE, name: "bills", kind: redis });
  expect((await it.capacityOf("bills")).used).toBeUndefined();
  await it.store.exchangeMarks([{ tag: "bills", generation: 0n, mark: 120n }], []);
  expect((await it.capacityOf("bills")).used).toBe(120n);
  it.time.advance(MINUTE_MS);
  await it.store.exchangeMarks([{ tag: "bills", generation: 0n, mark: 180n }], []);
  expect((await it.capacityOf("bills")).rate?.idsPerSecond).toBeCloseTo(1);
  const ticket: TagKind = { kind: "ticket", start: 1n, slots: 6, slotsId: "coupons.x" };
  await it.store.createTag({ ...SETTINGS, name: "coupons", ceiling: 5_000n, kind: ticket });
  const { horizons } = await it.capacityOf("coupons");
  expect(horizons).toMatchObject([{ limit: "CEILING", left: 289n }]);
});

test("a tag that somebody asks for takes the place of the one that ends last", async () => {
  const store = new MemoryStore();
  const watched = new WatchedTags(3);
  const moment = { now: 0, nowMs: START_MS };
  for (const [name, ceiling] of [
    ["near", 1n],
    ["far", MAX_ID],
    ["nearer", 1n],
  ] as const) {
    const tag = await store.createTag({ ...SETTINGS, name, ceiling });
    watched.saw(tag, ceiling, moment);
  }
  const far = await store.getTags(["far"]);
  for (const tag of far) watched.saw(tag, 2n, moment);
  watched.makeRoomFor("near", moment);
  expect(watched.names).toHaveLength(3);
  watched.makeRoomFor("asked", moment);
  expect(watched.names).toEqual(["near", "nearer"]);
  const dead = await store.setTagState("near", "DELETED", undefined);
  watched.saw(dead, 1n, moment);
  expect(watched.names).toEqual(["nearer"]);
});

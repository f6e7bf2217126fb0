// The ids of one snowflake tag on a server, over the registry of a store in memory, in time that moves when it is told to.
import {
  createMadeTimes,
  decode,
  IdmintError,
  idsOf,
  SNOWFLAKE_PRESETS,
  type SnowflakeEvent,
  tickAt,
  type WorkerLease,
  type WorkerLeaseRequest,
} from "@idmint/core";
import type { SnowflakeKind } from "@idmint/core/kinds";
import type { Tag } from "@idmint/core/server";
import { FakeTime, MemoryDatabase, MemoryStore } from "@idmint/testkit";
import { snowflakeOf } from "@idmint/testkit/store-suite";
import { beforeEach, expect, test } from "vitest";
import type { TakenIds } from "../../../../src/service/kinds/source.ts";
import {
  SnowflakeTagSource,
  type TagRegistry,
} from "../../../../src/service/kinds/snowflake/source.ts";

const START_MS = 1_800_000_000_000;
const LAYOUT = SNOWFLAKE_PRESETS["41-10-12"];

let time: FakeTime;
let store: MemoryStore;
let source: SnowflakeTagSource;
let events: SnowflakeEvent[];
/** What the registry does to a lease before it answers it. */
let onLease: (lease: WorkerLease) => WorkerLease | Promise<WorkerLease>;
/** What is asked of the registry in the place of what the source asks. */
let asked: Partial<WorkerLeaseRequest>;
let onEvent: (event: SnowflakeEvent) => void;
/** What the clock is refused for. */
let clockRefusal: IdmintError | undefined;
let noted: (IdmintError | undefined)[];
let wallOffsetMs: number;

beforeEach(async () => {
  time = new FakeTime();
  const database = new MemoryDatabase();
  database.now = () => START_MS + time.now();
  store = new MemoryStore({ database });
  const settings = snowflakeOf(
    "t",
    { place: { registry: "STORE" } },
    { ...LAYOUT, extensionBits: 0 },
  );
  source = sourceOf(await store.createTag(settings));
  events = [];
  noted = [];
  onLease = (lease) => lease;
  asked = {};
  onEvent = () => {};
  clockRefusal = undefined;
  wallOffsetMs = 0;
});

function sourceOf(tag: Tag): SnowflakeTagSource {
  const registry: TagRegistry = {
    leaseWorker: async (request) => onLease(await store.leaseWorker({ ...request, ...asked })),
    renewWorker: (renewal) => store.renewWorker(renewal),
    releaseWorker: (key) => store.releaseWorker(key),
    listWorkers: (query) => store.listWorkers(query),
  };
  const options = { instance: "server-1", dataCenter: undefined, maxWaiters: 3 };
  return new SnowflakeTagSource(
    tag,
    { ...options, reserveAheadMs: 3_000, registryAheadMs: 3_000 },
    {
      registry,
      keeper: undefined,
      made: createMadeTimes(),
      judge: {
        refusalOf: () => clockRefusal,
        note: (_, error) => noted.push(error),
      },
      clock: time,
      timers: time,
      random: () => 0.5,
      wallClock: () => START_MS + time.now() + wallOffsetMs,
      onEvent: (event) => {
        events.push(event);
        onEvent(event);
      },
    },
  );
}

function take(count: number): Promise<TakenIds> {
  return source.take(count, {
    deadline: time.now() + 1_000,
    signal: new AbortController().signal,
  });
}

/** Lets every promise that can settle do so. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await Promise.resolve();
}

async function taken(count: number): Promise<{ ids: bigint[]; epoch: bigint }> {
  const { segments, epoch } = await take(count);
  return { ids: [...idsOf(segments)], epoch };
}

async function record(): Promise<Tag> {
  const [tag] = await store.getTags(["t"]);
  if (tag === undefined) throw new Error("no tag");
  return tag;
}

/** The tag in its next epoch, as an operator's pause and resume leave it. */
async function nextEpoch(): Promise<Tag> {
  await store.setTagState("t", "PAUSED", undefined);
  await store.setTagState("t", "ACTIVE", undefined);
  return record();
}

function hear(tag: Tag): void {
  source.update(tag);
  source.observeEpoch(tag.epoch);
}

test("ids are made under one lease, of the present time and of the tag's epoch", async () => {
  const first = await taken(3);
  time.advance(500);
  const second = await taken(3);
  expect([first.epoch, second.epoch]).toEqual([1n, 1n]);
  for (const { ids } of [first, second]) expect(new Set(ids).size).toBe(3);
  expect(decode(LAYOUT, second.ids[0]!).tick).toBe(tickAt(LAYOUT, START_MS + 500));
  expect(store.count("leaseWorker")).toBe(1);
});

test("ids that were made for a call that waited are not answered when its lease has ended meanwhile", async () => {
  const next = await nextEpoch();
  const { promise, resolve } = Promise.withResolvers<void>();
  source = sourceOf({ ...next });
  onLease = async (lease) => {
    await promise;
    return lease;
  };
  const waiting = take(2);
  const outcome = waiting.then(
    ({ segments }) => [...idsOf(segments)],
    (error: unknown) => (error as IdmintError).reason,
  );
  await settle();
  // It runs after the ids were made, and before the call that waits goes on.
  onEvent = () => queueMicrotask(() => source.observeEpoch(next.epoch + 1n));
  resolve();
  await settle();
  expect(events.map(({ type }) => type)).toEqual(["worker-leased"]);
  expect(await outcome).toBe("SEGMENT_NOT_READY");
});

test("a lease of another epoch than the record's is not taken up", async () => {
  const old = await record();
  const next = await nextEpoch();
  expect(next.epoch).toBeGreaterThan(old.epoch);
  // As a registry answers that has a lease of another epoch at hand, and looks at none.
  onLease = (lease) => ({ ...lease, epoch: next.epoch });
  asked = { epoch: next.epoch };
  const outcome = take(1).catch((error: unknown) => (error as IdmintError).reason);
  await settle();
  expect(events.map(({ type }) => type)).not.toContain("worker-leased");
  time.advance(2_000);
  await settle();
  expect(await outcome).toBe("SEGMENT_NOT_READY");
  hear(next);
  time.advance(1_000);
  await settle();
  expect((await taken(1)).epoch).toBe(next.epoch);
});

test("a higher epoch ends the lease at once, and the next one begins above it", async () => {
  const before = await taken(5);
  const next = await nextEpoch();
  hear(next);
  const after = await taken(5);
  expect(after.epoch).toBe(next.epoch);
  expect(after.ids[0]!).toBeGreaterThan(before.ids.at(-1)!);
  expect(store.count("leaseWorker")).toBe(2);
  // The same epoch, and a lower one, end nothing.
  source.observeEpoch(next.epoch);
  source.observeEpoch(1n);
  await taken(1);
  expect(store.count("leaseWorker")).toBe(2);
});

test("a lease that reserves the same time again, as after an unseen roll-back, begins above the ids of the one before", async () => {
  let leased: WorkerLease | undefined;
  onLease = (lease) => (leased ??= lease);
  const before = await taken(5);
  source.fence(new IdmintError("ISSUING_STOPPED", "for a moment"));
  source.unfence();
  const after = await taken(5);
  expect(store.count("leaseWorker")).toBe(2);
  expect(after.ids[0]!).toBeGreaterThan(before.ids.at(-1)!);
});

test("a fence refuses with its error, calls that wait too, until it is taken away", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  onLease = async (lease) => {
    await promise;
    return lease;
  };
  const waiting = take(1).catch((error: unknown) => (error as IdmintError).reason);
  await settle();
  expect(source.waiting).toBeGreaterThan(0);
  source.fence(new IdmintError("STORE_EPOCH_CHANGED", "went back"));
  expect(await waiting).toBe("STORE_EPOCH_CHANGED");
  expect(source.waiting).toBe(0);
  await expect(take(1)).rejects.toMatchObject({ reason: "STORE_EPOCH_CHANGED" });
  resolve();
  onLease = (lease) => lease;
  source.unfence();
  expect((await taken(1)).ids).toHaveLength(1);
});

test("other settings begin another lease; the same ones, and those of other kinds, do not", async () => {
  await taken(1);
  const tag = await record();
  source.update(tag);
  source.update({
    ...tag,
    kind: { kind: "uuid", version: 7, namespace: undefined } as Tag["kind"],
  });
  await taken(1);
  expect(store.count("leaseWorker")).toBe(1);
  const kind = { ...(tag.kind as SnowflakeKind), clockWaitMs: 50 };
  source.update({ ...tag, kind });
  await taken(1);
  expect(store.count("leaseWorker")).toBe(2);
});

test("a drain refuses for good, and releases the lease", async () => {
  await taken(1);
  await source.drain(new IdmintError("DRAINING", "stops"));
  await expect(take(1)).rejects.toMatchObject({ reason: "DRAINING" });
  source.unfence();
  source.fence(new IdmintError("STORE_EPOCH_CHANGED", "went back"));
  await expect(take(1)).rejects.toMatchObject({ reason: "DRAINING" });
  const [row] = await store.listWorkers({ tag: "t", after: undefined, limit: 1 });
  expect(row!.expiresAtMs).toBeLessThanOrEqual(START_MS + time.now());
});

test("a call asks for what a worker makes in a second at most", async () => {
  await expect(take(4_096_001)).rejects.toMatchObject({ reason: "COUNT_OUT_OF_RANGE" });
  await expect(take(0)).rejects.toMatchObject({ reason: "COUNT_OUT_OF_RANGE" });
  expect(store.count("leaseWorker")).toBe(0);
});

test("a clock that is not used makes no ids; one that went back is noted, and again when it is right", async () => {
  clockRefusal = new IdmintError("CLOCK_NOT_CONFIRMED", "off");
  await expect(take(1)).rejects.toMatchObject({ reason: "CLOCK_NOT_CONFIRMED" });
  expect(store.count("leaseWorker")).toBe(0);
  clockRefusal = undefined;
  await taken(1);
  wallOffsetMs = -60_000;
  time.advance(10);
  await expect(take(1)).rejects.toMatchObject({ reason: "CLOCK_MOVED_BACKWARDS" });
  source.sample();
  expect(noted.map((error) => error?.reason)).toEqual(["CLOCK_MOVED_BACKWARDS"]);
  wallOffsetMs = 0;
  source.sample();
  expect(noted).toHaveLength(2);
  expect(noted[1]).toBeUndefined();
});

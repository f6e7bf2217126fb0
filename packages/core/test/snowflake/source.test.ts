import {
  createMadeTimes,
  decode,
  IdmintError,
  idsOf,
  type MadeSnowflakes,
  SNOWFLAKE_PRESETS,
  type SnowflakeLayout,
  tickAt,
} from "@idmint/core";
import type { SnowflakeKind } from "@idmint/core/kinds";
import { expect, test } from "vitest";
import { type Fate, Host, World } from "./world.ts";

const SMALL: SnowflakeLayout = { ...SNOWFLAKE_PRESETS["41-10-12"], workerBits: 3, sequenceBits: 3 };

function snowflakeKind(change: Partial<SnowflakeKind> = {}): SnowflakeKind {
  return {
    kind: "snowflake",
    layout: SMALL,
    dataCenter: 0,
    clockPolicy: "REFUSE",
    clockWaitMs: 5,
    registry: "STORE",
    ...change,
  };
}

/** So many calls to the registry with the same fate. */
function calls(count: number, way: Fate["way"]): Fate[] {
  return Array.from({ length: count }, () => ({ way, toMs: 0, backMs: 1 }));
}

/** A host that has its lease. */
async function hostOf(
  kind = snowflakeKind(),
  fates: Fate[] = [],
  offsetMs = 0,
): Promise<{ world: World; host: Host }> {
  const world = new World(kind, fates);
  const host = new Host(world, "pod-1", offsetMs);
  await world.advance(5_000);
  return { world, host };
}

/** What the next id is made of; fails when there is none. */
function nextParts(host: Host) {
  const id = host.source.tryNext();
  if (id === undefined) throw new Error("no id");
  host.world.record(host, id);
  return decode(host.world.layout, id);
}

function refusalOf(run: () => unknown): IdmintError {
  try {
    run();
  } catch (error) {
    if (error instanceof IdmintError) return error;
    throw error;
  }
  throw new Error("not refused");
}

test("ids carry the time they are made at, by the host's clock", async () => {
  const { world, host } = await hostOf();
  for (const ms of [1, 3, 20, 1_000]) {
    await world.advance(ms);
    expect(nextParts(host)).toEqual({
      tick: tickAt(SMALL, host.wall()),
      extension: 0,
      dataCenter: 0,
      worker: 0,
      sequence: 0,
    });
  }
});

test("after a burst an id carries the present time again, not that of the burst", async () => {
  const { world, host } = await hostOf(snowflakeKind({ layout: SNOWFLAKE_PRESETS["41-10-12"] }));
  expect(host.make(100)).toBe(100);
  await world.advance(2);
  expect(nextParts(host).tick).toBe(tickAt(SMALL, host.wall()));
});

test("a used up tick is carried to the next, at most 50 ms ahead of the clock", async () => {
  const { world, host } = await hostOf();
  const first = tickAt(SMALL, host.wall());
  expect(host.make(1_000)).toBe(51 * 8);
  expect(host.source.refusal()).toMatchObject({ reason: "SEGMENT_NOT_READY", retryAfterMs: 1 });
  await world.advance(1);
  expect(host.make(1_000)).toBe(8);
  await world.advance(1_000);
  expect(nextParts(host).tick).toBe(first + 1_001);
  expect(world.faults).toEqual([]);
});

test.each([-2, -5, -50, -2_000])(
  "a clock that goes back by %i ms is carried on from",
  async (ms) => {
    const { world, host } = await hostOf();
    expect(host.make(20)).toBe(20);
    host.stepClock(ms);
    expect(host.make(20)).toBe(20);
    await world.advance(30_000);
    expect(host.make(300)).toBe(300);
    expect(host.refusals).toEqual([]);
    expect(host.events.map((event) => event.type)).toEqual(["worker-leased"]);
    expect(world.faults).toEqual([]);
  },
);

test("a clock that has caught up is judged anew when it goes back again", async () => {
  const { world, host } = await hostOf();
  host.make(1);
  host.stepClock(-2_000);
  host.make(1);
  await world.advance(10_000);
  expect(nextParts(host).tick).toBe(tickAt(SMALL, host.wall()));
  // More than the 3 s that are left of the reservation.
  host.stepClock(-6_000);
  expect(refusalOf(() => host.source.tryNext()).reason).toBe("CLOCK_MOVED_BACKWARDS");
});

test("while carried on from, time goes on by the monotonic clock", async () => {
  const { world, host } = await hostOf();
  host.make(1);
  host.stepClock(-2_000);
  expect(host.make(1_000)).toBe(50 * 8 + 7);
  for (let turn = 0; turn < 40; turn++) {
    await world.advance(50);
    expect(host.make(10_000)).toBe(400);
  }
});

test("beyond the reservation, a little is waited for, twice as long as the clock went back", async () => {
  const renewals = [...calls(1, "ok"), ...calls(50, "lost")];
  const { world, host } = await hostOf(snowflakeKind(), renewals, 0);
  const row = [...world.rows.values()][0];
  // 5 s have passed, and nothing was renewed: back to 2 ms before the end of the reservation.
  host.setClock((row?.reservedUntilMs ?? 0) - world.trueTime() - 2);
  expect(host.make(1)).toBe(1);
  host.stepClock(-5);
  expect(host.source.tryNext()).toBeUndefined();
  expect(host.source.refusal()).toMatchObject({ reason: "SEGMENT_NOT_READY", retryAfterMs: 10 });
  host.stepClock(-1);
  const error = refusalOf(() => host.source.tryNext());
  expect(error).toMatchObject({ reason: "CLOCK_MOVED_BACKWARDS", retryAfterMs: 6 });
  host.stepClock(1);
  await world.advance(5);
  expect(host.make(1)).toBe(1);
  expect(world.faults).toEqual([]);
});

test.each([-10_000, -3_600_000])("REFUSE: %i ms are refused with an alarm", async (ms) => {
  const { world, host } = await hostOf();
  host.make(1);
  host.stepClock(ms);
  const error = refusalOf(() => host.source.tryNext());
  expect(error).toMatchObject({ code: "UNAVAILABLE", reason: "CLOCK_MOVED_BACKWARDS" });
  expect(error.metadata).toEqual({ tag: "t", drift_ms: String(-ms) });
  expect(error.retryAfterMs).toBe(-ms);
  await expect(async () => host.source.take(1)).rejects.toMatchObject({ reason: error.reason });
  expect(host.events.filter((event) => event.type === "clock-back")).toEqual([
    { type: "clock-back", tag: "t", driftMs: -ms, isRefused: true },
  ]);
  await world.advance(2_000);
  expect(host.make(1)).toBe(0);
  expect(host.events.filter((event) => event.type === "clock-back")).toHaveLength(2);
  host.setClock(0);
  expect(host.make(1)).toBe(1);
  expect(world.faults).toEqual([]);
});

test("REFUSE: it ends by itself when the clock has caught up", async () => {
  const { world, host } = await hostOf();
  host.make(1);
  host.stepClock(-10_000);
  await world.advance(9_990);
  expect(host.make(1)).toBe(0);
  await world.advance(10);
  expect(host.make(1)).toBe(1);
});

test("EXTENSION: each time but the last goes on with the next extension, once it is saved", async () => {
  const layout = { ...SMALL, extensionBits: 2 };
  const fates: Fate[] = [{ way: "ok", toMs: 20, backMs: 20 }];
  const { world, host } = await hostOf(snowflakeKind({ layout, clockPolicy: "EXTENSION" }), fates);
  for (const extension of [1, 2, 3]) {
    host.make(1);
    host.stepClock(-3_600_000);
    expect(host.source.tryNext()).toBeUndefined();
    host.take(5);
    await world.advance(39);
    expect(host.source.tryNext()).toBeUndefined();
    await world.advance(2_000);
    expect(nextParts(host)).toMatchObject({ extension, tick: tickAt(layout, host.wall()) });
    expect(host.make(300)).toBe(300);
  }
  expect(host.events.filter(({ type }) => type === "clock-back")).toMatchObject(
    [1, 2, 3].map(() => ({ driftMs: 3_600_000, isRefused: false })),
  );
  host.stepClock(-3_600_000);
  expect(refusalOf(() => host.source.tryNext()).reason).toBe("CLOCK_MOVED_BACKWARDS");
  expect(host.events.at(-1)).toMatchObject({ type: "clock-back", isRefused: true });
  await world.advance(5_000);
  expect(host.make(1)).toBe(0);
  expect(world.ids.size).toBeGreaterThan(900);
  expect(world.faults).toEqual([]);
});

test("EXTENSION: what is not needed any more is not raised", async () => {
  const layout = { ...SMALL, extensionBits: 2 };
  const { world, host } = await hostOf(snowflakeKind({ layout, clockPolicy: "EXTENSION" }));
  host.make(1);
  host.stepClock(-10_000);
  host.setClock(0);
  await world.advance(5_000);
  expect(nextParts(host).extension).toBe(0);
});

test("BACKUP_WORKER: goes on with up to three more worker ids, then refuses", async () => {
  const { world, host } = await hostOf(snowflakeKind({ clockPolicy: "BACKUP_WORKER" }));
  for (const worker of [1, 2, 3]) {
    host.make(1);
    // The registry is on the same machine.
    host.stepClock(-3_600_000);
    world.registryOffsetMs -= 3_600_000;
    expect(host.source.tryNext()).toBeUndefined();
    host.take(5);
    await world.advance(100);
    expect(nextParts(host)).toMatchObject({ worker, tick: tickAt(SMALL, host.wall()) });
  }
  host.stepClock(-3_600_000);
  world.registryOffsetMs -= 3_600_000;
  expect(refusalOf(() => host.source.tryNext()).reason).toBe("CLOCK_MOVED_BACKWARDS");
  await world.advance(5_000);
  expect(host.make(1)).toBe(0);
  expect([...world.rows.keys()]).toHaveLength(4);
  // Each has its own last time: the one that is not ahead of the clock is used.
  host.stepClock(3_600_000);
  world.registryOffsetMs += 3_600_000;
  await world.advance(2_000);
  expect(nextParts(host).worker).toBe(3);
  expect(world.faults).toEqual([]);
});

test("BACKUP_WORKER: refuses when all worker ids are taken", async () => {
  const layout = { ...SMALL, workerBits: 1 };
  const { world, host } = await hostOf(snowflakeKind({ layout, clockPolicy: "BACKUP_WORKER" }));
  const other = new Host(world, "pod-2");
  await world.advance(100);
  expect(other.make(1)).toBe(1);
  host.make(1);
  host.stepClock(-3_600_000);
  expect(host.source.tryNext()).toBeUndefined();
  await world.advance(100);
  expect(refusalOf(() => host.source.tryNext()).reason).toBe("CLOCK_MOVED_BACKWARDS");
});

test("a clock that jumps ahead by an hour is held back, and all is well when it is back", async () => {
  const { world, host } = await hostOf();
  host.make(10);
  host.stepClock(3_600_000);
  expect(host.source.tryNext()).toBeUndefined();
  await world.advance(5_000);
  expect(host.source.tryNext()).toBeUndefined();
  expect(host.source.refusal()?.reason).toBe("SEGMENT_NOT_READY");
  expect(host.source.refusal()?.message).toMatch(/is 35\d{5} ms ahead/);
  expect(host.events.some((event) => event.type === "clock-ahead")).toBe(true);
  host.stepClock(-3_600_000);
  host.take(1);
  await world.advance(250);
  expect(host.make(10)).toBe(10);
  await world.advance(60_000);
  expect(nextParts(host).tick).toBe(tickAt(SMALL, host.wall()));
  expect(world.faults).toEqual([]);
});

test("no clock is called ahead by a registry that has not answered: before the first lease, and while it is away", async () => {
  const world = new World(snowflakeKind(), [
    ...calls(8, "lost"),
    ...calls(12, "ok"),
    ...calls(40, "lost"),
    ...calls(99, "ok"),
  ]);
  const host = new Host(world, "pod-1");
  const isAway = async (ms: number): Promise<void> => {
    expect(host.source.tryNext()).toBeUndefined();
    expect(host.source.refusal()?.message).toMatch("no time is reserved for its ids yet");
    await world.advance(ms);
  };
  for (let turn = 0; turn < 20; turn++) await isAway(100);
  await world.advance(10_000);
  expect(host.make(1)).toBe(1);
  await world.advance(9_000);
  for (let turn = 0; turn < 30; turn++) await isAway(1_000);
  expect(host.events.map(({ type }) => type)).toEqual(["worker-leased"]);
  await world.advance(60_000);
  expect(host.make(1)).toBe(1);
  expect(world.faults).toEqual([]);
});

test("a clock at double speed gets no further ahead of the registry's than allowed", async () => {
  const { world, host } = await hostOf();
  host.setRate(2);
  let last = 0;
  for (let turn = 0; turn < 600; turn++) {
    await world.advance(100);
    const id = host.source.tryNext();
    if (id !== undefined) last = decode(SMALL, id).tick;
  }
  expect(host.wall() - world.trueTime()).toBe(60_000);
  expect(last).toBeLessThan(tickAt(SMALL, world.trueTime() + 13_000));
  expect(last).toBeGreaterThan(tickAt(SMALL, world.trueTime() - 60_000));
  host.setRate(1);
  host.setClock(0);
  await world.advance(20_000);
  expect(host.make(1)).toBe(1);
});

test("a restart with the clock set back by an hour is refused under REFUSE", async () => {
  const { world, host } = await hostOf();
  host.make(10);
  host.dead = true;
  const again = new Host(world, "pod-1", -3_600_000);
  await world.advance(10);
  const error = refusalOf(() => again.source.tryNext());
  expect(error.reason).toBe("CLOCK_MOVED_BACKWARDS");
  expect(Number(error.metadata["drift_ms"])).toBeGreaterThan(3_600_000);
});

test("after a restart with a clock that was behind, ids come as soon as it is right, ahead of it if need be", async () => {
  const { world, host } = await hostOf(snowflakeKind(), [], 2_000);
  host.make(10);
  host.dead = true;
  const again = new Host(world, "pod-1", -3_600_000);
  await world.advance(500);
  expect(again.make(1)).toBe(0);
  again.setClock(-2_000);
  expect(again.make(10)).toBe(10);
  expect(nextParts(again).tick).toBeGreaterThan(tickAt(SMALL, again.wall() + 2_000));
  again.stepClock(-20_000);
  expect(refusalOf(() => again.source.tryNext()).reason).toBe("CLOCK_MOVED_BACKWARDS");
  expect(world.faults).toEqual([]);
});

test("who takes a worker id over starts above what was reserved, ahead of the clock", async () => {
  const { world, host } = await hostOf(snowflakeKind(), [], 2_000);
  const made = nextParts(host);
  host.dead = true;
  const again = new Host(world, "pod-1", 0);
  await world.advance(1);
  const next = nextParts(again);
  expect(next.worker).toBe(made.worker);
  expect(next.tick).toBeGreaterThan(made.tick);
  expect(next.tick).toBeGreaterThan(tickAt(SMALL, again.wall()));
  // It is ahead by no more than there was reserved, and the clock catches up.
  await world.advance(20_000);
  expect(nextParts(again).tick).toBe(tickAt(SMALL, again.wall()));
  expect(world.faults).toEqual([]);
});

test("without a registry ids go on as long as their reservation, and start again with it", async () => {
  const { world, host } = await hostOf(snowflakeKind(), [
    ...calls(6, "ok"),
    ...calls(8, "lost"),
    ...calls(99, "ok"),
  ]);
  await world.advance(2_900);
  expect(host.make(1)).toBe(1);
  await world.advance(200);
  expect(host.make(1)).toBe(0);
  expect(host.source.refusal()).toMatchObject({
    reason: "SEGMENT_NOT_READY",
    cause: { reason: "STORE_UNAVAILABLE" },
  });
  await world.advance(20_000);
  expect(host.make(1)).toBe(1);
});

test("a paused tag stops its makers at their next renewal, and resumes with the next lease", async () => {
  const { world, host } = await hostOf();
  world.refusal = new IdmintError("TAG_PAUSED", "paused");
  expect(host.make(5)).toBe(5);
  await world.advance(1_000);
  expect(refusalOf(() => host.source.tryNext()).reason).toBe("TAG_PAUSED");
  await expect(async () => host.source.take(1)).rejects.toMatchObject({ reason: "TAG_PAUSED" });
  world.refusal = undefined;
  await world.advance(5_000);
  expect(host.make(5)).toBe(5);
  expect(world.faults).toEqual([]);
});

test("who was frozen past its lease issues what it had passed over, of its own reservation, and no more", async () => {
  const layout = { ...SMALL, workerBits: 0, sequenceBits: 12 };
  const { world, host } = await hostOf(snowflakeKind({ layout }));
  // At full speed ids are passed over in blocks; the last one is not used up.
  expect(host.make(100)).toBe(100);
  const frozenAt = tickAt(layout, world.trueTime());
  host.pause();
  const other = new Host(world, "pod-2");
  await world.advance(40_000);
  expect(other.make(100)).toBe(100);
  const took = Math.min(...[...world.ids.keys()].slice(100).map((id) => decode(layout, id).tick));
  host.resume(false);
  const left = host.make(1_000);
  expect(left).toBeGreaterThan(0);
  expect(left).toBeLessThan(64);
  const ticks = [...world.ids.keys()].slice(200).map((id) => decode(layout, id).tick);
  expect(Math.max(...ticks)).toBeLessThanOrEqual(frozenAt + 3_000);
  expect(Math.max(...ticks)).toBeLessThan(took);
  await world.advance(2_000);
  expect(host.make(1)).toBe(0);
  expect(other.make(1)).toBe(1);
  // Each id is of a time that was reserved for who made it, and none was made twice.
  expect(world.faults).toEqual([]);
});

test("of two under one name the second has the worker id, and the first learns it", async () => {
  const { world, host } = await hostOf();
  const other = new Host(world, "pod-1");
  await world.advance(1);
  expect(other.make(5)).toBe(5);
  expect(host.make(5)).toBe(5);
  await world.advance(1_100);
  expect(host.events.map((event) => event.type)).toContain("worker-lost");
  expect(world.faults).toEqual([]);
});

test("with all worker ids leased a host is refused, until one is free", async () => {
  const layout = { ...SMALL, workerBits: 0 };
  const { world, host } = await hostOf(snowflakeKind({ layout }));
  const other = new Host(world, "pod-2");
  await world.advance(1_000);
  const error = refusalOf(() => other.source.tryNext());
  expect(error).toMatchObject({ code: "RESOURCE_EXHAUSTED", reason: "WORKER_IDS_EXHAUSTED" });
  host.make(5);
  host.dead = true;
  await world.advance(25_000);
  expect(other.make(1)).toBe(0);
  await world.advance(10_000);
  expect(other.make(1)).toBe(1);
  expect(world.faults).toEqual([]);
});

test("a host that closes frees its worker id once its reservation is over", async () => {
  const layout = { ...SMALL, workerBits: 0 };
  const { world, host } = await hostOf(snowflakeKind({ layout }));
  host.make(100);
  void host.source.close(new IdmintError("DRAINING", "stops"));
  expect(refusalOf(() => host.source.tryNext()).reason).toBe("DRAINING");
  expect(refusalOf(() => host.source.take(1)).reason).toBe("DRAINING");
  expect(host.source.refusal()?.reason).toBe("DRAINING");
  const other = new Host(world, "pod-2");
  await world.advance(2_000);
  expect(other.make(1)).toBe(0);
  await world.advance(4_000);
  expect(other.make(1)).toBe(1);
  expect(world.faults).toEqual([]);
});

test("the last tick is the last: then TIMESTAMP_EXHAUSTED", async () => {
  const world = new World(snowflakeKind());
  const timeOriginMs = world.trueTime() - 2 ** 20 + 100;
  const kind = snowflakeKind({ layout: { ...SMALL, timeBits: 20, timeOriginMs } });
  const { host } = await hostOfEnd(kind);
  expect(host.make(10_000)).toBe(51 * 8);
  await host.world.advance(60);
  expect(host.make(10_000)).toBe(40 * 8);
  expect(refusalOf(() => host.source.tryNext()).reason).toBe("TIMESTAMP_EXHAUSTED");
  await host.world.advance(60);
  const error = refusalOf(() => host.source.tryNext());
  expect(error).toMatchObject({ code: "OUT_OF_RANGE", reason: "TIMESTAMP_EXHAUSTED" });
  expect(host.world.faults).toEqual([]);
});

async function hostOfEnd(kind: SnowflakeKind): Promise<{ host: Host }> {
  const world = new World(kind);
  const host = new Host(world, "pod-1");
  await world.advance(0);
  return { host };
}

test("numbers are the same ids, where the layout has at most 53 bits", async () => {
  const { world, host } = await hostOf(snowflakeKind({ layout: SNOWFLAKE_PRESETS.js53 }));
  let last = -1;
  for (let turn = 0; turn < 300; turn++) {
    if (turn % 7 === 0) await world.advance(1);
    const isNumber = turn % 3 !== 0;
    const id = isNumber ? host.source.tryNextNumber() : Number(host.source.tryNext());
    expect(Number.isSafeInteger(id) && id > last).toBe(true);
    world.record(host, BigInt(id));
    last = id;
  }
  for (let turn = 0; turn < 10_000; turn++) host.source.tryNextNumber();
  expect(host.source.tryNextNumber()).toBe(-1);
  const large = await hostOf(snowflakeKind({ layout: SNOWFLAKE_PRESETS["41-10-12"] }));
  expect(refusalOf(() => large.host.source.tryNextNumber()).reason).toBe("UNSAFE_INTEGER");
  expect(world.faults).toEqual([]);
});

test("calls that must wait are served in their order, also large ones", async () => {
  const { world, host } = await hostOf();
  const served: number[] = [];
  const waiting = [2_000, 1, 500].map(async (count, index) => {
    const segments = await host.source.take(count);
    served.push(index);
    const ids = [...idsOf(segments)];
    expect(ids).toHaveLength(count);
    for (const id of ids) world.record(host, id);
  });
  await world.advance(1_000);
  await Promise.all(waiting);
  expect(served).toEqual([0, 1, 2]);
  expect(world.faults).toEqual([]);
});

test("nobody overtakes a call that waits", async () => {
  const { world, host } = await hostOf();
  await world.advance(0.5);
  host.make(10_000);
  const order: string[] = [];
  const first = host.source.take(1) as Promise<unknown>;
  void first.then(() => order.push("first"));
  // An id can be made now, but the call that waits has not looked yet.
  await world.advance(0.7);
  expect(order).toEqual([]);
  const second = host.source.take(1);
  void Promise.resolve(second).then(() => order.push("second"));
  await world.advance(10);
  expect(order).toEqual(["first", "second"]);
});

test("waiting has limits: of calls, of time, and the caller's own", async () => {
  const { world, host } = await hostOf();
  host.make(10_000);
  const signal = new AbortController();
  const now = world.now;
  const endless = host.source.take(1_000_000) as Promise<unknown>;
  const short = host.source.take(1, { deadline: now + 200 }) as Promise<unknown>;
  const aborted = host.source.take(1, { signal: signal.signal }) as Promise<unknown>;
  const results = Promise.allSettled([endless, short, aborted]);
  void (host.source.take(1) as Promise<unknown>).catch(() => {});
  void (host.source.take(1) as Promise<unknown>).catch(() => {});
  const error = refusalOf(() => host.source.take(1));
  expect(error).toMatchObject({ reason: "OVERLOADED", retryAfterMs: 1_000 });
  signal.abort();
  expect(refusalOf(() => host.source.take(1, { signal: signal.signal })).reason).toBe(
    "CALL_CANCELLED",
  );
  await world.advance(151);
  let isShortOver = false;
  short.catch(() => (isShortOver = true));
  await world.advance(0);
  expect(isShortOver).toBe(true);
  await world.advance(20_000);
  expect(await results).toMatchObject([
    { reason: { reason: "SEGMENT_NOT_READY" } },
    { reason: { reason: "SEGMENT_NOT_READY" } },
    { reason: { reason: "CALL_CANCELLED" } },
  ]);
  expect(host.make(1)).toBe(1);
});

test("a worker id that another source of this process used meanwhile is leased anew, though its renewals are taken", async () => {
  // The other source gives its lease back, which is not heard of.
  const fates = [...calls(2, "ok"), ...calls(1, "lost"), ...calls(20, "ok")];
  const world = new World(snowflakeKind(), fates);
  const made: MadeSnowflakes = createMadeTimes();
  world.save();
  const host = new Host(world, "pod-1", 0, 3_000, made);
  await world.advance(10);
  expect(host.make(5)).toBe(5);
  // The second lease of this worker id has the same token as the first one.
  world.goBack();
  const other = new Host(world, "pod-2", 0, 3_000, made);
  await world.advance(10);
  expect(other.make(5)).toBe(5);
  void other.source.close(new IdmintError("DRAINING", "over"));
  // Its renewal is taken. What it reserves may have been reserved for others too.
  await world.advance(1_000);
  await world.advance(3_000);
  expect(nextParts(host)).toMatchObject({ tick: tickAt(SMALL, host.wall()), worker: 1 });
  expect(host.events.map(({ type }) => type)).toEqual([
    "worker-leased",
    "worker-lost",
    "worker-leased",
  ]);
  expect(world.faults).toEqual([]);
});

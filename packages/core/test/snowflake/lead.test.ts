// Leases that begin ahead of the clock, though every clock is right: above what an earlier holder reserved, or above a floor.
import { decode, IdmintError, SNOWFLAKE_PRESETS, type SnowflakeLayout, tickAt } from "@idmint/core";
import type { SnowflakeKind } from "@idmint/core/kinds";
import { expect, test } from "vitest";
import { Host, World } from "./world.ts";

const layout: SnowflakeLayout = { ...SNOWFLAKE_PRESETS["41-10-12"], workerBits: 3 };
const kind: SnowflakeKind = {
  kind: "snowflake",
  layout,
  dataCenter: 0,
  clockPolicy: "REFUSE",
  clockWaitMs: 5,
  registry: "STORE",
};
const MINUTE_MS = 60_000;
const AHEAD_MS = 3_000;
const MAX_LEAD_MS = 10_000;
/** How far ahead an accept puts the floor. */
const ACCEPT_MS = 370_000;

/** A host whose worker id is reserved so far ahead already, by an earlier process of its name. */
async function hostAhead(leadMs: number, offsetMs = 0): Promise<{ world: World; host: Host }> {
  const world = new World(kind);
  const early = new Host(world, "pod-1");
  await world.advance(1);
  early.dead = true;
  const row = [...world.rows.values()][0]!;
  const reservedUntilMs = world.trueTime() + leadMs;
  world.rows.set("0/0", { ...row, reservedUntilMs });
  world.reserved.get("0/0/0")!.at(-1)!.untilMs = reservedUntilMs;
  const host = new Host(world, "pod-1", offsetMs);
  await world.advance(1);
  return { world, host };
}

/** The tick of the next id; undefined when there is none. */
function nextTick(host: Host): number | undefined {
  const id = host.source.tryNext();
  if (id === undefined) return undefined;
  host.world.record(host, id);
  return decode(layout, id).tick;
}

test.each([500, 3_000, 9_999, 10_000, 11_000, 12_500, 12_998])(
  "a lease that begins %i ms ahead makes ids, also when it is next asked long after",
  async (leadMs) => {
    const { world, host } = await hostAhead(leadMs);
    expect(host.make(10)).toBe(10);
    await world.advance(20_000);
    // What an idle holder reserves is no further ahead than that of any other.
    const [row] = world.rows.values();
    expect(row!.reservedUntilMs).toBeLessThanOrEqual(world.trueTime() + AHEAD_MS);
    host.take(1);
    await world.advance(200);
    expect(nextTick(host)).toBe(tickAt(layout, host.wall()));
    expect(host.refusals).toEqual([]);
    expect(host.events.map(({ type }) => type)).toEqual(["worker-leased"]);
    expect(world.faults).toEqual([]);
  },
);

test.each([
  [13_000, 0],
  [13_500, 0],
  [13_900, -5_000],
])(
  "a lease that begins %i ms ahead, where nothing more is reserved, waits and blames no clock (%i ms off)",
  async (leadMs, offsetMs) => {
    const { world, host } = await hostAhead(leadMs, offsetMs);
    expect(host.make(1)).toBe(0);
    expect(host.source.refusal()).toMatchObject({ reason: "SEGMENT_NOT_READY" });
    expect(host.source.refusal()?.message).toMatch(/its ids are 1\d{4} ms ahead of the clock/);
    await world.advance(1_500);
    expect(host.make(1)).toBe(1);
    expect(host.events.map(({ type }) => type)).toEqual(["worker-leased"]);
    expect(world.faults).toEqual([]);
  },
);

test("however often a name starts anew, its ids are at most 13 s ahead, and the last start has them", async () => {
  const world = new World(kind);
  for (let start = 0; start < 7; start++) {
    const early = new Host(world, "pod-1");
    await world.advance(10);
    early.make(1);
    early.dead = true;
  }
  const host = new Host(world, "pod-1");
  await world.advance(2_000);
  // What the one before reserved may be all that is allowed: then ids come as the clock goes on.
  const most = tickAt(layout, world.trueTime() + AHEAD_MS + MAX_LEAD_MS);
  expect(nextTick(host)).toBeLessThanOrEqual(most);
  await world.advance(MINUTE_MS);
  host.take(1);
  await world.advance(200);
  expect(nextTick(host)).toBe(tickAt(layout, host.wall()));
  expect(world.faults).toEqual([]);
});

test("an id that is ahead keeps its time until the clock has caught up, and is asked for no further", async () => {
  const { world, host } = await hostAhead(9_000);
  const first = nextTick(host);
  for (let second = 0; second < 8; second++) {
    await world.advance(1_000);
    expect(nextTick(host)).toBe(first);
  }
  const [row] = world.rows.values();
  expect(row!.reservedUntilMs).toBeLessThan(world.trueTime() + AHEAD_MS + 2_000);
  expect(world.faults).toEqual([]);
});

test("while ids are ahead, a clock that is set by a few milliseconds did not go back", async () => {
  const { world, host } = await hostAhead(9_000);
  for (let step = 0; step < 60; step++) {
    await world.advance(100);
    host.stepClock(step % 2 === 0 ? -20 : 20);
    expect(host.make(5)).toBe(5);
  }
  // But beyond what is left of the reservation it did.
  host.stepClock(-5_000);
  await world.advance(2);
  expect(host.make(1)).toBe(0);
  const { reason, metadata } = host.refusals.at(-1)!;
  expect(reason).toBe("CLOCK_MOVED_BACKWARDS");
  // Of the 9 s that they were ahead at first, 6 have gone by.
  expect(Number(metadata["drift_ms"])).toBeGreaterThan(7_500);
  expect(Number(metadata["drift_ms"])).toBeLessThan(8_500);
  expect(world.faults).toEqual([]);
});

/** A host that leases its worker id above a floor that an accept has put minutes ahead. */
async function hostAboveFloor(
  sequenceBits = layout.sequenceBits,
): Promise<{ world: World; host: Host; floorTick: number }> {
  const world = new World({ ...kind, layout: { ...layout, sequenceBits } });
  world.closedUntilMs = world.trueTime() + ACCEPT_MS;
  const host = new Host(world, "pod-1");
  await world.advance(1);
  return { world, host, floorTick: tickAt(layout, world.closedUntilMs) };
}

test("above a floor that is minutes ahead ids are made at once, and go on until the clock has caught up", async () => {
  const { world, host, floorTick } = await hostAboveFloor();
  expect(nextTick(host)).toBe(floorTick + 1);
  expect(host.events).toMatchObject([{ type: "worker-leased", leadMs: ACCEPT_MS + 1 }]);
  let made = 0;
  for (let turn = 0; turn < 369; turn++) {
    await world.advance(1_000);
    made += host.make(100);
  }
  expect(made).toBe(36_900);
  // Ticks advanced by what their sequences held.
  const usedUp = nextTick(host)! - floorTick - 1;
  expect(usedUp).toBeGreaterThanOrEqual(Math.floor(made / 4_096));
  expect(usedUp).toBeLessThan(made / 4_096 + 50);
  await world.advance(MINUTE_MS);
  host.take(1);
  await world.advance(200);
  expect(nextTick(host)).toBe(tickAt(layout, host.wall()));
  expect(host.refusals).toEqual([]);
  expect(host.events.map(({ type }) => type)).toEqual(["worker-leased"]);
  expect(world.faults).toEqual([]);
});

test("who makes ids at full speed above such a floor waits when 13 s of ticks are used up, and is told why", async () => {
  const { world, host, floorTick } = await hostAboveFloor(2);
  for (let turn = 0; turn < 300; turn++) {
    await world.advance(50);
    host.make(1_000);
  }
  const ticks = AHEAD_MS + MAX_LEAD_MS;
  const all = [...world.ids.keys()];
  expect(all).toHaveLength(ticks * 4);
  expect(decode(world.layout, all.at(-1)!).tick).toBe(floorTick + ticks);
  expect(host.source.tryNext()).toBeUndefined();
  expect(host.source.refusal()).toMatchObject({ reason: "SEGMENT_NOT_READY" });
  expect(host.source.refusal()?.message).toMatch(
    /its ids are 3[56]\d{4} ms ahead of the clock, and no more time is reserved until/,
  );
  expect(host.events.map(({ type }) => type)).toEqual(["worker-leased"]);
  await world.advance(ACCEPT_MS);
  expect(host.make(1)).toBe(1);
});

test("a reservation that is further ahead than a floor and 13 s is a clock that was wrong, and says so", async () => {
  const { world, host } = await hostAhead(3_600_000);
  expect(host.make(1)).toBe(0);
  expect(host.refusals.at(-1)?.reason).toBe("CLOCK_MOVED_BACKWARDS");
  await world.advance(3_600_000);
  host.take(1);
  await world.advance(200);
  expect(nextTick(host)).toBe(tickAt(layout, host.wall()));
});

test("two holders of one name are told of within seconds, and make no id twice", async () => {
  const world = new World(kind);
  const twins = [new Host(world, "pod-1"), new Host(world, "pod-1")];
  for (let turn = 0; turn < 100; turn++) {
    await world.advance(100);
    for (const twin of twins) twin.make(3);
  }
  for (const { events } of twins) {
    expect(events.find(({ type }) => type === "name-shared")).toEqual({
      type: "name-shared",
      tag: "t",
      instance: "pod-1",
      workerId: 0,
    });
  }
  expect(world.faults).toEqual([]);
});

test("a process that is started again shares its name with nobody, nor does one that an epoch ended", async () => {
  const world = new World(kind);
  let host = new Host(world, "pod-1");
  await world.advance(2_000);
  for (let start = 0; start < 5; start++) {
    host.dead = true;
    host = new Host(world, "pod-1");
    await world.advance(2_000);
    expect(host.events.map(({ type }) => type)).toEqual(["worker-leased"]);
  }
  for (let epoch = 2n; epoch < 6n; epoch++) {
    world.epoch = epoch;
    world.refusal = new IdmintError("WORKER_LEASE_LOST", "of an older epoch");
    await world.advance(1_000);
    world.refusal = undefined;
    await world.advance(5_000);
    expect(host.make(1)).toBe(1);
  }
  expect(host.events.map(({ type }) => type)).not.toContain("name-shared");
});

import type { WorkerLease } from "@idmint/core";
import type { ClockPolicy } from "@idmint/core/kinds";
import fc from "fast-check";
import { expect, test } from "vitest";
import { LeaseKeeper, type LeaseRegistry } from "../../../src/service/worker-ids/lease-keeper.ts";
import { KeptHost, KeptWorld, type Network } from "./kept-world.ts";

type Step =
  | { readonly do: "make" | "take" | "run" | "wait" | "clock"; readonly by: number }
  | { readonly do: "disk"; readonly writeMs: number | undefined }
  | { readonly do: "network"; readonly network: Network }
  | { readonly do: "restart" | "right clock" };

function step(
  kind: "make" | "take" | "run" | "wait" | "clock",
  by: fc.Arbitrary<number>,
): fc.Arbitrary<Step> {
  return by.map((value) => ({ do: kind, by: value }));
}

const writes = fc.constantFrom(0, 1, 30, undefined);
const networks = fc.constantFrom<Network>("ok", "lost", "unanswered");
const clocks = [-3_600_000, -10_000, -50, -5, -2, 2, 50, 5_000, 3_600_000];
const waits = fc.oneof(
  fc.integer({ min: 1, max: 50 }),
  fc.integer({ min: 50, max: 3_000 }),
  fc.integer({ min: 3_000, max: 80_000 }),
);
const steps = fc.oneof(
  { weight: 4, arbitrary: step("make", fc.integer({ min: 1, max: 40 })) },
  { weight: 4, arbitrary: step("run", fc.integer({ min: 1, max: 60 })) },
  { weight: 1, arbitrary: step("take", fc.integer({ min: 1, max: 9_000 })) },
  { weight: 5, arbitrary: step("wait", waits) },
  { weight: 2, arbitrary: step("clock", fc.constantFrom(...clocks)) },
  { weight: 1, arbitrary: fc.constant<Step>({ do: "right clock" }) },
  { weight: 4, arbitrary: fc.constant<Step>({ do: "restart" }) },
  { weight: 3, arbitrary: networks.map((network): Step => ({ do: "network", network })) },
  { weight: 1, arbitrary: writes.map((writeMs): Step => ({ do: "disk", writeMs })) },
);

async function play(world: KeptWorld, host: KeptHost, next: Step): Promise<void> {
  if (next.do === "make") host.make(next.by);
  else if (next.do === "take") host.take(next.by);
  else if (next.do === "wait") await world.advance(next.by);
  else if (next.do === "run") await host.run(next.by);
  else if (next.do === "clock") host.offsetMs += next.by;
  else if (next.do === "right clock") host.offsetMs = 0;
  else if (next.do === "disk") host.writeMs = next.writeMs;
  else if (next.do === "network") world.network = next.network;
  else host.restart();
}

const policies: readonly ClockPolicy[] = ["REFUSE", "EXTENSION", "BACKUP_WORKER"];

test.each(policies)(
  "no id repeats over restarts, clocks, disks and registries that fail: %s",
  async (clockPolicy) => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.integer({ min: 0, max: 2 }), steps), { minLength: 5, maxLength: 40 }),
        async (script) => {
          const world = new KeptWorld({ clockPolicy });
          // Three that want the two worker ids there are.
          const hosts = ["a", "b", "c"].map((name) => new KeptHost(world, name));
          await world.advance(100);
          for (const [at, next] of script) {
            const host = hosts[at];
            if (host !== undefined) await play(world, host, next);
            for (const each of hosts) each.make(2);
            await world.advance(3);
            for (const each of hosts) each.make(2);
          }
          expect(world.faults).toEqual([]);
        },
      ),
      { numRuns: 300 },
    );
  },
);

test("a restart while the registry is down issues from where it was, until the minute is over", async () => {
  const world = new KeptWorld();
  const host = new KeptHost(world, "a");
  await world.advance(10_000);
  expect(host.make(5)).toBe(5);
  world.network = "lost";
  await world.advance(2_000);
  host.restart();
  await world.advance(1_100);
  expect(host.make(5)).toBe(5);
  const resumed = host.events.filter(({ type }) => type === "lease-resumed");
  expect(resumed).toMatchObject([{ isConfirmed: false }]);
  await world.advance(40_000);
  expect(host.make(5)).toBe(5);
  host.restart();
  await world.advance(1_100);
  expect(host.make(5)).toBe(5);
  // The registry answered last at 9 s, and reserved a minute.
  await world.advance(20_000);
  expect(host.make(1)).toBe(0);
  world.network = "ok";
  await world.advance(2_500);
  expect(host.make(5)).toBe(5);
  expect(world.faults).toEqual([]);
  expect(host.refusals).toEqual([]);
});

test.each(["ok", "lost"] as const)(
  "what was made before a restart is not made again by a clock that was set back: the registry %s",
  async (network) => {
    const world = new KeptWorld();
    const host = new KeptHost(world, "a");
    await world.advance(5_000);
    await host.run(200);
    world.network = network;
    host.offsetMs = -1_100;
    host.restart();
    await world.advance(1_010);
    await host.run(2_500);
    expect(host.make(1)).toBe(1);
    expect(world.faults).toEqual([]);
  },
);

test("a restart with the registry there keeps its worker id and its time", async () => {
  const world = new KeptWorld();
  const host = new KeptHost(world, "a");
  await world.advance(100);
  for (let life = 0; life < 20; life++) {
    expect(host.make(5)).toBe(5);
    host.restart();
    await world.advance(50);
  }
  const leased = host.events.filter(({ type }) => type === "worker-leased");
  expect(leased).toHaveLength(21);
  expect(new Set(leased.map((event) => "workerId" in event && event.workerId))).toEqual(
    new Set([0]),
  );
  expect(world.faults).toEqual([]);
});

test("nothing is made of a time that could not be written", async () => {
  const world = new KeptWorld();
  const host = new KeptHost(world, "a");
  await world.advance(100);
  expect(host.make(5)).toBe(5);
  host.writeMs = undefined;
  await world.advance(3_200);
  expect(host.make(1)).toBe(0);
  expect(host.events.filter(({ type }) => type === "lease-file-failed")).toHaveLength(1);
  host.writeMs = 1;
  await world.advance(3_000);
  expect(host.make(5)).toBe(5);
  expect(world.faults).toEqual([]);
});

test("a lease whose token was used up without an answer is followed by another, above the minute, at once", async () => {
  const world = new KeptWorld();
  const host = new KeptHost(world, "a");
  await world.advance(100);
  world.network = "unanswered";
  await world.advance(4_000);
  world.network = "ok";
  await world.advance(8_000);
  expect(host.make(5)).toBe(5);
  await world.advance(70_000);
  expect(host.make(5)).toBe(5);
  expect(host.events.filter(({ type }) => type === "worker-lost")).toHaveLength(1);
  expect(world.faults).toEqual([]);
});

test("a clock that jumps within the minute is not believed", async () => {
  const world = new KeptWorld();
  const host = new KeptHost(world, "a");
  await world.advance(100);
  expect(host.make(5)).toBe(5);
  host.offsetMs = 40_000;
  await world.advance(5_000);
  expect(host.make(1)).toBe(0);
  host.offsetMs = 0;
  await world.advance(2_000);
  expect(host.make(5)).toBe(5);
});

test("a holder is answered of its own lease only, though a backup leased its worker id meanwhile", async () => {
  const world = new KeptWorld();
  const keeper = new LeaseKeeper({
    file: { found: undefined, write: async () => undefined, empty: async () => undefined },
    clock: { now: () => world.now },
    timers: { after: (ms, run) => world.after(ms, run) },
    wallClock: () => world.time,
    incarnation: () => "one",
    issuing: () => world.issuing,
    node: () => ({ id: "n", parts: [] }),
    callers: () => undefined,
    emit: () => undefined,
  });
  const registry = keeper.registryOf(world.tag, world.registry);
  const answered = async <T>(call: Promise<T>): Promise<T> => {
    await Promise.all([call.catch(() => undefined), world.advance(50)]);
    return call;
  };
  const lease = (instance: string, of: LeaseRegistry = registry): Promise<WorkerLease> =>
    answered(of.leaseWorker({ tag: "t", instance, dataCenter: undefined, reserveAheadMs: 3_000 }));
  const renew = ({ workerId, token, extension }: WorkerLease) => {
    const rest = { reserveUntilMs: world.time + 3_000, reserveAheadMs: 3_000 };
    return answered(
      registry.renewWorker({ tag: "t", dataCenter: 0, workerId, token, extension, ...rest }),
    );
  };
  const first = await lease("a");
  await lease("b", world.registry);
  // Nobody renews for longer than the minute that is reserved.
  await world.advance(75_000);
  const backup = await lease("a#1");
  expect(backup).toMatchObject({ workerId: first.workerId });
  const own = await renew(backup);
  expect(own.reservedUntilMs).toBeGreaterThan(world.time);
  for (let renewals = 0; renewals < 3; renewals++) {
    const reservedMs = await renew(first).then(
      ({ reservedUntilMs }) => reservedUntilMs,
      () => 0,
    );
    expect(reservedMs).toBeLessThan(backup.notBeforeMs);
  }
  expect((await renew({ ...backup, ...own })).reservedUntilMs).toBeGreaterThan(world.time);
});

import { IdmintError, WORKER_TTL_MS } from "@idmint/core";
import type { ClockPolicy, SnowflakeKind } from "@idmint/core/kinds";
import fc from "fast-check";
import { expect, test } from "vitest";
import { type Fate, Host, World } from "./world.ts";

const fate: fc.Arbitrary<Fate> = fc.record({
  way: fc.oneof(
    { weight: 6, arbitrary: fc.constant("ok" as const) },
    { weight: 1, arbitrary: fc.constant("lost" as const) },
    { weight: 1, arbitrary: fc.constant("unanswered" as const) },
  ),
  toMs: fc.oneof({ weight: 4, arbitrary: fc.nat(5) }, fc.constantFrom(500, 2_000, 5_000)),
  backMs: fc.oneof({ weight: 4, arbitrary: fc.nat(5) }, fc.constantFrom(500, 2_000, 5_000)),
});

const kind: fc.Arbitrary<SnowflakeKind> = fc
  .record({
    timeUnitMs: fc.constantFrom(1, 10, 1_000),
    dataCenterBits: fc.constantFrom(0, 1),
    workerBits: fc.constantFrom(0, 1, 2),
    sequenceBits: fc.constantFrom(1, 3, 5),
    extensionBits: fc.constantFrom(0, 1, 2),
    clockPolicy: fc.constantFrom<ClockPolicy>("REFUSE", "EXTENSION", "BACKUP_WORKER"),
    clockWaitMs: fc.constantFrom(0, 5),
  })
  .map(({ clockPolicy, clockWaitMs, ...layout }) => ({
    kind: "snowflake",
    layout: { ...layout, timeBits: 41, timeOriginMs: 1_767_225_600_000 },
    dataCenter: 0,
    clockPolicy,
    clockWaitMs,
    registry: "STORE",
  }));

const STEPS_MS = [-2, -5, -50, -2_000, -10_000, -3_600_000, 2, 2_000, 10_000, 3_600_000];

type Step =
  | { do: "make"; host: number; count: number }
  | { do: "take"; host: number; count: number }
  | { do: "advance"; ms: number }
  | { do: "step"; host: number; ms: number }
  | { do: "set"; host: number; ms: number }
  | { do: "rate"; host: number; rate: number }
  | { do: "step-registry"; ms: number }
  | { do: "pause"; host: number }
  | { do: "resume"; host: number; frozen: boolean }
  | { do: "crash"; host: number; ms: number }
  | { do: "stop"; host: number }
  | { do: "save" }
  | { do: "go-back" };

const HOSTS = 4;
const host = fc.nat(HOSTS - 1);
const skew = fc.constantFrom(0, 2_000, -2_000);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({ do: fc.constant("make"), host, count: fc.integer({ min: 1, max: 90 }) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant("take"), host, count: fc.constantFrom(1, 7, 90, 700) }),
  },
  { weight: 8, arbitrary: fc.record({ do: fc.constant("advance"), ms: fc.nat(40) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant("advance"), ms: fc.nat(4_000) }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant("advance"), ms: fc.constant(3 * WORKER_TTL_MS) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant("step"), host, ms: fc.constantFrom(...STEPS_MS) }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("set"), host, ms: skew }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant("rate"), host, rate: fc.constantFrom(1, 2, 0.5) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("step-registry"),
      ms: fc.constantFrom(-3_600_000, -2_000, 2_000, 40_000, 3_600_000),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("pause"), host }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("resume"), host, frozen: fc.boolean() }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("crash"),
      host,
      ms: fc.constantFrom(0, 2_000, -3_600_000),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("stop"), host }) },
);

/** Hosts 0 and 1 have the same name, by mistake; so has whatever starts again in the place of another. */
function startHost(world: World, index: number, offsetMs: number): Host {
  return new Host(world, `pod-${Math.max(1, index)}`, offsetMs, index === 3 ? 60_000 : 3_000);
}

async function play(world: World, hosts: Host[], one: Step): Promise<void> {
  if (one.do === "advance") return world.advance(one.ms);
  if (one.do === "save") return world.save();
  if (one.do === "go-back") return world.goBack();
  if (one.do === "step-registry") {
    world.registryOffsetMs += one.ms;
    return;
  }
  const host = hosts[one.host];
  if (host === undefined) throw new Error("no such host");
  switch (one.do) {
    case "make":
      host.make(one.count);
      break;
    case "take":
      host.take(one.count);
      break;
    case "step":
      host.stepClock(one.ms);
      break;
    case "set":
      host.setClock(one.ms);
      break;
    case "rate":
      host.setRate(one.rate);
      break;
    case "pause":
      host.pause();
      break;
    case "resume":
      host.resume(one.frozen);
      break;
    case "crash":
      host.dead = true;
      hosts[one.host] = startHost(world, one.host, host.wall() - world.trueTime() + one.ms);
      break;
    case "stop":
      void host.source.close(new IdmintError("DRAINING", "the host stops"));
      await world.advance(10);
      host.dead = true;
      hosts[one.host] = startHost(world, one.host, 0);
      break;
  }
}

async function runWorld(
  world: World,
  skews: readonly number[],
  steps: readonly Step[],
): Promise<void> {
  const hosts = skews.map((offset, index) => startHost(world, index, offset));
  await world.advance(20);
  for (const one of steps) {
    await play(world, hosts, one);
    expect(world.faults).toEqual([]);
  }
  for (const host of hosts) host.resume(false);
  await world.advance(1_000);
  for (const host of hosts) host.make(50);
  expect(world.faults).toEqual([]);
}

const fates = fc.array(fate, { minLength: 1, maxLength: 20 });
const skews = fc.array(skew, { minLength: HOSTS, maxLength: HOSTS });

async function holdsUnder(steps: fc.Arbitrary<Step>): Promise<void> {
  let made = 0;
  await fc.assert(
    fc.asyncProperty(
      kind,
      fates,
      skews,
      fc.array(steps, { minLength: 10, maxLength: 120 }),
      async (kind, fates, skews, steps) => {
        const world = new World(kind, fates);
        await runWorld(world, skews, steps);
        made += world.ids.size;
      },
    ),
    { numRuns: 300 },
  );
  expect(made).toBeGreaterThan(10_000);
}

test("no id is made twice, whatever clocks, networks, pauses, crashes and equal names do", async () => {
  await holdsUnder(step);
});

test("no process makes an id of its own again, nor a lower one of the same worker, also when its registry goes back", async () => {
  const lost = fc.oneof(
    { weight: 20, arbitrary: step },
    { weight: 1, arbitrary: fc.constant<Step>({ do: "save" }) },
    { weight: 2, arbitrary: fc.constant<Step>({ do: "go-back" }) },
  );
  await holdsUnder(lost);
});

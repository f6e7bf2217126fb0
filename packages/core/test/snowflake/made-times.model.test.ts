import { createMadeTimes, idsOf, type MadeSnowflakes, SNOWFLAKE_PRESETS } from "@idmint/core";
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  createGeneratorState,
  giveUp,
  look,
  make,
  takeUp,
} from "../../src/snowflake/generator-state.ts";
import { madeOf } from "../../src/snowflake/made-times.ts";

const LAYOUTS = [SNOWFLAKE_PRESETS["41-10-12"], SNOWFLAKE_PRESETS.sonyflake] as const;
const START_MS = 1_800_000_000_000;
const TAGS = 30;
const MAX_IDLE = 3;

/** A lease of a tag's one worker id, `count` ids under it, and its end, unless it goes on; then time goes on. */
interface Turn {
  readonly tag: number;
  readonly count: number;
  readonly leadMs: number;
  readonly goesOn: boolean;
  readonly passMs: number;
}

const turn: fc.Arbitrary<Turn> = fc.record({
  tag: fc.nat(TAGS - 1),
  count: fc.nat(9),
  leadMs: fc.constantFrom(0, 0, 5, 400),
  goesOn: fc.boolean(),
  passMs: fc.nat(3),
});

test("a registry that reserves one time again and again makes no process repeat an id, however few it remembers", () => {
  let forgotten = 0;
  let refused = 0;
  let total = 0;
  const check = (turns: readonly Turn[]): void => {
    const made: MadeSnowflakes = createMadeTimes(MAX_IDLE);
    const seen = new Set<string>();
    let now = 0;
    let mostInUse = 0;
    for (const { tag, count, leadMs, goesOn, passMs } of turns) {
      const layout = LAYOUTS[tag % 2] ?? LAYOUTS[0];
      const state = createGeneratorState({ tag: `t${tag}`, layout, clockWaitMs: 5 }, made);
      const reading = { wallMs: START_MS + now, monotonicMs: now };
      const notBeforeMs = START_MS + leadMs;
      const reservedUntilMs = START_MS + 3_000;
      const reservation = { dataCenter: 0, workerId: 0, extension: 0, notBeforeMs };
      takeUp(state, { ...reservation, reservedUntilMs }, reading, 13_000);
      const ids = look(state, reading).type === "ready" ? [...idsOf(make(state, count))] : [];
      for (const id of ids) {
        expect(seen.has(`${tag} ${id}`)).toBe(false);
        seen.add(`${tag} ${id}`);
      }
      if (ids.length < count) refused++;
      total += ids.length;
      if (!goesOn) giveUp(state);
      now += passMs;
      if (made.forgottenMs > 0) forgotten++;
      const inUse = [...made.places.values()].filter(({ maker }) => maker !== undefined).length;
      mostInUse = Math.max(mostInUse, inUse);
      expect(made.places.size).toBeLessThanOrEqual(2 * (mostInUse + MAX_IDLE));
    }
  };
  fc.assert(fc.property(fc.array(turn, { minLength: 20, maxLength: 120 }), check));
  // What is forgotten costs ids only where they are ahead of the clock.
  expect([forgotten > 100, total > 1_000, refused < total]).toEqual([true, true, true]);
});

test("places with the oldest ids are forgotten first, and those whose ids are being made never", () => {
  const [layout] = LAYOUTS;
  const made: MadeSnowflakes = createMadeTimes(2);
  const used = madeOf(made, "used", layout);
  const maker = createGeneratorState({ tag: "t", layout, clockWaitMs: 5 }, made);
  used.maker = maker;
  for (const [place, nextTick] of [
    ["a", 30],
    ["b", 10],
    ["c", 20],
  ] as const)
    madeOf(made, place, layout).nextTick = nextTick;
  expect(madeOf(made, "d", layout).nextTick).toBe(10);
  expect([...made.places.keys()]).toEqual(["used", "a", "c", "d"]);
  // In a coarser time it begins with the first tick that lies wholly after.
  const { timeOriginMs } = layout;
  expect(madeOf(made, "e", { ...layout, timeUnitMs: 7, timeOriginMs }).nextTick).toBe(2);
});

import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { accessPlan } from "../../sim/access/access-plan.ts";
import { EXCLUDED } from "../../sim/check/grant-log.ts";
import { type Outcome, runHistory } from "../../sim/history.ts";
import { ACTIONS, type Plan, planOf, withKind } from "../../sim/plan.ts";
import type { PlantedFault } from "../../sim/planted-fault.ts";
import { PLANTED } from "../../sim/planted.ts";
import { TRUSTED } from "../../sim/nodes/stranger.ts";
import { UNASKED } from "../../sim/unasked.ts";
import { Dice } from "../../sim/world/random.ts";

const HISTORIES = process.env["IDMINT_LONG"] === "1" ? 1_000 : 6;
/** Seeds of other commits are others, so that all of them together try much. */
const FIRST = Number(process.env["IDMINT_SEED"] ?? 1);
/**
 * Something was found in each that few histories meet: an accept of a store that was put back between two of its looks,
 * servers that left no turn to the accept of an operator, a lost sequence that was made anew in a period that was over, and a
 * checker that took a key of Redis, evicted and then put back while the store was down, for one that had counted nothing.
 */
const FOUND = ["182400367", "7100356", "7300854", "200484068"];
/** Most histories until a planted fault is noticed. */
const MOST_SEEDS = 20;
/** An SDK that believes what a copy of the store lists takes ids of it in a third of these. */
const MOST_ASTRAY = 6;
/** Most histories until each method was answered; some want what few histories have at the right moment. */
const MOST_ASKING = 40;

test("fleets that everything befalls issue no id twice, keep their order and come back", async () => {
  const outcomes: Outcome[] = [];
  for (let at = 0; at < HISTORIES; at++) {
    const seed = String(FIRST + at);
    const outcome = await runHistory(planOf(seed));
    expect({ seed, violations: outcome.violations }).toEqual({ seed, violations: [] });
    outcomes.push(outcome);
  }
  // A history that is a toy shows nothing.
  const median = (of: (outcome: Outcome) => number): number =>
    outcomes.map(of).toSorted((a, b) => a - b)[HISTORIES >> 1] ?? 0;
  // Few histories have a middle that is further from that of many, which pnpm sim wants to be 300 calls.
  expect(median(({ answered }) => answered)).toBeGreaterThan(150);
  expect(median(({ faults }) => faults)).toBeGreaterThanOrEqual(5);
  expect(median(({ servers }) => servers)).toBeGreaterThanOrEqual(3);
  expect(median(({ simulatedMs }) => simulatedMs)).toBeGreaterThan(60_000);
});

test.each(FOUND)("what was found in history %s is mended", async (seed) => {
  expect((await runHistory(planOf(seed))).violations).toEqual([]);
});

test("a seed is one history", async () => {
  const seed = String(FIRST);
  const first = await runHistory(planOf(seed));
  await runHistory(planOf(String(FIRST + 1)));
  const again = await runHistory(planOf(seed));
  expect(again.hash).toBe(first.hash);
  expect((await runHistory(planOf(String(FIRST + 1)))).hash).not.toBe(first.hash);
});

test("histories call every method of the API", async () => {
  const asked = new Set<string>();
  let all: readonly string[] = [];
  for (let at = 1; at <= MOST_ASKING; at++) {
    const actions = ACTIONS.map((act, target) => ({
      act,
      target,
      ms: 5_000,
      atMs: 5_000 * target,
    }));
    const access = accessPlan(new Dice(`methods ${at}`));
    const { methods } = await runHistory({ ...planOf(`methods ${at}`), actions, access });
    for (const [path, count] of methods) if (count > 0) asked.add(path);
    all = [...methods.keys()].filter((path) => UNASKED[path] === undefined);
    if (all.every((path) => asked.has(path))) break;
  }
  expect(all.filter((path) => !asked.has(path))).toEqual([]);
  expect(Object.keys(UNASKED).filter((path) => asked.has(path))).toEqual([]);
});

/** A history in which what a planted fault needs befalls the fleet a few times. */
function withNeeds(bare: Plan, planted: PlantedFault): Plan {
  const { needs, needsMs = 2_500, needsKind, needsAction, needsAccess } = planted;
  const plan = needsKind === undefined ? bare : withKind(bare, needsKind);
  if (needsAccess === true) return { ...plan, access: accessPlan(new Dice(plan.seed)) };
  const times = [15_000, 25_000, 35_000];
  if (needs !== undefined) {
    const more = { kind: needs, ms: needsMs, size: 0.9 };
    return { ...plan, faults: times.map((atMs, target) => ({ ...more, atMs, target })) };
  }
  if (needsAction === undefined) return plan;
  const more = { act: needsAction, ms: 60_000 };
  return { ...plan, faults: [], actions: times.map((atMs, target) => ({ ...more, atMs, target })) };
}

test.each(Object.entries(PLANTED))("the checker notices: %s", async (_, planted) => {
  const seen: string[] = [];
  for (let at = 1; at <= MOST_SEEDS; at++) {
    const plan = withNeeds(planOf(`planted ${at}`), planted);
    const { violations } = await runHistory(plan, { planted: planted.plant() });
    if (at === 1) expect((await runHistory(plan)).violations).toEqual([]);
    seen.push(...violations.map(({ what }) => what));
    if (seen.some((what) => planted.noticed.test(what))) return;
  }
  expect.fail(`not noticed in ${MOST_SEEDS} histories; seen: ${seen.slice(0, 5).join("\n")}`);
});

/** Drains make programs ask for lists, and meanwhile each address that one has learned leads it to a copy of the store. */
function astray(plan: Plan): Plan {
  const times = [6_000, 16_000, 26_000];
  const kind = "another store's server at an address";
  return {
    ...plan,
    servers: 4,
    faults: [0, 1, 2, 3].map((target) => ({ kind, target, atMs: 7_000, ms: 25_000, size: 0 })),
    actions: times.map((atMs, target) => ({ act: "drain", target, atMs, ms: 5_000 })),
  };
}

test("no program takes ids from a copy of the store, though it has the rows of the same servers", async () => {
  for (let at = 1; at <= MOST_ASTRAY; at++) {
    const { violations } = await runHistory(astray(planOf(`astray ${at}`)));
    expect({ at, violations }).toEqual({ at, violations: [] });
  }
});

test("what is excluded is what docs/guarantees.md says", () => {
  const page = path.join(import.meta.dirname, "../../../../docs/guarantees.md");
  const text = readFileSync(page, "utf8");
  const all = [...Object.values(EXCLUDED), ...Object.values(TRUSTED)];
  for (const sentence of all) expect(text).toContain(sentence);
});

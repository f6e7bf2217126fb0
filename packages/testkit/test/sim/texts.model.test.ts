import { expect, test } from "vitest";
import { Confirmation } from "../../../client/src/kinds/confirmation.ts";
import { runHistory } from "../../sim/history.ts";
import { replaced } from "../../sim/replaced.ts";
import { type Plan, planOf, type TagPlan } from "../../sim/plan.ts";

/** Longer than programs make UUIDs without asking a server. */
const STORM_MS = 720_000;

/** A history in which an operator pauses a tag whose ids programs make themselves, and all use it all the time. */
function pausedPlan(kind: TagPlan["kind"]): Plan {
  const plan = planOf(`paused ${kind}`);
  const [first] = plan.tags;
  if (first === undefined) throw new Error("a plan without tags");
  const tags = [{ ...first, name: kind, kind, ceiling: 0n }];
  const actions = [{ act: "pause", target: 0, atMs: 3_000, ms: STORM_MS } as const];
  return {
    ...plan,
    tags,
    actions,
    faults: [],
    stormMs: STORM_MS,
    everyMs: 2_000,
    limitTags: 1_000,
    access: undefined,
  };
}

test.each(["uuid", "object_id"] as const)(
  "programs obey a pause of a tag of kind %s",
  async (kind) => {
    const { violations, judged, refusals } = await runHistory(pausedPlan(kind));
    expect(violations).toEqual([]);
    expect(judged).toBe(0);
    // Programs made ids for minutes, and were refused then.
    expect(refusals.get("TAG_PAUSED")).toBeGreaterThan(100);
  },
);

test("the checker notices UUIDs that are made for ever", async () => {
  const real = Object.getOwnPropertyDescriptor(Confirmation.prototype, "isOver");
  const patch = (): (() => void) => {
    Object.defineProperty(Confirmation.prototype, "isOver", {
      get: () => false,
      configurable: true,
    });
    const end = replaced(Confirmation.prototype, "keep", () => undefined);
    return () => {
      if (real !== undefined) Object.defineProperty(Confirmation.prototype, "isOver", real);
      end();
    };
  };
  const { violations } = await runHistory(pausedPlan("uuid"), { planted: { patch } });
  expect(violations[0]?.what).toMatch(/got a text, though a stop was in effect/);
});

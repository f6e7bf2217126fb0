import type { Mutant } from "./mutant.ts";

const core = "packages/core/src/server/capacity";
const pure = ["packages/core/test/server/capacity/capacity.test.ts"];
const service = ["packages/server/test/service/capacity.test.ts"];

/** Faults of what is foretold of tags. */
export const capacityMutants: readonly Mutant[] = [
  {
    name: "capacity: what an operator raised the floor by counts as used",
    file: `${core}/usage-state.ts`,
    find: "usage === undefined || usage.epoch !== epoch || usage.period !== period",
    replace: "usage === undefined || usage.period !== period",
    tests: [...pure, ...service],
  },
  {
    name: "capacity: a rate is counted from look to look instead of from jump to jump",
    file: `${core}/usage-state.ts`,
    find: "steps.length > 2 && before < 0 ? steps[1] : steps[0]",
    replace: "steps[0]",
    tests: pure,
  },
  {
    name: "capacity: a rate stays while nobody takes ids",
    file: `${core}/usage-state.ts`,
    find: "Math.min(byJumps, byNow) * 1_000",
    replace: "(Number.isFinite(byJumps) ? byJumps : byNow) * 1_000",
    tests: pure,
  },
  {
    name: "capacity: the oldest steps are left out instead of those that are missed least",
    file: `${core}/usage-state.ts`,
    find: "    if (share >= least) continue;",
    replace: "    if (share >= least || at > 2) continue;",
    tests: pure,
  },
  {
    name: "capacity: a person is told again and again",
    file: `${core}/warning-state.ts`,
    find: "if (state.told !== undefined && state.told <= days) return undefined;",
    replace: "",
    tests: pure,
  },
  {
    name: "capacity: a person is told on the word of a minute's watch",
    file: `${core}/warning-state.ts`,
    find: "isForetold && leftMs > watchedMs * FORETELLS",
    replace: "isForetold && leftMs < 0",
    tests: pure,
  },
  {
    name: "capacity: a sequence that begins anew has a date all the same",
    file: `${core}/horizons.ts`,
    find: "unit === undefined ? END_OF_TIME_MS : nowMs + LONGEST_PERIOD_MS[unit]",
    replace: "unit === undefined ? END_OF_TIME_MS : END_OF_TIME_MS",
    tests: pure,
  },
  {
    name: "capacity: a tag that is asked for pushes out the one that ends first",
    file: "packages/server/src/service/tags/watched-tags.ts",
    find: "if (at <= farthestAt) continue;",
    replace: "if (farthest !== undefined && at >= farthestAt) continue;",
    tests: service,
  },
];

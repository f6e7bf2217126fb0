import type { Mutant } from "./mutant.ts";

const core = "packages/core/src";
const service = "packages/server/src/service";

/** What comes after its time: answers, records and times of something that is over. */
export const pastMutants: readonly Mutant[] = [
  {
    name: "past: the SDK counts max_age from the arrival of an answer",
    file: "packages/client/src/segment-loads.ts",
    find: `const expiresAt = sentAtMs + maxAgeMs;`,
    replace: `const expiresAt = this.#context.clock.now() + maxAgeMs;`,
    tests: ["packages/client/test/retries.test.ts"],
  },
  {
    name: "past: a load that was given up ends the one after it by its failure",
    file: `${core}/segment/buffer-state.ts`,
    find: `  if (state.loading.phase !== "loading" || state.loading.token !== token) return [];`,
    replace: `  if (state.loading.phase !== "loading") return [];`,
    tests: ["packages/core/test/buffer.test.ts"],
  },
  {
    name: "past: records that a poll brought of a history that is over are taken",
    file: `${service}/issue/directory.ts`,
    find: `    if (history !== this.#history) return;
    for (const tag of tags) {`,
    replace: `    for (const tag of tags) {`,
    tests: ["packages/server/test/service/directory.test.ts"],
  },
  {
    name: "past: an extension may be skipped",
    file: `${core}/server/worker/registry-state.ts`,
    find: `const isNext = extension === held.extension + 1 &&`,
    replace: `const isNext = extension > held.extension &&`,
    tests: ["packages/core/test/server/worker/registry-state.test.ts"],
  },
  {
    name: "past: a holder asks for the extension after the next one",
    file: `${core}/worker/lease-state.ts`,
    find: `(demand.wantsExtension ? 1 : 0)`,
    replace: `(demand.wantsExtension ? 2 : 0)`,
    tests: ["packages/core/test/worker/lease-state.test.ts"],
  },
  {
    name: "past: a lease is taken up that is answered after its holder has ended",
    file: `${core}/worker/lease-state.ts`,
    find: `  state.held = undefined;
  state.inFlight = undefined;
  // While`,
    replace: `  state.held = undefined;
  // While`,
    tests: ["packages/core/test/worker/lease-state.test.ts"],
  },
  {
    name: "past: a lease is answered that was asked for before a stop",
    file: `${service}/worker-ids/service.ts`,
    find: `    if (late !== undefined) throw late;
`,
    replace: ``,
    tests: ["packages/server/test/service/worker-service.test.ts"],
  },
  {
    name: "past: a term may be below the one that its candidate knows of",
    file: "packages/coordination/src/redis/mint.ts",
    find: `math.max(last, tonumber(floor), time`,
    replace: `math.max(last, time`,
    tests: ["packages/coordination/test/election/election.redis.test.ts"],
    only: "above the floor",
  },
];

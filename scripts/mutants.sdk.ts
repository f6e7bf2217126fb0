import type { Mutant } from "./mutant.ts";

const segment = "packages/core/src/segment";
const buffer = ["packages/core/test/buffer.test.ts"];

/** Faults of what the SDK believes, and of how long it keeps it. */
export const sdkMutants: readonly Mutant[] = [
  {
    name: "sdk: only a ticker notices that ids have expired",
    file: `${segment}/cursor.ts`,
    find: `if (state.loads[0]?.expiresAt !== Infinity) {`,
    replace: `if (state.loads.length > 2) {`,
    tests: buffer,
  },
  {
    name: "sdk: a long stride outlives the burst that made it",
    file: `${segment}/buffer-state.ts`,
    find: `Math.min(MAX_STRIDE, state.stride * 2) : 1;`,
    replace: `Math.min(MAX_STRIDE, state.stride * 2) : state.stride;`,
    tests: buffer,
  },
  {
    name: "sdk: the stride of a burst has no limit",
    file: `${segment}/buffer-state.ts`,
    find: `Math.min(MAX_STRIDE, state.stride * 2) : 1;`,
    replace: `state.stride * 2 : 1;`,
    tests: buffer,
  },
  {
    name: "sdk: the slow path issues before it looks at the clock",
    file: `${segment}/buffer.ts`,
    find: `    this.#run(look(this.#state, now));
    return now;`,
    replace: `    void Promise.resolve().then(() => this.#run(look(this.#state, now)));
    return now;`,
    tests: buffer,
  },
  {
    name: "sdk: a waiter gets ids that expired while it waited",
    file: `${segment}/buffer-state.ts`,
    find: `const effects: Effect[] = [...look(state, now)];
  state.loading = { phase: "idle" };`,
    replace: `const effects: Effect[] = [];
  state.loading = { phase: "idle" };`,
    tests: buffer,
  },
  {
    name: "sdk: an answer that expired on its way is used",
    file: `${segment}/buffer-state.ts`,
    find: `const isExpired = now >= expiresAt;`,
    replace: `const isExpired = false;`,
    tests: buffer,
  },
];

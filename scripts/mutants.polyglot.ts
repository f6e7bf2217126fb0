import type { Mutant } from "./mutant.ts";

const file = "packages/testkit/polyglot/python/ids/segments.py";
const tests = ["packages/testkit/test/polyglot.e2e.test.ts"];

/** Faults of the callers in Python; those in Go and Java are written alike. */
export const polyglotMutants: readonly Mutant[] = [
  {
    name: "polyglot: ids in memory have no max_age",
    file,
    find: "if block.left > 0 and age < block.max_age:",
    replace: "if block.left > 0:",
    tests,
    isLong: true,
  },
  {
    name: "polyglot: the cursor stays on an id",
    file,
    find: "block.next += block.increment",
    replace: "block.next += block.increment * (block.left % 1_000 != 0)",
    tests,
    isLong: true,
  },
];

/** A fault, planted by replacing a text that stands exactly once in a file, and the tests that must notice it. */
export interface Mutant {
  readonly name: string;
  readonly file: string;
  readonly find: string;
  readonly replace: string;
  readonly tests: readonly string[];
}

const buffer = ["packages/core/test/buffer.model.test.ts", "packages/core/test/buffer.test.ts"];
const state = "packages/core/src/segment/buffer-state.ts";
const cursor = "packages/core/src/segment/cursor.ts";

export const mutants: readonly Mutant[] = [
  {
    name: "check-then-increment across an await",
    file: "packages/core/src/segment/buffer.ts",
    find: `    const id = this.#issueOne();
    if (id !== undefined) return id;
    const segments`,
    replace: `    const seen = peekId(this.#state);
    if (seen !== undefined) {
      return Promise.resolve().then(() => {
        this.#issueOne();
        return seen;
      });
    }
    const segments`,
    tests: buffer,
  },
  {
    name: "the answer of a load that was given up is used",
    file: state,
    find: `if (state.loading.phase !== "loading" || state.loading.token !== token) {`,
    replace: `if (state.loading.phase !== "loading") {`,
    tests: buffer,
  },
  {
    name: "the prefetch result of an old epoch is accepted",
    file: state,
    find: `const isUsable = count > 0 && load.epoch === state.epoch;`,
    replace: `const isUsable = count > 0;`,
    tests: buffer,
  },
  {
    name: "two loads in flight",
    file: state,
    find: `if (loading.phase === "loading" || state.fenced !== undefined) return;`,
    replace: `if (state.fenced !== undefined) return;`,
    tests: buffer,
  },
  {
    name: "off by one at a segment's end: one id too many",
    file: cursor,
    find: `const part = Math.min(rest, segment.count - state.offset);`,
    replace: `const part = Math.min(rest, segment.count - state.offset + 1);`,
    tests: buffer,
  },
  {
    name: "off by one at a segment's end: the warm path runs over it",
    file: cursor,
    find: `let limit = segment.count - 1;`,
    replace: `let limit = segment.count + 1;`,
    tests: buffer,
  },
  {
    name: "off by one at a segment's end: the last id is skipped",
    file: cursor,
    find: `if (segment === undefined || state.offset < segment.count) return;`,
    replace: `if (segment === undefined || state.offset < segment.count - 1) return;`,
    tests: buffer,
  },
  {
    name: "a segment below `after` is accepted",
    file: state,
    find: `if (segment.base <= last) return false;`,
    replace: ``,
    tests: buffer,
  },
  {
    name: "ids as JavaScript numbers past 2^53",
    file: "packages/core/src/segment/segment.ts",
    find: `? segment.base + BigInt(offset)`,
    replace: `? BigInt(Number(segment.base) + offset)`,
    tests: [...buffer, "packages/core/test/segment.test.ts"],
  },
  {
    name: "numbers past 2^53 are not refused",
    file: cursor,
    find: `state.numberLimit = Math.min(limit, safeCount(segment));`,
    replace: `state.numberLimit = limit;`,
    tests: buffer,
  },
];

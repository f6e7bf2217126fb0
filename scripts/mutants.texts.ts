import type { Mutant } from "./mutant.ts";

const texts = "packages/core/src/segment/decimal-texts.ts";
const tests = ["packages/core/test/decimal-texts.model.test.ts"];

/** Faults of ids that are written by their last digits. */
export const textMutants: readonly Mutant[] = [
  {
    name: "texts: an id past the thousand is written with the digits of the last one",
    file: texts,
    find: `rest >= 0 && rest < BLOCK ?`,
    replace: `rest >= 0 && rest <= BLOCK ?`,
    tests,
  },
  {
    name: "texts: an id below the thousand is written with its digits",
    file: texts,
    find: `rest >= 0 && rest < BLOCK ?`,
    replace: `rest < BLOCK ?`,
    tests,
  },
  {
    name: "texts: short ids are padded",
    file: texts,
    find: `if (id < BLOCK) return String(id);`,
    replace: ``,
    tests,
  },
  {
    name: "texts: digits in front are cut to 32 bits",
    file: "packages/core/src/segment/buffer.ts",
    find: `short < SHORT_IDS_END`,
    replace: `short < 4 * SHORT_IDS_END`,
    tests,
  },
  {
    name: "texts: endings lose their zeros",
    file: texts,
    find: `.padStart(3, "0")`,
    replace: ``,
    tests,
  },
  {
    name: "texts: the digits in front are those of the thousand before",
    file: texts,
    find: `    this.#prefix = String(block);
    return`,
    replace: `    if (this.#prefix === "") this.#prefix = String(block);
    return`,
    tests,
  },
  {
    name: "texts: the warm path goes on past its limit",
    file: "packages/core/src/segment/buffer.ts",
    find: `if (offset < state.limit && short`,
    replace: `if (short`,
    tests,
  },
];

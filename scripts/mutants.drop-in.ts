import type { Mutant } from "./mutant.ts";

const tinyid = "packages/server/src/http/tinyid.ts";
const tinyidTests = ["packages/server/test/http/tinyid.test.ts"];
const plain = "packages/server/src/service/issue/plain-ids.ts";
const plainTests = ["packages/server/test/service/plain-ids.test.ts"];
const served = ["packages/server/test/http/drop-in.e2e.test.ts"];

/** Leaf's and Tinyid's paths. */
export const dropInMutants: readonly Mutant[] = [
  {
    name: "drop-in: a segment of Tinyid's has one id more",
    file: tinyid,
    find: "  const maxId = base + step * BigInt(count - 1);",
    replace: "  const maxId = base + step * BigInt(count);",
    tests: tinyidTests,
  },
  {
    name: "drop-in: a client of Tinyid may count past 2^63",
    file: tinyid,
    find: "  if (maxId > MAX_SEGMENT_END) {",
    replace: "  if (maxId > MAX_ID) {",
    tests: tinyidTests,
  },
  {
    name: "drop-in: of two tokens the one of the URL is believed",
    file: tinyid,
    find: '  return header === undefined ? `Bearer ${token}` : "";',
    replace: "  return `Bearer ${token}`;",
    tests: tinyidTests,
  },
  {
    name: "drop-in: the last of two tokens is meant",
    file: "packages/server/src/http/form.ts",
    find: '    if (form.has(name)) throw invalidField(shown(name), "must be there once", "FIELD_CONFLICT");\n',
    replace: "",
    tests: tinyidTests,
  },
  {
    name: "drop-in: Leaf's failure is an answer",
    file: "packages/server/src/http/leaf.ts",
    find: "  return { status: 500, headers, body: JSON.stringify(body) };",
    replace: "  return { status: 200, headers, body: JSON.stringify(body) };",
    tests: ["packages/server/test/http/leaf.test.ts"],
  },
  {
    name: "drop-in: an id of a period is told without its period",
    file: plain,
    find: "  if (!hasPeriods && !isText) return;",
    replace: "  if (!isText) return;",
    tests: served,
  },
  {
    name: "drop-in: what a segment has no room for is lost",
    file: plain,
    find: "      if (rest > 0) this.#release(tag, all.releaseToken, rest);\n",
    replace: "",
    tests: plainTests,
  },
  {
    name: "drop-in: two ranges are told as one",
    file: plain,
    find: "    if (isNext && next.base === base + BigInt(increment) * BigInt(count)) {",
    replace: "    if (isNext) {",
    tests: plainTests,
  },
  {
    name: "drop-in: segments of a tag in order are kept by its callers",
    file: plain,
    find: '  const isFree = order === "UNORDERED" && text === undefined;',
    replace: "  const isFree = text === undefined;",
    tests: plainTests,
  },
  {
    name: "drop-in: the first segment of a tag is for nothing",
    file: "packages/server/src/api/plain-ids.ts",
    find: "    if (!admission.hasQuotas) return allocate(request, context);\n",
    replace: "    if (step > 0) return allocate(request, context);\n",
    tests: served,
  },
  {
    name: "drop-in: a tag has the step of its neighbour",
    file: "packages/server/src/service/issue/sharing.ts",
    find: "  for (const key in other) if (!(key in one)) return false;\n",
    replace: "",
    tests: plainTests,
  },
  {
    name: "drop-in: what Tinyid's clients hold is over when max_age is",
    file: "packages/server/src/service/node-watch.ts",
    find: "  return memoryMs >= HELD_FOR_EVER_MS;",
    replace: "  return memoryMs > HELD_FOR_EVER_MS;",
    tests: ["packages/server/test/service/node-watch.test.ts"],
  },
];

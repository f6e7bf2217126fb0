import type { Mutant } from "./mutant.ts";

const model = "packages/console/src/pages/tags/model";
const edits = ["packages/console/test/tags/edit.test.ts"];
const values = ["packages/console/test/tags/values.test.ts"];
const creates = ["packages/console/test/tags/create.test.ts"];

/** The console's forms of tags, and what it tells of them. */
export const formMutants: readonly Mutant[] = [
  {
    name: "forms: a change goes out without the etag",
    file: `${model}/changes.ts`,
    find: "      etag: tag.etag,\n",
    replace: "",
    tests: edits,
  },
  {
    name: "forms: keeping mine undoes what somebody else changed",
    file: `${model}/changes.ts`,
    find: "return { ...theirs, ...changed };",
    replace: "return { ...theirs, ...mine };",
    tests: edits,
  },
  {
    name: "forms: a field that an issued tag has fixed can be typed into",
    file: `${model}/changes.ts`,
    find: 'return hasIssued ? "issued" : undefined;',
    replace: "return undefined;",
    tests: edits,
  },
  {
    name: "forms: a change is told to be in effect because its time has come",
    file: `${model}/effect-state.ts`,
    find: '{ state: "due", lagging };',
    replace: '{ state: "done" };',
    tests: values,
  },
  {
    name: "forms: an id passes through a number of JavaScript",
    file: `${model}/id-value.ts`,
    find: "return isNumber ? { id: text } : { text };",
    replace: "return isNumber ? { id: String(Number(text)) } : { text };",
    tests: values,
  },
  {
    name: "forms: a violation loses its field",
    file: `${model}/violations.ts`,
    find: 'field.replace(/^tag\\./u, "")',
    replace: "field",
    tests: values,
  },
  {
    name: "forms: a 0, which the API takes for nothing, is sent as a value",
    file: `${model}/draft.ts`,
    find: 'return value === 0n || (value === 0 && (type === "int32" || type === "uint32"));',
    replace: 'return value === "" && type === "text";',
    tests: creates,
  },
  {
    name: "forms: the line of a layout names its widths in another order",
    file: `${model}/lines.ts`,
    find: 'return [time, ...(center === "0" ? [] : [center]), ...low].join("-");',
    replace: 'return [time, ...(center === "0" ? [] : [center]), ...low.reverse()].join("-");',
    tests: creates,
  },
  {
    name: "forms: the next period begins by the offset of now",
    file: `${model}/next-cut.ts`,
    find: "return firstInstant(NEXT_START[unit](new Date(today)), zone, offsetAt);",
    replace: "return NEXT_START[unit](new Date(today)) - offset * 60_000;",
    tests: ["packages/console/test/tags/preview.test.ts"],
    only: "the next cut",
  },
  {
    name: "forms: who gave a segment back is shown to hold it",
    file: `${model}/holders.ts`,
    find: "if (other.kind !== what || other.nodeId !== nodeId) return false;",
    replace: "return false;",
    tests: ["packages/console/test/tags/figures.test.ts"],
  },
];

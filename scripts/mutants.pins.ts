import type { Mutant } from "./mutant.ts";

const pins = "packages/server/src/store/pins";
const postgres = "packages/server/src/store/postgres";
const unit = ["packages/server/test/store/pins/pins.test.ts"];
const real = ["packages/server/test/store/postgres-pin.pg.test.ts"];

/** Faults of a server that belongs to one store, and of what it remembers of it. */
export const pinMutants: readonly Mutant[] = [
  {
    name: "pin: any store is believed",
    file: `${pins}/pin.ts`,
    find: `if (storeId !== this.#id) throw`,
    replace: `if (storeId === "") throw`,
    tests: unit,
  },
  {
    name: "pin: each process of a server settles on its own store",
    file: `${pins}/memory.ts`,
    find: `if (pinned !== undefined) return pinned;`,
    replace: `if (pinned === storeId) return pinned;`,
    tests: unit,
    only: "processes of one server",
  },
  {
    name: "pin: what could not be kept is believed",
    file: `${pins}/memory.ts`,
    find: `if (this.#kept !== undefined) await writePinFile(this.#kept.file, known);\n    this.#known = known;`,
    replace: `this.#known = known;\n    if (this.#kept !== undefined) await writePinFile(this.#kept.file, known);`,
    tests: unit,
    only: "nothing is believed that cannot be kept",
  },
  {
    name: "pin: the kept id goes before the one that is told",
    file: `${pins}/memory.ts`,
    find: `if (expectId !== undefined) stores.set("", expectId);`,
    replace: `if (expectId !== undefined && !stores.has("")) stores.set("", expectId);`,
    tests: unit,
    only: "store.expect_id goes before",
  },
  {
    name: "pin: a process that is behind takes the server back to a history that it left",
    file: `${pins}/memory.ts`,
    find: `if (incarnation === present || left.includes(incarnation)) return;`,
    replace: `if (incarnation === present) return;`,
    tests: unit,
    only: "histories that were left",
  },
  {
    name: "pin: a history that an earlier life left is entered",
    file: "packages/server/src/service/upstream/poll-state.ts",
    find: `if (isFirst && !state.left.has(changes.incarnation)) {`,
    replace: `if (isFirst) {`,
    tests: ["packages/server/test/service/poll-state.test.ts"],
    only: "an earlier life",
  },
  {
    name: "pin: a new connection is not proved",
    file: `${postgres}/connections.ts`,
    find: `await believe(client, this.#belonging);`,
    replace: ``,
    tests: real,
  },
  {
    name: "pin: a session that leads elsewhere grants",
    file: `${postgres}/identity.ts`,
    find: `THEN 'store_id' END`,
    replace: `THEN NULL END`,
    tests: real,
    only: "lent out again",
  },
  {
    name: "pin: a session that was never proved grants",
    file: `${postgres}/identity.ts`,
    find: `THEN CASE WHEN 'proved_id' <> ALL (\${allowed}) THEN 'proved_id' END`,
    replace: `THEN NULL`,
    tests: real,
    only: "lent out again",
  },
];

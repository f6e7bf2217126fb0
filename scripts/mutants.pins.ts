import type { Mutant } from "./mutant.ts";

const pins = "packages/server/src/store/pins";
const postgres = "packages/server/src/store/postgres";
const sqlite = "packages/server/src/store/sqlite";
const onSqlite = ["packages/server/test/store/sqlite-pin.test.ts"];
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
    only: "none to begin in",
  },
  {
    name: "pin: a new connection is not proved",
    file: `${postgres}/connections.ts`,
    find: `await this.#belonging?.prove(client);`,
    replace: ``,
    tests: real,
  },
  {
    name: "pin: a ticket database of another name is pinned",
    file: `${postgres}/hosts/belonging.ts`,
    find: `this.#refuse(row.id);`,
    replace: ``,
    tests: real,
    only: "the wrong name is never pinned",
  },
  {
    name: "pin: a session that leads elsewhere grants",
    file: `${postgres}/identity.ts`,
    find: `THEN 'store_id' END`,
    replace: `THEN NULL END`,
    tests: real,
    only: "a session that leads to another store",
  },
  {
    name: "pin: the history in which an earlier life ended is forgotten",
    file: "packages/server/src/service/upstream/poll-state.ts",
    find: `if (earlier !== undefined && earlier !== changes.incarnation) state.left.add(earlier);`,
    replace: ``,
    tests: ["packages/server/test/service/poll-state.test.ts"],
    only: "an earlier life ended was left",
  },
  {
    name: "pin: the row of another SQLite store is believed",
    file: `${sqlite}/file/database.ts`,
    find: `if (row !== undefined) this.#assertOurs(row.storeId);`,
    replace: ``,
    tests: onSqlite,
    only: "whose id is in its",
  },
  {
    name: "pin: another SQLite store stays open when ours is back",
    file: `${sqlite}/file/database.ts`,
    find: `      // Kept, it would make our own files look like ones that took its place.
      this.#abandon();
`,
    replace: ``,
    tests: onSqlite,
    only: "is left when ours is back",
  },
  {
    name: "pin: another SQLite store is opened before it is known",
    file: `${sqlite}/file/database.ts`,
    find: `if (peeked !== undefined) this.#assertOurs(peeked);`,
    replace: `void peeked;`,
    tests: onSqlite,
    only: "is expected by its id",
  },
  {
    name: "pin: another SQLite store under a running server is one that went back",
    file: `${sqlite}/file/database.ts`,
    find: `    if (storeId === undefined) throw storeUnavailable("another file lies where the store's was");
    this.#assertOurs(storeId);
`,
    replace: `    void storeId;
`,
    tests: onSqlite,
    only: "nothing is believed",
  },
  {
    name: "pin: a SQLite store that is gone is one that was replaced",
    file: `${sqlite}/file/database.ts`,
    find: `    if (now === undefined) throw storeUnavailable(GONE);
    this.#assertStill(now);`,
    replace: `    if (now === undefined) return;
    this.#assertStill(now);`,
    tests: onSqlite,
    only: "gone for a while",
  },
  {
    name: "pin: a look that a moved folder tore is a verdict",
    file: `${sqlite}/file/database.ts`,
    find: `if (now === undefined || !areSame(now, seen)) throw storeUnavailable(MOVED);`,
    replace: `void areSame(now ?? seen, seen);`,
    tests: onSqlite,
    only: "however fast",
  },
  {
    name: "pin: what a witness of another store says is a verdict",
    file: `${sqlite}/file/database.ts`,
    find: `if (witness?.mark !== undefined) this.#assertOurs(witness.mark.storeId);`,
    replace: `void witness;`,
    tests: onSqlite,
    only: "a witness of another store says nothing",
  },
  {
    name: "pin: one store's file is used with another's -wal",
    file: `${sqlite}/file/connection.ts`,
    find: `if (files === undefined || !holdsOpen(files)) {`,
    replace: `if (files === undefined) {`,
    tests: onSqlite,
    only: "change places",
  },
  {
    name: "pin: a SQLite store is used that nobody pinned",
    file: `${sqlite}/store.ts`,
    find: `if (id !== "") await pin.believe(id);`,
    replace: `void id;`,
    tests: onSqlite,
    only: "pinned first stays",
  },
  {
    name: "pin: a thread that takes over belongs to whatever it finds",
    file: `${sqlite}/store.ts`,
    find: `new Channel({ ...data, storeId }, thread);`,
    replace: `new Channel({ ...data, storeId: undefined && storeId }, thread);`,
    tests: onSqlite,
    only: "takes over",
  },
];

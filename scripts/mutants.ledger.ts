import type { Mutant } from "./mutant.ts";

const core = "packages/core/src/server/ledger";
const pure = ["packages/core/test/server/ledger/ledger.test.ts"];
const model = ["packages/server/test/service/ledger.model.test.ts"];
const onSqlite = {
  tests: ["packages/server/test/store/sqlite.test.ts"],
  only: "ledger|forg|give-back",
};

/** Faults of who is named for an id. */
export const ledgerMutants: readonly Mutant[] = [
  {
    name: "ledger: released ids are handed out before their row is stored",
    file: "packages/server/src/service/ledger.ts",
    find: "    void this.#flush(lane);\n    return promise;",
    replace: "    void this.#flush(lane);\n    settle(true);\n    return promise;",
    tests: model,
  },
  {
    name: "ledger: released ids are handed out though their row may not be stored",
    file: "packages/server/src/service/ledger.ts",
    find: "    for (const { settle } of releases) settle(false);",
    replace: "    for (const { settle } of releases) settle(true);",
    tests: ["packages/server/test/service/ledger.test.ts"],
  },
  {
    name: "ledger: a release is written with an older version than the allocation",
    file: "packages/server/src/service/ledger.ts",
    find: `const event = { entry: "release", tag, segment, version, epoch`,
    replace: `const event = { entry: "release", tag, segment, version: version - 1n, epoch`,
    tests: model,
  },
  {
    name: "ledger: a server gives back without a row",
    file: "packages/server/src/service/issue/directory.ts",
    find: "requests.push({ ...request, giver: this.#ports.ledger?.giver });",
    replace: "requests.push(request);",
    tests: model,
  },
  {
    name: "ledger: forgotten rows count",
    file: `${core}/holder.ts`,
    find: "rows.filter(({ version }) => version > forgotten)",
    replace: "rows.filter(({ version }) => version > 0n || forgotten > 0n)",
    tests: [...pure, ...model],
  },
  {
    name: "ledger: the oldest row of a version counts",
    file: `${core}/holder.ts`,
    find: "return one.sequence > other.sequence;",
    replace: "return one.sequence < other.sequence;",
    tests: [...pure, ...model],
  },
  {
    name: "ledger: rows of two servers with one version do not contradict each other",
    file: `${core}/holder.ts`,
    find: "version === newest.version && nodeId !== newest.nodeId",
    replace: "version > newest.version && nodeId !== newest.nodeId",
    tests: pure,
  },
  {
    name: "ledger: what there was no room for leaves no gap",
    file: `${core}/ledger-state.ts`,
    find: `    if (event.entry !== "release") drop(state, event);`,
    replace: '    if (event.entry === "release") drop(state, event);',
    tests: pure,
  },
  {
    name: "ledger: an accepted SQLite store goes on with the rows of the lost history",
    file: "packages/server/src/store/sqlite/accept.ts",
    find: "  forgetLedger(transaction);\n",
    replace: "",
    ...onSqlite,
  },
  {
    name: "ledger: old rows of SQLite go without being forgotten",
    file: "packages/server/src/store/sqlite/records/ledger.ts",
    find: "    transaction.run(FORGET, position);\n",
    replace: "",
    ...onSqlite,
  },
  {
    name: "ledger: a give-back of PostgreSQL leaves no row",
    file: "packages/server/src/store/postgres/give-back.ts",
    find: "FROM judged AS j WHERE j.node_id IS NOT NULL",
    replace: "FROM judged AS j WHERE j.node_id IS NULL",
    tests: ["packages/server/test/store/postgres.pg.test.ts"],
    only: "names its server",
  },
];

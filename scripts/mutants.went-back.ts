import type { Mutant } from "./mutant.ts";

const store = "packages/server/src/store";
const ownRow = `${store}/postgres/hosts/own-row.ts`;
const etcdRestore = ["packages/server/test/store/etcd/restore.etcd.test.ts"];
const state = ["packages/server/test/store/own-row-state.test.ts"];
const witness = ["packages/server/test/store/sqlite-witness.test.ts"];
const sqlite = ["packages/server/test/store/sqlite-went-back.test.ts"];
const postgres = ["packages/server/test/store/postgres-went-back.pg.test.ts"];
const etcd = ["packages/server/test/store/etcd/went-back.etcd.test.ts"];
const etcdRow = `${store}/etcd/own-row.ts`;

/** Faults in how servers notice a store that went back, and tell each other. */
export const wentBackMutants: readonly Mutant[] = [
  {
    name: "went back: a row is compared with one of another history",
    file: `${store}/pins/own-row-state.ts`,
    find: `if (found.history !== known.history) return "";`,
    replace: ``,
    tests: state,
  },
  {
    name: "went back: an old trace explains a row that is gone",
    file: `${store}/pins/own-row-state.ts`,
    find: `found.forgotten !== undefined && found.forgotten >= known.renewals`,
    replace: `found.forgotten !== undefined`,
    tests: state,
  },
  {
    name: "went back: a machine that stood still marks a store that forgot it",
    file: `${store}/pins/own-row-state.ts`,
    find: ` && found.storeMs - known.storeMs < GONE_PROVES_MS`,
    replace: ``,
    tests: state,
  },
  {
    name: "went back: a renewal wipes out its own proof",
    file: `${store}/postgres/nodes.ts`,
    find: `
    WHERE n.renewals >= (SELECT x.renewals FROM expected AS x)`,
    replace: ``,
    tests: postgres,
  },
  {
    name: "went back: a row that is gone is made again at once",
    file: `${store}/postgres/nodes.ts`,
    find: "${history}::text OR ${mayMake}::boolean AS may_make",
    replace: "${history}::text OR ${mayMake}::boolean OR true AS may_make",
    tests: postgres,
  },
  {
    name: "went back: an accept is taken for a store that went back",
    file: `${store}/postgres/nodes.ts`,
    find: "CASE WHEN s.incarnation || ' ' || s.identity = ${history}::text THEN ${renewals}::bigint ELSE 0 END",
    replace: "${renewals}::bigint",
    tests: postgres,
  },
  {
    name: "went back: versions of before an accept mark what was accepted",
    file: `${store}/postgres/changes.ts`,
    find: `  if (renewal?.incarnation !== incarnation) return "";
`,
    replace: ``,
    tests: postgres,
  },
  {
    name: "went back: a row that is removed leaves no trace",
    file: `${store}/postgres/migrations/000001-init.ts`,
    find: `  INSERT INTO idmint.node_gone (id, renewals) VALUES (old.id, old.renewals);
`,
    replace: ``,
    tests: postgres,
  },
  {
    name: "went back: a row that a hand wrote becomes one of ours by the mark",
    file: ownRow,
    find: `OR t.xmin = t.written_by AND t.moved_to`,
    replace: `OR t.moved_to`,
    tests: postgres,
  },
  {
    name: "went back: an old primary is a new history",
    file: ownRow,
    find: `nowTimeline < timeline`,
    replace: `nowTimeline > timeline`,
    tests: state,
  },
  {
    name: "went back: a history that was left is entered again",
    file: ownRow,
    find: `      this.#left.add(before);
`,
    replace: ``,
    tests: postgres,
  },
  {
    name: "went back: an accept of an etcd begins before it has read every tag",
    file: `${store}/etcd/accept.ts`,
    find: `    await check(session, { ...how, claims: said.claims });
`,
    replace: ``,
    tests: etcdRestore,
    only: "garbage",
  },
  {
    name: "went back: sqlite takes what was seen before an accept for a proof",
    file: `${store}/sqlite/changes.ts`,
    find: ` || renewal?.incarnation !== found.incarnation`,
    replace: ``,
    tests: sqlite,
  },
  {
    name: "went back: sqlite keeps to itself that a tag's row went back",
    file: `${store}/sqlite/changes.ts`,
    find: `      markWentBack(transaction, why);
`,
    replace: ``,
    tests: sqlite,
  },
  {
    name: "went back: sqlite's renewal wipes out its own proof",
    file: `${store}/sqlite/nodes.ts`,
    find: `if (loss !== "") {`,
    replace: `if (loss === "never") {`,
    tests: sqlite,
  },
  {
    name: "went back: sqlite does not know what a renewal left",
    file: `${store}/sqlite/nodes.ts`,
    find: `    database.ownRow.renewed(done.look, done.renewals);
`,
    replace: ``,
    tests: sqlite,
  },
  {
    name: "went back: sqlite's removed rows leave no trace",
    file: `${store}/sqlite/migrations/000001-init.ts`,
    find: `  INSERT INTO node_gone (id, renewals) VALUES (old.id, old.renewals);
`,
    replace: ``,
    tests: sqlite,
  },
  {
    name: "went back: sqlite keeps what one process has seen to that process",
    file: `${store}/sqlite/file/database.ts`,
    find: `if (FOUND_BY_ONE.has(reason)) this.#mark(handle, reason);`,
    replace: ``,
    tests: sqlite,
  },
  {
    name: "went back: sqlite does not sum up floors",
    file: `${store}/sqlite/file/identity.ts`,
    find: ` && floors === row.floors;`,
    replace: `;`,
    tests: ["packages/server/test/store/sqlite-restore.chaos.test.ts"],
    only: "set back by hand",
  },
  {
    name: "went back: sqlite calls a full disk an unknown outcome",
    file: `${store}/sqlite/file/database.ts`,
    find: `if (codeOf(error) === SQLITE_FULL) {`,
    replace: `if (codeOf(error) === -1) {`,
    tests: witness,
    only: "on a full disk",
  },
  {
    name: "went back: sqlite's short -wal is never begun anew on a full disk",
    file: `${store}/sqlite/file/database.ts`,
    find: `      reuseWal(handle.sqlite);
`,
    replace: ``,
    tests: witness,
    only: "on a full disk",
  },
  {
    name: "went back: a tag that the store has lost is made anew",
    file: "packages/server/src/service/tags/service.ts",
    find: `    await this.#assertNotLost(draft.name);
`,
    replace: ``,
    tests: ["packages/server/test/service/lost-tag.test.ts"],
  },
  {
    name: "went back: sqlite serves a store that is marked",
    file: `${store}/sqlite/file/identity.ts`,
    find: `      return MARKED + row.identity.slice(WENT_BACK.length);
    }
    if (row.identity !== files.identity) {`,
    replace: `    } else if (row.identity !== files.identity) {`,
    tests: sqlite,
  },
  {
    name: "went back: etcd is not marked for what a row shows",
    file: `${store}/etcd/nodes.ts`,
    find: `if (loss !== "") {`,
    replace: `if (loss === "none") {`,
    tests: etcd,
    only: "slept while etcd's data",
  },
  {
    name: "went back: etcd is asked for a row that it has compacted, though a lower one is there",
    file: etcdRow,
    find: `!isEarlier && (await`,
    replace: `(await`,
    tests: etcd,
    only: "slept while etcd's data",
  },
  {
    name: "went back: etcd explains every row that is gone",
    file: etcdRow,
    find: `return row?.modRevision === revision && nodeFrom(row.value).renewals === renewals;`,
    replace: `return row !== null;`,
    tests: etcd,
    only: "row has gone",
  },
  {
    name: "went back: etcd's compaction is taken for a store that went back",
    file: etcdRow,
    find: `error.kind === "compacted") return true;`,
    replace: `error.kind === "compacted") return false;`,
    tests: etcd,
    only: "made again at once",
  },
  {
    name: "went back: etcd's history explains no row that was forgotten",
    file: etcdRow,
    find: `if (!isEarlier && (await isExplained(session, known))) return "";`,
    replace: ``,
    tests: etcd,
    only: "made again at once",
  },
  {
    name: "went back: etcd rows of two histories are compared",
    file: etcdRow,
    find: `if (incarnation !== known.incarnation) return "";`,
    replace: ``,
    tests: etcd,
    only: "row has gone",
  },
  {
    name: "went back: etcd rows are compared with what was known after they were read",
    file: `${store}/etcd/nodes.ts`,
    find: `await lossOf(session, known, {`,
    replace: `await lossOf(session, etcd.ownRow ?? known, {`,
    tests: etcd,
    only: "given up",
  },
  {
    name: "went back: etcd is marked for versions of before an accept",
    file: `${store}/etcd/changes.ts`,
    find: ` && query.renewal?.incarnation === incarnation`,
    replace: ``,
    tests: etcd,
    only: "accepted while it slept",
  },
  {
    name: "went back: etcd is not marked for a tag that is behind",
    file: `${store}/etcd/changes.ts`,
    find: `if (mayMark) await markBehind`,
    replace: `if (!mayMark) await markBehind`,
    tests: etcd,
    only: "a tag's key",
  },
];

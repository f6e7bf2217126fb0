import type { Mutant } from "./mutant.ts";

const service = "packages/server/src/service";
const sqlite = "packages/server/src/store/sqlite";
const sqliteFiles = "packages/server/test/store/sqlite-files.test.ts";
const lateLookup = "packages/server/test/service/late-lookup.test.ts";
const directory = "packages/server/test/service/directory.test.ts";
const grants = "packages/server/test/service/grants.test.ts";
const buffer = "packages/core/test/buffer.test.ts";

/** Faults in what a server believes of its store, and in how it keeps the files of one. */
export const fileMutants: readonly Mutant[] = [
  {
    name: "lookup: an answer of before a change that was seen is taken",
    file: `${service}/lookup-state.ts`,
    find: `records.filter(({ name }) => inFlight.has(name))`,
    replace: `[...records]`,
    tests: [lateLookup],
  },
  {
    name: "lookup: a change that is seen does not overtake it",
    file: `${service}/directory.ts`,
    find: `      this.#ports.lookup.overtaken(tag.name);
`,
    replace: ``,
    tests: [lateLookup],
  },
  {
    name: "directory: an older revision is accepted",
    file: `${service}/directory.ts`,
    find: `    if (tag.revision < entry.revision) return;
`,
    replace: ``,
    tests: [lateLookup],
  },
  {
    name: "directory: what a fenced tag held is given back",
    file: "packages/core/src/segment/buffer-state.ts",
    find: `  dropLoads(state, () => true, "dropped", effects);
  for (const waiter of state.waiters.splice(0))`,
    replace: `  for (const waiter of state.waiters.splice(0))`,
    tests: [directory],
  },
  {
    name: "buffer: a direct load of an older epoch is answered as new",
    file: "packages/core/src/segment/buffer.ts",
    find: `if (answer.epoch < state.epoch || state.fenced !== undefined) {`,
    replace: `if (state.fenced !== undefined) {`,
    tests: [buffer],
  },
  {
    name: "grants: a late grant does not move the version guard",
    file: `${service}/grants.ts`,
    find: `      if (this.#ports.guard.admitGrant(tag, request.seenVersion, version)) continue;
      this.#ports.onWentBack(tag, wentBackText(version, request.seenVersion));
`,
    replace: `      if (version > request.seenVersion) continue;
      this.#ports.onWentBack(tag, wentBackText(version, request.seenVersion));
`,
    tests: [grants],
  },
  {
    name: "grants: a late grant of a store that went back goes unnoticed",
    file: `${service}/grants.ts`,
    find: `      if (this.#ports.guard.admitGrant(tag, request.seenVersion, version)) continue;
      this.#ports.onWentBack(tag, wentBackText(version, request.seenVersion));
`,
    replace: `      this.#ports.guard.admitGrant(tag, request.seenVersion, version);
`,
    tests: [grants],
  },
  {
    name: "sqlite: commits are not synced (synchronous = NORMAL)",
    file: `${sqlite}/database.ts`,
    find: `PRAGMA synchronous = FULL;`,
    replace: `PRAGMA synchronous = NORMAL;`,
    tests: [sqliteFiles],
  },
];

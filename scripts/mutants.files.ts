import type { Mutant } from "./mutant.ts";

const service = "packages/server/src/service";
const sqlite = "packages/server/src/store/sqlite";
const sqliteFiles = "packages/server/test/store/sqlite-files.test.ts";
const lateLookup = "packages/server/test/service/late-lookup.test.ts";
const directory = "packages/server/test/service/directory.test.ts";
const leaseFile = "packages/server/test/store/lease-file.test.ts";
const grants = "packages/server/test/service/grants.test.ts";
const buffer = "packages/core/test/buffer.test.ts";

/** Faults in what a server believes of its store, and in how it keeps the files of one. */
export const fileMutants: readonly Mutant[] = [
  {
    name: "lookup: an answer of before a change that was seen is taken",
    file: `${service}/upstream/lookup-state.ts`,
    find: `records.filter(({ name }) => inFlight.has(name))`,
    replace: `[...records]`,
    tests: [lateLookup],
  },
  {
    name: "lookup: a change that is seen does not overtake it",
    file: `${service}/issue/directory.ts`,
    find: `      this.#ports.lookup.overtaken(tag.name);
`,
    replace: ``,
    tests: [lateLookup],
  },
  {
    name: "directory: an older revision is accepted",
    file: `${service}/issue/directory.ts`,
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
    file: `${service}/upstream/grants.ts`,
    find: `      if (this.#ports.guard.admitGrant(tag, request.seenVersion, grant)) continue;
      this.#ports.onWentBack(tag, wentBackText(version, request.seenVersion));
`,
    replace: `      if (version > request.seenVersion) continue;
      this.#ports.onWentBack(tag, wentBackText(version, request.seenVersion));
`,
    tests: [grants],
  },
  {
    name: "grants: a late grant of a store that went back goes unnoticed",
    file: `${service}/upstream/grants.ts`,
    find: `      if (this.#ports.guard.admitGrant(tag, request.seenVersion, grant)) continue;
      this.#ports.onWentBack(tag, wentBackText(version, request.seenVersion));
`,
    replace: `      this.#ports.guard.admitGrant(tag, request.seenVersion, grant);
`,
    tests: [grants],
  },
  {
    name: "grants: ids are used that were granted here before",
    file: `${service}/upstream/grants.ts`,
    find: `(request.kind !== "segment" || guard.admitIds(tag, grant))`,
    replace: `(request.kind !== "segment" || guard.admitIds(tag, grant) || isAbove)`,
    tests: [grants],
  },
  {
    name: "directory: ids that were given back are taken for ids of a store that went back",
    file: `${service}/issue/directory.ts`,
    find: `      this.#ports.guard.giveBack(entry.name, request.from);
`,
    replace: ``,
    tests: [directory],
  },
  {
    name: "sqlite: commits are not synced (synchronous = NORMAL)",
    file: `${sqlite}/file/connection.ts`,
    find: `PRAGMA synchronous = FULL;`,
    replace: `PRAGMA synchronous = NORMAL;`,
    tests: [sqliteFiles],
  },
  {
    name: "sqlite: a hard link that is made under a running server is not seen",
    file: `${sqlite}/file/database.ts`,
    find: `      assertOneName(now.links);
`,
    replace: ``,
    tests: [sqliteFiles],
  },
  {
    name: "sqlite: a file with two hard links is opened",
    file: `${sqlite}/file/database.ts`,
    find: `    assertOneName(there.links);
`,
    replace: ``,
    tests: [sqliteFiles],
  },
  {
    name: "sqlite: what lies beside the file is looked for beside a symbolic link",
    file: `${sqlite}/file/location.ts`,
    find: `  return { ...config, path: file };`,
    replace: `  return config;`,
    tests: [sqliteFiles],
  },
  {
    name: "sqlite: a file that is mounted by itself is served",
    file: `${sqlite}/file/location.ts`,
    find: `mountPointsOf(readFileSync(MOUNTS, "utf8")).has(file)`,
    replace: `mountPointsOf(readFileSync(MOUNTS, "utf8")).has(\`\${file}/\`)`,
    tests: [sqliteFiles],
  },
  {
    name: "sqlite: a file that was moved without its -wal is served",
    file: `${sqlite}/file/identity.ts`,
    find: `row.path !== this.#path && row.progress > 0n`,
    replace: `row.path === "" && row.progress > 0n`,
    tests: [sqliteFiles],
  },
  {
    name: "lease file: one that is replaced can be believed again",
    file: "packages/server/src/store/kept/lease-file.ts",
    find: `    await held.file?.truncate();
`,
    replace: ``,
    tests: [leaseFile],
  },
  {
    name: "lease file: one that is replaced is emptied too late",
    file: "packages/server/src/store/kept/lease-file.ts",
    find: `    await held.file?.truncate();
    await rename(next, name);
`,
    replace: `    await rename(next, name);
    await held.file?.truncate();
`,
    tests: [leaseFile],
  },
  {
    name: "neighbours: an idmint server that has the port is taken for another program",
    file: "packages/server/src/main/neighbours.ts",
    find: `answer?.["service"] !== "idmint"`,
    replace: `answer?.["service"] !== ""`,
    tests: ["packages/server/test/dev.e2e.test.ts"],
  },
];

import type { Mutant } from "./mutant.ts";

const service = "packages/server/src/service";
const sqlite = "packages/server/src/store/sqlite";
const sqliteWitness = "packages/server/test/store/sqlite-witness.test.ts";
const sqliteWitnessModel = "packages/server/test/store/sqlite-witness.model.test.ts";
const sqliteFiles = "packages/server/test/store/sqlite-files.test.ts";
const lateLookup = "packages/server/test/service/late-lookup.test.ts";
const directory = "packages/server/test/service/directory.test.ts";
const leaseFile = "packages/server/test/store/lease-file.test.ts";
const grants = "packages/server/test/service/grants.test.ts";
const lateClaims = "packages/server/test/service/late-claims.test.ts";
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
    find: `const verdict = isAbove ? guard.admitIds(tag, ids) : "again";`,
    replace: `const verdict = isAbove ? "new" : "again";`,
    tests: [grants],
  },
  {
    name: "grants: ids that an accept forgot are used",
    file: `${service}/upstream/grants.ts`,
    find: `    if (verdict === "below") {
      this.#ports.onBelow(tag, ids);`,
    replace: `    if (verdict === "below") {
      pending.resolve(grant);
      this.#ports.onBelow(tag, ids);`,
    tests: [grants],
  },
  {
    name: "claims: a floor of the same epoch is taken for one that an accept left too low",
    file: `${service}/upstream/late-claims.ts`,
    find: `epoch <= highest.epoch || floor >= highest.last`,
    replace: `floor >= highest.last`,
    tests: [lateClaims],
  },
  {
    name: "claims: a floor is compared with ids of another period",
    file: `${service}/upstream/late-claims.ts`,
    find: `guard.highest(name, periodStart)`,
    replace: `guard.highest(name, "")`,
    tests: [lateClaims],
  },
  {
    name: "claims: a second floor that is too low is forgotten",
    file: `${service}/upstream/late-claims.ts`,
    find: `      await this.#raise(tag, claim);
`,
    replace: `      await this.#raise(tag, claim);
      this.#waiting.delete(tag);
`,
    tests: [lateClaims],
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
    name: "sqlite: a file without its witness is served by who has never seen it",
    file: `${sqlite}/file/identity.ts`,
    find: `standing === "missing" && !this.#hasSeenWitness`,
    replace: `standing === "missing" && row.identity === ""`,
    tests: [sqliteFiles],
  },
  {
    name: "sqlite: file and witness of before, written into the files of now, are served",
    file: `${sqlite}/file/identity.ts`,
    find: `if (standing === "foreign") {`,
    replace: `if (standing === "foreign" && row.identity === "") {`,
    tests: [sqliteWitness],
    only: "nobody served",
  },
  {
    name: "sqlite: a witness is known by its file alone",
    file: `${sqlite}/file/witness-state.ts`,
    find: `const nonce = sight.nonce ?? nonceOf(identity);`,
    replace: `const nonce = nonceOf(identity);`,
    tests: [sqliteWitness],
    only: "nobody served",
  },
  {
    name: "sqlite: a witness is known by what lies in it alone",
    file: `${sqlite}/file/witness-state.ts`,
    find: `return identity === identityOf(sight.file, nonce);`,
    replace: `return nonceOf(identity) === nonce;`,
    tests: [sqliteWitness],
    only: "nobody served",
  },
  {
    name: "sqlite: the witness takes no turn at the opening",
    file: `${sqlite}/file/witness-keeper.ts`,
    find: `  #dueAtMs = -Infinity;`,
    replace: `  #dueAtMs = Infinity;`,
    tests: [sqliteWitness],
    only: "nobody served",
  },
  {
    name: "sqlite: the witness takes no turn while a server runs",
    file: `${sqlite}/file/witness-keeper.ts`,
    find: `this.#dueAtMs = nowMs + TURN_EVERY_MS;`,
    replace: `this.#dueAtMs = nowMs + 10 * TURN_EVERY_MS;`,
    tests: [sqliteWitness],
    only: "each minute",
  },
  {
    name: "sqlite: a file becomes the witness that no committed row names",
    file: `${sqlite}/file/witness-state.ts`,
    find: `return isOf(bond.next, ahead) ? "put the next in place" : "make one ahead";`,
    replace: `return ahead === undefined ? "make one ahead" : "put the next in place";`,
    tests: [sqliteWitnessModel, sqliteWitness],
  },
  {
    name: "sqlite: whatever was made ahead last is put in place",
    file: `${sqlite}/file/witness.ts`,
    find: `if (held === undefined || !isOf(next, readWitness(held))) return false;`,
    replace: `if (held === undefined) return false;`,
    tests: [sqliteWitness],
  },
  {
    name: "sqlite: a turn whose commit was lost is not followed",
    file: `${sqlite}/file/witness-state.ts`,
    find: `return isOf(bond.next, sight) ? "next" : "foreign";`,
    replace: `return "foreign";`,
    tests: [sqliteWitnessModel],
  },
  {
    name: "sqlite: without room for the next witness nothing is granted",
    file: `${sqlite}/file/witness.ts`,
    find: `      return this.#make(this.#aheadPath, mark);
    } catch {
      return "";
    }`,
    replace: `      return this.#make(this.#aheadPath, mark);
    } catch (error) {
      throw error;
    }`,
    tests: [sqliteWitness],
    only: "where no file can be made",
  },
  {
    name: "sqlite: a witness that root makes stays root's",
    file: `${sqlite}/file/witness.ts`,
    find: `if (process.getuid?.() === 0) fchownSync`,
    replace: `if (process.getuid?.() === -1) fchownSync`,
    tests: [sqliteWitness],
    only: "root",
  },
  {
    name: "sqlite: a snapshot beside an older witness is taken for a store that went back",
    file: `${sqlite}/file/database.ts`,
    find: `if (fenced !== "" && this.#hasTurnedSince(witness)) {`,
    replace: `if (fenced === "never" && this.#hasTurnedSince(witness)) {`,
    tests: [sqliteWitness],
    only: "taken again",
  },
  {
    name: "sqlite: a change of a store that went back is a measure for later ones",
    file: `${sqlite}/file/database.ts`,
    find: `if (after !== undefined && isSound) {`,
    replace: `if (after !== undefined) {`,
    tests: [sqliteWitness],
    only: "token",
  },
  {
    name: "lease file: one that is replaced can be believed again",
    file: "packages/server/src/store/kept/lease-file.ts",
    find: `    written: async () => held.file?.truncate(),
`,
    replace: ``,
    tests: [leaseFile],
  },
  {
    name: "lease file: one that is replaced is emptied too late",
    file: "packages/server/src/store/kept/next-file.ts",
    find: `    await written?.();
    await rename(next, name);
`,
    replace: `    await rename(next, name);
    await written?.();
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

import type { Mutant } from "./mutant.ts";

const sqlite = "packages/server/src/store/sqlite";
const storeWait = "packages/server/src/service/upstream/store-wait.ts";
const sqliteFiles = ["packages/server/test/store/sqlite-files.test.ts"];
const refusals = ["packages/server/test/store/postgres-refusal.pg.test.ts"];
const onRedis = ["packages/server/test/store/redis/sequences.redis.test.ts"];
const waits = ["packages/cli/test/tag-wait.test.ts"];
const cold = ["packages/client/test/client.test.ts"];

/** What people are told whose first steps go wrong. */
export const startMutants: readonly Mutant[] = [
  {
    name: "a start waits for a store that refuses",
    file: storeWait,
    find: "!error.retryable || leftMs",
    replace: "leftMs",
    tests: ["packages/server/test/service/store-wait.test.ts"],
    only: "at once",
  },
  {
    name: "a start waits for its store for ever",
    file: storeWait,
    find: "|| leftMs <= 0",
    replace: "|| leftMs < -1e9",
    tests: ["packages/server/test/service/store-wait.test.ts"],
    only: "time is over",
  },
  {
    name: "a start that was told to end asks the store again",
    file: storeWait,
    find: "this.#signal?.aborted !== true",
    replace: "this.#signal !== undefined",
    tests: ["packages/server/test/service/store-wait.test.ts"],
    only: "told to end",
  },
  {
    name: "a witness of another user is found out while the store is opened",
    file: `${sqlite}/file/location.ts`,
    find: "  assertWitness(file);\n",
    replace: "",
    tests: sqliteFiles,
    only: "cannot be written",
  },
  {
    name: "a text file as a store may be tried again",
    file: `${sqlite}/file/database.ts`,
    find: "codeOf(error) === SQLITE_NOTADB && ",
    replace: "codeOf(error) === SQLITE_BUSY && ",
    tests: ["packages/server/test/store/sqlite.test.ts"],
    only: "no database",
  },
  {
    name: "a key that is another certificate's is told as an internal fault",
    file: "packages/server/src/tls/files.ts",
    find: '    throw badFile("tls.key_file", `holds no key',
    replace: '    throw error; badFile("tls.key_file", `holds no key',
    tests: ["packages/server/test/grpc-door.e2e.test.ts"],
    only: "used for TLS",
  },
  {
    name: "a server with TLS is asked without",
    file: "packages/server/src/main/ask-node.ts",
    find: "if (answer !== undefined || !isSecure) return answer;",
    replace: "if (answer !== undefined || isSecure) return answer;",
    tests: ["packages/server/test/dev.e2e.test.ts"],
    only: "with TLS has",
  },
  {
    name: "a database of a spread store is looked at before its schema",
    file: "packages/server/src/store/spread/fleet.ts",
    find: "      const standing = await standingOf(connections);\n      for (let after",
    replace: "      const standing = await readStanding(connections);\n      for (let after",
    tests: ["packages/server/test/store/spread-faults.pg.test.ts"],
    only: "without a schema",
  },
  {
    name: "a tag that is leaving is looked for where it has not arrived",
    file: "packages/server/src/store/postgres/changes.ts",
    find: "CASE WHEN d.moving THEN '' ELSE d.moved_to END",
    replace: "d.moved_to",
    tests: ["packages/server/test/store/spread-faults.pg.test.ts"],
    only: "cut off after any step",
  },
  {
    name: "an error that PostgreSQL answers counts as no answer",
    file: "packages/server/src/store/postgres/refusal.ts",
    find: 'SQL_STATE.test(code ?? "")',
    replace: 'SQL_STATE.test("")',
    tests: refusals,
    only: "is an error",
  },
  {
    name: "an sslmode that the driver warns of is passed on",
    file: "packages/server/src/store/postgres/hosts/connection.ts",
    find: '"$1verify-full"',
    replace: '"$1require"',
    tests: refusals,
    only: "driver says nothing",
  },
  {
    name: "a wrong password of Redis is told without the option",
    file: "packages/server/src/store/redis/connection.ts",
    find: `message.startsWith("WRONGPASS") ?`,
    replace: `message.startsWith("NOPASS") ?`,
    tests: onRedis,
    only: "hold neither",
  },
  {
    name: "a wait tells every time that a server computes anew",
    file: "packages/cli/src/commands/tag/tag-wait.ts",
    find: ">= SAME_TIME_MS",
    replace: "> 0",
    tests: waits,
  },
  {
    name: "a cold synchronous call says that none came in time",
    file: "packages/client/src/tag.ts",
    find: "return notWarm(this.name, COLD_RETRY_MS, failure);",
    replace: 'return notInMemory(this.name, "segment");',
    tests: cold,
    only: "cold tag refuses",
  },
  {
    name: "everybody may write in a folder with the sticky bit, and it is taken",
    file: `${sqlite}/file/folders.ts`,
    find: "(mode & OTHERS_WRITE) !== 0",
    replace: "(mode & 0o1002) === 0o002",
    tests: ["packages/server/test/store/folders.test.ts"],
    only: "sticky bit",
  },
  {
    name: "a store is opened in a folder where everybody may write",
    file: `${sqlite}/open.ts`,
    find: 'if (fault !== undefined) found.set("shared_folder", fault);',
    replace: "",
    tests: ["packages/server/test/store/folders.test.ts"],
    only: "neither made nor opened",
  },
  {
    name: "a link in the place of the next lease file is followed",
    file: "packages/server/src/store/kept/next-file.ts",
    find: 'await rm(next, { force: true });\n  const file = await open(next, "wx", 0o600);',
    replace: 'const file = await open(next, "w", 0o600);',
    tests: ["packages/server/test/store/lease-file.test.ts"],
    only: "in the place of the next file",
  },
  {
    name: "a link in the place of the lease file or its lock is followed",
    file: "packages/server/src/store/kept/lease-file.ts",
    find: "if (lstatSync(name, { throwIfNoEntry: false })?.isSymbolicLink() !== true) return;",
    replace: "if (name !== FIELD) return;",
    tests: ["packages/server/test/store/lease-file.test.ts"],
    only: "leases.lock is not followed",
  },
];

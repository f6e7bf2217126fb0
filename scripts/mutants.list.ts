import type { Mutant } from "./mutant.ts";
import { accessMutants } from "./mutants.access.ts";
import { adapterMutants } from "./mutants.adapters.ts";
import { auditMutants } from "./mutants.audit.ts";
import { admissionMutants } from "./mutants.admission.ts";
import { apiMutants } from "./mutants.api.ts";
import { capacityMutants } from "./mutants.capacity.ts";
import { chartMutants } from "./mutants.chart.ts";
import { cliMutants } from "./mutants.cli.ts";
import { consolePagesMutants } from "./mutants.console-pages.ts";
import { consoleMutants } from "./mutants.console.ts";
import { deployMutants } from "./mutants.deploy.ts";
import { dropInMutants } from "./mutants.drop-in.ts";
import { httpMutants } from "./mutants.http.ts";
import { memoryMutants } from "./mutants.memory.ts";
import { fastMutants } from "./mutants.fast.ts";
import { failoverMutants } from "./mutants.failover.ts";
import { etcdMutants } from "./mutants.etcd.ts";
import { figuresMutants } from "./mutants.figures.ts";
import { fileMutants } from "./mutants.files.ts";
import { formMutants } from "./mutants.forms.ts";
import { fastCallMutants } from "./mutants.fast-calls.ts";
import { strangersMutants } from "./mutants.strangers.ts";
import { frameMutants } from "./mutants.frames.ts";
import { gapMutants } from "./mutants.gap.ts";
import { guardMutants } from "./mutants.guards.ts";
import { wentBackMutants } from "./mutants.went-back.ts";
import { hardeningMutants } from "./mutants.hardening.ts";
import { ledgerMutants } from "./mutants.ledger.ts";
import { nodeMutants } from "./mutants.nodes.ts";
import { rollingMutants } from "./mutants.rolling.ts";
import { pastMutants } from "./mutants.past.ts";
import { callersMutants } from "./mutants.callers.ts";
import { sdkMutants } from "./mutants.sdk.ts";
import { serversMutants } from "./mutants.servers.ts";
import { redisMutants } from "./mutants.redis.ts";
import { sentinelMutants } from "./mutants.sentinel.ts";
import { snowflakeMutants } from "./mutants.snowflake.ts";
import { startMutants } from "./mutants.starts.ts";
import { stopMutants } from "./mutants.stop.ts";
import { polyglotMutants } from "./mutants.polyglot.ts";
import { postgresMutants } from "./mutants.postgres.ts";
import { pinMutants } from "./mutants.pins.ts";
import { zoneMutants } from "./mutants.zones.ts";
import { textMutants } from "./mutants.texts.ts";
import { toolsMutants } from "./mutants.tools.ts";
import { telemetryMutants } from "./mutants.telemetry.ts";
import { trafficMutants } from "./mutants.traffic.ts";
import { watchMutants } from "./mutants.watch.ts";

const buffer = ["packages/core/test/buffer.model.test.ts", "packages/core/test/buffer.test.ts"];
const state = "packages/core/src/segment/buffer-state.ts";
const service = "packages/server/src/service";
const groupCommit = "packages/core/src/sequence/group-commit-state.ts";
const commits = [
  "packages/core/test/group-commit.model.test.ts",
  "packages/core/test/group-commit.test.ts",
];
const sdkUncached = "packages/client/src/kinds/uncached-ids.ts";
const cursor = "packages/core/src/segment/cursor.ts";

const coordination = "packages/coordination";
const alarms = "packages/server/test/alarms/alarms.test.ts";

const sqlite = "packages/server/src/store/sqlite";
const postgres = "packages/server/src/store/postgres";
const onSqlite = "packages/server/test/store/sqlite.test.ts";
const redis = "packages/server/src/store/redis";
const onRedis = "packages/server/test/store/redis/sequences.redis.test.ts";
const counters = [
  "packages/server/test/service/redis-sequence.model.test.ts",
  "packages/server/test/service/redis-counters.redis.test.ts",
];
const onPostgres = "packages/server/test/store/postgres.pg.test.ts";
const sqliteRestored = "packages/server/test/store/sqlite-restore.chaos.test.ts";
const postgresRestored = "packages/server/test/store/postgres-restore.pg.test.ts";

export const mutants: readonly Mutant[] = [
  ...accessMutants,
  ...auditMutants,
  ...formMutants,
  ...consolePagesMutants,
  ...admissionMutants,
  ...apiMutants,
  ...capacityMutants,
  ...chartMutants,
  ...cliMutants,
  ...etcdMutants,
  ...fastMutants,
  ...rollingMutants,
  ...pastMutants,
  ...callersMutants,
  ...sdkMutants,
  ...serversMutants,
  ...redisMutants,
  ...sentinelMutants,
  ...snowflakeMutants,
  ...figuresMutants,
  ...fileMutants,
  ...ledgerMutants,
  ...nodeMutants,
  ...trafficMutants,
  ...watchMutants,
  ...startMutants,
  ...polyglotMutants,
  ...zoneMutants,
  ...stopMutants,
  ...gapMutants,
  {
    name: "check-then-increment across an await",
    file: "packages/core/src/segment/buffer.ts",
    find: `    const id = this.#issueOne(now);
    if (id !== undefined) return id;
    const segments`,
    replace: `    const seen = peekId(this.#state);
    if (seen !== undefined) {
      return Promise.resolve().then(() => {
        this.#issueOne(now);
        return seen;
      });
    }
    const segments`,
    tests: buffer,
  },
  {
    name: "the answer of a load that was given up is used",
    file: state,
    find: `if (state.loading.phase !== "loading" || state.loading.token !== token) {`,
    replace: `if (state.loading.phase !== "loading") {`,
    tests: buffer,
  },
  {
    name: "the prefetch result of an old epoch is accepted",
    file: state,
    find: `const isUsable = count > 0 && load.epoch === state.epoch;`,
    replace: `const isUsable = count > 0;`,
    tests: buffer,
  },
  {
    name: "two loads in flight",
    file: state,
    find: `if (loading.phase === "loading" || state.fenced !== undefined) return;`,
    replace: `if (state.fenced !== undefined) return;`,
    tests: buffer,
  },
  {
    name: "off by one at a segment's end: one id too many",
    file: cursor,
    find: `const part = Math.min(rest, segment.count - state.offset);`,
    replace: `const part = Math.min(rest, segment.count - state.offset + 1);`,
    tests: buffer,
  },
  {
    name: "off by one at a segment's end: the warm path runs over it",
    file: cursor,
    find: `let limit = segment.count - 1;`,
    replace: `let limit = segment.count + 1;`,
    tests: buffer,
  },
  {
    name: "off by one at a segment's end: the last id is skipped",
    file: cursor,
    find: `if (segment === undefined || state.offset < segment.count) return;`,
    replace: `if (segment === undefined || state.offset < segment.count - 1) return;`,
    tests: buffer,
  },
  {
    name: "a segment below `after` is accepted",
    file: state,
    find: `if (segment.base <= last) return false;`,
    replace: ``,
    tests: buffer,
  },
  {
    name: "ids as JavaScript numbers past 2^53",
    file: "packages/core/src/segment/segment.ts",
    find: `? segment.base + BigInt(offset)`,
    replace: `? BigInt(Number(segment.base) + offset)`,
    tests: [...buffer, "packages/core/test/segment.test.ts"],
  },
  {
    name: "numbers past 2^53 are not refused",
    file: cursor,
    find: `state.numberLimit = Math.min(limit, safeCount(segment));`,
    replace: `state.numberLimit = limit;`,
    tests: buffer,
  },
  {
    name: "store: RETURNING outside a transaction on SQLite",
    file: `${sqlite}/grant.ts`,
    find: `  try {
    return database.write(deadlineMs, (transaction) => {`,
    replace: `  const { DatabaseSync } = process.getBuiltinModule("node:sqlite");
  using file = new DatabaseSync(database.path);
  file.exec("PRAGMA synchronous = FULL");
  if (requests.length === 1) {
    const [{ tag, count } = { tag: "", count: 0 }] = requests;
    const row = file
      .prepare(
        "UPDATE tag SET floor = floor + ?, version = version + 1 WHERE name = ? RETURNING floor, version, epoch",
      )
      .get(count, tag);
    if (row !== undefined) {
      const base = BigInt(Number(row["floor"]) - count + 1);
      const [version, epoch] = [BigInt(Number(row["version"])), BigInt(Number(row["epoch"]))];
      return [{ outcome: "granted", tag, base, count, version, epoch }];
    }
  }
  try {
    return database.write(deadlineMs, (transaction) => {`,
    tests: ["packages/server/test/store/sqlite-processes.e2e.test.ts"],
  },
  {
    name: "store: a commit that failed on SQLite goes unnoticed",
    file: `${sqlite}/file/database.ts`,
    find: `      throw this.#notCommitted(handle, error);`,
    replace: `      void this.#notCommitted(handle, error);`,
    tests: ["packages/server/test/store/sqlite-processes.e2e.test.ts"],
  },
  {
    name: "store: replaced files under a running SQLite server are not noticed",
    file: `${sqlite}/file/files.ts`,
    find: `one.wal === other.wal && one.shm === other.shm`,
    replace: `true`,
    tests: [sqliteRestored],
  },
  {
    name: "store: a copied SQLite file is not noticed",
    file: `${sqlite}/file/identity.ts`,
    find: `if (row.identity !== files.identity) {`,
    replace: `if (row.identity === "") {`,
    tests: [sqliteRestored],
  },
  {
    name: "store: the witness of a SQLite file is not compared",
    file: `${sqlite}/file/identity.ts`,
    find: `if (witnessed !== undefined && isBehind(row, witnessed)) {`,
    replace: `if (witnessed !== undefined && isBehind(row, row)) {`,
    tests: [sqliteRestored],
  },
  {
    name: "store: SQLite rows that went back alone are not noticed",
    file: `${sqlite}/file/identity.ts`,
    find: `if (!hasAllRows(transaction, row)) return`,
    replace: `if (!hasAllRows(transaction, row) && row.progress < 0n) return`,
    tests: [sqliteRestored],
  },
  {
    name: "store: give-back without the version, SQLite",
    file: `${sqlite}/give-back.ts`,
    find: `AND floor = ? AND version = ?`,
    replace: `AND floor = ? AND ? >= 0`,
    tests: [onSqlite],
    only: "a floor that came back",
  },
  {
    name: "store: give-back without the version, PostgreSQL",
    file: `${postgres}/give-back.ts`,
    find: `AND l.floor = r.last_id AND l.version = r.version`,
    replace: `AND l.floor = r.last_id AND r.version >= 0`,
    tests: [onPostgres],
    only: "a floor that came back",
  },
  {
    name: "store: ids as JavaScript numbers past 2^53, SQLite",
    file: `${sqlite}/grant.ts`,
    find: `base: floor + 1n,`,
    replace: `base: BigInt(Number(floor) + 1),`,
    tests: [onSqlite],
    only: "ids are exact across",
  },
  {
    name: "store: ids as JavaScript numbers past 2^53, PostgreSQL",
    file: `${postgres}/grant.ts`,
    find: `base: BigInt(row.floor) - count + 1n,`,
    replace: `base: BigInt(Number(row.floor) - Number(count) + 1),`,
    tests: [onPostgres],
    only: "ids are exact across",
  },
  {
    name: "store: an `after` above the floor is granted, SQLite",
    file: `${sqlite}/grant.ts`,
    find: `if (after > floor) return`,
    replace: `if (after < 0n) return`,
    tests: [onSqlite],
    only: "above the floor is refused",
  },
  {
    name: "store: an `after` above the floor is granted, PostgreSQL",
    file: `${postgres}/grant.ts`,
    find: `WHEN r.after_id > l.present_floor THEN`,
    replace: `WHEN r.after_id < 0 THEN`,
    tests: [onPostgres],
    only: "above the floor is refused",
  },
  {
    name: "store: the version that was seen is not compared, SQLite",
    file: `${sqlite}/grant.ts`,
    find: `if (version < seenVersion) {`,
    replace: `if (version < 0n) {`,
    tests: [onSqlite],
    only: "a version higher than the row's",
  },
  {
    name: "store: the version that was seen is not compared, PostgreSQL",
    file: `${postgres}/grant.ts`,
    find: `WHEN l.version < r.seen_version THEN`,
    replace: `WHEN false THEN`,
    tests: [onPostgres],
    only: "a version higher than the row's",
  },
  {
    name: "store: the identity of PostgreSQL is not compared",
    file: `${postgres}/identity.ts`,
    find: `WHEN s.identity <> \${PRESENT_IDENTITY}`,
    replace: `WHEN s.identity = ''`,
    tests: [postgresRestored],
  },
  {
    name: "store: a store row loaded from a dump is not noticed",
    file: `${postgres}/identity.ts`,
    find: `WHEN s.xmin <> s.written_by`,
    replace: `WHEN false`,
    tests: [postgresRestored],
  },
  {
    name: "store: tag rows loaded from a dump are not noticed",
    file: `${postgres}/grant.ts`,
    find: `OR NOT l.is_ours THEN`,
    replace: `THEN`,
    tests: [postgresRestored],
  },
  {
    name: "store: PostgreSQL rows are judged before they are locked",
    file: `${postgres}/grant.ts`,
    find: `ORDER BY t.name FOR UPDATE`,
    replace: `ORDER BY t.name`,
    tests: [onPostgres],
    only: "grants of several handles at once never overlap",
  },
  {
    name: "store: revisions are taken without a lock, PostgreSQL",
    file: `${postgres}/tags.ts`,
    find: `FROM idmint.store AS s FOR UPDATE`,
    replace: `FROM idmint.store AS s`,
    tests: [onPostgres],
    only: "revisions of changes made at once",
  },
  {
    name: "store: a warning of PostgreSQL is ignored",
    file: `${postgres}/connections.ts`,
    find: `      if (warnings.length > 0) {`,
    replace: `      if (warnings.length < 0) {`,
    tests: [onPostgres],
    only: "a warning during a grant",
  },
  {
    name: "store: a period has the date of the server's clock",
    file: `${postgres}/grant.ts`,
    find: `const period = { start, unit: period_unit,`,
    replace: `const period = { start: new Date().toISOString().slice(0, 10), unit: period_unit,`,
    tests: ["packages/server/test/store/postgres-sequences.pg.test.ts"],
  },
  {
    name: "store: the clock that ends periods is read before the lock is had",
    file: `${postgres}/grant.ts`,
    find: `SELECT clock_timestamp() AS store_now, count(*) FROM locked`,
    replace: `SELECT statement_timestamp() AS store_now, count(*) FROM locked`,
    tests: ["packages/server/test/store/postgres-sequences.pg.test.ts"],
  },
  {
    name: "redis: increment, then check",
    file: `${redis}/scripts.ts`,
    find: `if count > max - cur then return {'exhausted', has[5], has[6]} end
if count > 0 then redis.call('HINCRBY', KEYS[1], 'cur', ARGV[2]) end`,
    replace: `if count > 0 then redis.call('HINCRBY', KEYS[1], 'cur', ARGV[2]) end
if count > max - cur then return {'exhausted', has[5], has[6]} end`,
    tests: [onRedis],
  },
  {
    name: "redis: ids are answered as Lua writes its numbers",
    file: `${redis}/scripts.ts`,
    find: `return {'issued', has[5], text(cur + count), has[6]}`,
    replace: `return {'issued', has[5], tostring(cur + count), has[6]}`,
    tests: [onRedis],
  },
  {
    name: "redis: sequences count past 2^53",
    file: "packages/core/src/kinds/sequence.ts",
    find: `maxCeiling: ({ backend }) => (backend === "REDIS" ? MAX_SAFE_ID : MAX_ID),`,
    replace: `maxCeiling: () => MAX_ID,`,
    tests: ["packages/server/test/service/tag-settings.test.ts"],
  },
  {
    name: "redis: a master that followed another one meanwhile is believed",
    file: `${redis}/scripts.ts`,
    find: `if has[2] ~= run or has[3] ~= history then`,
    replace: `if has[2] ~= run then`,
    tests: [onRedis],
  },
  {
    name: "redis: a script is sent again after a reconnect",
    file: `${redis}/connection.ts`,
    find: `      autoResendUnfulfilledCommands: false,
      maxRetriesPerRequest: 0,`,
    replace: `      autoResendUnfulfilledCommands: true,
      maxRetriesPerRequest: null,`,
    tests: [onRedis],
  },
  {
    name: "redis: Redis is raised before the store",
    file: `${service}/redis/raise.ts`,
    find: `  const { generation, floor } = await raisedOrEnd(ports, tag, target);
`,
    replace: `  const place = await ports.readPlace(tag);
  const ahead = { tag, generation: place.generation, max: place.floor + target.by };
  await redisServerNamed(ports.redisServer, tag, redisServer).sequences.raise(ahead);
  const { generation, floor } = await raisedOrEnd(ports, tag, target);
`,
    tests: counters,
  },
  {
    name: "redis: two servers give it a new start from the same maximum",
    file: `${service}/kinds/sequence/redis-counter.ts`,
    find: `          newGeneration: true,`,
    replace: `          newGeneration: false,`,
    tests: counters,
  },
  {
    name: "redis: a new start below what the store had reserved",
    file: `${service}/kinds/sequence/redis-counter.ts`,
    find: `redisServer.sequences.seed({ tag: name, generation, cur: before, max: floor, doubt }),`,
    replace: `redisServer.sequences.seed({ tag: name, generation, cur: this.#seen, max: floor, doubt }),`,
    tests: counters,
  },
  {
    name: "service: a release is honoured twice",
    file: `${service}/issue/release-tokens.ts`,
    find: `    this.#cells[cellOf(token)] = undefined;`,
    replace: ``,
    tests: ["packages/server/test/service/release-tokens.test.ts"],
  },
  {
    name: "service: a give-back is retried",
    file: `${service}/issue/give-back.ts`,
    find: `within(() => store.giveBack(batch), storeTimeoutMs, timers);`,
    replace: `within(
        () => store.giveBack(batch).catch(() => store.giveBack(batch)),
        storeTimeoutMs,
        timers,
      );`,
    tests: ["packages/server/test/shutdown.e2e.test.ts"],
  },
  {
    name: "service: a give-back over the hole of another server's grant",
    file: `${service}/issue/give-back.ts`,
    find: `if (lastOf(segment) === from - 1n) from = segment.base;`,
    replace: `from = segment.base;`,
    tests: ["packages/server/test/service/give-back.model.test.ts"],
  },
  {
    name: "service: answers of an earlier history of the store are used",
    file: `${service}/upstream/grants.ts`,
    find: `if (history === this.#history) locked = this.#accept(call, requests, grants);
      else this.#discard(batch, grants);`,
    replace: `locked = this.#accept(call, requests, grants);`,
    tests: ["packages/server/test/service/grants.test.ts"],
  },
  {
    name: "service: a tag in two calls of the store at once",
    file: `${service}/upstream/grants-state.ts`,
    find: `batch.length === maxBatch || state.busy.has(tag)`,
    replace: `batch.length === maxBatch`,
    tests: ["packages/server/test/service/grants-state.test.ts"],
  },
  {
    name: "service: the version guard admits every grant",
    file: "packages/core/src/server/store/version-guard.ts",
    find: `return isAbove && !isRepeat;`,
    replace: `return true;`,
    tests: [
      "packages/core/test/segment.test.ts",
      "packages/server/test/service/uniqueness.model.test.ts",
    ],
  },
  {
    name: "service: the version guard forgets what it saw before it heard of an accept",
    file: "packages/core/src/server/store/version-guard.ts",
    find: `      known.earlier = known.seen;
`,
    replace: ``,
    tests: ["packages/core/test/segment.test.ts"],
  },
  {
    name: "group commit: the answer of any round trip serves the batch in flight",
    file: groupCommit,
    find: `  if (flight.phase !== "committing" || flight.token !== token) {
    return [{ type: "wasted"`,
    replace: `  if (flight.phase !== "committing") {
    return [{ type: "wasted"`,
    tests: commits,
  },
  {
    name: "group commit: ids of an older epoch are answered",
    file: groupCommit,
    find: `if (ids.epoch < state.epoch) {`,
    replace: `if (ids.epoch < 0n) {`,
    tests: commits,
  },
  {
    name: "group commit: a store that stays behind is asked again for ever",
    file: groupCommit,
    find: `if (epoch >= flight.epoch) {`,
    replace: `if (epoch >= 0n) {`,
    tests: ["packages/core/test/group-commit.test.ts"],
  },
  {
    name: "group commit: calls in flight are not counted as waiting",
    file: groupCommit,
    find: `return waiting.size + inFlight;`,
    replace: `return waiting.size + 0 * inFlight;`,
    tests: ["packages/core/test/group-commit.test.ts"],
  },
  {
    name: "group commit: ids of a call that ended go to the next one, which another one has",
    file: groupCommit,
    find: `    base += BigInt(count);
`,
    replace: ``,
    tests: commits,
  },
  {
    name: "service: a tag made again as another kind keeps the buffer it had",
    file: `${service}/issue/entry-maker.ts`,
    find: `if (!comesFrom(kind, "segments")) return false;`,
    replace: `if (!comesFrom(kind, "segments")) return true;`,
    tests: ["packages/server/test/service/directory.test.ts"],
  },
  {
    name: "a connection goes to the process that has the most",
    file: "packages/server/src/processes/balance.ts",
    find: "one.open < other.open",
    replace: "one.open > other.open",
    tests: ["packages/server/test/processes/balance.test.ts"],
  },
  {
    name: "a process whose back-off ends while all stop is started again",
    file: "packages/server/src/processes/processes-state.ts",
    find: `if (process.mode === "waiting") process.mode = "gone";`,
    replace: "",
    tests: ["packages/server/test/processes/processes-state.model.test.ts"],
  },
  {
    name: "a process that ended in order while all stop is replaced",
    file: "packages/server/src/processes/processes-state.ts",
    find: `if (state.phase === "serving") {`,
    replace: `if (state.phase !== "starting") {`,
    tests: ["packages/server/test/processes/processes-state.model.test.ts"],
  },
  {
    name: "sdk: the epoch of an answer that comes too late is not obeyed",
    file: "packages/client/src/segment-loads.ts",
    find: `    this.#buffer.observeEpoch(epoch);
`,
    replace: ``,
    tests: ["packages/client/test/retries.test.ts"],
  },
  {
    name: "sdk: a sequence may answer what is below its last answer",
    file: sdkUncached,
    find: `if (segment.base <= last)
`,
    replace: `if (segment.base <= -1n)
`,
    tests: ["packages/client/test/uncached.test.ts"],
  },
  {
    name: "sdk: a sequence may go back to a period that is over",
    file: sdkUncached,
    find: `endsAtMs < mark.endsAtMs`,
    replace: `endsAtMs < 0`,
    tests: ["packages/client/test/periods.test.ts"],
  },
  {
    name: "sdk: ids of a newer epoch are used before it is known of which kind the tag is then",
    file: sdkUncached,
    find: `if (epoch > this.#epoch && this.#isCertain) {`,
    replace: `if (epoch > this.#epoch && !this.#isCertain && epoch < 0n) {`,
    tests: ["packages/client/test/uncached.test.ts"],
  },
  {
    name: "sdk: every call of a request is dealt its first ids",
    file: sdkUncached,
    find: `let skip = Number(base);`,
    replace: `let skip = 0 * Number(base);`,
    tests: ["packages/client/test/uncached.test.ts", "packages/client/test/uncached.model.test.ts"],
  },
  {
    name: "sdk: what is in memory of a tag that became a sequence is issued on",
    file: "packages/client/src/tag.ts",
    find: `    this.#buffer.fence(notInMemory(name, kind, cause));
`,
    replace: `    void cause;
`,
    tests: ["packages/client/test/uncached.test.ts"],
  },
  {
    name: "a fencing token is known to no majority",
    file: `${coordination}/src/lock/acquire.ts`,
    find: `if (isMinting && nodes.length === 1) return largest;`,
    replace: `if (isMinting) return largest;`,
    tests: [`${coordination}/test/lock/tokens.model.test.ts`],
  },
  {
    name: "a node whose counter is higher confirms a token",
    file: `${coordination}/src/lock/acquire.ts`,
    find: `  requireMajority(confirmed, attempt, "confirming");`,
    replace: ``,
    tests: [`${coordination}/test/lock/tokens.model.test.ts`],
  },
  {
    name: "a renewal that came too late brings a lease back",
    file: `${coordination}/src/lease/lease-state.ts`,
    find: `  const current = looked(state, now);`,
    replace: `  const current: LeaseState = { ...state, phase: "held" };`,
    tests: [`${coordination}/test/lease/lease-state.model.test.ts`],
  },
  {
    name: "whoever failed to take a lock frees its holder's",
    file: `${coordination}/src/lock/lock-node.ts`,
    find: `if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 'lost' end
redis.call('DEL', KEYS[1])`,
    replace: `redis.call('DEL', KEYS[1])`,
    tests: [`${coordination}/test/lock/lock.redis.test.ts`],
  },
  {
    name: "a Redis that does not know what was elects at once",
    file: `${coordination}/src/election/scripts.ts`,
    find: `if seen_here ~= here or (ARGV[2] ~= '' and ARGV[2] ~= here) then`,
    replace: `if false then`,
    tests: [`${coordination}/test/election/election.redis.test.ts`],
  },
  {
    name: "queue: a message is acknowledged by LREM without the element",
    file: `${coordination}/src/queue/consumer.ts`,
    find: `redis.call("LREM", this.#pending, 1, element)`,
    replace: `redis.call("LREM", this.#pending, 1)`,
    tests: [`${coordination}/test/queue/queue.redis.test.ts`],
  },
  {
    name: "queue: a message is acknowledged by its place and not by its value",
    file: `${coordination}/src/queue/consumer.ts`,
    find: `redis.call("LREM", this.#pending, 1, element)`,
    replace: `redis.call("RPOP", this.#pending).then((popped) => (popped === null ? 0 : 1))`,
    tests: [`${coordination}/test/queue/queue.redis.test.ts`],
  },
  {
    name: "queue: recovered messages come back in the wrong order",
    file: `${coordination}/src/queue/scripts.ts`,
    find: `redis.call('LPOP', pending)`,
    replace: `redis.call('RPOP', pending)`,
    tests: [`${coordination}/test/queue/queue.redis.test.ts`],
  },
  {
    name: "queue: nobody looks a second time at what a silent consumer holds",
    file: `${coordination}/src/queue/scripts.ts`,
    find: `  redis.call('ZADD', KEYS[3], now + tonumber(ARGV[3]), consumer)
`,
    replace: ``,
    tests: [`${coordination}/test/queue/queue.redis.test.ts`],
  },
  {
    name: "queue: a message in an answer that never came is not looked for",
    file: `${coordination}/src/queue/consumer.ts`,
    find: `    if (hasExpired || Number(length) > this.#held.size) this.#isInDoubt = true;
`,
    replace: ``,
    tests: [`${coordination}/test/queue/queue.redis.test.ts`],
  },
  {
    name: "signal: one that is given at the time-out is dropped",
    file: `${coordination}/src/signal/single-cast.ts`,
    find: `      else await this.#settle(waiter, text);`,
    replace: `      else waiting.answer(undefined);`,
    tests: [`${coordination}/test/signal/single-cast.redis.test.ts`],
  },
  {
    name: "signal: one that its waiter does not fetch stays with it",
    file: `${coordination}/src/signal/scripts.ts`,
    find: `    if message then passOn(message) end`,
    replace: ``,
    tests: [`${coordination}/test/signal/single-cast.redis.test.ts`],
  },
  {
    name: "signal: the copy through the replica is delivered too",
    file: `${coordination}/src/signal/broadcasts.ts`,
    find: `if (this.#sources.length > 1 && !this.#ids.isNew(`,
    replace: `if (this.#sources.length > 2 && !this.#ids.isNew(`,
    tests: [`${coordination}/test/signal/broadcast.redis.test.ts`],
  },
  {
    name: "alarm: one that the webhook refused counts as delivered",
    file: "packages/server/src/alarms/webhook.ts",
    find: `if (!answer.ok) throw`,
    replace: `if (answer.status >= 600) throw`,
    tests: [alarms],
  },
  {
    name: "alarm: a redirect is followed",
    file: "packages/server/src/alarms/webhook.ts",
    find: `redirect: "manual"`,
    replace: `redirect: "follow"`,
    tests: [alarms],
  },
  {
    name: "alarm: the same one of several servers is delivered several times",
    file: "packages/server/src/alarms/alarms.ts",
    find: `if (isRecent(this.#delivered, key, clock.now())) return true;`,
    replace: ``,
    tests: ["packages/server/test/alarms/alarms.redis.test.ts"],
  },
  {
    name: "signal: what is heard during a poll is forgotten",
    file: `${service}/upstream/poll.ts`,
    find: `const everyMs = this.#isHastened ? HASTE_MS : intervalMs;`,
    replace: `const everyMs = intervalMs;`,
    tests: ["packages/server/test/service/poll.test.ts"],
  },
  ...adapterMutants,
  ...postgresMutants,
  ...failoverMutants,
  ...pinMutants,
  ...guardMutants,
  ...wentBackMutants,
  ...fastCallMutants,
  ...strangersMutants,
  ...frameMutants,
  ...hardeningMutants,
  ...textMutants,
  ...toolsMutants,
  ...telemetryMutants,
  ...consoleMutants,
  ...deployMutants,
  ...dropInMutants,
  ...httpMutants,
  ...memoryMutants,
];

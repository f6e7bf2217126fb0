/** A fault, planted by replacing a text that stands exactly once in a file, and the tests that must notice it. */
export interface Mutant {
  readonly name: string;
  readonly file: string;
  readonly find: string;
  readonly replace: string;
  readonly tests: readonly string[];
}

const buffer = ["packages/core/test/buffer.model.test.ts", "packages/core/test/buffer.test.ts"];
const state = "packages/core/src/segment/buffer-state.ts";
const service = "packages/server/src/service";
const groupCommit = "packages/core/src/sequence/group-commit-state.ts";
const commits = [
  "packages/core/test/group-commit.model.test.ts",
  "packages/core/test/group-commit.test.ts",
];
const cursor = "packages/core/src/segment/cursor.ts";

const generator = "packages/core/src/snowflake/generator-state.ts";
const workerRegistry = "packages/core/src/worker/registry-state.ts";
const snowflakes = ["packages/core/test/snowflake/snowflake.model.test.ts"];

const formats = [
  "packages/core/test/format/format.test.ts",
  "packages/core/test/format/template.test.ts",
  "packages/core/test/format/injective.model.test.ts",
];
const unguessable = [
  "packages/core/test/unguessable/domain.test.ts",
  "packages/client/test/unguessable.test.ts",
];

const coordination = "packages/coordination";

const sqlite = "packages/server/src/store/sqlite";
const postgres = "packages/server/src/store/postgres";
const onSqlite = "packages/server/test/store/sqlite.test.ts";
const onPostgres = "packages/server/test/store/postgres.pg.test.ts";
const sqliteRestored = "packages/server/test/store/sqlite-restore.e2e.test.ts";
const postgresRestored = "packages/server/test/store/postgres-restore.pg.test.ts";

const leaseKeeper = ["packages/server/test/service/lease-keeper.model.test.ts"];

export const mutants: readonly Mutant[] = [
  {
    name: "check-then-increment across an await",
    file: "packages/core/src/segment/buffer.ts",
    find: `    const id = this.#issueOne();
    if (id !== undefined) return id;
    const segments`,
    replace: `    const seen = peekId(this.#state);
    if (seen !== undefined) {
      return Promise.resolve().then(() => {
        this.#issueOne();
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
    file: `${sqlite}/database.ts`,
    find: `      this.#abandon();
      throw storeUnavailable("the outcome of a commit is not known", error);`,
    replace: `      void error;
      this.#rollBack(handle);`,
    tests: ["packages/server/test/store/sqlite-processes.e2e.test.ts"],
  },
  {
    name: "store: replaced files under a running SQLite server are not noticed",
    file: `${sqlite}/database.ts`,
    find: `      now.wal === files.wal &&
      now.shm === files.shm`,
    replace: `      true`,
    tests: [sqliteRestored],
  },
  {
    name: "store: a copied SQLite file is not noticed",
    file: `${sqlite}/identity.ts`,
    find: `if (row.identity !== files.identity) {`,
    replace: `if (row.identity === "") {`,
    tests: [sqliteRestored],
  },
  {
    name: "store: the witness of a SQLite file is not compared",
    file: `${sqlite}/identity.ts`,
    find: `if (witnessed !== undefined && isBehind(row, witnessed)) {`,
    replace: `if (witnessed !== undefined && isBehind(row, row)) {`,
    tests: [sqliteRestored],
  },
  {
    name: "store: SQLite rows that went back alone are not noticed",
    file: `${sqlite}/identity.ts`,
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
  },
  {
    name: "store: give-back without the version, PostgreSQL",
    file: `${postgres}/give-back.ts`,
    find: `AND l.floor = r.last_id AND l.version = r.version`,
    replace: `AND l.floor = r.last_id AND r.version >= 0`,
    tests: [onPostgres],
  },
  {
    name: "store: ids as JavaScript numbers past 2^53, SQLite",
    file: `${sqlite}/grant.ts`,
    find: `base: floor + 1n,`,
    replace: `base: BigInt(Number(floor) + 1),`,
    tests: [onSqlite],
  },
  {
    name: "store: ids as JavaScript numbers past 2^53, PostgreSQL",
    file: `${postgres}/grant.ts`,
    find: `base: BigInt(row.floor) - count + 1n,`,
    replace: `base: BigInt(Number(row.floor) - Number(count) + 1),`,
    tests: [onPostgres],
  },
  {
    name: "store: an `after` above the floor is granted, SQLite",
    file: `${sqlite}/grant.ts`,
    find: `if (after > floor) return`,
    replace: `if (after < 0n) return`,
    tests: [onSqlite],
  },
  {
    name: "store: an `after` above the floor is granted, PostgreSQL",
    file: `${postgres}/grant.ts`,
    find: `WHEN r.after_id > l.floor THEN`,
    replace: `WHEN r.after_id < 0 THEN`,
    tests: [onPostgres],
  },
  {
    name: "store: the version that was seen is not compared, SQLite",
    file: `${sqlite}/grant.ts`,
    find: `if (version < seenVersion) {`,
    replace: `if (version < 0n) {`,
    tests: [onSqlite],
  },
  {
    name: "store: the version that was seen is not compared, PostgreSQL",
    file: `${postgres}/grant.ts`,
    find: `OR l.version < r.seen_version OR`,
    replace: `OR`,
    tests: [onPostgres],
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
  },
  {
    name: "store: revisions are taken without a lock, PostgreSQL",
    file: `${postgres}/tags.ts`,
    find: `FROM idmint.store AS s FOR UPDATE`,
    replace: `FROM idmint.store AS s`,
    tests: [onPostgres],
  },
  {
    name: "store: a warning of PostgreSQL is ignored",
    file: `${postgres}/connections.ts`,
    find: `      if (warnings.length > 0) {`,
    replace: `      if (warnings.length < 0) {`,
    tests: [onPostgres],
  },
  {
    name: "service: a release is honoured twice",
    file: `${service}/release-tokens.ts`,
    find: `    this.#slots[slotOf(token)] = undefined;`,
    replace: ``,
    tests: ["packages/server/test/service/release-tokens.test.ts"],
  },
  {
    name: "service: a give-back is retried",
    file: `${service}/directory.ts`,
    find: `within(() => store.giveBack(requests), boundMs, timers);`,
    replace: `within(
          () => store.giveBack(requests).catch(() => store.giveBack(requests)),
          boundMs,
          timers,
        );`,
    tests: ["packages/server/test/shutdown.e2e.test.ts"],
  },
  {
    name: "service: a give-back over the hole of another server's grant",
    file: `${service}/give-back.ts`,
    find: `if (lastOf(segment) === from - 1n) from = segment.base;`,
    replace: `from = segment.base;`,
    tests: ["packages/server/test/service/give-back.model.test.ts"],
  },
  {
    name: "service: answers of an earlier history of the store are used",
    file: `${service}/grants.ts`,
    find: `if (history === this.#history) this.#accept(batch, requests, grants);
      else this.#discard(batch, grants);`,
    replace: `this.#accept(batch, requests, grants);`,
    tests: ["packages/server/test/service/grants.test.ts"],
  },
  {
    name: "service: a tag in two calls of the store at once",
    file: `${service}/grants-state.ts`,
    find: `batch.length < maxBatch && !state.busy.has(tag)`,
    replace: `batch.length < maxBatch`,
    tests: ["packages/server/test/service/grants-state.test.ts"],
  },
  {
    name: "service: the version guard admits every grant",
    file: "packages/core/src/segment/version-guard.ts",
    find: `if (version <= seenWhenSent) return false;`,
    replace: ``,
    tests: [
      "packages/core/test/segment.test.ts",
      "packages/server/test/service/uniqueness.model.test.ts",
    ],
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
    file: `${service}/directory.ts`,
    find: `if (kind.kind !== "segment") return false;`,
    replace: `if (kind.kind !== "segment") return true;`,
    tests: ["packages/server/test/service/directory.test.ts"],
  },
  {
    name: "a connection goes to the process that has the most",
    file: "packages/server/src/workers/balance.ts",
    find: "one.open < other.open",
    replace: "one.open > other.open",
    tests: ["packages/server/test/workers/balance.test.ts"],
  },
  {
    name: "a worker whose back-off ends while all stop is started again",
    file: "packages/server/src/workers/workers-state.ts",
    find: `if (worker.mode === "waiting") worker.mode = "gone";`,
    replace: "",
    tests: ["packages/server/test/workers/workers-state.model.test.ts"],
  },
  {
    name: "a worker that ended in order while all stop is replaced",
    file: "packages/server/src/workers/workers-state.ts",
    find: `if (state.phase === "serving") {`,
    replace: `if (state.phase !== "starting") {`,
    tests: ["packages/server/test/workers/workers-state.model.test.ts"],
  },
  {
    name: "sdk: the epoch of an answer that comes too late is not obeyed",
    file: "packages/client/src/tag.ts",
    find: `    this.#buffer.observeEpoch(epoch);
`,
    replace: ``,
    tests: ["packages/client/test/retries.test.ts"],
  },
  {
    name: "a fencing token is known to no majority",
    file: `${coordination}/src/lock/acquire.ts`,
    find: `if (isMinting && nodes.length === 1) return token;`,
    replace: `if (isMinting) return token;`,
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
    name: "snowflake: a worker id is its holder's for the time of a lease, whatever was reserved",
    file: generator,
    find: `tickAt(layout, reservedUntilMs + 1) - 1;`,
    replace: `tickAt(layout, reservedUntilMs + 30_000) - 1;`,
    tests: snowflakes,
  },
  {
    name: "snowflake: who takes a worker id over does not start above what was reserved",
    file: workerRegistry,
    find: `const notBeforeMs = old.reservedUntilMs + 1;`,
    replace: `const notBeforeMs = pool.layout.timeOriginMs;`,
    tests: snowflakes,
  },
  {
    name: "snowflake: a reservation is raised without asking whose it is",
    file: workerRegistry,
    find: `if (row?.token === key.token) return row;`,
    replace: `if (row !== undefined) return row;`,
    tests: snowflakes,
  },
  {
    name: "snowflake: a used up sequence is not carried to the next tick",
    file: generator,
    find: `    state.tick++;
`,
    replace: ``,
    tests: snowflakes,
  },
  {
    name: "snowflake: the sequence begins again before it is known that the clock went on",
    file: generator,
    find: `  if (clockTick < state.tick) return`,
    replace: `  if (clockTick !== state.tick) state.sequence = 0;
  if (clockTick < state.tick) return`,
    tests: snowflakes,
  },
  {
    name: "snowflake: worker ids begin again at 0",
    file: workerRegistry,
    find: `if (used >= 2 ** pool.layout.workerBits) return undefined;`,
    replace: `used %= 2 ** pool.layout.workerBits;`,
    tests: snowflakes,
  },
  {
    name: "snowflake: the next extension is taken up before it is saved",
    file: "packages/core/src/worker/lease-state.ts",
    find: `  return [{ type: "renew", call, renewal }];`,
    replace: `  const early = { ...held, extension, reservedUntilMs: reserveUntilMs };
  if (extension === held.extension) return [{ type: "renew", call, renewal }];
  return [
    { type: "take-up", lease: early, notBeforeMs: 0 },
    { type: "renew", call, renewal },
  ];`,
    tests: snowflakes,
  },
  {
    name: "text: the keys of unguessable ids permute one domain",
    file: "packages/core/src/unguessable/domain.ts",
    find: `return BigInt(keyId) * domain.scale + hidden;`,
    replace: `return domain.scale + hidden;`,
    tests: unguessable,
  },
  {
    name: "text: a walk of the permutation ends outside the domain",
    file: "packages/core/src/unguessable/domain.ts",
    find: `    if (value < ceiling) return value + 1n;`,
    replace: `    return (value % ceiling) + 1n;`,
    tests: unguessable,
  },
  {
    name: "text: a server takes another key under the number of a tag's key",
    file: `${service}/tag-text.ts`,
    find: `if (key.check !== check) throw keyDiffers(tag, each);`,
    replace: ``,
    tests: ["packages/server/test/text-ids.e2e.test.ts"],
  },
  {
    name: "text: serials of the hour that is repeated are the same",
    file: "packages/core/src/format/template.ts",
    find: `if ("name" in zone && !pattern.includes("xx" satisfies DateToken)) {`,
    replace: `if ("name" in zone && pattern.length === 0) {`,
    tests: formats,
  },
  {
    name: "text: a tag is made whose ids will outgrow their padding",
    file: "packages/core/src/format/faults.ts",
    find: `    if (needed <= part.width) return [];`,
    replace: `    if (needed > 0) return [];`,
    tests: formats,
  },
  {
    name: "text: a number that outgrew its padding wraps",
    file: "packages/core/src/format/radix.ts",
    find: `  if (digits.length > width) return undefined;`,
    replace: `  if (digits.length > width) return digits.slice(-width);`,
    tests: ["packages/core/test/format/radix.test.ts"],
  },
  {
    name: "text: the end of a number without a width cannot be told",
    file: "packages/core/src/format/faults.ts",
    find: `    if (!isVariable(part) || at === last) return [];`,
    replace: `    if (!isVariable(part) || at <= last) return [];`,
    tests: formats,
  },
  {
    name: "text: a format is made without the machine that its ids have",
    file: "packages/core/src/format/faults.ts",
    find: `snowflake[bits] > 0 && !shows(name as FieldName)`,
    replace: `bits !== "workerBits" && snowflake[bits] > 0 && !shows(name as FieldName)`,
    tests: formats,
  },
  {
    name: "text: a template changes while ids written by it are out there",
    file: "packages/server/src/store/shared/change.ts",
    find: `  if (old.format?.template !== next.format?.template) return false;`,
    replace: ``,
    tests: ["packages/server/test/store/text-settings.test.ts"],
  },
  {
    name: "text: the sequences of UUIDs of version 2 begin again when they are used up",
    file: "packages/core/src/uuid/dce-state.ts",
    find: `    state.node = randomNode(random);
    state.sequence = 0;
  } else {`,
    replace: `    state.sequence = 0;
  } else {`,
    tests: ["packages/core/test/uuid/states.test.ts"],
  },
  {
    name: "text: an ObjectId follows a clock that went back",
    file: "packages/core/src/uuid/object-id-state.ts",
    find: `  if (now > state.second) {`,
    replace: `  if (now !== state.second) {`,
    tests: ["packages/core/test/uuid/states.test.ts"],
  },
  {
    name: "clock: the cache file without the reservation",
    file: "packages/core/src/worker/kept-lease-state.ts",
    find: `  const notBeforeMs = kept.usedUntilMs + 1;`,
    replace: `  const notBeforeMs = 0;`,
    tests: leaseKeeper,
  },
  {
    name: "clock: the cache file goes beyond what the registry reserved",
    file: "packages/core/src/worker/kept-lease-state.ts",
    find: `Math.min(untilMs, kept.reservedUntilMs)`,
    replace: `untilMs`,
    tests: leaseKeeper,
  },
  {
    name: "clock: time is used before it is in the cache file",
    file: `${service}/lease-keeper.ts`,
    find: `    const answer = answerOf(held.kept, clock.now());
    await this.#write();`,
    replace: `    const answer = answerOf(held.kept, clock.now());
    void this.report();`,
    tests: leaseKeeper,
  },
  {
    name: "clock: a jump within the kept minute is believed",
    file: "packages/core/src/worker/kept-lease-state.ts",
    find: `  return reserveUntilMs > furthest ? kept : used(kept, reserveUntilMs);`,
    replace: `  return used(kept, reserveUntilMs);`,
    tests: leaseKeeper,
  },
  {
    name: "clock: a copy of the cache file is taken for the file",
    file: "packages/server/src/store/kept/contents.ts",
    find: `    if (lock !== origin.lock) return { ignored: "it is a copy" };`,
    replace: ``,
    tests: ["packages/server/test/store/lease-file.test.ts"],
  },
  {
    name: "clock: the lock of the cache file ends before its last write",
    file: "packages/server/src/store/kept/lease-file.ts",
    find: `      await writing;`,
    replace: ``,
    tests: ["packages/server/test/store/lease-file.test.ts"],
  },
  {
    name: "clock: a server starts behind its last report",
    file: "packages/core/src/worker/clock-check-state.ts",
    find: `wallMs >= reportedMs) return undefined;`,
    replace: `wallMs >= reportedMs - 60_000) return undefined;`,
    tests: ["packages/core/test/worker/clock-check.model.test.ts"],
  },
  {
    name: "clock: a jump ahead confirms itself",
    file: "packages/core/src/worker/clock-check-state.ts",
    find: `  if (seen.length === 0 && confirmed !== undefined) {`,
    replace: `  if (confirmed !== undefined && wallMs - timeAt(confirmed, now) <= MAX_JUMP_MS * 2) {`,
    tests: ["packages/core/test/worker/clock-check.model.test.ts"],
  },
  {
    name: "clock: a peer with a wrong clock takes running servers out",
    file: "packages/core/src/worker/clock-check-state.ts",
    find: `  if (state.isStarted || peers.length === 0) return undefined;`,
    replace: `  if (peers.length === 0) return undefined;`,
    tests: ["packages/core/test/worker/clock-check.model.test.ts"],
  },
  {
    name: "clock: a server that refuses for its clock stays in service",
    file: `${service}/node.ts`,
    find: `    if (this.#draining || clocks.watch.isOut) return false;`,
    replace: `    if (this.#draining) return false;`,
    tests: ["packages/server/test/clocks.e2e.test.ts"],
  },
];

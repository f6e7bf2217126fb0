import type { Mutant } from "./mutant.ts";

const postgres = "packages/server/src/store/postgres";
const locks = ["packages/server/test/store/postgres-locks.pg.test.ts"];
const queue = ["packages/server/test/service/grants-state.test.ts"];
const sequences = ["packages/server/test/store/postgres-sequences.pg.test.ts"];
const goBack = ["packages/server/test/store/return-to-period.test.ts"];
const shared = "packages/server/src/store/shared";
const durable = ["packages/server/test/store/postgres-durable.pg.test.ts"];
const rights = ["packages/server/test/store/postgres-rights.pg.test.ts"];
const pooler = ["packages/server/test/store/postgres-pooler.pg.test.ts"];

/** Faults of what is particular to PostgreSQL: its sessions, its locks and its clock. */
export const postgresMutants: readonly Mutant[] = [
  {
    name: "postgres: a step of the schema is chosen before another migration has ended",
    file: `${postgres}/migrate.ts`,
    find: `await session.query({ text: \`SELECT pg_advisory_xact_lock(\${ADVISORY_LOCK})\` });`,
    replace: ``,
    tests: pooler,
    only: "migrations that run at once",
  },
  {
    name: "postgres: a schema that another migration made meanwhile is not seen",
    file: `${postgres}/schema.ts`,
    find: `session.query<{ is_there: boolean }>({ text: HAS_TABLE, values: [schema] });`,
    replace: `session.query<{ is_there: boolean }>({ text: "SELECT to_regclass($1 || '.migration') IS NOT NULL AS is_there", values: [schema] });`,
    tests: pooler,
    only: "migrations that run at once",
  },
  {
    name: "postgres: a pooler is looked for with one client",
    file: `${postgres}/faults/pooler.ts`,
    find: `ofOther.add(await backendOf(other));`,
    replace: ``,
    tests: pooler,
    only: "a status through a pooler",
  },
  {
    name: "postgres: a store whose tables a crash empties is opened",
    file: `${postgres}/store.ts`,
    find: `await assertLogged(session, "idmint");`,
    replace: ``,
    tests: durable,
    only: "a store whose table",
  },
  {
    name: "postgres: a store whose tables a crash empties is accepted",
    file: `${postgres}/accept.ts`,
    find: `await assertLogged(session, "idmint");`,
    replace: ``,
    tests: durable,
    only: "a store whose table",
  },
  {
    name: "postgres: a session that is looked at is not as servers have theirs",
    file: `${postgres}/status.ts`,
    find: `const allowUnsafe = asServersAllow(config);`,
    replace: `const allowUnsafe = UNSAFE_SETTINGS;`,
    tests: durable,
    only: "synchronous_commit",
  },
  {
    name: "postgres: a role without rights is waited for by a server that starts",
    file: `${postgres}/refusal.ts`,
    find: `isRefusal && deeds === "answered"`,
    replace: `isRefusal && deeds === "none"`,
    tests: rights,
    only: "ends a start",
  },
  {
    name: "postgres: a server that served gives up a database that takes no writes for a while",
    file: `${postgres}/changes.ts`,
    find: `if (typeof store?.renewed === "string") connections.hasServed();`,
    replace: ``,
    tests: rights,
    only: "goes on when",
  },
  {
    name: "postgres: one text that cannot be stored keeps a batch out of the ledger",
    file: `${postgres}/records/ledger.ts`,
    find: `column.map((text) => session.storable(text))`,
    replace: `[...column]`,
    tests: rights,
    only: "caller's fault",
  },
  {
    name: "postgres: a session's synchronous_commit is not looked at",
    file: `${postgres}/identity.ts`,
    find: `current_setting('synchronous_commit') NOT IN ('on', 'remote_apply')`,
    replace: `current_setting('synchronous_commit') NOT IN ('on', 'remote_apply', 'remote_write', 'local')`,
    tests: pooler,
  },
  {
    name: "postgres: a session that hears no warnings grants",
    file: `${postgres}/identity.ts`,
    find: `IN ('error', 'fatal', 'panic')`,
    replace: `IN ('fatal', 'panic')`,
    tests: pooler,
  },
  {
    name: "postgres: a transaction commits as its session happens to",
    file: `${postgres}/session.ts`,
    find: `return allowUnsafe.includes("synchronous_commit") ? begin :`,
    replace: `return allowUnsafe.length > 0 ? begin :`,
    tests: pooler,
  },
  {
    name: "postgres: a maximum raised below a savepoint is of a row that is not ours",
    file: `${postgres}/migrations/000001-init.ts`,
    find: `IF writer <> pg_current_xact_id()::xid THEN`,
    replace: `IF writer IS NULL THEN`,
    tests: sequences,
    only: "wherever in a transaction",
  },
  {
    name: "postgres: a COMMIT that answers ROLLBACK is taken for done",
    file: `${postgres}/connections.ts`,
    find: `if (command !== "COMMIT") throw`,
    replace: `if (command === "") throw`,
    tests: ["packages/server/test/store/postgres-commit.pg.test.ts"],
  },
  {
    name: "postgres: a locked row of a known tag is taken for a missing one",
    file: `${postgres}/grant.ts`,
    find: `WHEN l.name IS NULL AND v.name IS NOT NULL THEN 'LOCKED'`,
    replace: `WHEN l.name IS NULL AND v.name IS NOT NULL AND r.seen_version = 0 THEN 'LOCKED'`,
    tests: locks,
  },
  {
    name: "postgres: a batch waits for every row of it",
    file: `${postgres}/grant.ts`,
    find: `const work = skipLocked`,
    replace: `const work = skipLocked && requests.length < 2`,
    tests: locks,
  },
  {
    name: "postgres: a missing row is taken for a locked one",
    file: `${postgres}/grant.ts`,
    find: `WHEN l.name IS NULL AND v.name IS NOT NULL THEN 'LOCKED'`,
    replace: `WHEN l.name IS NULL AND r.seen_version > 0 THEN 'LOCKED'`,
    tests: locks,
  },
  {
    name: "postgres: a lock that was not had costs all connections",
    file: `${postgres}/connections.ts`,
    find: `isInDoubt = !isHarmless(error) || warnings.length > 0;`,
    replace: `isInDoubt = true;`,
    tests: locks,
  },
  {
    name: "grants: every call may wait for a lock",
    file: "packages/server/src/service/upstream/grants-state.ts",
    find: `return countOf(waiting, group) < options.maxWaiting;`,
    replace: `return countOf(waiting, group) < options.maxCalls;`,
    tests: queue,
  },
  {
    name: "grants: a skipped tag is overtaken by a later request of its own",
    file: "packages/server/src/service/upstream/grants-state.ts",
    find: `    state.busy.add(wanted.request.tag);
    state.locked.push(wanted);`,
    replace: `    state.locked.push(wanted);`,
    tests: queue,
  },
  {
    name: "postgres: a period begins by the store's clock alone",
    file: `${postgres}/grant.ts`,
    find: `least(c.store_now, to_timestamp($8::bigint / 1000.0))`,
    replace: `greatest(c.store_now, to_timestamp($8::bigint / 1000.0) - interval '9 days')`,
    tests: sequences,
  },
  {
    name: "postgres: a grant goes back to the period of the clock",
    file: `${postgres}/grant.ts`,
    find: `greatest(l.period_start, \${periodAt("l.period_unit", "l.time_zone", "m.now")})`,
    replace: `\${periodAt("l.period_unit", "l.time_zone", "m.now")}`,
    tests: sequences,
  },
  {
    name: "postgres: a period that was left begins at 1 again",
    file: `${postgres}/grant.ts`,
    find: `THEN \${lastIdOf("l", "p.start")} ELSE`,
    replace: `THEN 0 ELSE`,
    tests: sequences,
  },
  {
    name: "periods: one that was left begins at 1 again",
    file: `${shared}/period.ts`,
    find: `row.others.find((other) => other.start === start)?.lastId ?? 0n;`,
    replace: `0n;`,
    tests: goBack,
  },
  {
    name: "periods: whoever goes back forgets the period that is left",
    file: `${shared}/change.ts`,
    find: `const otherPeriods = withPeriod(others, { start: old.periodStart, lastId: old.floor });`,
    replace: `const otherPeriods = others;`,
    tests: goBack,
  },
  {
    name: "periods: a bound is believed below what the period is known to have given",
    file: `${shared}/change.ts`,
    find: `const least = known ?? 0n;`,
    replace: `const least = 0n;`,
    tests: goBack,
  },
  {
    name: "periods: where a period ended is guessed",
    file: `${shared}/change.ts`,
    find: `const floor = bound ?? known;`,
    replace: `const floor = bound ?? known ?? 0n;`,
    tests: goBack,
  },
  {
    name: "periods: an accept keeps what it knew of earlier ones",
    file: `${shared}/period.ts`,
    find: `.filter((other) => other.start > start)
    .map(`,
    replace: `.filter((other) => other.start !== start)
    .map(`,
    tests: goBack,
  },
  {
    name: "periods: an accept does not say what it forgot",
    file: `${shared}/period.ts`,
    find: `return forgottenOnlyBefore(start, ahead);`,
    replace: `return ahead;`,
    tests: goBack,
  },
  {
    name: "periods: a tag goes back over periods that an accept forgot",
    file: `${shared}/change.ts`,
    find: `if (forgotten !== undefined && start < forgotten) {`,
    replace: `if (forgotten !== undefined && start > forgotten) {`,
    tests: goBack,
  },
  {
    name: "periods: what lies before a period that was forgotten counts as known",
    file: `${shared}/change.ts`,
    find: `start === forgotten ? forgottenOnlyBefore(start, remembered) : remembered`,
    replace: `remembered.filter(({ lastId }) => lastId >= 0n)`,
    tests: goBack,
  },
  {
    name: "periods: a tag goes back without a new epoch",
    file: `${shared}/change.ts`,
    find: `const counts = { version: old.version + 1n, epoch: old.epoch + 1n };`,
    replace: `const counts = { version: old.version + 1n };`,
    tests: goBack,
  },
  {
    name: "periods: a doubtful one is told of at every grant",
    file: "packages/server/src/service/upstream/period-watch.ts",
    find: `if (told === telling || `,
    replace: `if (`,
    tests: ["packages/server/test/service/period-watch.test.ts"],
  },
];

import type { Mutant } from "./mutant.ts";

const postgres = "packages/server/src/store/postgres";
const locks = ["packages/server/test/store/postgres-locks.pg.test.ts"];
const queue = ["packages/server/test/service/grants-state.test.ts"];
const pooler = ["packages/server/test/store/postgres-pooler.pg.test.ts"];

/** Faults of what is particular to PostgreSQL: its sessions, its locks and its clock. */
export const postgresMutants: readonly Mutant[] = [
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
    name: "postgres: a locked row of a known tag is taken for a missing one",
    file: `${postgres}/grant.ts`,
    find: `WHEN l.name IS NULL AND v.name IS NOT NULL THEN 'LOCKED'`,
    replace: `WHEN l.name IS NULL AND v.name IS NOT NULL AND r.seen_version = 0 THEN 'LOCKED'`,
    tests: locks,
  },
  {
    name: "postgres: a batch waits for every row of it",
    file: `${postgres}/grant.ts`,
    find: `skipLocked ? grantFree(session, values) :`,
    replace: `skipLocked && requests.length < 2 ? grantFree(session, values) :`,
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
    find: `isInDoubt = !isLockTimeout(error) || warnings.length > 0;`,
    replace: `isInDoubt = true;`,
    tests: locks,
  },
  {
    name: "grants: every call may wait for a lock",
    file: "packages/server/src/service/grants-state.ts",
    find: `return countOf(waiting, group) < options.maxWaiting;`,
    replace: `return countOf(waiting, group) < options.maxCalls;`,
    tests: queue,
  },
  {
    name: "grants: a skipped tag is overtaken by a later request of its own",
    file: "packages/server/src/service/grants-state.ts",
    find: `    state.busy.add(wanted.request.tag);
    state.locked.push(wanted);`,
    replace: `    state.locked.push(wanted);`,
    tests: queue,
  },
];

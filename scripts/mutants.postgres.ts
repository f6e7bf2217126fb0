import type { Mutant } from "./mutant.ts";

const postgres = "packages/server/src/store/postgres";
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
];

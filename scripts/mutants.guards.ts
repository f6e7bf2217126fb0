import type { Mutant } from "./mutant.ts";

const postgres = "packages/server/src/store/postgres";
const shared = "packages/server/src/store/shared";
const ticket = "packages/core/src/server/ticket";
const differences = ["packages/server/test/store/differences.test.ts"];
const advances = ["packages/server/test/store/advance.test.ts"];
const refusals = ["packages/server/test/store/postgres-refusal.pg.test.ts"];
const moves = ["packages/server/test/service/ticket.model.test.ts"];
const givenUp = ["packages/cli/test/ticket.pg.test.ts"];
const onPostgres = ["packages/server/test/store/ticket.pg.test.ts"];

/** Faults of guards: what is let through, and refusals that do not say what to do. */
export const guardMutants: readonly Mutant[] = [
  {
    name: "guards: TAG_EXISTS does not say which settings differ",
    file: `${shared}/failures.ts`,
    find: `fields: differences.map(({ field }) => field).join(",") } },`,
    replace: `fields: "" } },`,
    tests: differences,
  },
  {
    name: "guards: TAG_EXISTS names settings that are the same",
    file: `${shared}/differences.ts`,
    find: `.filter((each) => each.present !== each.wanted)`,
    replace: `.filter((each) => each.present !== "")`,
    tests: differences,
  },
  {
    name: "guards: what the ids are made of changes after the first id",
    file: "packages/core/src/kinds/compare.ts",
    find: `({ change }) => change !== "any-time"`,
    replace: `({ change }) => change === "never"`,
    tests: ["packages/core/test/kinds/changes.test.ts"],
  },
  {
    name: "guards: a tag that reports no first id is taken for one that issued none",
    file: "packages/core/src/server/tag/tag.ts",
    find: `return version > 0n || !specOf(kind).reportsIssued;`,
    replace: `return version > 0n;`,
    tests: ["packages/server/test/store/sqlite.test.ts"],
    only: "ticket",
  },
  {
    name: "guards: a floor rises by more than is meant",
    file: `${shared}/change.ts`,
    find: `if (floor - old.floor > options.maxRaise) {`,
    replace: `if (floor > old.ceiling - options.maxRaise) {`,
    tests: advances,
  },
  {
    name: "guards: the refusal of a large raise does not name what allows it",
    file: `${shared}/change.ts`,
    find: `so set allow_large_raise if you mean it`,
    replace: `so think again`,
    tests: advances,
  },
  {
    name: "guards: an advance lowers a floor",
    file: `${shared}/change.ts`,
    find: `if (floor <= old.floor) return { tag: old, changed: false };`,
    replace: `if (floor === old.floor) return { tag: old, changed: false };`,
    tests: advances,
  },
  {
    name: "guards: an advance leaves Redis counting below the floor",
    file: `${shared}/change.ts`,
    find: `const generation = old.generation + (countsInRedis(old.kind) ? 1n : 0n);
  const next = { floor, generation, version`,
    replace: `const { generation } = old;
  const next = { floor, generation, version`,
    tests: advances,
  },
  {
    name: "guards: the command line names no flag for a large raise",
    file: "packages/cli/src/calls/failure.ts",
    find: `  allow_large_raise: "--allow-large-raise",
`,
    replace: ``,
    tests: ["packages/cli/test/failure.test.ts"],
  },
  {
    name: "guards: the command starts on a Node.js that is too old",
    file: "packages/cli/src/node-version.ts",
    find: `major < OLDEST[0] || (`,
    replace: `(`,
    tests: ["packages/cli/test/node-version.e2e.test.ts"],
  },
  {
    name: "guards: the command starts on an early release of the oldest Node.js",
    file: "packages/cli/src/node-version.ts",
    find: ` && minor < OLDEST[1])`,
    replace: ` && minor < 0)`,
    tests: ["packages/cli/test/node-version.e2e.test.ts"],
  },
  {
    name: "guards: a database that lets nobody in is tried again",
    file: `${postgres}/refusal.ts`,
    find: 'new IdmintError("STORE_REFUSED", `',
    replace: 'new IdmintError("STORE_UNAVAILABLE", `',
    tests: refusals,
    only: "a wrong password",
  },
  {
    name: "guards: STORE_REFUSED is retryable",
    file: "packages/core/src/errors.ts",
    find: `STORE_REFUSED: "FAILED_PRECONDITION",`,
    replace: `STORE_REFUSED: "UNAVAILABLE",`,
    tests: refusals,
    only: "a wrong password",
  },
  {
    name: "guards: a database that let a server in once is taken to be configured wrongly",
    file: `${postgres}/refusal.ts`,
    find: `if (deeds === "none" || (isRefusal`,
    replace: `if (deeds !== "served" || (isRefusal`,
    tests: refusals,
    only: "let in once",
  },
  {
    name: "guards: a schema is not found where identifiers are quoted",
    file: `${postgres}/schema.ts`,
    find: `n.nspname = $1`,
    replace: `quote_ident(n.nspname) = $1`,
    tests: refusals,
    only: "quotes all identifiers",
  },
  {
    name: "guards: a ticket database without a schema is sent to the wrong command",
    file: "packages/server/src/store/ticket/database.ts",
    find: `"idmint ticket migrate");`,
    replace: `"idmint migrate");`,
    tests: refusals,
    only: "without its schema",
  },
  {
    name: "uuid: what is no text is read as if it were",
    file: "packages/core/src/uuid/decode.ts",
    find: `  if (typeof text === "string") return;
`,
    replace: `  if (typeof text === "string" || text === null) return;
`,
    tests: ["packages/core/test/uuid/states.test.ts"],
  },
  {
    name: "uuid: the time of versions 1 and 6 is rounded up",
    file: "packages/core/src/uuid/decode.ts",
    find: "Number(BigInt(`0x${hex}`) / 10_000n)",
    replace: "Number((BigInt(`0x${hex}`) + 5_000n) / 10_000n)",
    tests: ["packages/core/test/uuid/states.test.ts"],
  },
  {
    name: "object ids: a counter begins where few ids fit its second",
    file: "packages/core/src/uuid/object-id-state.ts",
    find: `const START_BELOW = 2 ** 23;`,
    replace: `const START_BELOW = 2 ** 24;`,
    tests: ["packages/core/test/uuid/states.test.ts"],
  },
  {
    name: "text: a UUID in capitals is not told",
    file: "packages/core/src/uuid/decode.ts",
    find: `  const uuid = text.toLowerCase();
  if (!UUID`,
    replace: `  const uuid = text;
  if (!UUID`,
    tests: ["packages/core/test/uuid/states.test.ts"],
  },
  {
    name: "ticket: a slot is taken over below what it was frozen at",
    file: `${ticket}/mover.ts`,
    find: `const above = lastId > highest ? lastId : highest;`,
    replace: `const above = lastId > highest ? 0n : 0n;`,
    tests: moves,
  },
  {
    name: "ticket: a frozen slot is freed before its new owner has it",
    file: `${ticket}/mover.ts`,
    find: `  await newOwner.adopt({ slotsId, slot, slots, owner: to, epoch, above });
  await databaseNamed(databases, from).confirm({ slotsId, slot, epoch });`,
    replace: `  await databaseNamed(databases, from).confirm({ slotsId, slot, epoch });
  await newOwner.adopt({ slotsId, slot, slots, owner: to, epoch, above });`,
    tests: moves,
  },
  {
    name: "ticket: a move between two views is taken for a database that went back",
    file: `${ticket}/mover.ts`,
    find: `    if (asked.length === 0) break;
`,
    replace: `    for (const [name, proof] of suspects) behind.set(name, proof);
    if (asked.length >= 0) break;
`,
    tests: moves,
  },
  {
    name: "ticket: slots are used that an advance has not raised",
    file: "packages/server/src/service/tickets/slots.ts",
    find: `    for (const name of this.#state.databases.keys()) closeSlots(this.#state, name);`,
    replace: ``,
    tests: moves,
  },
  {
    name: "ticket: a slot grants under an epoch that is over",
    file: "packages/server/src/store/ticket/grant.ts",
    find: `WHEN l.state <> 'active' OR l.epoch <> r.epoch OR l.owner`,
    replace: `WHEN l.state <> 'active' OR l.owner`,
    tests: onPostgres,
    only: "a slot is taken over once",
  },
  {
    name: "ticket: a frozen slot grants",
    file: "packages/server/src/store/ticket/slots.ts",
    find: `owner = $4, epoch = t.epoch + 1, state = 'frozen'`,
    replace: `epoch = t.epoch + 1`,
    tests: onPostgres,
    only: "a frozen slot grants nothing",
  },
  {
    name: "ticket: a slot is given away twice",
    file: "packages/server/src/store/ticket/slots.ts",
    find: `AND t.epoch = $3 AND t.state = 'active'
  AND t.owner = d.database_id`,
    replace: `AND t.epoch <= $3`,
    tests: onPostgres,
    only: "a frozen slot grants nothing",
  },
  {
    name: "ticket: a slot that comes back goes on below its own ids",
    file: "packages/server/src/store/ticket/slots.ts",
    find: `  last_id = greatest(t.last_id, excluded.last_id),`,
    replace: `  last_id = excluded.last_id,`,
    tests: onPostgres,
    only: "a slot is taken over once",
  },
  {
    name: "ticket: a late take-over begins a slot again",
    file: "packages/server/src/store/ticket/slots.ts",
    find: `WHERE t.epoch < excluded.epoch AND t.state <> 'active'`,
    replace: `WHERE t.epoch <= excluded.epoch`,
    tests: onPostgres,
    only: "a slot is taken over once",
  },
  {
    name: "ticket: what was down grants before it is raised",
    file: "packages/server/src/store/ticket/grant.ts",
    find: `    WHEN l.raised_under <> pg_postmaster_start_time() THEN 'NOT_RAISED'
`,
    replace: ``,
    tests: onPostgres,
    only: "after a restart slots grant",
  },
  {
    name: "ticket: slots are given up while a database is away",
    file: `${ticket}/apply.ts`,
    find: `for (const error of failed.values()) throw error;`,
    replace: ``,
    tests: ["packages/server/test/store/ticket-memory.test.ts"],
  },
  {
    name: "ticket: slots of a database that is away are said to be lost",
    file: `${ticket}/apply.ts`,
    find: `const isAway = failed.size > 0;`,
    replace: `const isAway = failed.size > databases.length;`,
    tests: givenUp,
    only: "a database that is away",
  },
  {
    name: "ticket: slots on their way to a lost database keep a move from ending",
    file: `${ticket}/apply.ts`,
    find: `return pending.filter(({ to }) => ids.has(to));`,
    replace: `return pending.filter(({ to }) => ids.has(to) || to !== "");`,
    tests: givenUp,
    only: "replaced by an empty one",
  },
  {
    name: "ticket: an owner that comes back has what was given up",
    file: `packages/server/src/store/ticket/slots.ts`,
    find: `  greatest($4::bigint + 1, floor(extract(epoch FROM clock_timestamp()))::bigint),
  \${lastIdUpTo("0::bigint", "l.slot"`,
    replace: `  1,
  \${lastIdUpTo("0::bigint", "l.slot"`,
    tests: onPostgres,
    only: "given up",
  },
  {
    name: "ticket: slots that a database has are given up there",
    file: `packages/server/src/store/ticket/slots.ts`,
    find: `WHERE t.state <> 'active' AND t.epoch < excluded.epoch AND t.xmin = t.written_by\`;

const CONFIRM`,
    replace: `WHERE t.epoch < excluded.epoch AND t.xmin = t.written_by\`;

const CONFIRM`,
    tests: onPostgres,
    only: "given up",
  },
  {
    name: "ticket: one database is migrated under two names",
    file: `packages/server/src/store/ticket/migrate.ts`,
    find: `if (other !== undefined) throw`,
    replace: `if (other === name) throw`,
    tests: givenUp,
    only: "two names",
  },
];

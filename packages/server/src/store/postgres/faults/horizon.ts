import type { StoreFinding } from "../../shared/status.ts";
import type { Session } from "../connections.ts";

/**
 * How many transactions may have begun since the oldest one that somebody may still want to see. Each grant and each poll
 * leaves a dead row, and goes past all that cannot be removed yet: after 80,000 a grant takes 20 times as long.
 */
const MAX_AGE = 10_000;
const MAX_NAMED = 5;
/** How often a server looks. */
const EVERY_MS = 60_000;

/** What keeps dead rows of this database from being removed. */
export interface Holder {
  readonly kind: "backend" | "prepared" | "slot" | "standby";
  /** A process, or the name of a slot or of a prepared transaction. */
  readonly name: string;
  /** Transactions since. */
  readonly age: number;
}

/**
 * A role without further rights sees of other sessions their processes and horizons, and not what they are or do. Sessions of
 * other databases hold nothing back here, except those that send the log to a standby, which are of no database. VACUUM shows a
 * horizon and holds none.
 */
const HOLDERS = `SELECT h.kind, h.name, h.age FROM (
  SELECT CASE WHEN coalesce(a.datid, 0) = 0 THEN 'standby' ELSE 'backend' END AS kind, a.pid::text AS name,
    greatest(age(a.backend_xmin), age(a.backend_xid)) AS age
  FROM pg_stat_activity AS a
  WHERE a.pid <> pg_backend_pid() AND a.backend_type IS DISTINCT FROM 'autovacuum worker'
    AND (coalesce(a.datid, 0) = 0 OR a.datname = current_database())
    AND a.pid NOT IN (SELECT v.pid FROM pg_stat_progress_vacuum AS v)
  UNION ALL SELECT 'slot', s.slot_name::text, age(s.xmin) FROM pg_replication_slots AS s
  UNION ALL SELECT 'prepared', p.gid, age(p.transaction) FROM pg_prepared_xacts AS p
  WHERE p.database = current_database()
) AS h WHERE h.age > ${MAX_AGE} ORDER BY h.age DESC, h.name LIMIT ${MAX_NAMED}`;

export async function findHolders(session: Session): Promise<readonly Holder[]> {
  return session.query<Holder>({ text: HOLDERS });
}

const WORDS: Readonly<
  Record<Holder["kind"], readonly [what: (name: string) => string, end: (name: string) => string]>
> = {
  backend: [
    (name) => `a transaction of process ${name}`,
    (name) => `end it: SELECT pg_terminate_backend(${name})`,
  ],
  prepared: [
    (name) => `the prepared transaction ${name}`,
    (name) => `end it: COMMIT PREPARED or ROLLBACK PREPARED '${name}'`,
  ],
  slot: [
    (name) => `the replication slot ${name}`,
    (name) => `let its standby come back, or drop it: SELECT pg_drop_replication_slot('${name}')`,
  ],
  standby: [
    (name) => `a query on the standby that process ${name} serves (hot_standby_feedback)`,
    () => "end the query on the standby",
  ],
};

export function horizonFindings(holders: readonly Holder[]): readonly StoreFinding[] {
  return holders.map(({ kind, name, age }) => {
    const [what, end] = WORDS[kind];
    const found = `${what(name)} has kept dead rows from being removed for ${age} transactions, so grants and polls get slower`;
    return { name: "horizon", isFatal: false, found, fix: end(name) };
  });
}

/** In words that stay the same as long as it is the same holders. Empty: nothing is held back. */
export function horizonWarning(holders: readonly Holder[]): string {
  if (holders.length === 0) return "";
  const told = holders.map(({ kind, name }) => {
    const [what, end] = WORDS[kind];
    return `${what(name)} (${end(name)})`;
  });
  return `PostgreSQL cannot remove dead rows, so grants and polls get slower; what holds them: ${told.toSorted().join("; ")}`;
}

/** A server's looks, one in a minute, beside its polls. */
export class HorizonWatch {
  readonly #look: () => Promise<readonly Holder[]>;
  readonly #now: () => number;
  #lookedAt = -Infinity;
  #warning = "";

  constructor(look: () => Promise<readonly Holder[]>, now: () => number = () => performance.now()) {
    this.#look = look;
    this.#now = now;
  }

  /** What the last look showed; a look that is due begins. */
  get warning(): string {
    if (this.#now() - this.#lookedAt >= EVERY_MS) {
      this.#lookedAt = this.#now();
      void this.#once();
    }
    return this.#warning;
  }

  async #once(): Promise<void> {
    try {
      this.#warning = horizonWarning(await this.#look());
    } catch {
      // The poll tells that the store does not answer.
    }
  }
}

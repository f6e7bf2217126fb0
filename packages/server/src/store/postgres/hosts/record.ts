import type { Connections, Session } from "../connections.ts";
import { PRESENT_IDENTITY } from "../identity.ts";
import { requiredStandbys, standbysFrom, standbysText } from "./standby-names.ts";

/** Time between two attempts. Each waits for the tables, and others wait for it. */
const EVERY_MS = 5_000;
const TABLES =
  "idmint.tag, idmint.period, idmint.worker, idmint.node, idmint.redis_mark, idmint.token, idmint.audit, idmint.ledger";
const STREAMING = `SELECT ARRAY (SELECT lower(r.application_name) FROM pg_stat_replication AS r
  GROUP BY 1 HAVING bool_and(r.flush_lsn IS NOT NULL)) AS names`;
const RECORD = `UPDATE idmint.store SET standbys = $1, written_by = pg_current_xact_id()::xid
  WHERE standbys = $2 AND current_setting('synchronous_standby_names') = $3
    AND xmin = written_by AND identity = ${PRESENT_IDENTITY}`;

/**
 * Records the standbys that answers wait for, once synchronous_standby_names requires all that it names and they follow.
 *
 * INVARIANTS
 * - The record is written while nobody writes a row of ours: EXCLUSIVE waits for all statements that do, to the end of their
 *   commits, and holds off those that begin later, which then see the record. So an answer is before the record in the log,
 *   or its session finds the record after its commit, and waits.
 * - A record only grows. To leave out a standby is for an operator, since that standby may still be promoted and know nothing
 *   of it.
 */
export class StandbyRecord {
  #triedAtMs = -Infinity;

  /** `recorded` and `setting` are what a poll has just seen. Never rejects; the next poll may try again. */
  async follow(connections: Connections, recorded: string, setting: string): Promise<void> {
    const known = standbysFrom(recorded);
    const names = requiredStandbys(setting);
    const isGrowing = names.length > known.length && known.every((name) => names.includes(name));
    if (!isGrowing || performance.now() - this.#triedAtMs < EVERY_MS) return;
    this.#triedAtMs = performance.now();
    try {
      await connections.run(async (session) => {
        if (!(await areFollowing(session, names))) return;
        await session.transaction(async () => {
          await session.query({ text: `LOCK TABLE ${TABLES} IN EXCLUSIVE MODE` });
          const values = [standbysText(names), recorded, setting];
          await session.query({ text: RECORD, values });
        });
      });
    } catch {
      // A table that was busy, or a standby that fell back: nothing rests on a record that is not there.
    }
  }
}

async function areFollowing(session: Session, names: readonly string[]): Promise<boolean> {
  const [row] = await session.query<{ names: readonly string[] }>({ text: STREAMING });
  return names.every((name) => row?.names.includes(name) === true);
}

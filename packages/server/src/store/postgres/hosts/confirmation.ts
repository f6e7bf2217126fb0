import type { IdmintError } from "@idmint/core";
import { storeUnavailable } from "@idmint/core/server";
import type { ClientBase } from "pg";
import { PRESENT_IDENTITY } from "../identity.ts";
import { standbysFrom } from "./standby-names.ts";

/**
 * Up to where each standby has flushed the log, compared with where the primary has. A statement sees only what is flushed
 * before its first row, and a commit has flushed its own part before it is answered: so whoever has all of the log up to
 * `at` has whatever was done or read on this session before. Several that share a name must all have it.
 */
const CONFIRM = {
  name: "idmint-confirm-1",
  text: `WITH here AS MATERIALIZED (SELECT coalesce($1::pg_lsn, pg_current_wal_flush_lsn()) AS at)
SELECT s.standbys, s.identity = ${PRESENT_IDENTITY} AS is_accepted, h.at::text AS at,
  (SELECT n.renewals::text FROM idmint.node AS n WHERE n.id = $2::text) AS renewals,
  ARRAY (SELECT lower(r.application_name) FROM pg_stat_replication AS r
    GROUP BY 1 HAVING bool_and(coalesce(r.flush_lsn >= h.at, false))) AS flushed
FROM idmint.store AS s CROSS JOIN here AS h`,
};

interface ConfirmRow {
  readonly standbys: string;
  /** Nothing is granted by a store that is another one than the accepted, and its standbys are those of another primary. */
  readonly is_accepted: boolean;
  readonly at: string;
  readonly renewals: string | null;
  readonly flushed: readonly string[];
}

/** Time between two looks; the second one is nearly always the last. */
const FIRST_PAUSE_MS = 1;
const MAX_PAUSE_MS = 20;

/**
 * Waits until the standbys that the store names have what this side was answered.
 *
 * INVARIANT: whatever a store that names standbys answers to a grant, or to anything but a poll, counts only when every one
 * of them has flushed the log up to there, by the primary's own account. synchronous_standby_names makes commits wait too,
 * but its wait ends with success and without a word when the setting is emptied, and begins late when it is set.
 */
export class Confirmation {
  /** This server's row, which moves with every poll. */
  nodeId = "";
  #renewals: bigint | undefined;

  /**
   * Up to which number of its own row this server knows that all standbys have the log; undefined when it knows nothing, or
   * when the store names none.
   */
  get renewals(): bigint | undefined {
    return this.#renewals;
  }

  /** Those that did not have it by `untilMs` of performance.now(). */
  async missing(client: ClientBase, untilMs: number): Promise<readonly string[]> {
    let row = await this.#look(client, null);
    // Read with the first look, so that it is no newer than the place in the log that is waited for.
    const { at = "", renewals = null } = row ?? {};
    for (let pauseMs = FIRST_PAUSE_MS; missingIn(row).length > 0; pauseMs *= 2) {
      if (performance.now() + pauseMs >= untilMs) return missingIn(row);
      const forMs = Math.min(pauseMs, MAX_PAUSE_MS);
      await new Promise((resolve) => setTimeout(resolve, forMs));
      row = await this.#look(client, at);
    }
    if (row?.is_accepted === true) {
      const isWitness = row.standbys !== "" && renewals !== null;
      this.#renewals = isWitness ? BigInt(renewals) : undefined;
    }
    return [];
  }

  async #look(client: ClientBase, at: string | null): Promise<ConfirmRow | undefined> {
    const { rows } = await client.query<ConfirmRow>({ ...CONFIRM, values: [at, this.nodeId] });
    return rows[0];
  }
}

function missingIn(row: ConfirmRow | undefined): readonly string[] {
  if (row?.is_accepted !== true) return [];
  return standbysFrom(row.standbys).filter((name) => !row.flushed.includes(name));
}

/** The outcome is unknown, and what was granted is burnt. */
export function unconfirmed(names: readonly string[]): IdmintError {
  return storeUnavailable(`standby ${names.join(", ")} of the store did not confirm in time`);
}

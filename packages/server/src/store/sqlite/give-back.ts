import { IdmintError } from "@idmint/core";
import type { GiveBackRequest } from "@idmint/core/server";
import { SEGMENTS } from "../shared/settings.ts";
import { givenBack } from "../shared/records/ledger-row.ts";
import type { Database } from "./file/database.ts";
import { countChanges } from "./file/identity.ts";
import { writeLedger } from "./records/ledger.ts";

const GIVE_BACK = `UPDATE tag SET floor = ?, version = version + 1 WHERE name = ? AND floor = ? AND version = ? AND kind IN (${SEGMENTS}) AND state <> 'DELETED'`;
const EPOCH = "SELECT epoch FROM tag WHERE name = ?";

/**
 * Lowers floors by the unused ends of grants.
 *
 * INVARIANT: the floor is lowered only while it still ends at the grant *and* the row still has the grant's version: an
 * equal floor alone may be that of a later grant, after another give-back. The version rises here too, so a give-back
 * that is sent twice finds another version and does nothing. Only segments go back: ids of a sequence were passed on in
 * their order, and those of a tag that counts in Redis are Redis' until it has a new start.
 */
export function giveBack(
  database: Database,
  deadlineMs: number,
  requests: readonly GiveBackRequest[],
): readonly number[] {
  try {
    return database.write(deadlineMs, (transaction) => {
      const nowMs = Math.floor(database.now());
      const counts = requests.map(({ tag, from, to, version, giver }) => {
        const changed = transaction.run(GIVE_BACK, from - 1n, tag, to, version);
        if (changed !== 1) return 0;
        if (giver !== undefined) {
          const epoch = transaction.get(EPOCH, tag)?.["epoch"] as bigint;
          writeLedger(transaction, givenBack({ tag, from, to, version }, giver, epoch), nowMs);
        }
        return Number(to - from + 1n);
      });
      const changes = counts.filter((count) => count > 0).length;
      const ids = counts.reduce((sum, count) => sum + count, 0);
      if (changes > 0) countChanges(transaction, changes, -BigInt(ids));
      return counts;
    });
  } catch (error) {
    // In a store that went back the grant may be somebody else's by now: it stays a gap.
    if (!(error instanceof IdmintError) || error.reason !== "STORE_EPOCH_CHANGED") throw error;
    return requests.map(() => 0);
  }
}

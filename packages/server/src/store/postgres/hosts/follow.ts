import type { ChangeStore } from "@idmint/core/server";
import { changes, type DatabaseChanges } from "../changes.ts";
import type { Connections } from "../connections.ts";
import { Promotion } from "./promotion.ts";
import { StandbyRecord } from "./record.ts";

type Query = Parameters<ChangeStore["changes"]>[0];

/**
 * Polls of a database with standbys: what they show of the standbys is recorded, and a standby that was promoted is accepted
 * where that is proved. Without several hosts in the URL they are polls and nothing else.
 */
export function followStandbys(
  connections: Connections,
): (query: Query) => Promise<DatabaseChanges> {
  const promotion = new Promotion();
  const record = new StandbyRecord();
  return async (query) => {
    const found = await changes(connections, query);
    if (connections.confirmation === undefined) return found;
    if (found.fenced === "") {
      promotion.settle();
      void record.follow(connections, found.standbys, found.standbyNames);
      return found;
    }
    if (!(await promotion.judge(connections, query))) return found;
    promotion.settle();
    return { ...(await changes(connections, query)), isAccepted: true };
  };
}

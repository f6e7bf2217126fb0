import { type ChangeStore, NEVER_STOPPED, type StoreChanges } from "@idmint/core/server";
import { TAG_COLUMNS, tagFromRow, type TagRow } from "../shared/tag-row.ts";
import type { Database } from "./file/database.ts";
import { readStoreRow } from "./file/identity.ts";
import { readNodes, readTraffic, renew } from "./nodes.ts";

const CHANGED = `SELECT ${TAG_COLUMNS.join(", ")} FROM tag WHERE revision > ? ORDER BY revision LIMIT ?`;

/** What changed since a revision, read from one snapshot; before that the server's row is renewed. */
export function changes(
  database: Database,
  deadlineMs: number,
  query: Parameters<ChangeStore["changes"]>[0],
): StoreChanges {
  const { renewal } = query;
  const isRenewed = renewal !== undefined && renew(database, renewal, deadlineMs);
  return database.read(deadlineMs, (transaction, fenced) => {
    const store = readStoreRow(transaction);
    const incarnation = store?.incarnation ?? "";
    const nodes = query.nodes === true ? readNodes(transaction) : undefined;
    const traffic = readTraffic(transaction);
    const { revision = 0n, issuing = NEVER_STOPPED } = store ?? {};
    // The table has no index by revision, so it is read only when there is something to find.
    const rows =
      revision > query.since ? transaction.all(CHANGED, query.since, query.limit + 1) : [];
    const behind = query.watched.filter(({ tag, version }) => {
      const row = transaction.get("SELECT version FROM tag WHERE name = ?", tag);
      return row === undefined || (row["version"] as bigint) < version;
    });
    return {
      incarnation,
      revision,
      changed: rows.slice(0, query.limit).map((row) => tagFromRow(row as unknown as TagRow)),
      more: rows.length > query.limit,
      behind: behind.map(({ tag }) => tag),
      fenced,
      nowMs: database.now(),
      parts: [{ name: "", incarnation, revision, isRenewed, nodes, traffic, issuing }],
    };
  });
}

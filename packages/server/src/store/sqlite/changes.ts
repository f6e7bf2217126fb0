import { IdmintError } from "@idmint/core";
import { type ChangeStore, NEVER_STOPPED, type StoreChanges } from "@idmint/core/server";
import { MARKED } from "../pins/own-row-state.ts";
import { TAG_COLUMNS, type TagRow, tagsFromRows } from "../shared/tag-row.ts";
import type { Database } from "./file/database.ts";
import { monotonicMs, type Transaction } from "./file/connection.ts";
import { markWentBack, readStoreRow } from "./file/identity.ts";
import { standingAsk } from "./records/claims.ts";
import { NOT_RENEWED, readNodes, readTraffic, renew, RENEWAL_WAIT_MS } from "./nodes.ts";

const CHANGED = `SELECT ${TAG_COLUMNS.join(", ")} FROM tag WHERE revision > ? ORDER BY revision LIMIT ?`;

const VERSION = "SELECT version FROM tag WHERE name = ?";

type Query = Parameters<ChangeStore["changes"]>[0];
type Watched = Query["watched"];

/** What changed since a revision, read from one snapshot; before that the server's row is renewed. */
export function changes(database: Database, deadlineMs: number, query: Query): StoreChanges {
  const { renewal } = query;
  const { isRenewed, refusesWrites, own } =
    renewal === undefined ? NOT_RENEWED : renew(database, renewal, deadlineMs);
  const found = database.read(deadlineMs, (transaction, fenced) => {
    const store = readStoreRow(transaction);
    const incarnation = store?.incarnation ?? "";
    const nodes = query.nodes === true ? readNodes(transaction) : undefined;
    const traffic = readTraffic(transaction);
    const { revision = 0n, issuing = NEVER_STOPPED } = store ?? {};
    const ask = standingAsk(transaction, database.now());
    // The table has no index by revision, so it is read only when there is something to find.
    const rows =
      revision > query.since ? transaction.all(CHANGED, query.since, query.limit + 1) : [];
    const behind = behindOf(transaction, query.watched).map(({ tag }) => tag);
    const isWell = fenced === "" && behind.length === 0;
    const proofs = isWell ? { own, hasEarlier: database.ownRow.earlier.isThere } : {};
    const page = rows.slice(0, query.limit) as unknown as readonly TagRow[];
    const { tags, unreadable } = tagsFromRows(page);
    return {
      incarnation,
      revision,
      changed: tags,
      unreadable,
      more: rows.length > query.limit,
      next: rows.length > query.limit ? BigInt(page.at(-1)?.revision ?? 0n) : revision,
      behind,
      fenced,
      refusesWrites,
      warning: refusesWrites,
      nowMs: database.now(),
      parts: [
        { name: "", incarnation, revision, isRenewed, nodes, traffic, issuing, ask, ...proofs },
      ],
    };
  });
  const lost = lostIn(query, found);
  if (lost.length === 0) return found;
  return { ...found, fenced: markBehind(database, deadlineMs, found.incarnation, lost) };
}

/** What this server saw before the store was accepted anew says nothing of it. */
function lostIn({ renewal, watched }: Query, found: StoreChanges): Watched {
  if (found.fenced !== "" || renewal?.incarnation !== found.incarnation) return [];
  return watched.filter(({ tag }) => found.behind.includes(tag));
}

/** Marks the store, by the transaction that sees it again. Answers why nothing may be granted, or an empty text. */
function markBehind(
  database: Database,
  deadlineMs: number,
  incarnation: string,
  lost: Watched,
): string {
  try {
    return database.write(Math.min(deadlineMs, monotonicMs() + RENEWAL_WAIT_MS), (transaction) => {
      if (readStoreRow(transaction)?.incarnation !== incarnation) return "";
      const [first] = behindOf(transaction, lost);
      if (first === undefined) return "";
      const why = `the row of tag ${first.tag} is missing or older than version ${first.version}`;
      markWentBack(transaction, why);
      return MARKED + why;
    });
  } catch (error) {
    // The tags are refused all the same, and the next poll sees them again.
    if (error instanceof IdmintError) return "";
    throw error;
  }
}

function behindOf(transaction: Transaction, watched: Watched): Watched {
  return watched.filter(({ tag, version }) => {
    const row = transaction.get(VERSION, tag);
    return row === undefined || (row["version"] as bigint) < version;
  });
}

import { randomUUID } from "node:crypto";
import { storeUnavailable, storeWentBack } from "../shared/failures.ts";
import type { Database, Transaction } from "./database.ts";
import { lookAtFiles } from "./files.ts";
import { readStoreRow, SUM_OF_ROWS } from "./identity.ts";

// ?1 gap, ?2 seconds since 1970, ?3 the store's revision, ?4 now. Each tag takes a revision of its own, so that a poll
// can page through all of them.
const RAISE = `UPDATE tag SET
  floor = floor + min(ceiling - floor, ?1), version = version + 1, epoch = max(epoch + 1, ?2),
  revision = ?3 + place.number, updated_at_ms = ?4
  FROM (SELECT name, row_number() OVER (ORDER BY name) AS number FROM tag) AS place
  WHERE place.name = tag.name`;
const RECORD = `UPDATE store SET
  identity = ?, incarnation = ?, revision = revision + max(1, ?), generation = max(generation + 1, ?), progress = ?`;

/**
 * Accepts the store as it lies there, with every floor raised by `gap`.
 *
 * INVARIANT: epochs and the generation go above any that the lost history had. They are raised by one or to the present
 * time in seconds since 1970, whichever is more: the lost history counted from a lower number in steps of one.
 */
export function accept(database: Database, gap: bigint, deadlineMs: number): { tags: number } {
  // What lies there now is accepted, not what a connection still sees of files that are gone.
  database.reopen();
  return database.write(deadlineMs, (transaction) => raise(database.path, transaction, gap), {
    fenced: "allow",
  });
}

function raise(path: string, transaction: Transaction, gap: bigint): { tags: number } {
  const verdict = transaction.get("PRAGMA integrity_check(1)")?.["integrity_check"];
  if (verdict !== "ok") {
    throw storeWentBack("the file of the store is damaged: stop the servers and restore it whole");
  }
  const store = readStoreRow(transaction);
  const files = lookAtFiles(path);
  if (store === undefined || files === undefined) throw storeUnavailable("the store is gone");
  const now = Date.now();
  const seconds = Math.floor(now / 1_000);
  const tags = transaction.run(RAISE, gap, seconds, store.revision, now);
  const progress = transaction.get(SUM_OF_ROWS)?.["progress"] as bigint;
  transaction.run(RECORD, files.identity, randomUUID(), tags, seconds, progress);
  return { tags };
}

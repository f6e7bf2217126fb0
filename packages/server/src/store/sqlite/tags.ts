import { type CallArgs, storeWentBack, type Tag, type TagPage } from "@idmint/core/server";
import { GRANTED } from "../shared/settings.ts";
import { tagChanged } from "../shared/records/audit.ts";
import {
  advance,
  creation,
  firstEpochOf,
  isWritten,
  periodReturn,
  stateChange,
  type TagChanging,
  update,
  type Decision,
} from "../shared/change.ts";
import { knownTimeZone } from "../shared/time-zone.ts";
import {
  TAG_COLUMNS,
  tagFromRow,
  type TagRow,
  tagsFromRows,
  valuesOfTag,
} from "../shared/tag-row.ts";
import { addAudit } from "./records/audit.ts";
import type { Transaction } from "./file/connection.ts";
import type { Database } from "./file/database.ts";
import { endPeriod } from "./grant.ts";
import { countChanges, readStoreRow } from "./file/identity.ts";

const COLUMNS = TAG_COLUMNS.join(", ");
const PLACES = TAG_COLUMNS.map(() => "?").join(", ");
const EXCLUDED = TAG_COLUMNS.map((column) => `${column} = excluded.${column}`).join(", ");
const READ = `SELECT ${COLUMNS} FROM tag WHERE name = ?`;
// Not REPLACE, which would empty the columns that a newer release has added.
const WRITE = `INSERT INTO tag (${COLUMNS}) VALUES (${PLACES})
  ON CONFLICT (name) DO UPDATE SET ${EXCLUDED}`;
const TAKE_REVISION = "UPDATE store SET revision = ?";
// Names are ASCII and never hold "~", which is above all they may hold: it closes the range of a prefix.
const LIST = `SELECT ${COLUMNS} FROM tag
  WHERE name > ? AND name >= ? AND name < ? || '~' AND (? OR state <> 'DELETED') ORDER BY name LIMIT ?`;

const RECENT = `SELECT name FROM tag WHERE kind IN (${GRANTED}) AND state <> 'DELETED'
  ORDER BY max(granted_at_ms, updated_at_ms) DESC, name LIMIT ?`;

export function readTag(transaction: Transaction, name: string): Tag | undefined {
  const row = transaction.get(READ, name);
  return row === undefined ? undefined : tagFromRow(row as unknown as TagRow);
}

const PAGE = `SELECT ${COLUMNS} FROM tag WHERE name > ? ORDER BY name LIMIT 1000`;

/** Writes the row of a tag that has none. */
export function addTag(transaction: Transaction, tag: Tag): void {
  transaction.run(WRITE, ...valuesOfTag(tag));
}

/** All rows, in the order of their names. */
export function* pagesOfTags(
  transaction: Transaction,
): Generator<readonly TagRow[], void, undefined> {
  for (let after = ""; ;) {
    const page = transaction.all(PAGE, after) as unknown as readonly TagRow[];
    const last = page.at(-1);
    if (last === undefined) return;
    yield page;
    after = last.name;
  }
}

/**
 * One change by an operator.
 *
 * INVARIANT: the store's revision, the tag's row and who changed it are written by one transaction under the write lock. So
 * revisions become visible in their order, and a poll that has seen one misses none below it.
 */
function change(database: Database, deadlineMs: number, wanted: TagChanging): Decision {
  const { name, options, kind, leavesPeriod = false, decide } = wanted;
  const by = options?.by;
  if (kind !== undefined) knownTimeZone(kind);
  return database.write(deadlineMs, (transaction) => {
    const old = readTag(transaction, name);
    const { revision: before = 0n, generation = 0n } = readStoreRow(transaction) ?? {};
    const revision = before + 1n;
    const nowMs = database.now();
    const decision = decide(old, { revision, nowMs, firstEpoch: firstEpochOf(generation) });
    if (!isWritten(decision, wanted)) return decision;
    if (leavesPeriod && old !== undefined) {
      endPeriod(transaction, name, { start: old.periodStart, floor: old.floor }, nowMs);
    }
    const { tag } = decision;
    const counted = old === undefined ? 0n : old.version + old.revision;
    transaction.run(WRITE, ...valuesOfTag(tag));
    transaction.run(TAKE_REVISION, revision);
    const changes = tag.version + tag.revision - counted;
    countChanges(transaction, changes, tag.floor - (old?.floor ?? 0n));
    if (by !== undefined) addAudit(transaction, tagChanged(by, old, tag));
    return decision;
  });
}

export function createTag(
  database: Database,
  deadlineMs: number,
  ...args: CallArgs["createTag"]
): Tag {
  const { tag } = change(database, deadlineMs, creation(...args));
  return tag;
}

export function updateTag(
  database: Database,
  deadlineMs: number,
  ...args: CallArgs["updateTag"]
): Tag {
  const { tag } = change(database, deadlineMs, update(...args));
  return tag;
}

export function setTagState(
  database: Database,
  deadlineMs: number,
  ...args: CallArgs["setTagState"]
): Tag {
  const { tag } = change(database, deadlineMs, stateChange(...args));
  return tag;
}

export function advanceTag(
  database: Database,
  deadlineMs: number,
  ...args: CallArgs["advanceTag"]
): { tag: Tag; raised: boolean } {
  const { tag, changed } = change(database, deadlineMs, advance(...args));
  return { tag, raised: changed };
}

export function returnToPeriod(
  database: Database,
  deadlineMs: number,
  ...args: CallArgs["returnToPeriod"]
): { tag: Tag; returned: boolean } {
  const { tag, changed } = change(database, deadlineMs, periodReturn(...args));
  return { tag, returned: changed };
}

export function getTags(
  database: Database,
  deadlineMs: number,
  names: readonly string[],
): readonly Tag[] {
  return readWhole(database, deadlineMs, (transaction) =>
    names.map((name) => readTag(transaction, name)).filter((tag) => tag !== undefined),
  );
}

export function listTags(
  database: Database,
  deadlineMs: number,
  query: CallArgs["listTags"][0],
): TagPage {
  const { afterName, prefix, showDeleted, limit } = query;
  const values = [afterName, prefix, prefix, showDeleted ? 1 : 0, limit];
  return readWhole(database, deadlineMs, (transaction) =>
    tagsFromRows(transaction.all(LIST, ...values) as unknown as readonly TagRow[]),
  );
}

function readWhole<T>(
  database: Database,
  deadlineMs: number,
  work: (transaction: Transaction) => T,
): T {
  return database.read(deadlineMs, (transaction, fenced) => {
    if (fenced !== "") throw storeWentBack(fenced);
    return work(transaction);
  });
}

export function recentTags(
  database: Database,
  deadlineMs: number,
  limit: number,
): readonly string[] {
  const rows = database.read(deadlineMs, (transaction) => transaction.all(RECENT, limit));
  return rows.map((row) => String(row["name"]));
}

// What servers learn of a MemoryStore, and how it is accepted.
import {
  acceptedGeneration,
  type Accepted,
  type CallArgs,
  DEFAULT_MAX_OFFLINE_MS,
  type StoreChanges,
  type TakenClaims,
} from "@idmint/core/server";
import { noted } from "./audit.ts";
import { takeClaims } from "./claims.ts";
import type { MemoryDatabase } from "./database.ts";
import { forget } from "./ledger.ts";
import { addLostNodes, hasRow, ownRow, renewNode } from "./nodes.ts";
import { countsInRedis } from "./periods.ts";
import { change, endPeriod, fenced } from "./rows.ts";
import { acceptedPeriods, CLOCK_MARGIN_MS, inPeriodAt } from "./rules.ts";
import { acceptedFloor } from "./worker-leases.ts";

export function changes(database: MemoryDatabase, ...[query]: CallArgs["changes"]): StoreChanges {
  const reason = fenced(database);
  const { renewal } = query;
  const hasEarlier = hasRow(database, renewal);
  const isRenewed = renewal !== undefined && reason === "" && renewNode(database, renewal);
  const own = isRenewed ? ownRow(database, renewal.node.id) : undefined;
  const { incarnation, revision, traffic, issuing } = database;
  const changed = [...database.rows.values()]
    .filter((tag) => tag.revision > query.since)
    .toSorted((a, b) => (a.revision < b.revision ? -1 : 1));
  const nodes = query.nodes === true ? [...database.nodes.values()] : undefined;
  return {
    incarnation,
    revision,
    changed: changed.slice(0, query.limit),
    more: changed.length > query.limit,
    behind: query.watched
      .filter(({ tag, version }) => (database.rows.get(tag)?.version ?? -1n) < version)
      .map(({ tag }) => tag),
    fenced: reason,
    nowMs: database.now(),
    parts: [
      {
        name: "",
        incarnation,
        revision,
        isRenewed,
        own,
        hasEarlier,
        nodes,
        traffic,
        issuing,
        ...asking(database),
      },
    ],
  };
}

function asking(database: MemoryDatabase): { ask?: string } {
  const { ask } = database;
  return ask === undefined || ask.expiresAtMs <= database.now() ? {} : { ask: ask.nonce };
}

export function accept(
  database: MemoryDatabase,
  ...[gap, maxOfflineMs = DEFAULT_MAX_OFFLINE_MS, by, , asked]: CallArgs["accept"]
): Accepted {
  const { incarnation: before, rows: present, periods } = database;
  database.rows = new Map(present);
  database.periods = new Map(periods);
  let claims: TakenClaims | undefined;
  try {
    beginPeriods(database);
    claims = asked === undefined ? undefined : takeClaims(database, asked);
  } catch (error) {
    Object.assign(database, { rows: present, periods });
    throw error;
  }
  database.ask = undefined;
  database.newIncarnation();
  addLostNodes(database, maxOfflineMs);
  database.acceptedIdentity = database.identity;
  database.mark = "";
  const seconds = BigInt(Math.floor(database.now() / 1_000));
  const { firstEpoch } = database;
  database.firstEpoch = firstEpoch >= seconds ? firstEpoch + 1n : seconds;
  // Of all rows as they were, in the order of their names: each change puts its row to the end.
  const rows = [...database.rows.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1));
  if (rows.length === 0) database.revision++;
  for (const old of rows) {
    const row = acceptedPeriods(old, gap);
    const raised = row.floor + gap > row.ceiling ? row.ceiling : row.floor + gap;
    const floor =
      row.kind.kind === "snowflake"
        ? acceptedFloor(row.kind, { ...row, floor: raised }, database.now())
        : raised;
    // Above any epoch the tag may have had before the store went back.
    const epoch = row.epoch >= seconds ? row.epoch + 1n : seconds;
    const generation = countsInRedis(row.kind)
      ? acceptedGeneration(row.generation, seconds)
      : row.generation;
    change(database, { ...row, floor, generation, version: row.version + 1n, epoch });
    forget(database, row.name, row.version + 1n);
  }
  const { incarnation } = database;
  const after = { incarnation, gap: String(gap), tags: rows.length };
  noted(database, by, "store", [{ incarnation: before }, after]);
  return { tags: database.rows.size, ...(claims === undefined ? {} : { claims }) };
}

/** A period that the lost history may have begun starts above claims and the gap too. */
function beginPeriods(database: MemoryDatabase): void {
  for (const [name, old] of database.rows) {
    const { row: begun, ended } = inPeriodAt(old, database.now() + CLOCK_MARGIN_MS);
    endPeriod(database, begun, ended);
    database.rows.set(name, begun);
  }
}

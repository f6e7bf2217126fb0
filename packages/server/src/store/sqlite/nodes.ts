import { IdmintError } from "@idmint/core";
import {
  type AuditNote,
  type ChangeOptions,
  lostNodes,
  MAX_NODES,
  NEVER_STOPPED,
  type NodeRenewal,
  type NodeRow,
  type NodeRowKey,
  type OwnRow,
  type PartIssuing,
  type Traffic,
  trafficAfter,
} from "@idmint/core/server";
import { issuingChanged, nodeForgotten, trafficChanged } from "../shared/records/audit.ts";
import { refusalTextOf } from "../shared/failures.ts";
import { issuingSet } from "../shared/issuing.ts";
import {
  NODE_COLUMNS,
  nodeFromRow,
  type NodeTableRow,
  renewedColumns,
  valuesOfNode,
  valuesOfRenewal,
} from "../shared/node-row.ts";
import {
  TRAFFIC_COLUMNS,
  trafficFromRow,
  type TrafficRow,
  valuesOfTraffic,
} from "../shared/traffic-row.ts";
import { addAudit } from "./records/audit.ts";
import { monotonicMs, type Transaction } from "./file/connection.ts";
import type { Database } from "./file/database.ts";
import { markWentBack, readStoreRow } from "./file/identity.ts";

const COLUMNS = NODE_COLUMNS.join(", ");
const PLACES = NODE_COLUMNS.map((_, index) => `?${index + 1}`).join(", ");
const RENEW = `INSERT INTO node (${COLUMNS}) SELECT ${PLACES}
  WHERE (SELECT count(*) FROM node) < ${MAX_NODES} OR EXISTS (SELECT 1 FROM node WHERE id = ?1)
  ON CONFLICT (id) DO UPDATE SET ${renewedColumns("node", "max")} RETURNING renewals`;
const ADD = `INSERT OR REPLACE INTO node (${COLUMNS}) VALUES (${PLACES})`;
const READ = `SELECT ${COLUMNS} FROM node LIMIT ${MAX_NODES + 1}`;
const FORGET = "DELETE FROM node WHERE id = ? AND renewals = coalesce(?, renewals)";
const LONGEST =
  "SELECT max(max_offline_ms) AS longest, count(*) - count(max_offline_ms) AS endless FROM node";

/** How long a renewal waits for the lock of another process; the poll that it comes with does not need it. */
export const RENEWAL_WAIT_MS = 300;

/** Whether a row was renewed, and why the store takes no writes if that is the reason; empty: it is not. */
interface Renewed {
  readonly isRenewed: boolean;
  readonly refusesWrites: string;
  /** The row as it is now; undefined: it was not renewed. */
  readonly own?: OwnRow;
}

export const NOT_RENEWED: Renewed = { isRenewed: false, refusesWrites: "" };

/**
 * Writes the row of a server; unless it cannot be written, or there are as many rows as may be, or the row shows that the store
 * went back, which is marked then.
 */
export function renew(database: Database, renewal: NodeRenewal, deadlineMs: number): Renewed {
  const waitUntilMs = Math.min(deadlineMs, monotonicMs() + RENEWAL_WAIT_MS);
  const [earlier] = renewal.earlier ?? [];
  if (earlier !== undefined) database.ownRow.resume(renewal.node.id, earlier);
  try {
    const done = database.write(waitUntilMs, (transaction) => {
      const history = readStoreRow(transaction)?.incarnation ?? "";
      const look = { id: renewal.node.id, history, storeMs: database.now() };
      const loss = database.ownRow.lossIn(transaction, look);
      if (loss !== "") {
        markWentBack(transaction, loss);
        return undefined;
      }
      const row = transaction.get(RENEW, ...valuesOfRenewal(renewal));
      return row === undefined ? undefined : { look, renewals: row["renewals"] as bigint };
    });
    if (done === undefined) return NOT_RENEWED;
    database.ownRow.renewed(done.look, done.renewals);
    const { history, storeMs } = done.look;
    const own = { history, storeMs, renewals: done.renewals, revision: "" };
    return { isRenewed: true, refusesWrites: "", own };
  } catch (error) {
    // Reading goes on where writing does not: on a full disk, say.
    if (error instanceof IdmintError)
      return { ...NOT_RENEWED, refusesWrites: refusalTextOf(error) };
    throw error;
  }
}

export function readNodes(transaction: Transaction): readonly NodeRow[] {
  return transaction.all(READ).map((row) => nodeFromRow(row as unknown as NodeTableRow));
}

export function forgetNodes(
  database: Database,
  deadlineMs: number,
  keys: readonly NodeRowKey[],
  by?: AuditNote,
): number {
  return database.write(deadlineMs, (transaction) => {
    let forgotten = 0;
    for (const { id, renewals } of keys) forgotten += transaction.run(FORGET, id, renewals ?? null);
    const [first] = keys;
    if (by !== undefined && first !== undefined && forgotten > 0) {
      addAudit(transaction, nodeForgotten(by, database.now(), first.id));
    }
    return forgotten;
  });
}

/** See lostNodes. */
export function addLostNodes(
  transaction: Transaction,
  incarnation: string,
  maxOfflineMs: number | null,
): void {
  const known = transaction.get(LONGEST);
  const isEndless = maxOfflineMs === null || (known?.["endless"] as bigint) > 0n;
  const longest = Math.max(maxOfflineMs ?? 0, Number(known?.["longest"] ?? 0n));
  const row = lostNodes(incarnation, isEndless ? undefined : longest);
  transaction.run(ADD, ...valuesOfNode(row));
}

const TRAFFIC = TRAFFIC_COLUMNS.join(", ");
const READ_TRAFFIC = `SELECT ${TRAFFIC} FROM traffic`;
const WRITE_TRAFFIC = `INSERT OR REPLACE INTO traffic (${TRAFFIC}) VALUES (?, ?, ?, ?)`;
const REMOVE_TRAFFIC = "DELETE FROM traffic WHERE server = ?";

export function readTraffic(transaction: Transaction): readonly Traffic[] {
  return transaction.all(READ_TRAFFIC).map((row) => trafficFromRow(row as unknown as TrafficRow));
}

/** See trafficAfter. */
export function setTraffic(
  database: Database,
  deadlineMs: number,
  wanted: Traffic,
  by?: AuditNote,
): Traffic {
  return database.write(deadlineMs, (transaction) => {
    const rows = readTraffic(transaction);
    const { row, isWritten, removed } = trafficAfter(rows, wanted);
    for (const server of removed) transaction.run(REMOVE_TRAFFIC, server);
    if (!isWritten) return row;
    transaction.run(WRITE_TRAFFIC, ...valuesOfTraffic(row));
    const old = rows.find(({ server }) => server === row.server);
    if (by !== undefined) addAudit(transaction, trafficChanged(by, database.now(), old, row));
    return row;
  });
}

const WRITE_ISSUING = `UPDATE store SET revision = ?1, issuing_revision = ?1, stopped_at_ms = ?2,
  progress = progress + ?1 - issuing_revision`;

export function setIssuing(
  database: Database,
  deadlineMs: number,
  isStopped: boolean,
  options?: ChangeOptions,
): readonly PartIssuing[] {
  return database.write(deadlineMs, (transaction) => {
    const { revision = 0n, issuing: old = NEVER_STOPPED } = readStoreRow(transaction) ?? {};
    const stamp = { revision: revision + 1n, nowMs: database.now() };
    const { issuing, changed } = issuingSet(old, isStopped, stamp, options);
    if (changed) {
      transaction.run(WRITE_ISSUING, issuing.revision, issuing.stoppedAtMs ?? null);
      const by = options?.by;
      if (by !== undefined) addAudit(transaction, issuingChanged(by, stamp.nowMs, isStopped));
    }
    return [{ name: "", ...issuing }];
  });
}

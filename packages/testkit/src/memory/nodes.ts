import {
  type AuditNote,
  type CallArgs,
  lostNodes,
  MAX_NODES,
  type NodeRenewal,
  type NodeRowKey,
  type OwnRow,
  type PartIssuing,
  type Traffic,
  trafficAfter,
} from "@idmint/core/server";
import { noted } from "./audit.ts";
import type { MemoryDatabase } from "./database.ts";
import { assertAccepted } from "./rows.ts";

/** Whether the row is there as an earlier life of the server was acknowledged it, in the same history. */
export function hasRow(database: MemoryDatabase, renewal: NodeRenewal | undefined): boolean {
  const [earlier] = renewal?.earlier ?? [];
  const row = database.nodes.get(renewal?.node.id ?? "");
  if (earlier === undefined || row === undefined) return false;
  return earlier.history === database.incarnation && row.renewals >= earlier.renewals;
}

export function ownRow(database: MemoryDatabase, id: string): OwnRow | undefined {
  const row = database.nodes.get(id);
  if (row === undefined) return undefined;
  const { incarnation: history } = database;
  return { history, renewals: row.renewals, revision: "", storeMs: database.now() };
}

/** False when there are as many rows as may be, and where the row is not what an earlier life was acknowledged. */
export function renewNode(database: MemoryDatabase, renewal: NodeRenewal): boolean {
  const { nodes } = database;
  const { node, count, incarnation, obeyed, traffic, isProved, earlier = [] } = renewal;
  const old = nodes.get(node.id);
  if (old === undefined && nodes.size >= MAX_NODES) return false;
  const isOfNow = earlier.some(({ history }) => history === database.incarnation);
  if (old !== undefined && isOfNow && !hasRow(database, renewal)) return false;
  const next = old === undefined || old.renewals < count ? count : old.renewals + 1n;
  const isLate = old?.incarnation === incarnation && old.obeyed > obeyed;
  const most = isLate ? old.obeyed : obeyed;
  nodes.set(node.id, { ...node, renewals: next, incarnation, obeyed: most, traffic, isProved });
  return true;
}

export function forgetNodes(
  database: MemoryDatabase,
  keys: readonly NodeRowKey[],
  by?: AuditNote,
): number {
  const { nodes } = database;
  let forgotten = 0;
  for (const { id, renewals } of keys) {
    const row = nodes.get(id);
    if (row === undefined || (renewals !== undefined && row.renewals !== renewals)) continue;
    nodes.delete(id);
    forgotten++;
    noted(database, by, `node/${id}`, [{ listed: true }, { listed: false }]);
  }
  return forgotten;
}

export function setTraffic(database: MemoryDatabase, wanted: Traffic, by?: AuditNote): Traffic {
  const { row, isWritten, removed } = trafficAfter(database.traffic, wanted);
  const gone = new Set(isWritten ? [...removed, row.server] : []);
  const kept = database.traffic.filter(({ server }) => !gone.has(server));
  if (!isWritten) return row;
  const old = database.traffic.find(({ server }) => server === row.server);
  const before = old === undefined ? undefined : told(old);
  noted(database, by, `server/${row.server}`, [before, told(row)]);
  database.traffic = [...kept, row];
  return row;
}

function told({ weight, isDraining }: Traffic): object {
  return { weight, draining: isDraining };
}

export function addLostNodes(database: MemoryDatabase, maxOfflineMs: number | null): void {
  let longest = maxOfflineMs ?? undefined;
  for (const { maxOfflineMs: its } of database.nodes.values()) {
    longest = longest === undefined || its === undefined ? undefined : Math.max(longest, its);
  }
  const row = lostNodes(database.incarnation, longest);
  database.nodes.set(row.id, row);
}

export function setIssuing(
  database: MemoryDatabase,
  ...[isStopped, { validateOnly = false, by } = {}]: CallArgs["setIssuing"]
): readonly PartIssuing[] {
  assertAccepted(database);
  const { issuing } = database;
  const isSo = (issuing.stoppedAtMs !== undefined) === isStopped;
  const stoppedAtMs = isStopped ? database.now() : undefined;
  const next = isSo ? issuing : { revision: database.revision + 1n, stoppedAtMs };
  if (!validateOnly) {
    database.issuing = next;
    if (!isSo) {
      database.revision++;
      noted(database, by, "issuing", [{ stopped: !isStopped }, { stopped: isStopped }]);
    }
  }
  return [{ name: "", ...next }];
}

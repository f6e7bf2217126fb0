import { IdmintError } from "@idmint/core";
import {
  type AuditNote,
  type ChangeOptions,
  type Issuing,
  lostNodes,
  MAX_NODES,
  NEVER_STOPPED,
  type NodeRenewal,
  type NodeRow,
  type NodeRowKey,
  type PartIssuing,
  type Traffic,
  trafficAfter,
} from "@idmint/core/server";
import { issuingChanged, nodeForgotten, trafficChanged } from "../shared/records/audit.ts";
import { issuingFromRow, issuingSet } from "../shared/issuing.ts";
import { putAudit } from "./records/audit.ts";
import { CallFailure, refusalIn } from "./cluster/failure.ts";
import type { KeyValue, Op } from "./cluster/protocol.ts";
import { judgeRow, type RowVerdict } from "./own-row.ts";
import { type Etcd, MAX_OPS, type Session } from "./session/etcd.ts";
import { fieldsOf, nodeFrom, trafficFrom, valueOfNode, valueOfTraffic } from "./session/rows.ts";
import { mark } from "./went-back.ts";

/** How often a renewal is tried; only somebody who forgets the row writes it too. */
const MAX_ATTEMPTS = 3;
/** How much longer than the server issues without its store its lease lasts. */
const LEASE_MARGIN = 1.1;

/** Whether a row was renewed, and why etcd takes no writes if that is the reason; empty: it is not. */
interface Renewed {
  readonly isRenewed: boolean;
  readonly refusesWrites: string;
}

/**
 * Writes the row of a server, under a lease; unless it cannot be written, or there are as many rows as may be.
 *
 * INVARIANT: the row of a server that may still issue is there. Its lease was kept alive after the renewal was sent, for longer
 * than the server issues without another one; without both it was not renewed.
 *
 * INVARIANT: no renewal wipes out its own proof. A row that shows that the store went back is written no more (see lossOf).
 */
export async function renew(session: Session, renewal: NodeRenewal): Promise<Renewed> {
  resume(session, renewal);
  try {
    return { isRenewed: await write(session, renewal), refusesWrites: "" };
  } catch (error) {
    if (!(error instanceof CallFailure || error instanceof IdmintError)) throw error;
    // The lease may be the reason, and the next renewal gets another one.
    session.etcd.lease = undefined;
    return { isRenewed: false, refusesWrites: refusalIn(error) };
  }
}

/** What an earlier life of the server was acknowledged is what this one knows before it was renewed. */
function resume({ etcd }: Session, { node: { id }, earlier = [] }: NodeRenewal): void {
  const [row] = earlier;
  if (row === undefined || etcd.ownRow !== undefined) return;
  const { history: incarnation, renewals, revision } = row;
  etcd.earlier = { id, incarnation, renewals, revision };
  etcd.ownRow = etcd.earlier;
}

async function leaseOf(
  { etcd, deadlineMs }: Session,
  { node: { maxOfflineMs } }: NodeRenewal,
): Promise<string | undefined> {
  if (maxOfflineMs === undefined) return undefined;
  const ttlS = Math.ceil((maxOfflineMs * LEASE_MARGIN) / 1_000) + 1;
  const { lease } = etcd;
  if (lease?.ttlS === ttlS) {
    const { id } = lease;
    const kept = await etcd.ask(deadlineMs, (ask) => ask("leaseKeepAlive", { id }));
    if (Number(kept.ttl) >= ttlS) return id;
  }
  // One that was granted without an answer ends by itself.
  const { id } = await etcd.ask(deadlineMs, (ask) => ask("leaseGrant", { ttl: String(ttlS) }));
  etcd.lease = { id, ttlS };
  return id;
}

async function write(session: Session, renewal: NodeRenewal): Promise<boolean> {
  const { etcd } = session;
  const { id } = renewal.node;
  const key = session.keys.node(id);
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
    const { own, isFull, isLost } = await look(session, id);
    if (isLost || (own === undefined && isFull)) return false;
    // After the reading, which a cluster that went back refuses: leases are entries of its log, by whose number it is known.
    const lease = await leaseOf(session, renewal);
    const row = renewed(own === undefined ? undefined : nodeFrom(own.value), renewal);
    const put = {
      key,
      value: valueOfNode(row, Date.now()),
      ...(lease === undefined ? {} : { lease }),
    };
    const compare = [{ key, modRevision: own?.modRevision ?? "0" }];
    const { answers, revision, standing } = await session.write([
      { txn: { compare, success: [{ put }], failure: [] } },
    ]);
    if (answers[0]?.txn?.succeeded !== true) continue;
    const { incarnation } = standing.record;
    etcd.ownRow = { id, incarnation, renewals: row.renewals, revision };
    return true;
  }
  return false;
}

const NOTHING_SHOWN: RowVerdict = { loss: "", isThere: false };

interface Look {
  readonly own: KeyValue | undefined;
  /** Whether there are as many rows as may be. */
  readonly isFull: boolean;
  /** Whether the row shows that the store went back, which is marked then. */
  readonly isLost: boolean;
}

async function look(session: Session, id: string): Promise<Look> {
  const { etcd, keys } = session;
  const key = keys.node(id);
  const known = etcd.ownRow?.id === id ? etcd.ownRow : undefined;
  const all = { ...keys.nodes(), keysOnly: true, limit: MAX_NODES };
  const ops = [{ range: { key } }, { range: all }];
  const { answers, standing } = await etcd.transact(session.deadlineMs, ops, { effect: "any" });
  const [[own] = [], others = []] = answers.map(({ range }) => range?.kvs ?? []);
  const { incarnation } = standing.record;
  const found = { incarnation, row: own };
  const { loss, isThere } =
    known === undefined ? NOTHING_SHOWN : await judgeRow(session, known, found);
  if (known !== undefined && known === etcd.earlier) etcd.hasEarlier = isThere;
  if (loss !== "") {
    await mark(session, standing, loss, { key, modRevision: own?.modRevision ?? "0" });
  }
  return { own, isFull: others.length >= MAX_NODES, isLost: loss !== "" };
}

/**
 * INVARIANT: the row never says that a server obeyed more than it had obeyed when some renewal was sent. Within one history,
 * a renewal that is carried out after a later one lowers nothing. A renewal of another history says nothing of this one.
 */
function renewed(old: NodeRow | undefined, renewal: NodeRenewal): NodeRow {
  const { node, count, ...said } = renewal;
  if (old === undefined) return { ...node, ...said, renewals: count };
  const { incarnation, obeyed } = said;
  const renewals = old.renewals < count ? count : old.renewals + 1n;
  const isLate = old.incarnation === incarnation && old.obeyed > obeyed;
  return { ...node, ...said, renewals, obeyed: isLate ? old.obeyed : obeyed };
}

export async function forgetNodes(
  etcd: Etcd,
  keys: readonly NodeRowKey[],
  by?: AuditNote,
): Promise<number> {
  return etcd.run(async (session) => {
    const rows = await session.read(keys.map(({ id }) => ({ key: etcd.keys.node(id) })));
    const removals = keys.flatMap(({ id, renewals }, at): Op[] => {
      const [kv] = rows[at] ?? [];
      if (kv === undefined) return [];
      if (renewals !== undefined && nodeFrom(kv.value).renewals !== renewals) return [];
      const { key, modRevision } = kv;
      const told = by === undefined ? [] : [putAudit(etcd.keys, nodeForgotten(by, etcd.now(), id))];
      const success = [{ remove: { key } }, ...told];
      return [{ txn: { compare: [{ key, modRevision }], success, failure: [] } }];
    });
    let forgotten = 0;
    for (let from = 0; from < removals.length; from += MAX_OPS) {
      const { answers } = await session.write(removals.slice(from, from + MAX_OPS));
      forgotten += answers.filter(({ txn }) => txn?.succeeded === true).length;
    }
    return forgotten;
  });
}

/** See lostNodes. */
export async function lostNodesRow(
  session: Session,
  incarnation: string,
  maxOfflineMs: number | null,
): Promise<Op> {
  const [kvs = []] = await session.read([session.keys.nodes()], { fenced: "allow" });
  const known = kvs.map(({ value }) => nodeFrom(value).maxOfflineMs);
  const isEndless = maxOfflineMs === null || known.includes(undefined);
  const longest = Math.max(maxOfflineMs ?? 0, ...known.map((ms) => ms ?? 0));
  const row = lostNodes(incarnation, isEndless ? undefined : longest);
  return { put: { key: session.keys.node(row.id), value: valueOfNode(row, Number.NaN) } };
}

/** All rows; they are in one key. */
export function rowsOfTraffic(kv: KeyValue | undefined): readonly Traffic[] {
  return kv === undefined ? [] : trafficFrom(kv.value);
}

/** See trafficAfter. Written over the very rows that were read. */
export async function setTraffic(etcd: Etcd, wanted: Traffic, by?: AuditNote): Promise<Traffic> {
  return etcd.run(async (session) => {
    const key = session.keys.one("traffic");
    for (let attempt = 1; ; attempt++) {
      const [[kv] = []] = await session.read([{ key }], { fenced: "allow" });
      const rows = rowsOfTraffic(kv);
      const { row, isWritten, removed } = trafficAfter(rows, wanted);
      if (!isWritten) return row;
      const gone = new Set([...removed, row.server]);
      const value = valueOfTraffic([...rows.filter(({ server }) => !gone.has(server)), row]);
      const compare = [{ key, modRevision: kv?.modRevision ?? "0" }];
      const old = rows.find(({ server }) => server === row.server);
      const success: Op[] = [{ put: { key, value } }];
      if (by !== undefined) {
        success.push(putAudit(etcd.keys, trafficChanged(by, etcd.now(), old, row)));
      }
      const { answers } = await session.write([{ txn: { compare, success, failure: [] } }], {
        fenced: "allow",
      });
      if (answers[0]?.txn?.succeeded === true) return row;
      await session.afterConflict(attempt);
    }
  });
}

export function issuingFrom(kv: KeyValue | undefined): Issuing {
  if (kv === undefined) return NEVER_STOPPED;
  const { revision = null, stopped_at_ms = null } = fieldsOf(kv.value);
  return issuingFromRow({ issuing_revision: revision, stopped_at_ms });
}

/**
 * INVARIANT: the store's revision and the key are written by one transaction, over those that were read, as with changes of
 * tags.
 */
export async function setIssuing(
  etcd: Etcd,
  isStopped: boolean,
  options?: ChangeOptions,
): Promise<readonly PartIssuing[]> {
  const { keys } = etcd;
  return etcd.run(async (session) => {
    for (let round = 0; ; round++) {
      if (round > 0) await session.afterConflict(round);
      const ranges = [{ key: keys.one("issuing") }, { key: keys.one("revision") }];
      const [[kv] = [], [counter] = []] = await session.read(ranges);
      const revision = BigInt(counter?.value.toString() ?? "0") + 1n;
      const stamp = { revision, nowMs: etcd.now() };
      const { issuing, changed } = issuingSet(issuingFrom(kv), isStopped, stamp, options);
      const answer = [{ name: "", ...issuing }];
      if (!changed) return answer;
      const compare = [
        { key: keys.one("issuing"), modRevision: kv?.modRevision ?? "0" },
        { key: keys.one("revision"), modRevision: counter?.modRevision ?? "0" },
      ];
      const success: Op[] = [
        { put: { key: keys.one("issuing"), value: valueOfIssuing(issuing) } },
        { put: { key: keys.one("revision"), value: Buffer.from(String(revision)) } },
      ];
      const by = options?.by;
      if (by !== undefined) {
        success.push(putAudit(keys, issuingChanged(by, stamp.nowMs, isStopped)));
      }
      const { answers } = await session.write([{ txn: { compare, success, failure: [] } }]);
      if (answers[0]?.txn?.succeeded === true) return answer;
    }
  });
}

function valueOfIssuing({ revision, stoppedAtMs }: Issuing): Buffer {
  const stopped = stoppedAtMs === undefined ? {} : { stopped_at_ms: String(stoppedAtMs) };
  return Buffer.from(JSON.stringify({ revision: String(revision), ...stopped }));
}

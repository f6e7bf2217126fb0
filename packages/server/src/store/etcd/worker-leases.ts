import type {
  RenewedWorkerLease,
  WorkerLease,
  WorkerLeaseKey,
  WorkerLeaseRequest,
  WorkerRenewal,
} from "@idmint/core";
import {
  dataCenterOf,
  FREE_CANDIDATES,
  type LeaseCandidates,
  type Worker,
  type WorkerRegistry,
} from "@idmint/core/server";
import { leaseOf, poolOf, releaseOf, renewalOf, type WorkerPool } from "../shared/worker-pool.ts";
import type { Compare, KeyValue, Op, Range } from "./cluster/protocol.ts";
import type { Etcd, Kept, Session } from "./session/etcd.ts";
import { Keys } from "./session/keys.ts";
import { keptFrom } from "./session/kept-rows.ts";
import { valueOfTag, valueOfWorker, workerFrom } from "./session/rows.ts";

/** Rows of one page of a search for a worker id that is free. */
const PAGE = 1_000;

/** The row of a worker id, and the revision of etcd at which it was written; "0" where there is none. */
interface WorkerKept {
  readonly row: Worker | undefined;
  readonly modRevision: string;
}

/** A decision: the row to write over the one that was read, and what is answered. */
interface Decision<T> {
  readonly row: Worker;
  readonly over: WorkerKept;
  readonly answer: T;
  readonly compare?: readonly Compare[];
  readonly more?: readonly Op[];
}

/**
 * INVARIANT, of all functions here: what is decided on is compared in the transaction that writes it, the tag's row and the
 * rows of the worker ids alike, and what is answered has a quorum. A lease or renewal whose outcome is not known is not tried
 * again here: its token may be in the row.
 */
export async function leaseWorker(etcd: Etcd, request: WorkerLeaseRequest): Promise<WorkerLease> {
  const { tag, instance } = request;
  return inPool(etcd, tag, async (session, pool, kept) => {
    const { keys } = etcd;
    const dataCenter = dataCenterOf(pool.kind, request.dataCenter);
    const nowMs = etcd.now();
    const ownKey = keys.instance(tag, dataCenter, instance);
    const found = await candidatesOf(session, pool, dataCenter, ownKey, nowMs);
    const { row, answer } = leaseOf(pool, dataCenter, request, found.candidates, nowMs);
    const over = found.keptOf(row.workerId);
    const before = over.row;
    const moved =
      before === undefined || before.instance === instance
        ? []
        : [{ remove: { key: keys.instance(tag, dataCenter, before.instance) } }];
    const put = { key: ownKey, value: Buffer.from(String(row.workerId)) };
    // Ids of the layout may be made from now on: it is immutable.
    const begun = kept.tag?.version === 0n ? { ...kept.tag, version: 1n } : undefined;
    const begin =
      begun === undefined ? [] : [{ put: { key: keys.tag(tag), value: valueOfTag(begun) } }];
    return {
      row,
      over,
      answer: { ...answer, epoch: pool.epoch },
      compare: [{ key: ownKey, modRevision: found.ownModRevision }],
      more: [...moved, { put }, ...begin],
    };
  });
}

export async function renewWorker(etcd: Etcd, renewal: WorkerRenewal): Promise<RenewedWorkerLease> {
  return inPool(etcd, renewal.tag, async (session, pool) => {
    const over = await workerOf(session, renewal);
    const { row, answer } = renewalOf(pool, over.row, renewal, etcd.now());
    return { row, over, answer: { ...answer, epoch: pool.epoch } };
  });
}

export async function releaseWorker(etcd: Etcd, key: WorkerLeaseKey): Promise<void> {
  await inPool(etcd, key.tag, async (session, pool) => {
    const over = await workerOf(session, key);
    return { row: releaseOf(pool, over.row, key, etcd.now()), over, answer: undefined };
  });
}

export async function listWorkers(
  etcd: Etcd,
  { tag, after, limit }: Parameters<WorkerRegistry["listWorkers"]>[0],
): Promise<readonly Worker[]> {
  return etcd.run(async (session) => {
    const kvs = await session.readAll(etcd.keys.workers(tag, after), limit);
    return kvs.map(({ value }) => workerFrom(value));
  });
}

async function inPool<T>(
  etcd: Etcd,
  tag: string,
  decide: (session: Session, pool: WorkerPool, kept: Kept) => Promise<Decision<T>>,
): Promise<T> {
  return etcd.run((session) =>
    etcd.alone([tag], session.deadlineMs, async () => {
      const key = etcd.keys.tag(tag);
      for (let round = 0; ; round++) {
        if (round > 0) await session.afterConflict(round);
        const [[kv] = []] = await session.read([{ key }]);
        const kept = keptFrom(kv);
        const pool = poolOf(tag, kept.tag);
        const { row, over, answer, compare = [], more = [] } = await decide(session, pool, kept);
        const place = etcd.keys.worker(tag, row.dataCenter, row.workerId);
        const all = [
          { key, modRevision: kept.modRevision },
          { key: place, modRevision: over.modRevision },
          ...compare,
        ];
        const success = [{ put: { key: place, value: valueOfWorker(row) } }, ...more];
        etcd.kept.delete(tag);
        const { answers } = await session.write([{ txn: { compare: all, success, failure: [] } }]);
        if (answers[0]?.txn?.succeeded === true) return answer;
      }
    }),
  );
}

async function workerOf(
  session: Session,
  { tag, dataCenter, workerId }: Pick<WorkerLeaseKey, "dataCenter" | "tag" | "workerId">,
): Promise<WorkerKept> {
  const [[kv] = []] = await session.read([{ key: session.keys.worker(tag, dataCenter, workerId) }]);
  return workerKept(kv);
}

function workerKept(kv: KeyValue | undefined): WorkerKept {
  return kv === undefined
    ? { row: undefined, modRevision: "0" }
    : { row: workerFrom(kv.value), modRevision: kv.modRevision };
}

interface Found {
  readonly candidates: LeaseCandidates;
  /** Of the key that says which worker id the instance leased last. */
  readonly ownModRevision: string;
  /** What was read of a worker id that is a candidate. */
  readonly keptOf: (workerId: number) => WorkerKept;
}

async function candidatesOf(
  session: Session,
  { tag, kind }: WorkerPool,
  dataCenter: number,
  ownKey: Buffer,
  nowMs: number,
): Promise<Found> {
  const { keys } = session;
  const highest: Range = { ...keys.workersOf(tag, dataCenter), order: "descending", limit: 1 };
  const [[pointer] = [], [last] = []] = await session.read([{ key: ownKey }, highest]);
  // Worker ids are taken in order and rows stay, so the highest says how many there are.
  const used = last === undefined ? 0 : Number(Keys.lastOf(last)) + 1;
  const ownModRevision = pointer?.modRevision ?? "0";
  const kept = new Map<number, WorkerKept>();
  let own: Worker | undefined;
  if (pointer !== undefined) {
    const workerId = Number(pointer.value.toString());
    const its = await workerOf(session, { tag, dataCenter, workerId });
    kept.set(workerId, its);
    own = its.row;
  }
  let free: Worker | undefined;
  if (own === undefined && used >= 2 ** kind.layout.workerBits) {
    const found = await freeOf(session, tag, dataCenter, nowMs);
    if (found?.row !== undefined) kept.set(found.row.workerId, found);
    free = found?.row;
  }
  const none = { row: undefined, modRevision: "0" };
  return {
    candidates: { own, used, free },
    ownModRevision,
    keptOf: (workerId) => kept.get(workerId) ?? none,
  };
}

/** Of the first worker ids that another instance may have the one whose lease ended first. */
async function freeOf(
  session: Session,
  tag: string,
  dataCenter: number,
  nowMs: number,
): Promise<WorkerKept | undefined> {
  let best: { row: Worker; modRevision: string } | undefined;
  let seen = 0;
  for (let from = 0; seen < FREE_CANDIDATES; from += PAGE) {
    const range = { ...session.keys.workersOf(tag, dataCenter, from), limit: PAGE };
    const [kvs = []] = await session.read([range]);
    for (const { value, modRevision } of kvs) {
      const row = workerFrom(value);
      if (row.expiresAtMs > nowMs || row.reservedUntilMs > nowMs) continue;
      if (seen++ >= FREE_CANDIDATES) break;
      if (best === undefined || row.expiresAtMs < best.row.expiresAtMs) best = { row, modRevision };
    }
    if (kvs.length < PAGE) break;
  }
  return best;
}

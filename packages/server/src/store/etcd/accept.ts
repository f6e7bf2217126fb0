import { randomUUID } from "node:crypto";
import {
  type Accepted,
  type AskedClaims,
  type AuditNote,
  DEFAULT_MAX_OFFLINE_MS,
} from "@idmint/core/server";
import { ACCEPT_TIMEOUT_MS } from "../shared/config.ts";
import { storeAccepted } from "../shared/records/audit.ts";
import { another, check, type Closing, type Raise, raiseAll } from "./accept-tags.ts";
import { claimsGone, endOfAsk, NOTHING_SAID, readClaims, type Said } from "./claims.ts";
import { putAudit } from "./records/audit.ts";
import type { StoreRecord } from "./cluster/guard-state.ts";
import type { Compare, Op } from "./cluster/protocol.ts";
import type { Etcd, Session } from "./session/etcd.ts";
import type { Standing } from "./session/proof.ts";
import { lostNodesRow } from "./nodes.ts";
import { readCluster } from "./session/sight.ts";
import { valueOfRecord } from "./session/rows.ts";

/**
 * Accepts the cluster as it is now, with every floor raised by `gap`. A transaction of etcd takes few operations, so this is
 * several: the first closes the store, the last opens it under another incarnation.
 *
 * INVARIANTS
 * - It has a time of its own: an accept that a server makes would leave a large store closed otherwise.
 * - While the store is closed nothing else writes it: every transaction compares the key `store`, which says so. One accept
 *   that meets another fails. After one that was interrupted the store stays closed until it is accepted again.
 * - Whatever would stop an accept is looked for before it begins: tags that cannot be read, claims that reach the end of a tag.
 * - What servers claimed is taken after periods have begun and before the gap is added (see claims.ts). The transaction that closes
 *   the store ends the ask as it was read.
 * - Epochs and the generation go above any that the lost history had. They are raised by one or to the present time in
 *   seconds since 1970, whichever is more: the lost history counted from a lower number in steps of one. Epochs of tags that are
 *   made later begin with the generation.
 * - A period that the lost history may have begun starts above the gap too: it is begun here, before floors are raised. Of
 *   others only those that are yet to come again are kept, above the gap; where earlier ones ended is not known any more.
 * - Tags that count in Redis take a generation that the lost history did not have, so that Redis starts again above the gap.
 * - Servers of the lost history may be unknown to this one: a row stands for all of them.
 * - Floors of snowflakes go above all that leases of the lost history may have reserved; its tokens are of older epochs.
 */
export async function accept(
  etcd: Etcd,
  gap: bigint,
  maxOfflineMs: number | null = DEFAULT_MAX_OFFLINE_MS,
  by?: AuditNote,
  newStore = false,
  asked?: AskedClaims,
): Promise<Accepted> {
  return etcd.run(async (session) => {
    const incarnation = randomUUID();
    const nowMs = etcd.now();
    const isTrusted = asked?.isTrusted === true;
    const { said, closed } = await begin(session, asked, { gap, nowMs, incarnation, isTrusted });
    // failpoint: etcd-accept-closed
    const { record: begun } = closed;
    const [[counter] = []] = await session.read([{ key: etcd.keys.one("revision") }], ALLOWED);
    const before = BigInt(counter?.value.toString() ?? "0");
    const how = { gap, nowMs, isTrusted, before, claims: said.claims };
    const { tags, ...taken } = await raiseAll(session, compareOf(session, closed), how);
    // failpoint: etcd-accept-raised
    const revision = before + BigInt(Math.max(1, tags));
    const seconds = BigInt(Math.floor(nowMs / 1_000));
    const { clusterId, lead, term } = await readCluster(session);
    const generation = begun.generation < seconds ? seconds : begun.generation + 1n;
    const storeId = newStore ? randomUUID() : begun.storeId;
    const told = { old: begun.incarnation, incarnation, gap, tags };
    const opened = await writeRecord(
      session,
      ({ record }) => {
        assertSame(record, begun);
        return { storeId, incarnation, generation, clusterId, lead };
      },
      [
        { put: { key: etcd.keys.one("revision"), value: Buffer.from(String(revision)) } },
        { put: { key: etcd.keys.one("term"), value: Buffer.from(String(term)) } },
        await lostNodesRow(session, incarnation, maxOfflineMs),
        ...(by === undefined ? [] : [putAudit(etcd.keys, storeAccepted(by, nowMs, told))]),
      ],
    );
    if (opened === undefined) throw another();
    etcd.kept.clear();
    const claims = { ...taken, claimants: said.claimants };
    return { tags, ...(asked === undefined ? {} : { claims }) };
  }, ACCEPT_TIMEOUT_MS);
}

const ALLOWED = { fenced: "allow" } as const;

/** How often an accept begins anew because servers claimed more meanwhile. */
const MAX_BEGINNINGS = 5;

/** The key `store` as this accept wrote it. */
interface Closed {
  readonly record: StoreRecord;
  readonly modRevision: string;
}

/** Looks whether the store can be accepted, and closes it. */
async function begin(
  session: Session,
  asked: AskedClaims | undefined,
  { incarnation, ...how }: Omit<Raise, "claims"> & { readonly incarnation: string },
): Promise<{ said: Said; closed: Closed }> {
  for (let round = 0; round < MAX_BEGINNINGS; round++) {
    const said = asked === undefined ? NOTHING_SAID : await readClaims(session, asked);
    await check(session, { ...how, claims: said.claims });
    const closed = await writeRecord(
      session,
      ({ record, fenced }) => {
        if (said.needsGranting && fenced !== "") throw claimsGone();
        return { ...record, accepting: incarnation };
      },
      endOfAsk(session.keys),
      said.compare,
    );
    if (closed !== undefined) return { said, closed };
    if (asked === undefined) break;
  }
  throw another();
}

/** Writes the key `store` over the one that was read, where `compare` holds too; undefined: not done. */
async function writeRecord(
  session: Session,
  nextOf: (standing: Standing) => StoreRecord,
  more: readonly Op[],
  compare: readonly Compare[] = [],
): Promise<Closed | undefined> {
  const { standing } = await session.etcd.transact(session.deadlineMs, [], {
    effect: "any",
    fenced: "allow",
    prove: true,
  });
  const record = nextOf(standing);
  const put = { put: { key: session.keys.one("store"), value: valueOfRecord(record) } };
  const all = [compareOf(session, standing), ...compare];
  const { answers, revision } = await session.write(
    [{ txn: { compare: all, success: [put, ...more], failure: [] } }],
    ALLOWED,
  );
  return answers[0]?.txn?.succeeded === true ? { record, modRevision: revision } : undefined;
}

function compareOf({ keys }: Session, { modRevision }: Pick<Closed, "modRevision">): Closing {
  return { key: keys.one("store"), modRevision };
}

function assertSame(record: StoreRecord, begun: StoreRecord): void {
  if (record.accepting !== begun.accepting) throw another();
}

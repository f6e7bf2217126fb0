import { IdmintError } from "@idmint/core";
import {
  type ChangeStore,
  FORGOTTEN,
  MAX_NODES,
  type StoreChanges,
  type StorePart,
} from "@idmint/core/server";
import { CallFailure } from "./cluster/failure.ts";
import { isElected } from "./cluster/guard-state.ts";
import type { KeyValue } from "./cluster/protocol.ts";
import { otherPeriodsFrom } from "../shared/period.ts";
import type { Etcd, Session } from "./session/etcd.ts";
import type { Standing } from "./session/proof.ts";
import { Keys } from "./session/keys.ts";
import { MAX_PACKS, type Place, placesOf } from "./session/places.ts";
import { standingAsk } from "./claims.ts";
import { watchCompaction } from "./history.ts";
import { issuingFrom, renew, rowsOfTraffic } from "./nodes.ts";
import { clockOf, fieldsOf, nodeFrom, tagsFrom } from "./session/rows.ts";
import { lookAround } from "./session/sight.ts";
import { mark, markWentBack } from "./went-back.ts";

type Query = Parameters<ChangeStore["changes"]>[0];

/** Keys that each poll reads, in their order. */
const READ = ["revision", "traffic", "issuing", "ask"] as const;

const NOT_RENEWED = { isRenewed: false, refusesWrites: "" };

/**
 * What changed since a revision, read from one snapshot; before that the server's row is renewed.
 *
 * INVARIANT: whoever renews its row has proved the store, for a server that starts takes that for a proof. So tags are looked
 * at first, and one that shows that the store went back leaves the row as it is.
 */
export async function changes(etcd: Etcd, query: Query): Promise<StoreChanges> {
  // In the turn in which the query was made.
  const { lowered } = etcd;
  return etcd.run(async (session) => {
    const { renewal } = query;
    const lost = await behind(session, query, lowered);
    const { isRenewed, refusesWrites } =
      renewal === undefined || lost.some(isProof) ? NOT_RENEWED : await renew(session, renewal);
    for (let attempt = 1; ; attempt++) {
      try {
        const answer = await poll(session, query, isRenewed, lost);
        return { ...answer, refusesWrites, warning: joined([refusesWrites, answer.warning ?? ""]) };
      } catch (error) {
        // The snapshot was compacted under the poll.
        const isGone = error instanceof CallFailure && error.kind === "compacted";
        if (!isGone || attempt === 2) throw error;
      }
    }
  });
}

function proofsOf(etcd: Etcd, isRenewed: boolean): Pick<StorePart, "hasEarlier" | "own"> {
  const { ownRow, hasEarlier } = etcd;
  if (!isRenewed || ownRow === undefined) return {};
  const { incarnation: history, renewals, revision } = ownRow;
  return { own: { history, renewals, revision, storeMs: etcd.now() }, hasEarlier };
}

async function poll(
  session: Session,
  query: Query,
  isRenewed: boolean,
  lost: readonly BehindTag[],
): Promise<StoreChanges> {
  const { etcd, keys } = session;
  const { since, limit } = query;
  const {
    answers,
    standing,
    revision: snapshot,
  } = await etcd.transact(
    session.deadlineMs,
    [
      { range: { ...keys.changes(since), limit: limit + 1 } },
      { range: { ...keys.packs(since), limit: MAX_PACKS + 1 } },
      { range: { ...keys.nodes(), limit: MAX_NODES + 1 } },
      ...READ.map((name) => ({ range: { key: keys.one(name) } })),
    ],
    { effect: "any", fenced: "allow", prove: true },
  );
  const { record, fenced } = standing;
  const [single = [], packs = [], nodes = [], ...others] = answers.map(
    ({ range }) => range?.kvs ?? [],
  );
  const [counter, traffic, issuing, ask] = others.map(([kv]) => kv);
  // The changes of an accept are told when it is over.
  const { places, more } =
    record.accepting === undefined
      ? placesOf({ since, limit, changes: single, packs })
      : { places: [], more: false };
  const changed = await changedTags(session, places, snapshot);
  if (fenced === "") {
    lookAround(etcd, record);
    observeClocks(etcd, nodes, query);
    await recordTerm(session, standing);
  } else {
    etcd.clock.forget();
    await markWentBack(session, standing);
  }
  const { incarnation } = record;
  // What was seen before an accept shows nothing of what was accepted.
  const mayMark = fenced === "" && query.renewal?.incarnation === incarnation;
  if (mayMark) await markBehind(session, standing, lost);
  const revision = BigInt(counter?.value.toString() ?? "0");
  return {
    incarnation,
    revision,
    ...changed,
    more,
    behind: lost.map(({ tag }) => tag),
    fenced,
    warning: fenced === "" ? await warningOf(session) : "",
    nowMs: etcd.now(),
    parts: [
      {
        name: "",
        incarnation,
        revision,
        isRenewed,
        nodes: query.nodes === true ? nodes.map(({ value }) => nodeFrom(value)) : undefined,
        traffic: rowsOfTraffic(traffic),
        issuing: issuingFrom(issuing),
        ask: standingAsk(ask)?.nonce,
        ...(fenced === "" && lost.length === 0 ? proofsOf(etcd, isRenewed) : {}),
      },
    ],
  };
}

/**
 * The tags that a page of changes names, as they were at that revision of etcd. Of a pack those that have changed since are told by
 * their later change.
 */
async function changedTags(
  session: Session,
  places: readonly Place[],
  revision: string,
): Promise<Pick<StoreChanges, "changed" | "next" | "unreadable">> {
  const rows = await session.read(
    places.map(({ tag }) => ({ key: session.keys.tag(tag), revision })),
    { fenced: "allow" },
  );
  const kvs = places.flatMap((place, at) => {
    const [kv] = rows[at] ?? [];
    return kv === undefined || hasChangedSince(place, kv) ? [] : [kv];
  });
  const { tags: changed, unreadable } = tagsFrom(kvs);
  return { changed, unreadable, next: places.at(-1)?.revision };
}

function hasChangedSince({ isPacked, revision }: Place, { value }: KeyValue): boolean {
  if (!isPacked) return false;
  try {
    return BigInt(fieldsOf(value)["revision"] ?? "0") > revision;
  } catch {
    // It is told that it cannot be read.
    return false;
  }
}

/** What an operator should do soon, in words. */
async function warningOf(session: Session): Promise<string> {
  return joined([await watchCompaction(session), ...session.etcd.troubles]);
}

function joined(texts: readonly string[]): string {
  return texts.filter((text) => text !== "").join("; ");
}

/** A tag whose key is missing, lower than was seen, or not to be read. */
interface BehindTag {
  readonly tag: string;
  /** Why that shows that the store went back, in words; empty: it does not. */
  readonly loss: string;
  /** Of the key; "0": there is none. */
  readonly modRevision: string;
}

function isProof({ loss }: BehindTag): boolean {
  return loss !== "";
}

/** `lowered`: give-backs that this process had begun when the query was made. */
async function behind(
  session: Session,
  { watched }: Query,
  lowered: number,
): Promise<readonly BehindTag[]> {
  const { etcd, keys } = session;
  const ranges = watched.map(({ tag }) => ({ key: keys.tag(tag) }));
  const rows = await session.read(ranges, { fenced: "allow" });
  const comparesFloors = etcd.lowered === lowered;
  return watched.flatMap((seen, at) => {
    const [kv] = rows[at] ?? [];
    const { tag, version } = seen;
    const found = { tag, modRevision: kv?.modRevision ?? "0" };
    try {
      const fields = kv === undefined ? undefined : fieldsOf(kv.value);
      const loss = lossOf(fields, comparesFloors ? seen : { tag, version });
      return loss === "" ? [] : [{ ...found, loss }];
    } catch {
      return [{ ...found, loss: "" }];
    }
  });
}

async function markBehind(
  session: Session,
  standing: Standing,
  lost: readonly BehindTag[],
): Promise<void> {
  const first = lost.find(isProof);
  if (first === undefined) return;
  const { tag, loss, modRevision } = first;
  await mark(session, standing, loss, { key: session.keys.tag(tag), modRevision });
}

/**
 * What was lost of a tag, in words; empty: nothing shows.
 *
 * INVARIANT: no false alarm. Within an epoch the floor of a period goes down only by a give-back, and only by one of this
 * server below the ids that it was granted itself. What it gave back before it asked is not among them any more.
 */
function lossOf(
  fields: Readonly<Record<string, string>> | undefined,
  { tag, version, granted }: Query["watched"][number],
): string {
  const its = fields === undefined ? -1n : BigInt(fields["version"] ?? "0");
  if (its < version) return `the key of tag ${tag} is missing or older than version ${version}`;
  if (fields === undefined || granted === undefined) return "";
  const { period_start: start = "", floor = "0", other_periods: others, epoch } = fields;
  if (epoch !== String(granted.epoch)) return "";
  const known = [{ start, lastId: BigInt(floor) }, ...otherPeriodsFrom(others ?? null)];
  const last = known.find((period) => period.start === granted.period)?.lastId;
  if (last === undefined || last === FORGOTTEN || last >= granted.last) return "";
  const period = granted.period === "" ? "" : ` in the period ${granted.period}`;
  return `the floor of tag ${tag} is at ${last}${period}, after ${granted.last} was granted`;
}

function observeClocks({ clock }: Etcd, nodes: readonly KeyValue[], { renewal }: Query): void {
  const readings = nodes
    .map((kv) => ({
      id: decodeURIComponent(Keys.lastOf(kv)),
      renewal: kv.modRevision,
      clockMs: clockOf(kv.value),
    }))
    .filter(({ id, clockMs }) => id !== renewal?.node.id && Number.isFinite(clockMs));
  clock.observe(readings, performance.now());
}

/** Writes down a term that is higher than the one recorded, so that a server that starts later knows of it. */
async function recordTerm(session: Session, standing: Standing): Promise<void> {
  const { status, recordedTerm, termModRevision } = standing;
  if (!isElected(status) || BigInt(status.raftTerm) <= recordedTerm) return;
  const key = session.keys.one("term");
  const put = { key, value: Buffer.from(status.raftTerm) };
  const compare = [{ key, modRevision: termModRevision }];
  try {
    await session.write([{ txn: { compare, success: [{ put }], failure: [] } }]);
  } catch (error) {
    // The next poll tries again, and this one has its answer.
    if (!(error instanceof CallFailure || error instanceof IdmintError)) throw error;
  }
}

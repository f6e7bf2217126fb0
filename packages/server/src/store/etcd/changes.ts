import { IdmintError } from "@idmint/core";
import { type ChangeStore, MAX_NODES, type StoreChanges } from "@idmint/core/server";
import { CallFailure } from "./cluster/failure.ts";
import { isElected } from "./cluster/guard-state.ts";
import type { KeyValue } from "./cluster/protocol.ts";
import type { Etcd, Session } from "./session/etcd.ts";
import type { Standing } from "./session/proof.ts";
import { Keys } from "./session/keys.ts";
import { watchCompaction } from "./history.ts";
import { issuingFrom, renew, rowsOfTraffic } from "./nodes.ts";
import { clockOf, fieldsOf, nodeFrom, tagFrom } from "./session/rows.ts";
import { lookAround } from "./session/sight.ts";
import { mark, markWentBack } from "./went-back.ts";

type Query = Parameters<ChangeStore["changes"]>[0];

const NOT_RENEWED = { isRenewed: false, refusesWrites: "" };

/** What changed since a revision, read from one snapshot; before that the server's row is renewed. */
export async function changes(etcd: Etcd, query: Query): Promise<StoreChanges> {
  return etcd.run(async (session) => {
    const { renewal } = query;
    const { isRenewed, refusesWrites } =
      renewal === undefined ? NOT_RENEWED : await renew(session, renewal);
    for (let attempt = 1; ; attempt++) {
      try {
        const answer = await poll(session, query, isRenewed);
        return { ...answer, refusesWrites, warning: joined([refusesWrites, answer.warning ?? ""]) };
      } catch (error) {
        // The snapshot was compacted under the poll.
        const isGone = error instanceof CallFailure && error.kind === "compacted";
        if (!isGone || attempt === 2) throw error;
      }
    }
  });
}

async function poll(session: Session, query: Query, isRenewed: boolean): Promise<StoreChanges> {
  const { etcd, keys } = session;
  const { since, limit } = query;
  const {
    answers,
    standing,
    revision: snapshot,
  } = await etcd.transact(
    session.deadlineMs,
    [
      { range: { key: keys.one("revision") } },
      { range: { ...keys.changes(since), limit: limit + 1 } },
      { range: { ...keys.nodes(), limit: MAX_NODES + 1 } },
      { range: { key: keys.one("traffic") } },
      { range: { key: keys.one("issuing") } },
    ],
    { effect: "any", fenced: "allow", prove: true },
  );
  const { record, fenced } = standing;
  const [counter = [], all = [], nodes = [], [traffic] = [], [issuing] = []] = answers.map(
    ({ range }) => range?.kvs ?? [],
  );
  // The changes of an accept are told when it is over.
  const page = record.accepting === undefined ? all : [];
  const names = page.slice(0, limit).map(({ value }) => value.toString());
  const rows = await session.read(
    names.map((name) => ({ key: keys.tag(name), revision: snapshot })),
    { fenced: "allow" },
  );
  if (fenced === "") {
    lookAround(etcd, record);
    observeClocks(etcd, nodes, query);
    await recordTerm(session, standing);
  } else {
    etcd.clock.forget();
    await markWentBack(session, standing);
  }
  const { incarnation } = record;
  const lost = await behind(session, query);
  const [first] = lost;
  // What was seen before an accept shows nothing of what was accepted.
  const mayMark = fenced === "" && query.renewal?.incarnation === incarnation;
  if (first !== undefined && mayMark) await markBehind(session, standing, first);
  const revision = BigInt(counter[0]?.value.toString() ?? "0");
  return {
    incarnation,
    revision,
    changed: rows.flatMap((kvs) => kvs.map(({ value }) => tagFrom(value))),
    more: page.length > limit,
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
      },
    ],
  };
}

/** What an operator should do soon, in words. */
async function warningOf(session: Session): Promise<string> {
  return joined([await watchCompaction(session), ...session.etcd.troubles]);
}

function joined(texts: readonly string[]): string {
  return texts.filter((text) => text !== "").join("; ");
}

/** A tag whose key is missing, or has a lower version than was seen. */
interface BehindTag {
  readonly tag: string;
  /** The one that was seen. */
  readonly version: bigint;
  /** Of the key; "0": there is none. */
  readonly modRevision: string;
}

async function behind(session: Session, { watched }: Query): Promise<readonly BehindTag[]> {
  const rows = await session.read(
    watched.map(({ tag }) => ({ key: session.keys.tag(tag) })),
    { fenced: "allow" },
  );
  return watched.flatMap(({ tag, version }, at) => {
    const [kv] = rows[at] ?? [];
    const its = kv === undefined ? -1n : BigInt(fieldsOf(kv.value)["version"] ?? "0");
    return its < version ? [{ tag, version, modRevision: kv?.modRevision ?? "0" }] : [];
  });
}

async function markBehind(
  session: Session,
  standing: Standing,
  { tag, version, modRevision }: BehindTag,
): Promise<void> {
  const why = `the key of tag ${tag} is missing or older than version ${version}`;
  await mark(session, standing, why, { key: session.keys.tag(tag), modRevision });
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

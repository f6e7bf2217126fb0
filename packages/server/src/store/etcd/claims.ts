import type { IdmintError } from "@idmint/core";
import {
  type Asked,
  type AskedClaims,
  type CallArgs,
  type Claim,
  type ClaimsAnswer,
  type HeardClaimant,
  type Hearing,
  storeUnavailable,
} from "@idmint/core/server";
import type { Compare, KeyValue, Op, Range } from "./cluster/protocol.ts";
import type { Etcd, Session } from "./session/etcd.ts";
import { Keys, next } from "./session/keys.ts";
import { fieldsOf, nodeFrom } from "./session/rows.ts";

/**
 * What servers claim before an accept (ClaimStore of core). A lease ends an ask that nobody withdraws, and takes what was said
 * along, so no clock takes part in it.
 *
 * INVARIANT: whoever claims writes the key of the ask again, over the value that it has, which only a look changes. An accept
 * reads that key, then what was said, and begins by a transaction that removes the key as it was read. So it has all that were
 * answered `heard`, and none comes in between.
 */
const ALLOWED = { fenced: "allow" } as const;

/** Pages of claims that are read at once; one takes up to 200 KB. */
const PAGES = 50;

/** Not as servers write: more writes would hide what they see of a store that went back (see mark). */
async function write(
  { etcd, deadlineMs }: Session,
  compare: readonly Compare[],
  success: readonly Op[],
): Promise<boolean> {
  const op = { txn: { compare, success, failure: [] } };
  const { answers } = await etcd.transact(deadlineMs, [op], { effect: "once", ...ALLOWED });
  return answers[0]?.txn?.succeeded === true;
}

export async function askForClaims(
  etcd: Etcd,
  ...[nonce, forMs]: CallArgs["askForClaims"]
): Promise<Asked> {
  const { keys } = etcd;
  const key = keys.one("ask");
  const isAsked = await etcd.run(async (session) => {
    // A lease that is not used is there for as long as one that is.
    const [[standing] = []] = await session.read([{ key }], ALLOWED);
    if (standing !== undefined) return false;
    const isRefused = await isRefusedIn(session);
    const ttl = String(Math.ceil(forMs / 1_000));
    const { id: lease } = await etcd.ask(session.deadlineMs, (ask) => ask("leaseGrant", { ttl }));
    const put = { put: { key, value: jsonOf({ nonce, lease, isRefused, looks: 0 }), lease } };
    return write(session, [{ key, modRevision: "0" }], [...removalOfClaims(keys), put]);
  });
  if (!isAsked) return { outcome: "busy", forMs };
  return { outcome: "asked", hearing: await hearClaims(etcd, nonce, { number: 0, answered: 0 }) };
}

export async function hearClaims(
  etcd: Etcd,
  ...[nonce, { number, answered }]: CallArgs["hearClaims"]
): Promise<Hearing> {
  const { keys } = etcd;
  return etcd.run(async (session) => {
    const isRefused = await isRefusedIn(session);
    const ranges = [{ key: keys.one("ask") }, keys.claimants(), keys.nodes()];
    const [[ask] = [], claimants = [], nodes = []] = await session.read(ranges, ALLOWED);
    const standing = standingAsk(ask);
    const isAsked = ask !== undefined && standing?.nonce === nonce;
    const isEarlier = isAsked && (standing.looks < answered || (isRefused && !standing.isRefused));
    const isStanding = isAsked && !isEarlier;
    if (isStanding && number > standing.looks) {
      const { key, value } = ask;
      const { lease } = standing;
      const looked = jsonOf({ ...standing, looks: number });
      const put = { put: { key, value: looked, lease } };
      if (!(await write(session, [{ key, value }], [put])))
        throw storeUnavailable("the ask was ended or looked at meanwhile");
    }
    return {
      isStanding,
      isEarlier,
      nodes: nodes.map(({ value }) => nodeFrom(value)),
      claimants: isStanding ? claimantsFrom(claimants) : [],
    };
  });
}

export async function claim(
  etcd: Etcd,
  { nonce, claimant, claims, page, isLast }: CallArgs["claim"][0],
): Promise<ClaimsAnswer> {
  const { keys } = etcd;
  return etcd.run(async (session) => {
    const own = keys.claimant(claimant.id);
    const its = keys.claim(claimant.id, page);
    const span = spanOf(keys, claims);
    const ranges = [{ key: keys.one("ask") }, { key: own }, { key: its }, span];
    const [[ask] = [], [known] = [], [earlier] = [], near = []] = await session.read(
      ranges,
      ALLOWED,
    );
    const standing = standingAsk(ask);
    if (ask === undefined || standing?.nonce !== nonce) return "not-asked";
    const heard = new Map<string, Claim[]>();
    // The same page as it was heard before, which a server that runs again under its row does not know.
    for (const one of earlier === undefined ? [] : claimsFrom(earlier.value)) addTo(heard, one);
    const rows =
      near.length < span.limit
        ? rowsByTag(near)
        : await readTags(session, new Set(claims.map(({ tag }) => tag)));
    for (const one of claims) if (!isBelow(rows.get(one.tag), one)) addTo(heard, one);
    const before = known === undefined ? undefined : claimantFrom(known.value);
    const pages = Math.max(before?.pages ?? 0, page + 1);
    const hasSpoken = isLast || before?.hasSpoken === true;
    const { key, value } = ask;
    const { lease } = standing;
    const who = before?.hasSpoken === true ? before : claimant;
    const kept = [...heard.values()].flat();
    const said = jsonOf(kept.map(({ tag, period, last }) => [tag, period, String(last)]));
    const isHeard = await write(
      session,
      [{ key, value }],
      [
        { put: { key, value, lease } },
        { put: { key: own, value: jsonOf({ ...who, pages, hasSpoken }), lease } },
        { put: { key: its, value: said, lease } },
      ],
    );
    // It was ended, which the next try finds, or the accept looked at it.
    return isHeard ? "heard" : "busy";
  });
}

export async function withdrawAsk(etcd: Etcd, nonce: string): Promise<void> {
  const { keys } = etcd;
  await etcd.run(async (session) => {
    const [[ask] = []] = await session.read([{ key: keys.one("ask") }], ALLOWED);
    if (ask === undefined || standingAsk(ask)?.nonce !== nonce) return;
    const { key, value } = ask;
    await write(session, [{ key, value }], endOfAsk(keys));
  });
}

/** Whoever began the ask. */
export function endOfAsk(keys: Keys): readonly Op[] {
  return [{ remove: { key: keys.one("ask") } }, ...removalOfClaims(keys)];
}

function removalOfClaims(keys: Keys): readonly Op[] {
  return [{ remove: keys.claimants() }, { remove: keys.claims() }];
}

/** Whether the store grants nothing now. */
async function isRefusedIn({ etcd, deadlineMs }: Session): Promise<boolean> {
  const { standing } = await etcd.transact(deadlineMs, [], { effect: "any", ...ALLOWED });
  return standing.fenced !== "";
}

/** The ask that stands. */
interface StandingAsk {
  readonly nonce: string;
  readonly lease: string;
  /** Whether the store granted nothing when it began. */
  readonly isRefused: boolean;
  readonly looks: number;
}

export function standingAsk(kv: KeyValue | undefined): StandingAsk | undefined {
  const { nonce, lease, isRefused, looks = "0" } = kv === undefined ? {} : fieldsOf(kv.value);
  if (nonce === undefined || lease === undefined) return undefined;
  return { nonce, lease, isRefused: String(isRefused) === "true", looks: Number(looks) };
}

/** What an accept takes. */
export interface Said {
  /** By tag. */
  readonly claims: ReadonlyMap<string, readonly Claim[]>;
  readonly claimants: readonly HeardClaimant[];
  /** Whether it counts only while the store is not refused: see ClaimStore. */
  readonly needsGranting: boolean;
  /** Holds until somebody claims more. */
  readonly compare: readonly Compare[];
}

export const NOTHING_SAID: Said = {
  claims: new Map(),
  claimants: [],
  needsGranting: false,
  compare: [],
};

export function claimsGone(): IdmintError {
  return storeUnavailable("the claims that were asked for are gone");
}

/** Everything that was said for an ask, which is kept from ending for as long as it may last in all. */
export async function readClaims(session: Session, { nonce, look }: AskedClaims): Promise<Said> {
  const { etcd, keys, deadlineMs } = session;
  const ranges = [{ key: keys.one("ask") }, keys.claimants()];
  const [[ask] = [], claimants = []] = await session.read(ranges, ALLOWED);
  const standing = standingAsk(ask);
  if (ask === undefined || standing?.nonce !== nonce || standing.looks < look) {
    throw claimsGone();
  }
  const { lease: id, isRefused } = standing;
  await etcd.ask(deadlineMs, (member) => member("leaseKeepAlive", { id }));
  const claims = new Map<string, Claim[]>();
  const pages = { ...keys.claims(), limit: PAGES };
  for (let from = pages.key; ;) {
    const [kvs = []] = await session.read([{ ...pages, key: from }], ALLOWED);
    for (const { value } of kvs) {
      for (const claim of claimsFrom(value)) addTo(claims, claim);
    }
    const last = kvs.at(-1);
    if (last === undefined) break;
    from = next(last.key);
  }
  const { key, modRevision } = ask;
  const compare = [{ key, modRevision }];
  return { claims, claimants: claimantsFrom(claimants), needsGranting: !isRefused, compare };
}

/** The highest of each period. */
function addTo(claims: Map<string, Claim[]>, claim: Claim): void {
  const its = claims.get(claim.tag);
  if (its === undefined) {
    claims.set(claim.tag, [claim]);
    return;
  }
  const at = its.findIndex(({ period }) => period === claim.period);
  const known = its[at];
  if (known === undefined) its.push(claim);
  else if (known.last < claim.last) its[at] = claim;
}

/** How many tags are read for one that a page names, at most, before those are read one by one. */
const SPARSE = 2;

/** The tags from the first that a page names to the last: a server was granted ids of most of them, as a rule. */
function spanOf(keys: Keys, claims: readonly Claim[]): Range & { readonly limit: number } {
  const names = claims.map(({ tag }) => tag).toSorted();
  const [first = ""] = names;
  const rangeEnd = next(keys.tag(names.at(-1) ?? ""));
  return { key: keys.tag(first), rangeEnd, limit: SPARSE * names.length + 1 };
}

async function readTags(
  session: Session,
  names: ReadonlySet<string>,
): Promise<ReadonlyMap<string, KeyValue>> {
  const ranges = [...names].map((name) => ({ key: session.keys.tag(name) }));
  return rowsByTag((await session.read(ranges, ALLOWED)).flat());
}

function rowsByTag(kvs: readonly KeyValue[]): ReadonlyMap<string, KeyValue> {
  return new Map(kvs.map((kv) => [Keys.lastOf(kv), kv]));
}

/** Whether a claim would raise nothing. */
function isBelow(kv: KeyValue | undefined, { period, last }: Claim): boolean {
  if (kv === undefined) return false;
  try {
    const { period_start: start = "", floor = "0" } = fieldsOf(kv.value);
    return start === period && last <= BigInt(floor);
  } catch {
    // A key that cannot be read says nothing.
    return false;
  }
}

function claimsFrom(value: Buffer): Claim[] {
  const all = JSON.parse(value.toString()) as [tag: string, period: string, last: string][];
  return all.map(([tag, period, last]) => ({ tag, period, last: BigInt(last) }));
}

function jsonOf(value: object): Buffer {
  return Buffer.from(JSON.stringify(value));
}

function claimantFrom(value: Buffer): HeardClaimant {
  return JSON.parse(value.toString()) as HeardClaimant;
}

function claimantsFrom(kvs: readonly KeyValue[]): readonly HeardClaimant[] {
  return kvs.map(({ value }) => claimantFrom(value)).toSorted((a, b) => (a.id < b.id ? -1 : 1));
}

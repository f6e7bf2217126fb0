import {
  ASK_MS,
  type Asked,
  type AskedClaims,
  type CallArgs,
  type Claim,
  type ClaimsAnswer,
  ClaimTally,
  type HeardClaimant,
  type Hearing,
  lostTag,
  storeUnavailable,
  type TakenClaims,
  withClaims,
} from "@idmint/core/server";
import { otherPeriodsText } from "../../shared/period.ts";
import { TAG_COLUMNS, tagFromRow, type TagRow, valuesOfTag } from "../../shared/tag-row.ts";
import type { Connections, Session } from "../connections.ts";
import { IS_GRANTING, NOW_MS, PRESENT_IDENTITY } from "../identity.ts";

/**
 * What servers claim before an accept (ClaimStore of core).
 *
 * INVARIANT: an accept locks the row `store` for itself before it reads claims, and whoever writes some shares it until they are
 * committed. So an accept has all that were answered `heard`, and none comes in between. Whoever finds the row locked passes it
 * by: locks are taken in the order store, ask, tags, claims, and nobody waits for a row of `store` who holds another.
 *
 * None of this writes `store`, whose row may have been written by another hand, and nothing waits for a standby: these rows lie
 * on the one server that the accept is made on.
 */
const LOCAL = `commit_level AS MATERIALIZED (SELECT set_config('synchronous_commit', 'local', true) AS level)`;

/** A standby that is promoted may have an ask and lack what was said to it, so an ask stands where it was begun. */
const STANDS_HERE = `a.identity = ${PRESENT_IDENTITY}`;

/** Nobody has seen since that the store went back. */
const IS_UNLOST = `(NOT a.granting OR ${IS_GRANTING})`;

/** SQL: the nonce of the ask that stands; null: there is none. */
export const STANDING_ASK: string = `(SELECT a.nonce FROM idmint.ask AS a WHERE a.expires_at_ms > ${NOW_MS} AND ${STANDS_HERE})`;

// An ask that is over gives way, one of another history too, and one from before the clock was set back.
const ASK = `WITH ${LOCAL}, asked AS (
  INSERT INTO idmint.ask AS a (nonce, expires_at_ms, identity, granting)
  SELECT $1, ${NOW_MS} + $2::bigint, ${PRESENT_IDENTITY}, ${IS_GRANTING} FROM commit_level AS c WHERE c.level <> ''
  ON CONFLICT (singleton) DO UPDATE
    SET nonce = excluded.nonce, expires_at_ms = excluded.expires_at_ms, identity = excluded.identity,
      granting = excluded.granting, looks = 0
    WHERE a.expires_at_ms <= ${NOW_MS} OR a.identity <> excluded.identity OR a.expires_at_ms > ${NOW_MS} + ${2 * ASK_MS}
  RETURNING nonce
), no_claimant AS (DELETE FROM idmint.claimant WHERE EXISTS (SELECT FROM asked)
), no_claim AS (DELETE FROM idmint.claim WHERE EXISTS (SELECT FROM asked))
SELECT EXISTS (SELECT FROM asked) AS is_asked,
  (SELECT a.expires_at_ms - ${NOW_MS} FROM idmint.ask AS a)::text AS for_ms`;

const CLAIMANTS = `(SELECT coalesce(json_agg(json_build_object('id', c.id, 'instance', c.instance, 'address', c.address,
  'since_ms', c.since_ms, 'whole', c.whole, 'pages', c.pages, 'spoken', c.spoken) ORDER BY c.id), '[]')
  FROM idmint.claimant AS c WHERE c.nonce = $1)`;

// The nonce, the number of the look, and that of the last one that was answered.
const HEAR = `WITH ${LOCAL}, looked AS (
  UPDATE idmint.ask AS a SET looks = greatest(a.looks, $2::integer) FROM commit_level AS c
  WHERE a.nonce = $1 AND ${STANDS_HERE} AND a.looks >= $3::integer AND ${IS_UNLOST} AND c.level <> '' RETURNING a.nonce
)
SELECT EXISTS (SELECT FROM looked) AS is_standing, ${CLAIMANTS} AS claimants,
  EXISTS (SELECT FROM idmint.ask AS a WHERE a.nonce = $1 AND ${STANDS_HERE}
    AND (a.looks < $3::integer OR NOT ${IS_UNLOST})) AS is_earlier,
  (SELECT coalesce(json_agg(json_build_object('id', n.id, 'instance', n.instance, 'address', n.address,
    'renewals', n.renewals::text)), '[]') FROM idmint.node AS n) AS nodes`;

// A look, which moves no key of the ask, waits for nobody who claims, nor do they for it.
// The nonce, the claimant's id, instance, address, since when, whether it is whole, page, whether it is the last, then tags, periods
// and last ids in the order of their keys, so that two who claim do not wait for each other in a ring.
const CLAIM = `WITH ${LOCAL}, standing AS MATERIALIZED (
  SELECT a.nonce FROM idmint.store AS s CROSS JOIN idmint.ask AS a CROSS JOIN commit_level AS c
  WHERE a.nonce = $1 AND ${STANDS_HERE} AND c.level <> ''
  FOR SHARE OF s SKIP LOCKED FOR KEY SHARE OF a SKIP LOCKED
), said AS (
  INSERT INTO idmint.claim AS k (nonce, tag, period, last)
  SELECT a.nonce, w.tag, w.period, w.last FROM standing AS a
  CROSS JOIN unnest($9::text[], $10::text[], $11::bigint[]) AS w (tag, period, last)
  LEFT JOIN idmint.tag AS t ON t.name = w.tag
  WHERE t.name IS NULL OR t.period_start IS DISTINCT FROM nullif(w.period, '') OR t.floor < w.last
  ORDER BY w.tag, w.period
  ON CONFLICT (nonce, tag, period) DO UPDATE SET last = excluded.last WHERE k.last < excluded.last
), who AS (
  INSERT INTO idmint.claimant AS k (nonce, id, instance, address, since_ms, whole, pages, spoken)
  SELECT a.nonce, $2, $3, $4, $5::bigint, $6::boolean, $7::integer + 1, $8::boolean FROM standing AS a
  ON CONFLICT (nonce, id) DO UPDATE SET pages = greatest(k.pages, excluded.pages), spoken = k.spoken OR excluded.spoken,
    since_ms = CASE WHEN k.spoken THEN k.since_ms ELSE excluded.since_ms END,
    whole = CASE WHEN k.spoken THEN k.whole ELSE excluded.whole END
  RETURNING id
)
SELECT EXISTS (SELECT FROM who) AS is_heard, EXISTS (SELECT FROM idmint.ask AS a WHERE a.nonce = $1 AND ${STANDS_HERE}) AS is_asked`;

const WITHDRAW = `WITH ${LOCAL}, withdrawn AS (
  DELETE FROM idmint.ask AS a USING commit_level AS c WHERE a.nonce = $1 AND c.level <> '' RETURNING a.nonce
), no_claimant AS (DELETE FROM idmint.claimant WHERE nonce = $1
), no_claim AS (DELETE FROM idmint.claim WHERE nonce = $1)
SELECT FROM withdrawn`;

interface ClaimantRow {
  readonly id: string;
  readonly instance: string;
  readonly address: string;
  readonly since_ms: number;
  readonly whole: boolean;
  readonly pages: number;
  readonly spoken: boolean;
}

interface HearingRow {
  readonly is_standing: boolean;
  readonly is_earlier: boolean;
  readonly claimants: readonly ClaimantRow[];
  readonly nodes: readonly {
    readonly id: string;
    readonly instance: string;
    readonly address: string;
    readonly renewals: string;
  }[];
}

/** One statement that waits for no standby. */
async function one<Row extends object>(
  connections: Connections,
  text: string,
  values: readonly unknown[],
): Promise<Row | undefined> {
  const { answer } = await connections.runUnconfirmed(
    (session) => session.query<Row>({ text, values }),
    0,
  );
  return answer[0];
}

export async function askForClaims(
  connections: Connections,
  ...[nonce, forMs]: CallArgs["askForClaims"]
): Promise<Asked> {
  type Row = { readonly is_asked: boolean; readonly for_ms: string | null };
  const row = await one<Row>(connections, ASK, [nonce, forMs]);
  if (row?.is_asked !== true) {
    return { outcome: "busy", forMs: Math.max(1, Number(row?.for_ms ?? 1)) };
  }
  const hearing = await hearClaims(connections, nonce, { number: 0, answered: 0 });
  return { outcome: "asked", hearing };
}

export async function hearClaims(
  connections: Connections,
  ...[nonce, { number, answered }]: CallArgs["hearClaims"]
): Promise<Hearing> {
  const row = await one<HearingRow>(connections, HEAR, [nonce, number, answered]);
  if (row === undefined) throw storeUnavailable("what servers claim was not answered");
  return {
    isStanding: row.is_standing,
    isEarlier: row.is_earlier,
    claimants: row.claimants.map(claimantFromRow),
    nodes: row.nodes.map(({ renewals, ...node }) => ({ ...node, renewals: BigInt(renewals) })),
  };
}

export async function claim(
  connections: Connections,
  { nonce, claimant, claims, page, isLast }: CallArgs["claim"][0],
): Promise<ClaimsAnswer> {
  const { id, instance, address, sinceMs, isWhole } = claimant;
  const values = [
    nonce,
    id,
    instance,
    address,
    String(Math.round(sinceMs)),
    isWhole,
    page,
    isLast,
    claims.map(({ tag }) => tag),
    claims.map(({ period }) => period),
    claims.map(({ last }) => String(last)),
  ];
  type Row = { readonly is_heard: boolean; readonly is_asked: boolean };
  const row = await one<Row>(connections, CLAIM, values);
  if (row?.is_heard === true) return "heard";
  return row?.is_asked === true ? "busy" : "not-asked";
}

export async function withdrawAsk(connections: Connections, nonce: string): Promise<void> {
  await one(connections, WITHDRAW, [nonce]);
}

const TAKE = `SELECT ${NOW_MS} AS store_now, EXISTS (SELECT FROM idmint.ask AS a
  WHERE a.nonce = $1 AND ${STANDS_HERE} AND a.looks >= $2::integer AND ${IS_UNLOST}) AS is_standing,
  ${CLAIMANTS} AS claimants, k.tag, k.claims, ${TAG_COLUMNS.map((column) => `t.${column}`).join(", ")}
FROM idmint.store AS s LEFT JOIN (
  SELECT c.tag, json_agg(json_build_object('tag', c.tag, 'period', c.period, 'last', c.last::text)) AS claims
  FROM idmint.claim AS c WHERE c.nonce = $1 GROUP BY c.tag
) AS k ON true LEFT JOIN idmint.tag AS t ON t.name = k.tag ORDER BY k.tag`;

const COLUMNS = TAG_COLUMNS.join(", ");
const ADD_LOST = `INSERT INTO idmint.tag (${COLUMNS}, written_by)
  SELECT ${COLUMNS}, pg_current_xact_id()::xid FROM json_populate_recordset(null::idmint.tag, $1::json)`;

type TakenRow = { readonly [Column in keyof TagRow]: TagRow[Column] | null } & {
  readonly store_now: string;
  readonly is_standing: boolean;
  readonly claimants: readonly ClaimantRow[];
  readonly tag: string | null;
  readonly claims: readonly {
    readonly tag: string;
    readonly period: string;
    readonly last: string;
  }[];
};

/** What an accept takes of claims. */
interface Taken {
  readonly taken?: TakenClaims;
  /** Of rows that were claimed of: names, floors and other periods, before the gap. */
  readonly changed: readonly [
    names: readonly string[],
    floors: readonly string[],
    others: readonly (string | null)[],
  ];
}

export const NOTHING_TAKEN: Taken = { changed: [[], [], []] };

/**
 * Answers what rows become by what was claimed, and makes rows of names that were lost. To be done under the lock of the row
 * `store` and of all tags, when their periods have begun, and before all rows are raised by the gap.
 */
export async function takeClaims(
  session: Session,
  { nonce, look, isTrusted }: AskedClaims,
): Promise<Taken> {
  const rows = await session.query<TakenRow>({ text: TAKE, values: [nonce, look] });
  const [first] = rows;
  if (first?.is_standing !== true)
    throw storeUnavailable("the claims that were asked for are gone");
  const tally = new ClaimTally();
  const lost: Record<string, string | null>[] = [];
  const names: string[] = [];
  const floors: string[] = [];
  const others: (string | null)[] = [];
  for (const { tag: name, claims: said, ...row } of rows) {
    if (name === null) continue;
    const claims: Claim[] = said.map(({ last, ...its }) => ({ ...its, last: BigInt(last) }));
    if (row.name === null) {
      const values = valuesOfTag(lostTag(name, claims, isTrusted, Number(first.store_now)));
      const texts = values.map((value) => (value === null ? null : String(value)));
      lost.push(Object.fromEntries(TAG_COLUMNS.map((column, at) => [column, texts[at] ?? null])));
      continue;
    }
    const claimed = withClaims(tagFromRow(row as TagRow), claims, isTrusted);
    names.push(name);
    floors.push(String(claimed.row.floor));
    others.push(otherPeriodsText(claimed.row.otherPeriods ?? []));
    tally.claimed(name, claimed.missing);
  }
  if (lost.length > 0) await session.query({ text: ADD_LOST, values: [JSON.stringify(lost)] });
  const claimants = first.claimants.map(claimantFromRow);
  const taken = { ...tally.taken, lost: lost.length, claimants };
  return { taken, changed: [names, floors, others] };
}

/** No ask stands any more, whoever began it. */
export async function endAsks(session: Session): Promise<void> {
  for (const table of ["ask", "claimant", "claim"]) {
    await session.query({ text: `DELETE FROM idmint.${table}` });
  }
}

function claimantFromRow({ since_ms: sinceMs, whole, spoken, ...its }: ClaimantRow): HeardClaimant {
  return { ...its, sinceMs, isWhole: whole, hasSpoken: spoken };
}

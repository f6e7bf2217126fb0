import type { NodeRenewal } from "@idmint/core/server";
import type { Connections, Session } from "../connections.ts";
import { PRESENT_IDENTITY, TAG_IS_OURS } from "../identity.ts";
import { judgePromotion, type PromotionFacts, type PromotionVerdict } from "./promotion-state.ts";
import { standbysFrom } from "./standby-names.ts";

/** For how long other servers may object: each of them polls at least once a second. */
const OBJECTIONS_MS = 1_000;
const FACTS = `SELECT s.identity, ${PRESENT_IDENTITY} AS present, s.xmin = s.written_by AS is_ours, s.standbys,
  current_setting('cluster_name') AS cluster_name, s.incarnation, s.revision,
  (SELECT n.renewals FROM idmint.node AS n WHERE n.id = $3) AS renewals,
  EXISTS (SELECT FROM unnest($1::text[], $2::bigint[]) AS w (name, version)
    LEFT JOIN idmint.tag AS t ON t.name = w.name
    WHERE t.name IS NULL OR NOT ${TAG_IS_OURS} OR t.moved_to IS NULL AND t.version < w.version) AS is_behind
  FROM idmint.store AS s FOR UPDATE OF s`;
const OURS = "written_by = pg_current_xact_id()::xid";
const ACCEPT = `UPDATE idmint.store SET identity = ${PRESENT_IDENTITY}, standbys = '', ${OURS}`;
const OBJECT = `UPDATE idmint.store SET standbys = '', ${OURS}`;

interface FactsRow {
  readonly identity: string;
  readonly present: string;
  readonly is_ours: boolean;
  readonly standbys: string;
  readonly cluster_name: string;
  readonly incarnation: string;
  readonly revision: string;
  readonly renewals: string | null;
  readonly is_behind: boolean;
}

/** What a poll asked for. */
interface Query {
  readonly since: bigint;
  readonly watched: readonly { readonly tag: string; readonly version: bigint }[];
  readonly renewal?: NodeRenewal | undefined;
}

/**
 * A store that is fenced, as this server's polls see it: it is judged with each of them, and accepted when that is proved
 * (promotion-state.ts). The history goes on then, with the epochs and floors it has: nothing that was answered is missing,
 * and whatever was not answered is nobody's.
 */
export class Promotion {
  /** Since when; undefined while the store is the accepted one. */
  #sinceMs: number | undefined;
  /** Tags that were compared since then. Polls take turns with them when there are many. */
  readonly #compared = new Set<string>();
  #isComplete = false;

  /** A poll found the store as it should be. */
  settle(): void {
    this.#sinceMs = undefined;
    this.#compared.clear();
    this.#isComplete = false;
  }

  /** A poll found it fenced. True: it is accepted now. */
  async judge(connections: Connections, query: Query): Promise<boolean> {
    const { since, watched, renewal } = query;
    const witnessed = connections.confirmation?.renewals;
    // Before its first poll was obeyed a server knows nothing.
    if (witnessed === undefined || (renewal?.incarnation ?? "") === "") return false;
    this.#sinceMs ??= performance.now();
    const hadTime = performance.now() - this.#sinceMs >= OBJECTIONS_MS;
    // Once round, when a tag comes up again; those of one poll are all different.
    this.#isComplete ||= watched.length === 0 || watched.some(({ tag }) => this.#compared.has(tag));
    for (const { tag } of watched) this.#compared.add(tag);
    const { incarnation, node } = renewal as NodeRenewal;
    const witness = { incarnation, revision: since, renewals: witnessed };
    const mayAccept = hadTime && this.#isComplete;
    const values = [
      watched.map(({ tag }) => tag),
      watched.map(({ version }) => String(version)),
      node.id,
    ];
    const verdict = await connections.run((session) =>
      session.transaction(() => decide(session, values, { ...witness, mayAccept })),
    );
    return verdict === "accept";
  }
}

async function decide(
  session: Session,
  values: readonly unknown[],
  witness: Parameters<typeof judgePromotion>[1],
): Promise<PromotionVerdict> {
  const [row] = await session.query<FactsRow>({ text: FACTS, values });
  if (row === undefined) return "operator";
  const verdict = judgePromotion(factsFrom(row), witness);
  if (verdict === "accept") await session.query({ text: ACCEPT });
  if (verdict === "object") await session.query({ text: OBJECT });
  return verdict;
}

function factsFrom(row: FactsRow): PromotionFacts {
  return {
    accepted: row.identity,
    present: row.present,
    isOurs: row.is_ours,
    standbys: standbysFrom(row.standbys),
    clusterName: row.cluster_name,
    incarnation: row.incarnation,
    revision: BigInt(row.revision),
    isBehind: row.is_behind,
    renewals: row.renewals === null ? undefined : BigInt(row.renewals),
  };
}

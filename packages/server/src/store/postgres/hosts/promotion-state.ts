/** What is known of a store that is not the accepted one, read under its lock. */
export interface PromotionFacts {
  /** system identifier / timeline / database: that of the record, and the present one. */
  readonly accepted: string;
  readonly present: string;
  /** Whether the record was written by a statement of ours, and not loaded or changed by hand. */
  readonly isOurs: boolean;
  /** Standbys that every answer waited for since they were recorded. */
  readonly standbys: readonly string[];
  /** cluster_name of the server that is the primary now. */
  readonly clusterName: string;
  readonly incarnation: string;
  readonly revision: bigint;
  /** Whether a row is missing or lower than this server has seen. */
  readonly isBehind: boolean;
  /** The number in this server's own row; undefined without a row. */
  readonly renewals: bigint | undefined;
}

/** What this server knows from the time before. */
export interface PromotionWitness {
  readonly incarnation: string;
  readonly revision: bigint;
  /** Up to which number of its own row all standbys had the log; undefined: it is no witness. */
  readonly renewals: bigint | undefined;
  /** Whether other servers had the time to object, and all tags of this one were compared. */
  readonly mayAccept: boolean;
}

/**
 * `accept`: it has all that was answered. `object`: it has not, and nobody may accept it but an operator. `operator`:
 * nothing proves it. `later`: others may know better yet.
 */
export type PromotionVerdict = "accept" | "object" | "operator" | "later";

/**
 * Whether a promoted standby is accepted without an operator.
 *
 * INVARIANT: it has everything that was answered, for:
 * 1. The standbys in its row were recorded by a transaction that itself counted only when they had it, and with it all of the
 *    log before. From then on every answer waited until all of them had it (confirmation.ts), under whichever record the
 *    answering session saw *after* its commit; tables are locked while the record is written, so no grant overlaps it.
 *    A record only grows, or ends when an operator or this verdict accepts the store.
 * 2. So whoever is of their number, and has the row, has all that was answered since, as long as it is that server with the
 *    log it had: `cluster_name` says who it is, the system identifier, the database and a later timeline that it follows on
 *    the accepted history, and the number in the row of a living server, which moves every second, that it is no backup.
 * 3. A server that saw anything newer objects. The record is then emptied for good.
 */
export function judgePromotion(facts: PromotionFacts, witness: PromotionWitness): PromotionVerdict {
  if (witness.renewals === undefined) return "operator";
  if (facts.standbys.length === 0 || !facts.isOurs || !isLaterTimeline(facts)) return "operator";
  if (!facts.standbys.includes(facts.clusterName.toLowerCase())) return "operator";
  const misses =
    facts.isBehind ||
    facts.incarnation !== witness.incarnation ||
    facts.revision < witness.revision ||
    facts.renewals === undefined ||
    facts.renewals < witness.renewals;
  if (misses) return "object";
  return witness.mayAccept ? "accept" : "later";
}

function isLaterTimeline({ accepted, present }: PromotionFacts): boolean {
  const [system, timeline = "", database] = accepted.split("/");
  const [nowSystem, nowTimeline = "", nowDatabase] = present.split("/");
  // Eight hexadecimal digits each.
  return system === nowSystem && database === nowDatabase && timeline < nowTimeline;
}

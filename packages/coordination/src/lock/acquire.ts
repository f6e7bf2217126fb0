// One attempt to take a lock on a majority of nodes.
import { CoordinationError, type NodeCause, type Reason } from "../errors.ts";
import { bounded, type CallLimits } from "../redis/bounded.ts";
import { driftMs } from "../lease/lease-state.ts";
import { elapsedMs, type Instant, type Runtime } from "../time.ts";
import type { LockClaim, LockNode } from "./lock-node.ts";
import type { TokenSource } from "./options.ts";
import { ask, majorityOf, type Tally } from "./quorum.ts";

const FATAL: ReadonlySet<Reason> = new Set(["CALL_CANCELLED", "CLOSED", "TOKEN_EXHAUSTED"]);

/** What an attempt needs. */
export interface Attempt {
  readonly nodes: readonly LockNode[];
  readonly claim: LockClaim;
  readonly limits: CallLimits;
  readonly tokenSource: TokenSource | undefined;
  readonly runtime: Runtime;
}

/** A lock that was taken: its token, and when it was asked for. */
export interface Taken {
  readonly token: bigint;
  readonly askedAt: Instant;
}

/**
 * Takes the lock on a majority of nodes, or fails and frees it everywhere.
 *
 * The tokens of any two attempts that succeed differ, and the attempt that had the lock later has the larger one:
 *
 * 1. A node's counter only rises, and only whoever has the lock at that node raises it. (`take` raises it when it sets the
 *    lock and mints, `confirm` when the lock is still the claim's.)
 * 2. An attempt takes the lock on a majority, chooses the largest of their raised counters as its token (or asks the token
 *    source), and succeeds only after a majority confirmed: they had the lock for it without a break since `take`, since a
 *    claim takes a lock at a node once, and their counters now are the token. A node that was not waited for may have a
 *    larger counter, and with it another attempt's larger token: it does not confirm. Nor does a node confirm a token from
 *    a source when that very token is its counter.
 * 3. Two attempts that succeed have a node in common that confirmed both. There, one had the lock from its `take` to its
 *    `confirm` before the other took it. So the later one found the earlier one's token or more in the counter, and its
 *    own is above: its `take` raised the counter, or, with a token source, the node confirmed only what is above.
 *
 * With one node that mints, `take` alone does what 2 asks for. What this rests on is that a node's counter does not go
 * back. One that lost its data counts on from its own clock (`MINT`). That is above what it counted before, but perhaps
 * below what another node of a faster clock made it write down. So nodes that mint promise no order (`isOrdered` of a
 * grant): nobody else need know the last token. A token source does, since it is asked for each one.
 *
 * Only what the nodes knew before the source was asked tells that the source went back (TOKEN_WENT_BACK): those tokens
 * came from it earlier, and the majority that took has a node in common with the majority that confirmed each earlier
 * grant. A node whose `take` came later may know the token of somebody who asked the source later. That is a lost race,
 * which the next attempt may win.
 */
export async function takeOnce(attempt: Attempt): Promise<Taken> {
  const { nodes, claim, limits, runtime } = attempt;
  const askedAt = runtime.now();
  try {
    const token = await takeAndConfirm(attempt);
    const { ttlMs } = claim;
    if (elapsedMs(askedAt, runtime.now()) < ttlMs - driftMs(ttlMs)) {
      return { token, askedAt };
    }
    const text = `taking lock "${claim.lock}" took longer than its ttl of ${ttlMs} ms`;
    throw new CoordinationError("NO_MAJORITY", text, { metadata: { lock: claim.lock } });
  } catch (error) {
    // Nobody waits: commands of a connection stay in order, so this one comes before those of the next attempt. Where it
    // cannot be sent, the lock's time runs out. A cancelled call must free what it took all the same.
    const { timeoutMs } = limits;
    void ask(nodes, (node) => node.release(claim, { timeoutMs }));
    throw error;
  }
}

async function takeAndConfirm(attempt: Attempt): Promise<bigint> {
  const { nodes, claim, limits, tokenSource } = attempt;
  const isMinting = tokenSource === undefined;
  const taken = await ask(nodes, (node) => node.take(claim, { isMinting }, limits));
  requireMajority(taken, attempt, "taking");
  const largest = taken.yes.reduce((a, b) => (a > b ? a : b));
  if (isMinting && nodes.length === 1) return largest;
  const token = isMinting ? largest : await tokenFrom(tokenSource, attempt, largest);
  const isNew = !isMinting;
  const confirmed = await ask(nodes, (node) =>
    node.confirm(claim, { value: token, isNew }, limits),
  );
  requireMajority(confirmed, attempt, "confirming");
  return token;
}

/** Asks the source for a token above `last`, the largest that the nodes knew before. */
async function tokenFrom(
  source: TokenSource,
  { claim, limits }: Attempt,
  last: bigint,
): Promise<bigint> {
  const { ttlMs } = claim;
  const late = AbortSignal.timeout(ttlMs);
  const signal = limits.signal === undefined ? late : AbortSignal.any([late, limits.signal]);
  const what = `the token source of lock "${claim.lock}"`;
  const token = await bounded(what, source(claim.lock, signal), {
    timeoutMs: ttlMs,
    signal: limits.signal,
  });
  const wentBack = (text: string): CoordinationError =>
    new CoordinationError("TOKEN_WENT_BACK", text, { metadata: { lock: claim.lock } });
  if (typeof token !== "bigint" || token <= 0n) {
    throw wentBack(`${what} must answer a bigint above 0`);
  }
  if (token > last) return token;
  throw wentBack(
    `token ${token} of lock "${claim.lock}" is not above ${last}, which was given before`,
  );
}

function requireMajority(tally: Tally<unknown>, { nodes, claim }: Attempt, doing: string): void {
  if (tally.yes.length >= majorityOf(nodes.length)) return;
  const fatal = tally.failed.find(
    ({ error }) => isFatal(error) || (nodes.length === 1 && !error.retryable),
  );
  if (fatal !== undefined) throw fatal.error;
  const { lock } = claim;
  const details = { nodes: causesOf(tally), metadata: { lock } };
  // Without those that failed it could have been a majority; somebody else has the others.
  if (nodes.length - tally.failed.length >= majorityOf(nodes.length)) {
    throw new CoordinationError("LOCK_HELD", `lock "${lock}" is held by somebody else`, details);
  }
  const text = `${doing} lock "${lock}" failed at ${tally.failed.length} of ${nodes.length} nodes`;
  throw new CoordinationError("NO_MAJORITY", text, details);
}

/** What neither another try nor another node helps against. */
function isFatal({ reason }: CoordinationError): boolean {
  return FATAL.has(reason);
}

function causesOf(tally: Tally<unknown>): readonly NodeCause[] {
  const held = tally.no.map((node) => ({
    node,
    error: new CoordinationError("LOCK_HELD", "the lock is somebody else's there"),
  }));
  return [...tally.failed, ...held];
}

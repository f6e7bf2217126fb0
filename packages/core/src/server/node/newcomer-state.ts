import type { NodeInfo, StorePart } from "./ports.ts";

/**
 * Whether a server that has just started may take its store for the one that others know. Pure: polls bring rows, times are this
 * server's own monotonic clock.
 *
 * A store that was put back looks well to whoever knows nothing of it, and is marked a second later by those who do. A newcomer
 * that issued meanwhile would issue what others did.
 *
 * INVARIANTS
 * 1. Whoever renews its row has proved the store: a renewal finds the row as high as it was, or marks the store. So a newcomer
 *    waits until the row of another server has moved since it first looked, or that server had the time of two polls for it: from
 *    the first answer to the sending of a later poll, since a process that was stopped reads late what was said before.
 * 2. Newcomers do not vouch for each other: rows of such count for nothing, neither as those who may know more nor as proof.
 * 3. With nobody in the store who may know more, nothing is waited for: no row of another server that was proved. An earlier life
 *    of this server, with its name and address, is over. Other processes behind its address are on this machine: they are
 *    either heard within NEAR_MS, or have ended too.
 * 4. A server that was proved, ended, and runs again within half the patience is to others as one whose poll was slow: it goes
 *    on where it was once the store has its row as it was acknowledged last, and everything that it was granted after that. The
 *    first poll compares the row, and has it renewed only then; the second one compares the tags that are in its file since
 *    (`isWhole`: all of them). After a longer time others may have been granted what a store that was put back lacks, and the
 *    server knows nothing of it: it waits as any newcomer does.
 */
export interface NewcomerState {
  /** How long a newcomer waits for rows that stand still; 0: it waits for nothing. */
  readonly patienceMs: number;
  readonly earlier: EarlierLife;
  readonly parts: Map<string, PartProof>;
}

/** What an earlier life of the server left in its file. */
export interface EarlierLife {
  /** By database: when the last renewal was sent that was acknowledged to it once it was proved, on the present clock. */
  readonly renewedAt: ReadonlyMap<string, number>;
  /** Whether one poll compares all tags that it was granted from since that renewal. */
  readonly isWhole: boolean;
}

export const NO_EARLIER_LIFE: EarlierLife = { renewedAt: new Map(), isWhole: false };

const NEAR_MS = 3_000;

interface PartProof {
  /** When the first answer came that had rows. */
  readonly firstAt: number;
  /** The numbers that others had then. */
  readonly first: ReadonlyMap<string, bigint>;
  isProved: boolean;
}

export function createNewcomerState(
  patienceMs: number,
  earlier: EarlierLife = NO_EARLIER_LIFE,
): NewcomerState {
  return { patienceMs, earlier, parts: new Map() };
}

/** A poll that was sent at `sentAt`, and renewed this server's row, was answered. Without rows it says nothing. */
export function newcomerSaw(
  { parts, patienceMs, earlier }: NewcomerState,
  { name, isRenewed, nodes, hasEarlier }: StorePart,
  own: Pick<NodeInfo, "address" | "id" | "instance">,
  { sentAt, now }: { readonly sentAt: number; readonly now: number },
): void {
  const known = parts.get(name);
  const isOwn = (address: string): boolean => address !== "" && address === own.address;
  // A store that is not the accepted one renews nothing.
  if (known?.isProved === true || !isRenewed || nodes === undefined) return;
  const others = nodes.filter(
    ({ id, instance, address, isProved }) =>
      isProved && id !== own.id && !(isOwn(address) && instance === own.instance),
  );
  if (known === undefined) {
    const first = new Map(others.map(({ id, renewals }) => [id, renewals]));
    parts.set(name, { firstAt: now, first, isProved: others.length === 0 });
    return;
  }
  const hasMoved = others.some(({ id, renewals }) => known.first.get(id) !== renewals);
  const areNear = others.every(({ address }) => isOwn(address));
  const waitedMs = sentAt - known.firstAt;
  const agoMs = now - (earlier.renewedAt.get(name) ?? -Infinity);
  known.isProved =
    hasMoved ||
    others.length === 0 ||
    (hasEarlier === true && earlier.isWhole && agoMs < patienceMs / 2) ||
    waitedMs >= (areNear ? Math.min(NEAR_MS, patienceMs) : patienceMs);
}

/** Whether a database of the store is proved, as all are to a server without patience. */
export function isProvedIn({ patienceMs, parts }: NewcomerState, part: string): boolean {
  return patienceMs === 0 || parts.get(part)?.isProved === true;
}

/** Whether all databases that were looked at are proved, and some were. */
export function isProved({ patienceMs, parts }: NewcomerState): boolean {
  if (patienceMs === 0) return true;
  return parts.size > 0 && [...parts.values()].every((part) => part.isProved);
}

/** Whether a database that was looked at is not proved yet. */
export function isWaiting(state: NewcomerState): boolean {
  return state.parts.size > 0 && !isProved(state);
}

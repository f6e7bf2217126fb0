import type { ChangeOptions } from "./tags.ts";

/** Whether the servers on a database issue. An operator stops and resumes all of them at once. */
export interface Issuing {
  /** The store's revision at the last stop or resumption; 0n: there was none. */
  readonly revision: bigint;
  /** When they were stopped, by the store's clock, milliseconds since 1970; undefined: they issue. */
  readonly stoppedAtMs: number | undefined;
}

/** What a database of a store says of it. */
export interface PartIssuing extends Issuing {
  /** Empty for a store that is one database. */
  readonly name: string;
}

/** Issuing in a store that nobody ever stopped. */
export const NEVER_STOPPED: Issuing = { revision: 0n, stoppedAtMs: undefined };

/** Stops all servers on a store, and lets them go on. Polls tell them (StorePart); the store itself refuses nothing. */
export interface IssuingStore {
  /**
   * Takes the store's next revision where this is a change, in each of its databases, and answers what each says then.
   * Rejects when one of them could not be asked; the others have taken it all the same. It first compares the store's
   * identity: FAILED_PRECONDITION STORE_EPOCH_CHANGED.
   */
  setIssuing(isStopped: boolean, options?: ChangeOptions): Promise<readonly PartIssuing[]>;
}

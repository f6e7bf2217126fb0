import type { WorkerLeases } from "../../worker/ports.ts";

/** A worker id that was leased, as the registry has it. */
export interface Worker {
  readonly dataCenter: number;
  readonly workerId: number;
  /** Who leased it last. */
  readonly instance: string;
  /** Of the last answer; counts every lease and renewal of this worker id. */
  readonly token: bigint;
  readonly extension: number;
  /** Last millisecond that was ever reserved of this extension. */
  readonly reservedUntilMs: number;
  /** When the lease ends without a renewal, by the registry's clock. */
  readonly expiresAtMs: number;
}

/**
 * Leases worker ids of tags of kind snowflake. Every change is one transaction, durable before its answer, with the
 * guards of `grant` (TAG_NOT_FOUND, WRONG_KIND, TAG_PAUSED, STORE_EPOCH_CHANGED as IdmintError). The decisions are those
 * of worker/registry-state.ts, made on rows that are locked until they are written.
 *
 * INVARIANTS
 * 1. Of one worker id, no pair (extension, millisecond) is ever reserved by two answers of different leases. What is
 *    reserved only grows: the pair (extension, reservedUntilMs) of a row never falls, and no row is ever removed.
 * 2. A reservation is raised only for who presents the row's token, and each such answer has another token. So of two
 *    who hold the same token, by whatever accident, at most one gets further.
 * 3. The first lease of a tag makes its layout immutable: it raises the tag's version where that is 0. A layout that is
 *    changed before that is of another epoch, so a lease that names its epoch is never used with another layout.
 */
export interface WorkerRegistry extends WorkerLeases {
  /** Up to `limit` workers of a tag above `after` (undefined: from the first), by data center and worker id. */
  listWorkers(query: {
    tag: string;
    after: { dataCenter: number; workerId: number } | undefined;
    limit: number;
  }): Promise<readonly Worker[]>;
}

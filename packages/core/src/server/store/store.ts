import type { AccessStore } from "../access/tokens.ts";
import type { AuditNote, AuditStore } from "../audit/ports.ts";
import type { AskedClaims, ClaimStore, TakenClaims } from "../claims/ports.ts";
import type { NodeStore } from "../node/ports.ts";
import type { TrafficStore } from "../node/traffic-state.ts";
import type { ChangeStore } from "./changes.ts";
import type { GiveBackStore, GrantStore } from "./grants.ts";
import type { IssuingStore } from "./issuing.ts";
import type { LedgerStore } from "./ledger.ts";
import type { MarkStore, RaiseStore } from "./redis-bounds.ts";
import type { PeriodStore, TagStore } from "./tags.ts";
import type { WorkerRegistry } from "./worker-registry.ts";

/** Accepting a store that went back. */
export interface AcceptStore {
  /**
   * Accepts the store as it is now: raises every tag's floor by `gap` (at most to its ceiling), its version by one and
   * its epoch above any it may have had, begins the present period of sequences that restart, takes the next generation
   * of tags that count in Redis, records the present identity, and begins a new incarnation. One transaction. The rows of
   * servers may have been lost: a row that never moves stands for all of them (lostNodes), with the longest `maxOfflineMs`
   * that is known; by default DEFAULT_MAX_OFFLINE_MS, null for none. `newStore`: the store is a copy that goes on by itself,
   * so it gets another id, and servers that belong to the original take it for away.
   *
   * `asked`: before the gap is added, floors are raised to what servers claimed for that ask (claims/claimed-state.ts), and names
   * that the store has lost become deleted tags, by the same transaction, which also ends the ask. STORE_UNAVAILABLE when
   * that ask does not stand any more, INVALID_ARGUMENT when a claim reaches the end of a tag and is not trusted: nothing is
   * accepted then.
   */
  accept(
    gap: bigint,
    maxOfflineMs?: number | null,
    by?: AuditNote,
    newStore?: boolean,
    asked?: AskedClaims,
  ): Promise<Accepted>;
}

/** What an accept did. */
export interface Accepted {
  /** Tags whose floors were raised. */
  readonly tags: number;
  /** Set when claims were asked for. */
  readonly claims?: TakenClaims | undefined;
}

/** Everything a server needs of its store. Adapters implement it; nothing of a driver shows. See STORE_CALLS too. */
export interface Store
  extends
    GrantStore,
    RaiseStore,
    MarkStore,
    GiveBackStore,
    TagStore,
    PeriodStore,
    ChangeStore,
    NodeStore,
    TrafficStore,
    IssuingStore,
    WorkerRegistry,
    AccessStore,
    LedgerStore,
    AcceptStore,
    ClaimStore,
    AuditStore {
  /** `sqlite` or `postgres`; for status and metrics. */
  readonly backend: string;
  /** Version of the schema that `open` found. */
  readonly schemaVersion: number;
  close(): Promise<void>;
}

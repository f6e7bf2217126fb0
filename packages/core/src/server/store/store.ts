import type { AccessStore } from "../access/tokens.ts";
import type { AuditNote, AuditStore } from "../audit/ports.ts";
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
   */
  accept(
    gap: bigint,
    maxOfflineMs?: number | null,
    by?: AuditNote,
    newStore?: boolean,
  ): Promise<{ tags: number }>;
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
    AuditStore {
  /** `sqlite` or `postgres`; for status and metrics. */
  readonly backend: string;
  /** Version of the schema that `open` found. */
  readonly schemaVersion: number;
  close(): Promise<void>;
}

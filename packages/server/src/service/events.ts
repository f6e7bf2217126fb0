import type { BufferEvent, IdmintError, PeriodDoubt, SnowflakeEvent } from "@idmint/core";
import type { AuditEvent, ClockRefusal, LimitName, RedisDoubt } from "@idmint/core/server";

/** The state of each flag of V8 that keeps this process's garbage collections short. */
export type V8Flags = Readonly<
  Record<"pretenuring" | "heapGrowth", "active" | "not_set" | "unavailable">
>;

/** What happens in a server, for logs and metrics. A listener must not throw; one that does is ignored. */
export type ServerEvent =
  | BufferEvent
  | SnowflakeEvent
  | {
      readonly type: "serving";
      readonly grpcAddress: string;
      /** Empty: administrators are served at grpcAddress. */
      readonly adminAddress: string;
      readonly httpAddress: string;
      /** Undefined: other processes answer the calls, and each of them says its own. */
      readonly v8Flags?: V8Flags;
    }
  | { readonly type: "process-serving"; readonly process: number; readonly pid: number }
  | {
      readonly type: "process-ended";
      readonly process: number;
      readonly pid: number;
      readonly code: number | null;
      readonly signal: string | null;
      /** What it said was wrong; undefined when it was told to stop, or could not say anything. */
      readonly error: Error | undefined;
      /** Undefined: none follows, since all stop. */
      readonly restartInMs: number | undefined;
    }
  | { readonly type: "processes-stopped" }
  /** A server that starts knows the tags that were used last; `error`: why not all of them. */
  | {
      readonly type: "tags-known";
      readonly tags: number;
      readonly afterMs: number;
      readonly error: IdmintError | undefined;
    }
  /** It stops, and still answers for `delayMs`, while callers are sent away. */
  | { readonly type: "draining"; readonly delayMs: number }
  /** More calls came than this server can answer in time, for long enough that it refuses some. */
  | { readonly type: "overloaded" }
  | { readonly type: "overload-over"; readonly afterMs: number; readonly refused: number }
  /** An operator drained this server, it refuses calls, it gave back what it held, or an operator undrained it. */
  | {
      readonly type: "operator-drain";
      readonly server: string;
      readonly phase: "unready" | "leaving" | "resting" | "serving";
      readonly givenBack?: number;
      readonly wasted?: number;
    }
  | { readonly type: "stopped"; readonly givenBack: number; readonly wasted: number }
  | { readonly type: "store-lost"; readonly error: IdmintError }
  /** Another poll failed after the one that lost the store. */
  | { readonly type: "poll-failed"; readonly error: IdmintError }
  /** What an administrator asked for was not done, or nobody knows, for want of the store. */
  | { readonly type: "change-failed"; readonly method: string; readonly error: IdmintError }
  /** A server that starts waits for its store; it gives up when `leftMs` are over. */
  | {
      readonly type: "store-awaited";
      readonly error: IdmintError;
      readonly retryInMs: number;
      readonly leftMs: number;
    }
  /** The store works, and will not for ever; see StoreChanges.warning. */
  | { readonly type: "store-warning"; readonly detail: string }
  | { readonly type: "store-warning-over" }
  /** Rows of the ledger wait, or are dropped, until it can be written again. */
  | {
      readonly type: "ledger-behind";
      readonly queued: number;
      /** Why it cannot be written; undefined: it takes too long. */
      readonly error: IdmintError | undefined;
    }
  /** A tag has no ids in less than `days` from now, if they are used as fast as they were. */
  | {
      readonly type: "tag-runs-out";
      readonly tag: string;
      readonly days: number;
      readonly limit: LimitName;
      /** Undefined: it ends whether ids are used or not. */
      readonly left: bigint | undefined;
      /** Milliseconds since 1970. */
      readonly runsOutAtMs: number;
      readonly idsPerSecond: number | undefined;
      readonly watchedMs: number;
    }
  | { readonly type: "store-back"; readonly afterMs: number }
  /** A group may write in a folder with files of this server. */
  | { readonly type: "folder-shared"; readonly folder: string }
  | {
      readonly type: "ticket-database-lost";
      readonly database: string;
      readonly error: IdmintError;
    }
  | { readonly type: "ticket-database-back"; readonly database: string }
  | { readonly type: "fenced"; readonly tag: string | undefined; readonly detail: string }
  | { readonly type: "unfenced" }
  /** The store's list of callers could not be read; told at each look. */
  | { readonly type: "callers-unread"; readonly error: IdmintError }
  | { readonly type: "callers-read"; readonly afterMs: number }
  /** The file of principals was changed and is wrong: what it said before stays. */
  | { readonly type: "access-file-refused"; readonly path: string; readonly error: IdmintError }
  /** An operator stopped all servers. By the store's clock, milliseconds since 1970. */
  | { readonly type: "issuing-stopped"; readonly sinceMs: number }
  | { readonly type: "issuing-resumed" }
  /** A promoted standby that is proved to have everything. */
  | { readonly type: "promotion-accepted" }
  | { readonly type: "store-accepted"; readonly gap: bigint; readonly tags: number }
  /** This server could not accept a store that went back; it goes on trying. */
  | { readonly type: "own-accept-failed"; readonly error: IdmintError }
  /** An accept left a floor below ids that this server was granted, by so many; it raised the floor above them. */
  | { readonly type: "late-claim"; readonly tag: string; readonly missing: bigint }
  | { readonly type: "late-claim-failed"; readonly tag: string; readonly error: IdmintError }
  | {
      readonly type: "cut-off";
      /** Databases of the store that were not heard of; one without a name where the store is one. */
      readonly databases: readonly string[];
      readonly maxOfflineMs: number;
    }
  | { readonly type: "cut-off-over"; readonly afterMs: number }
  | { readonly type: "node-forgotten"; readonly node: string }
  | {
      readonly type: "hold-for-too-long";
      readonly tag: string;
      readonly holdForMs: number;
      readonly maxOfflineMs: number;
    }
  | { readonly type: "incarnation-changed"; readonly incarnation: string }
  /** The clocks speak against the period that a tag issues in. */
  | {
      readonly type: "period-in-doubt";
      readonly tag: string;
      readonly start: string;
      readonly why: PeriodDoubt;
    }
  | { readonly type: "period-confirmed"; readonly tag: string; readonly start: string }
  | { readonly type: "late-grant"; readonly tag: string; readonly count: number }
  | { readonly type: "give-back-failed"; readonly error: IdmintError }
  | {
      readonly type: "redis-seeded";
      readonly tag: string;
      readonly redisServer: string;
      readonly generation: bigint;
      /** Ids go on above this one. */
      readonly from: bigint;
      /** What was wrong with what Redis had. */
      readonly why: RedisDoubt["status"];
      /** Redis had counted for the tag and does not know any more, rather than being new to it or told to begin anew. */
      readonly isLoss: boolean;
    }
  | {
      readonly type: "redis-raised";
      readonly tag: string;
      readonly redisServer: string;
      /** The new maximum. */
      readonly max: bigint;
      /** Ids a second that were expected. */
      readonly rate: number;
    }
  | {
      readonly type: "max-not-raised";
      readonly tag: string;
      readonly redisServer: string;
      readonly max: bigint;
      /** Why it could not be raised; undefined: it is being raised, and too slowly. */
      readonly error: IdmintError | undefined;
    }
  | { readonly type: "redis-preload-failed"; readonly error: IdmintError }
  | { readonly type: "redis-marks-failed"; readonly error: IdmintError }
  | {
      readonly type: "redis-watch-failed";
      readonly redisServer: string;
      readonly error: IdmintError;
    }
  /** A Redis is not fit to count in as it is. `why` says how to mend it. */
  | { readonly type: "redis-unfit"; readonly redisServer: string; readonly why: string }
  | { readonly type: "redis-lost"; readonly redisServer: string; readonly why: string }
  | { readonly type: "redis-back"; readonly redisServer: string; readonly afterMs: number }
  /** `tag`: refused for the clock by its own policy; undefined: the server does not use its clock. */
  | {
      readonly type: "clock-refused";
      readonly tag: string | undefined;
      readonly why: ClockRefusal["why"] | "went-back";
      readonly driftMs: number;
      readonly detail: string;
    }
  | {
      readonly type: "clock-recovered";
      readonly tag: string | undefined;
      readonly afterMs: number;
    }
  /** A lease of an earlier life goes on. `leftMs`: how much of it is reserved and not used. */
  | {
      readonly type: "lease-resumed";
      readonly tag: string;
      readonly dataCenter: number;
      readonly workerId: number;
      readonly leftMs: number;
      /** Whether the registry has confirmed it. */
      readonly isConfirmed: boolean;
    }
  | { readonly type: "lease-file-ignored"; readonly why: string }
  | { readonly type: "lease-file-failed"; readonly error: IdmintError }
  /** What this server knows of its store is lost when it ends. */
  | { readonly type: "pin-file-failed"; readonly error: IdmintError }
  | { readonly type: "alarm-delivered"; readonly key: string; readonly id: string }
  | {
      readonly type: "alarm-failed";
      readonly key: string;
      /** From 1. */
      readonly attempt: number;
      readonly why: string;
    }
  | { readonly type: "alarm-dropped"; readonly key: string; readonly why: string }
  /** What OpenTelemetry's exporters are to send does not arrive, or arrives again. */
  | { readonly type: "export-failed"; readonly signal: "traces" | "metrics"; readonly why: string }
  | { readonly type: "export-back"; readonly signal: "traces" | "metrics" }
  /** Something was changed, or somebody was not allowed to; the row of the audit trail is written. */
  | { readonly type: "audit"; readonly event: AuditEvent }
  | { readonly type: "internal-error"; readonly where: string; readonly cause: unknown }
  /** The memory that there is has room for fewer connections than `limits.connections`. */
  | {
      readonly type: "connections-cut";
      readonly limit: number;
      readonly wanted: number;
      readonly memoryMb: number;
    }
  | { readonly type: "connection-refused"; readonly peer: string; readonly why: string };

export type Emit = (event: ServerEvent) => void;

/** An Emit that passes events on to listeners, none of which can break the caller or each other. */
export function emitter(listeners: readonly Emit[]): Emit {
  return (event) => {
    for (const listener of listeners) {
      try {
        listener(event);
      } catch {
        // The domain goes on whatever a log or a metric does.
      }
    }
  };
}

/** What a process of callers does; sent to it as JSON on its command line. */
export interface CallerConfig {
  /** Of the process. Its history is `NAME.ndjson` in the folder. */
  readonly name: string;
  readonly folder: string;
  /** Where gRPC is served, as `host:port`; for callers of HTTP their origins. */
  readonly addresses: readonly string[];
  /** Under which name the SDK leases worker ids: it stays over restarts. */
  readonly instance: string;
  readonly deadlineMs: number;
  readonly rpcDeadlineMs: number;
  readonly loads: readonly CallerLoad[];
}

/** Calls of one kind for one tag. */
export interface CallerLoad {
  readonly tag: string;
  /**
   * `next`: one id; `sync`: one without waiting, by the SDK only; `take`: many as segments; `text`: one as text, for UUIDs; `period`:
   * one with its period.
   */
  readonly call: "next" | "period" | "sync" | "take" | "text";
  readonly perSecond: number;
  /** Ids of a `take`. Default: 1. */
  readonly count?: number;
  /** Calls at once. Default: 1. */
  readonly parallel?: number;
}

/** One line of a history. Times are of the monotonic clock, which all processes of a machine share, in microseconds. */
export interface HistoryRow {
  readonly tag: string;
  readonly who: string;
  readonly time: string;
  readonly from: number;
  readonly to: number;
  readonly epoch?: string;
  readonly period?: string;
  readonly id?: string;
  readonly segments?: readonly {
    readonly base: string;
    readonly count: number;
    readonly increment: string;
  }[];
}

/** One line of `NAME.uuids.ndjson`: `idmint verify` reads ids that are numbers only. */
export interface UuidRow extends Omit<HistoryRow, "id" | "period" | "segments"> {
  readonly uuid: string;
}

/** One line of `NAME.refusals.ndjson`. */
export interface RefusalRow extends Omit<HistoryRow, "id" | "period" | "segments"> {
  /** `CODE REASON`; `STALL`: the process itself was not run for so long. */
  readonly refused: string;
  readonly message: string;
}

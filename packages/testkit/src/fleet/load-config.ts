/** What a process of callers does; sent to it as JSON on its command line. */
export interface LoadConfig {
  readonly addresses: readonly string[];
  readonly tag: string;
  /** File of records to make. */
  readonly file: string;
  readonly activities: readonly Activity[];
  /** Deadline of each call. */
  readonly deadlineMs: number;
  /** For the SDK: ids of its segments, least and most. */
  readonly min?: number;
  readonly max?: number;
  readonly rpcDeadlineMs?: number;
  /** Share of the calls that their callers cancel while they may be under way; for the SDK's `next` and gRPC's `id`. */
  readonly cancelShare?: number;
  /**
   * For the SDK: names under which worker ids are leased. Each is a client of its own that does all activities, and one
   * stream. Default: one client, in which each activity is a stream.
   */
  readonly instances?: readonly string[];
}

/** One caller: a stream of its own in the records. */
export interface Activity {
  /**
   * By the SDK: `next`, `string`, `sync`, `take`. By plain gRPC: `id` (GenerateId), `segments` and `list` (GenerateIds).
   */
  readonly kind: "next" | "string" | "sync" | "take" | "id" | "segments" | "list";
  readonly perSecond: number;
  /** Ids a call asks for, for `take`, `segments` and `list`. Default: 1. */
  readonly count?: number;
  /** Calls in flight at once; more are not begun. Default: 1, so that a stream is in order. */
  readonly parallel?: number;
}

/** What a process of callers says when it was told to stop: calls answered, and refusals by reason. */
export interface LoadReport {
  readonly answered: number;
  readonly errors: Readonly<Record<string, number>>;
  /** The first few refusals in full. */
  readonly samples: readonly string[];
}

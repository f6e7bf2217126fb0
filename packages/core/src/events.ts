import type { IdmintError } from "./errors.ts";

/** Why granted ids became a gap. */
export type WasteCause =
  /** The call they were granted for ended before they came. */
  | "abandoned"
  /** A newer epoch, or a fence: what was held under the old one is dropped. */
  | "dropped"
  /** Held longer than max_age. */
  | "expired"
  /** A load's answer that may not be used: it came too late, from an older epoch, or out of order. */
  | "rejected";

/** What a buffer, or a group commit, tells whoever observes it. A listener must not throw; one that does is ignored. */
export type BufferEvent =
  | { readonly type: "load-started"; readonly tag: string; readonly count: number }
  | {
      readonly type: "loaded";
      readonly tag: string;
      readonly count: number;
      readonly durationMs: number;
    }
  | {
      readonly type: "load-failed";
      readonly tag: string;
      readonly error: IdmintError;
      readonly retryInMs: number;
    }
  | {
      readonly type: "wasted";
      readonly tag: string;
      readonly count: number;
      readonly cause: WasteCause;
    };

import type { CoordinationError } from "../errors.ts";

/** What a lock tells `onEvent`: for logs and metrics, never needed for correct use. */
export type LockEvent =
  | {
      readonly type: "lock-taken";
      readonly lock: string;
      readonly token: bigint;
      /** How long `acquire` waited, in milliseconds. */
      readonly waitedMs: number;
    }
  /**
   * A node kept this lock, which somebody else holds, for longer than it was asked to, and has cut that: its clock was set
   * back, or it was promoted with a slower one.
   */
  | {
      readonly type: "clock-set-back";
      readonly lock: string;
      readonly node: string;
      /** At least so far, in milliseconds. */
      readonly byMs: number;
    }
  | { readonly type: "lock-extended"; readonly lock: string; readonly token: bigint }
  | {
      readonly type: "lock-lost";
      readonly lock: string;
      readonly token: bigint;
      readonly error: CoordinationError;
    }
  /** Given back; nodes that could not be told free it when its time is over. */
  | {
      readonly type: "lock-released";
      readonly lock: string;
      readonly token: bigint;
      readonly isComplete: boolean;
    };

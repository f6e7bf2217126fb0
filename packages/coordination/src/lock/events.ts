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

import type { PeriodUnit } from "../kinds/sequence.ts";

/** A period of a sequence, as the store's clock and the tag's time zone had it when ids were granted. */
export interface Period {
  /** The row's unit when the ids were granted: the caller's record of the tag may be older, and would misname them. */
  readonly unit: PeriodUnit;
  /** First day, YYYY-MM-DD. */
  readonly start: string;
  /** When it ends, milliseconds since 1970, by the store's clock. */
  readonly endsAtMs: number;
  /** Why a clock is not to be trusted about it; absent when nothing speaks against it. */
  readonly doubt?: PeriodDoubt;
}

/**
 * What speaks against a period.
 *
 * - `AHEAD`: it is later than the clocks are. A clock that had jumped forward began it; an operator may go back from it.
 * - `HELD_BACK`: the store's clock is in a later one, and this server's is not. It goes on until both are.
 */
export type PeriodDoubt = "AHEAD" | "HELD_BACK";

/** A period and an id as one text that is unique within the tag: 20261121-1, 2026W47-1, 202611-1 or 2026-1. */
export function periodText(name: string, id: bigint): string {
  return `${name.replaceAll("-", "")}-${id}`;
}

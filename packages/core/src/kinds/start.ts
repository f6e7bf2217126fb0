import type { InvalidReason } from "../errors.ts";
import type { Field, KindContext } from "./spec.ts";

/** The field `start` of kinds that count from it. */
export const START: Field = {
  type: "id",
  default: 1n,
  change: "before-first-id",
  help: "first id",
};

/** What `settling` makes of a draft that has a start. */
interface Startable {
  readonly value: (key: "start") => bigint;
  readonly check: (
    isGood: boolean,
    key: "start",
    description: string,
    reason: InvalidReason,
  ) => void;
}

/** The first id that a draft asks for. */
export function startOf({ value, check }: Startable, { ceiling }: KindContext): bigint {
  const start = value("start");
  // A ceiling that is wrong itself has its own violation.
  const isGood = start >= 1n && (start <= ceiling || ceiling < 1n);
  check(isGood, "start", `must be 1 to the tag's ceiling, got ${start}`, "VALUE_OUT_OF_RANGE");
  return start;
}

import { checkInteger, checkKnown, checkName } from "../checks.ts";
import { invalidField } from "../errors.ts";
import type { QueueOptions, QueueOrder, TakeOptions } from "./api.ts";

/** Options with defaults filled in and everything checked. */
export interface ResolvedQueueOptions {
  readonly name: string;
  readonly prefix: string;
  readonly order: QueueOrder;
  readonly maxLength: number;
  readonly maxBytes: number;
  readonly maxHeld: number;
  readonly consumerTtlMs: number;
  readonly commandTimeoutMs: number;
  readonly mayEvict: boolean;
}

const KNOWN = [
  "commandTimeoutMs",
  "consumerTtlMs",
  "maxBytes",
  "maxHeld",
  "maxLength",
  "mayEvict",
  "name",
  "onEvent",
  "order",
  "prefix",
  "redis",
] as const satisfies readonly (keyof QueueOptions)[];

/** Throws INVALID_ARGUMENT that names the first bad option. */
export function resolveQueueOptions(options: QueueOptions): ResolvedQueueOptions {
  checkKnown("options", options, KNOWN);
  const { order = "fifo" } = options;
  if (order !== "fifo" && order !== "filo") throw invalidField("order", "must be fifo or filo");
  const whole = (
    field: "commandTimeoutMs" | "consumerTtlMs" | "maxBytes" | "maxHeld" | "maxLength",
    min: number,
    max: number,
    fallback: number,
  ): number => checkInteger(field, options[field], { min, max, fallback });
  return {
    name: checkName("name", options.name),
    prefix: checkName("prefix", options.prefix ?? "idmint"),
    order,
    maxLength: whole("maxLength", 1, 10_000_000, 100_000),
    maxBytes: whole("maxBytes", 1, 16_777_216, 65_536),
    maxHeld: whole("maxHeld", 1, 100_000, 1_000),
    consumerTtlMs: whole("consumerTtlMs", 1_000, 3_600_000, 30_000),
    mayEvict: options.mayEvict ?? false,
    commandTimeoutMs: whole("commandTimeoutMs", 10, 60_000, 2_000),
  };
}

/** The time-out of a call, checked. */
export function takeTimeoutMs(options: TakeOptions): number {
  checkKnown("options", options, ["signal", "timeoutMs"]);
  const bounds = { min: 1, max: 3_600_000, fallback: 5_000 };
  return checkInteger("timeoutMs", options.timeoutMs, bounds);
}

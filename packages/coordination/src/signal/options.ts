import { checkInteger, checkKnown, checkName } from "../checks.ts";
import { invalidField } from "../errors.ts";
import { safely } from "../listener.ts";
import type { SignalEvent, SignalsOptions, WaitOptions, Wanted } from "./api.ts";

/** Options with defaults filled in and everything checked. */
export interface SignalSettings {
  readonly prefix: string;
  readonly isCounted: boolean;
  readonly maxBytes: number;
  readonly maxWaiters: number;
  readonly maxBuffered: number;
  readonly maxRemembered: number;
  readonly maxKept: number;
  readonly leaseMs: number;
  readonly commandTimeoutMs: number;
  readonly onEvent: (event: SignalEvent) => void;
}

/** Most names of one listener. */
const MAX_NAMES = 1_000;
/** Longest data anybody may send: more is not read. */
export const MAX_BYTES = 1_048_576;

const KNOWN = [
  "commandTimeoutMs",
  "isCounted",
  "leaseMs",
  "maxBuffered",
  "maxBytes",
  "maxKept",
  "maxRemembered",
  "maxWaiters",
  "onEvent",
  "prefix",
  "redis",
  "replica",
] as const satisfies readonly (keyof SignalsOptions)[];

/** Throws INVALID_ARGUMENT that names the first bad option. */
export function resolveSettings(options: SignalsOptions): SignalSettings {
  checkKnown("options", options, KNOWN);
  type Whole = Exclude<keyof SignalSettings, "isCounted" | "onEvent" | "prefix">;
  const whole = (field: Whole, min: number, max: number, fallback: number): number =>
    checkInteger(field, options[field], { min, max, fallback });
  return {
    prefix: checkName("prefix", options.prefix ?? "idmint"),
    isCounted: options.isCounted ?? false,
    maxBytes: whole("maxBytes", 0, MAX_BYTES, 16_384),
    maxWaiters: whole("maxWaiters", 1, 1_000_000, 10_000),
    maxBuffered: whole("maxBuffered", 1, 100_000, 1_000),
    maxRemembered: whole("maxRemembered", 1, 1_000_000, 10_000),
    maxKept: whole("maxKept", 0, 1_000_000, 1_000),
    leaseMs: whole("leaseMs", 300, 60_000, 5_000),
    commandTimeoutMs: whole("commandTimeoutMs", 10, 60_000, 2_000),
    onEvent: safely(options.onEvent),
  };
}

/** The time-out of a call, checked. */
export function waitTimeoutMs(options: WaitOptions): number {
  checkKnown("options", options, ["signal", "timeoutMs"]);
  const bounds = { min: 1, max: 86_400_000, fallback: 5_000 };
  return checkInteger("timeoutMs", options.timeoutMs, bounds);
}

/** What a listener wants, checked: names, or a pattern. */
export interface CheckedWanted {
  readonly names: readonly string[];
  readonly pattern: string | undefined;
  readonly isAll: boolean;
}

const PATTERN = /^[A-Za-z0-9._:*?[\]^-]{1,128}$/;

export function checkWanted(wanted: Wanted, isCounted: boolean): CheckedWanted {
  if (typeof wanted === "string") {
    return { names: [checkName("name", wanted)], pattern: undefined, isAll: false };
  }
  if ("pattern" in wanted) {
    const { pattern } = wanted;
    if (typeof pattern !== "string" || !PATTERN.test(pattern)) {
      throw invalidField("pattern", "must be 1 to 128 characters of names and of * ? [ ] ^");
    }
    if (!isCounted) return { names: [], pattern, isAll: false };
    throw invalidField("pattern", "cannot be counted; wait for names, or leave isCounted out");
  }
  const isAll = "allOf" in wanted;
  const field = isAll ? "allOf" : "anyOf";
  const names = isAll ? wanted.allOf : wanted.anyOf;
  if (!isList(names) || names.length < 1 || names.length > MAX_NAMES) {
    throw invalidField(field, `must be a list of 1 to ${MAX_NAMES} names`);
  }
  for (const name of names) checkName(field, name);
  if (new Set(names).size !== names.length) throw invalidField(field, "must not repeat a name");
  return { names: [...names], pattern: undefined, isAll };
}

/** Callers without types may give anything. */
function isList(names: unknown): boolean {
  return Array.isArray(names);
}

import type { Periods, PeriodUnit, RedisPlace, SequenceKind } from "@idmint/core";
import { check, checkStart, type KindContext } from "./draft.ts";

/** Defaults and bounds of a sequence, as proto/idmint/v1/tag.proto documents them. */
const DEFAULT_START = 1n;
const DAY_MS = 24 * 3_600_000;
const DEFAULT_KEEP_FOR_MS = 400 * DAY_MS;
const MAX_KEEP_FOR_MS = 3_650 * DAY_MS;
const DEFAULT_STEP = 10_000;
const MAX_STEP = 1_000_000_000;
/** The IANA database has none longer than half of this. */
const MAX_ZONE_LENGTH = 64;

export interface SequenceDraft {
  readonly kind: "sequence";
  readonly start: bigint;
  /** `undefined`: it never restarts; `UNKNOWN`: a value this server does not know. */
  readonly period: PeriodUnit | "UNKNOWN" | undefined;
  readonly timeZone: string;
  /** NaN: a duration that no number of milliseconds is. */
  readonly keepForMs: number | undefined;
  readonly backend: "STORE" | "REDIS" | "UNKNOWN" | undefined;
  readonly step: number;
  /** The Redis shard it counts in already; undefined: it is to be placed. */
  readonly shard: string | undefined;
}

/** A draft in which every field is the default. */
export const DEFAULT_SEQUENCE: SequenceDraft = {
  kind: "sequence",
  start: 0n,
  period: undefined,
  timeZone: "",
  keepForMs: undefined,
  backend: undefined,
  step: 0,
  shard: undefined,
};

export function sequenceOf(draft: SequenceDraft, context: KindContext): SequenceKind {
  const start = draft.start === 0n ? DEFAULT_START : draft.start;
  checkStart(context, "tag.sequence.start", start);
  const redis = redisOf(draft, context);
  const periods = periodsOf(draft, start, context);
  return { kind: "sequence", start, periods, redis };
}

export function sequenceDraftOf({ start, periods, redis }: SequenceKind): SequenceDraft {
  return {
    kind: "sequence",
    start,
    period: periods?.unit,
    timeZone: periods?.timeZone ?? "",
    keepForMs: periods?.keepForMs,
    backend: redis === undefined ? "STORE" : "REDIS",
    step: redis?.step ?? 0,
    shard: redis?.shard,
  };
}

/** Whether nothing differs but what may change after the first id. */
export function isSameSequence(one: SequenceKind, other: SequenceKind): boolean {
  return (
    one.start === other.start &&
    one.periods?.unit === other.periods?.unit &&
    one.periods?.timeZone === other.periods?.timeZone &&
    one.redis?.shard === other.redis?.shard
  );
}

function periodsOf(draft: SequenceDraft, start: bigint, context: KindContext): Periods | undefined {
  const { period, timeZone, keepForMs: keepFor, backend } = draft;
  if (period === undefined) {
    const wayOut = "must be empty without a period: set tag.sequence.period too";
    check(context, timeZone === "", "tag.sequence.time_zone", wayOut, "FIELD_CONFLICT");
    check(context, keepFor === undefined, "tag.sequence.keep_for", wayOut, "FIELD_CONFLICT");
    return undefined;
  }
  const keepForMs = keepFor ?? DEFAULT_KEEP_FOR_MS;
  check(
    context,
    period !== "UNKNOWN",
    "tag.sequence.period",
    "must be one of PERIOD_UNIT_DAY, PERIOD_UNIT_WEEK, PERIOD_UNIT_MONTH, PERIOD_UNIT_YEAR, or empty",
    "UNKNOWN_VALUE",
  );
  check(
    context,
    backend !== "REDIS",
    "tag.sequence.period",
    "must be empty with SEQUENCE_BACKEND_REDIS: only the store begins periods",
    "FIELD_CONFLICT",
  );
  check(
    context,
    start === 1n || start < 1n,
    "tag.sequence.start",
    `must be 1 with a period, since every period begins at 1; got ${start}`,
    "FIELD_CONFLICT",
  );
  check(
    context,
    isTimeZone(timeZone),
    "tag.sequence.time_zone",
    timeZoneText(timeZone),
    timeZone === "" ? "FIELD_REQUIRED" : "UNKNOWN_VALUE",
  );
  check(
    context,
    Number.isInteger(keepForMs) && keepForMs >= DAY_MS && keepForMs <= MAX_KEEP_FOR_MS,
    "tag.sequence.keep_for",
    "must be 1 day (86400s) to 3,650 days (315360000s), in whole milliseconds",
    "VALUE_OUT_OF_RANGE",
  );
  return period === "UNKNOWN" ? undefined : { unit: period, timeZone, keepForMs };
}

function redisOf(draft: SequenceDraft, context: KindContext): RedisPlace | undefined {
  const { backend, step: wanted } = draft;
  if (backend !== "REDIS") {
    check(
      context,
      backend !== "UNKNOWN",
      "tag.sequence.backend",
      "must be one of SEQUENCE_BACKEND_STORE, SEQUENCE_BACKEND_REDIS, or empty",
      "UNKNOWN_VALUE",
    );
    check(
      context,
      wanted === 0,
      "tag.sequence.step",
      "must be empty without SEQUENCE_BACKEND_REDIS: in the store there is no maximum to raise",
      "FIELD_CONFLICT",
    );
    return undefined;
  }
  const step = wanted === 0 ? DEFAULT_STEP : wanted;
  check(
    context,
    step >= 1 && step <= MAX_STEP,
    "tag.sequence.step",
    `must be 1 to ${MAX_STEP}, or 0 for the default, got ${step}`,
    "VALUE_OUT_OF_RANGE",
  );
  const shard = draft.shard ?? context.placement?.redisShardFor(context.name);
  check(
    context,
    shard !== undefined,
    "tag.sequence.backend",
    "must not be SEQUENCE_BACKEND_REDIS here: this server is not configured with redis.urls",
    "INVALID_ARGUMENT",
  );
  return { shard: shard ?? "", step };
}

/**
 * Names without an area mean something else to PostgreSQL, which takes CET for an abbreviation, without summer time; so
 * do offsets. The store has the last word: it must know the zone too.
 */
function isTimeZone(name: string): boolean {
  if (name.length > MAX_ZONE_LENGTH) return false;
  if (name !== "UTC" && !/^[A-Za-z_]+(?:\/[A-Za-z0-9_+-]+)+$/u.test(name)) return false;
  try {
    return new Intl.DateTimeFormat("en", { timeZone: name }).resolvedOptions().timeZone !== "";
  } catch {
    return false;
  }
}

function timeZoneText(name: string): string {
  const what = "UTC or an area and place of the IANA database that this server knows";
  if (name === "") return `is required with a period: ${what}, such as Asia/Shanghai`;
  const shown = JSON.stringify(name.slice(0, MAX_ZONE_LENGTH));
  return `must be ${what}, such as Asia/Shanghai; got ${shown}`;
}

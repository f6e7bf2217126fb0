import { MAX_ID, MAX_SAFE_ID } from "../limits.ts";
import { idFrom, integerFrom, oneOf, textFrom } from "./row.ts";
import { type Settling, settling } from "./settling.ts";
import type { EnumType, FieldsOf, Json, KindContext, KindSpec } from "./spec.ts";
import { START, startOf } from "./start.ts";

/** How often a sequence starts again from 1. */
export type PeriodUnit = "DAY" | "WEEK" | "MONTH" | "YEAR";

/** Periods of a sequence that restarts. */
export interface Periods {
  readonly unit: PeriodUnit;
  /** A name of the IANA database. */
  readonly timeZone: string;
  /** How long the last ids of ended periods are kept, in milliseconds; 1 … 3,650 days. */
  readonly keepForMs: number;
}

/** Where and how a sequence counts in Redis. */
interface RedisPlace {
  /** Name of the Redis server. */
  readonly server: string;
  /** Fewest ids by which the maximum is raised; 1 … 1,000,000,000. */
  readonly step: number;
  /** Most ids below the maximum that are not issued yet; `step` … 1,000,000,000. Undefined: any number. */
  readonly maxSkip?: number;
}

/** Settings of a tag of kind sequence, defaults filled in. */
export interface SequenceKind {
  readonly kind: "sequence";
  /** First id; 1 … ceiling, 1 with periods. */
  readonly start: bigint;
  /** Undefined: it never restarts. Always so in Redis. */
  readonly periods: Periods | undefined;
  /** Undefined: it counts in the store. */
  readonly redis: RedisPlace | undefined;
}

export interface SequenceDraft {
  readonly kind: "sequence";
  readonly start?: bigint | undefined;
  readonly period?: PeriodUnit | "UNKNOWN" | undefined;
  readonly time_zone?: string | undefined;
  readonly keep_for?: number | undefined;
  readonly backend?: "STORE" | "REDIS" | "UNKNOWN" | undefined;
  readonly step?: number | undefined;
  readonly max_skip?: number | undefined;
  readonly redis_server?: string | undefined;
}

const UNITS: readonly PeriodUnit[] = ["DAY", "WEEK", "MONTH", "YEAR"];
const BACKENDS: EnumType = { name: "SEQUENCE_BACKEND", values: ["STORE", "REDIS"] };
const DAY_MS = 24 * 3_600_000;
const MAX_STEP = 1_000_000_000;
const DEFAULT_STEP = 10_000;
/** The IANA database has none longer than half of this. */
const MAX_ZONE_LENGTH = 64;

const FIELDS: FieldsOf<SequenceDraft> = {
  start: START,
  backend: {
    type: "enum",
    enum: BACKENDS,
    default: "STORE",
    change: "never",
    help: "where the tag counts",
  },
  step: {
    type: "int32",
    default: DEFAULT_STEP,
    range: [1, MAX_STEP],
    change: "any-time",
    help: "fewest ids by which the maximum in Redis is raised",
  },
  max_skip: {
    type: "int32",
    range: [1, MAX_STEP],
    change: "any-time",
    help: "most ids that a new start of Redis skips (what redis.raise_by reserves unless set)",
  },
  period: {
    type: "enum",
    enum: { name: "PERIOD_UNIT", values: UNITS },
    change: "before-first-id",
    help: "how often it starts again from 1 (never unless set)",
  },
  time_zone: {
    type: "text",
    change: "before-first-id",
    help: "zone in which periods begin, such as Asia/Shanghai or UTC",
  },
  keep_for: {
    type: "duration",
    default: 400 * DAY_MS,
    range: [DAY_MS, 3_650 * DAY_MS],
    change: "any-time",
    help: "how long the last ids of ended periods are kept",
  },
  redis_server: {
    type: "text",
    role: "placed",
    change: "any-time",
    help: "Redis server that counts",
  },
};

function settle(draft: SequenceDraft, context: KindContext): SequenceKind {
  const of = settling(draft, FIELDS, context);
  const start = startOf(of, context);
  const redis = redisOf(draft, of, context);
  const periods = periodsOf(draft, of, start);
  return { kind: "sequence", start, periods, redis };
}

function periodsOf(
  { period, time_zone: timeZone = "", keep_for: keepFor, backend }: SequenceDraft,
  of: Settling<SequenceDraft>,
  start: bigint,
): Periods | undefined {
  if (period === undefined) {
    const wayOut = "must be empty without a period: set tag.sequence.period too";
    of.check(timeZone === "", "time_zone", wayOut);
    of.check(keepFor === undefined, "keep_for", wayOut);
    return undefined;
  }
  const unit = of.given("period");
  of.check(
    backend !== "REDIS",
    "period",
    "must be empty with SEQUENCE_BACKEND_REDIS: only the store begins periods",
  );
  of.check(
    start === 1n || start < 1n,
    "start",
    `must be 1 with a period, since every period begins at 1; got ${start}`,
  );
  of.check(
    isTimeZone(timeZone),
    "time_zone",
    timeZoneText(timeZone),
    timeZone === "" ? "FIELD_REQUIRED" : "UNKNOWN_VALUE",
  );
  const keepForMs = of.value("keep_for");
  return unit === undefined ? undefined : { unit, timeZone, keepForMs };
}

function redisOf(
  draft: SequenceDraft,
  of: Settling<SequenceDraft>,
  { name, placement }: KindContext,
): RedisPlace | undefined {
  if (of.value("backend") !== "REDIS") {
    const why = "in the store there is no maximum to raise";
    const wayOut = `must be empty without SEQUENCE_BACKEND_REDIS: ${why}`;
    of.check(draft.step === undefined, "step", wayOut);
    of.check(draft.max_skip === undefined, "max_skip", wayOut);
    return undefined;
  }
  const maxSkip = of.given("max_skip");
  const isShort = draft.step === undefined && maxSkip !== undefined && maxSkip < DEFAULT_STEP;
  const step = isShort ? maxSkip : of.value("step");
  const tooFew = `must be at least step, ${step}: no raise is smaller; got ${maxSkip}`;
  of.check(maxSkip === undefined || maxSkip >= step, "max_skip", tooFew);
  const redisServer = draft.redis_server ?? placement?.redisServerFor(name);
  const notHere =
    "must not be SEQUENCE_BACKEND_REDIS here: this server is not configured with redis.urls";
  of.check(redisServer !== undefined, "backend", notHere, "NOT_CONFIGURED");
  return { server: redisServer ?? "", step, ...(maxSkip === undefined ? {} : { maxSkip }) };
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

function write({ start, periods, redis }: SequenceKind): string {
  return JSON.stringify({
    start: String(start),
    periods:
      periods === undefined
        ? null
        : { unit: periods.unit, timeZone: periods.timeZone, keepForMs: periods.keepForMs },
    redis:
      redis === undefined
        ? null
        : { shard: redis.server, step: redis.step, maxSkip: redis.maxSkip },
  });
}

function read(json: Json): SequenceKind {
  const periods = json["periods"] as Json | null;
  const redis = json["redis"] as Json | null;
  return {
    kind: "sequence",
    start: idFrom(json["start"]),
    periods:
      periods === null
        ? undefined
        : {
            unit: oneOf(periods["unit"], UNITS),
            timeZone: textFrom(periods["timeZone"]),
            keepForMs: integerFrom(periods["keepForMs"], 1),
          },
    redis:
      redis === null
        ? undefined
        : {
            server: textFrom(redis["shard"]),
            step: integerFrom(redis["step"], 1),
            ...(redis["maxSkip"] === undefined
              ? {}
              : { maxSkip: integerFrom(redis["maxSkip"], 1) }),
          },
  };
}

export const SEQUENCE: KindSpec<"sequence", SequenceDraft, SequenceKind> = {
  name: "sequence",
  orders: ["STRICT"],
  whyOrders: "each of its ids is larger than all that were answered before it was asked for",
  ids: "number",
  composed: undefined,
  timeEndMs: () => undefined,
  isOfNames: () => false,
  issuesToFloor: true,
  reportsIssued: true,
  isLayout: false,
  fields: FIELDS,
  // The scripts of Redis count no further.
  maxCeiling: ({ backend }) => (backend === "REDIS" ? MAX_SAFE_ID : MAX_ID),
  settle,
  draftOf: ({ start, periods, redis }) => ({
    kind: "sequence",
    start,
    period: periods?.unit,
    time_zone: periods?.timeZone,
    keep_for: periods?.keepForMs,
    backend: redis === undefined ? "STORE" : "REDIS",
    step: redis?.step,
    max_skip: redis?.maxSkip,
    redis_server: redis?.server,
  }),
  row: { write, read },
  countedIn: ({ redis }) => (redis === undefined ? "store" : "redis"),
  redisServer: ({ redis }) => redis?.server,
  placedIn: (settings, server) =>
    settings.redis === undefined ? settings : { ...settings, redis: { ...settings.redis, server } },
  memoryMs: () => 0,
  // The floor says nothing of ids of other periods.
  mayFollow: (dead, next) => {
    const unit = dead.periods?.unit;
    if (unit === undefined || next?.periods?.unit === unit) return undefined;
    const why = "a deleted sequence with that period has this name, and its ids would be repeated";
    const description = `must be ${unit}: ${why}; take another name`;
    return { field: "tag.sequence.period", description };
  },
};

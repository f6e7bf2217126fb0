import {
  DEFAULT_TIME_ORIGIN_MS,
  encode,
  endOf,
  idsPerSecond,
  LAYOUT_RANGES,
  layoutViolations,
  maxIdOf,
  SNOWFLAKE_PRESETS,
  type SnowflakeLayout,
  tickAt,
} from "../snowflake/layout.ts";
import { MAX_LEAD_MS, MAX_RESERVE_AHEAD_MS } from "../worker/limits.ts";
import { integerFrom, oneOf, textFrom } from "./row.ts";
import { type Settling, settling } from "./settling.ts";
import type { Composed, Field, FieldsOf, Json, KindContext, KindSpec } from "./spec.ts";

/**
 * What a worker does when its clock went back further than its reservation reaches and than is waited for: refuse until
 * the clock has caught up; go on with the next extension; go on with another worker id.
 */
export type ClockPolicy = "REFUSE" | "EXTENSION" | "BACKUP_WORKER";

/** Settings of a tag of kind snowflake, defaults filled in. Its ceiling is the highest id of the layout. */
export interface SnowflakeKind {
  readonly kind: "snowflake";
  readonly layout: SnowflakeLayout;
  /** Data center of workers that name none; 0 … 2^dataCenterBits − 1. */
  readonly dataCenter: number;
  /** EXTENSION only with extension bits. */
  readonly clockPolicy: ClockPolicy;
  /** Longest setting back of the clock that is waited for, in milliseconds; 0 … 1,000. */
  readonly clockWaitMs: number;
  /** Where worker ids are leased, and nowhere else. */
  readonly registry: "STORE" | "REDIS";
  /** Name of the Redis server that has the registry; a new tag is placed on one. Absent with registry STORE. */
  readonly redisServer?: string;
}

/** A layout as a caller wrote it. */
interface LayoutDraft {
  readonly time_unit?: number | undefined;
  readonly time_bits?: number | undefined;
  readonly time_origin?: number | undefined;
  readonly data_center_bits?: number | undefined;
  readonly worker_bits?: number | undefined;
  readonly sequence_bits?: number | undefined;
  readonly extension_bits?: number | undefined;
}

export interface SnowflakeDraft {
  readonly kind: "snowflake";
  readonly layout?: LayoutDraft | undefined;
  readonly data_center?: number | undefined;
  readonly clock_policy?: ClockPolicy | "UNKNOWN" | undefined;
  readonly clock_wait?: number | undefined;
  readonly registry?: SnowflakeKind["registry"] | "UNKNOWN" | undefined;
  readonly allow_short_life?: boolean | undefined;
  readonly end_time?: number | undefined;
  readonly ids_per_second?: bigint | undefined;
  readonly redis_server?: string | undefined;
}

const DEFAULT_LAYOUT = SNOWFLAKE_PRESETS["41-10-12"];
/** As many as Redis looks through at once when all worker ids of a data center were leased before. */
const MAX_REDIS_WORKER_BITS = 16;
const POLICIES: readonly ClockPolicy[] = ["REFUSE", "EXTENSION", "BACKUP_WORKER"];
const REGISTRIES: readonly SnowflakeKind["registry"][] = ["STORE", "REDIS"];

const BITS = { type: "int32", change: "before-first-id", flag: null } as const;

const LAYOUT_FIELDS: FieldsOf<LayoutDraft> = {
  time_unit: {
    type: "duration",
    default: DEFAULT_LAYOUT.timeUnitMs,
    range: LAYOUT_RANGES.time_unit,
    change: "before-first-id",
    help: "what the time is counted in",
  },
  time_bits: { ...BITS, range: LAYOUT_RANGES.time_bits, help: "bits of the time" },
  time_origin: {
    type: "time",
    default: DEFAULT_TIME_ORIGIN_MS,
    change: "before-first-id",
    help: "where time begins, as a date, a time in UTC or milliseconds since 1970",
  },
  data_center_bits: {
    ...BITS,
    default: 0,
    range: LAYOUT_RANGES.data_center_bits,
    help: "bits of the data center",
  },
  worker_bits: {
    ...BITS,
    default: 0,
    range: LAYOUT_RANGES.worker_bits,
    help: "bits of the worker",
  },
  sequence_bits: { ...BITS, range: LAYOUT_RANGES.sequence_bits, help: "bits of the sequence" },
  extension_bits: {
    type: "int32",
    default: 0,
    range: LAYOUT_RANGES.extension_bits,
    change: "before-first-id",
    help: "bits that count how often a clock went back",
  },
};

const LAYOUT: Field = {
  type: "message",
  fields: LAYOUT_FIELDS,
  change: "before-first-id",
  flag: null,
  help: "how ids are composed (41 bits of milliseconds, 10 of worker, 12 of sequence unless set)",
};

const FIELDS: FieldsOf<SnowflakeDraft> = {
  layout: LAYOUT,
  data_center: {
    type: "int32",
    default: 0,
    range: [0, 2 ** LAYOUT_RANGES.data_center_bits[1] - 1],
    change: "any-time",
    help: "data center for workers that name none",
  },
  clock_policy: {
    type: "enum",
    enum: { name: "CLOCK_POLICY", values: POLICIES },
    default: "REFUSE",
    change: "any-time",
    help: "what to do when a clock goes back",
  },
  clock_wait: {
    type: "duration",
    default: 5,
    range: [0, 1_000],
    change: "any-time",
    help: "longest step back of the clock that is waited out",
  },
  registry: {
    type: "enum",
    enum: { name: "WORKER_REGISTRY", values: REGISTRIES },
    default: "STORE",
    change: "never",
    help: "where worker ids are leased",
  },
  allow_short_life: {
    type: "bool",
    role: "input-only",
    of: "layout",
    change: "any-time",
    help: "allow a layout whose time ends in less than 365 days",
  },
  end_time: {
    type: "time",
    role: "output-only",
    of: "layout",
    change: "before-first-id",
    help: "when the bits of the time run out",
  },
  ids_per_second: {
    type: "id",
    role: "output-only",
    of: "layout",
    change: "before-first-id",
    help: "most ids that one worker makes in a second",
  },
  redis_server: {
    type: "text",
    role: "placed",
    change: "any-time",
    help: "Redis server that has the registry",
  },
};

/** A layout as a caller wrote it, with what it leaves out. */
export function snowflakeLayoutOf(draft: LayoutDraft | undefined): SnowflakeLayout {
  if (draft === undefined) return DEFAULT_LAYOUT;
  return {
    timeUnitMs: draft.time_unit ?? DEFAULT_LAYOUT.timeUnitMs,
    timeOriginMs: draft.time_origin ?? DEFAULT_LAYOUT.timeOriginMs,
    timeBits: draft.time_bits ?? 0,
    extensionBits: draft.extension_bits ?? 0,
    dataCenterBits: draft.data_center_bits ?? 0,
    workerBits: draft.worker_bits ?? 0,
    sequenceBits: draft.sequence_bits ?? 0,
  };
}

function settle(draft: SnowflakeDraft, context: KindContext): SnowflakeKind {
  const of = settling(draft, FIELDS, context);
  const layout = snowflakeLayoutOf(draft.layout);
  const { violations, nowMs } = context;
  const allowShortLife = draft.allow_short_life ?? false;
  const wrong = layoutViolations("tag.snowflake.layout", layout, { nowMs, allowShortLife });
  violations.push(...wrong);
  const dataCenter = draft.data_center ?? 0;
  if (wrong.length === 0) {
    const max = 2 ** layout.dataCenterBits - 1;
    const isGood = Number.isInteger(dataCenter) && dataCenter >= 0 && dataCenter <= max;
    const why = `must be 0 to ${max}, the range of data_center_bits, got ${dataCenter}`;
    of.check(isGood, "data_center", why, "VALUE_OUT_OF_RANGE");
  }
  const clockWaitMs = of.value("clock_wait");
  const place = placeOf(draft, of, context);
  const clockPolicy = policyOf(of, layout, place.registry);
  return { kind: "snowflake", layout, dataCenter, clockPolicy, clockWaitMs, ...place };
}

function policyOf(
  { value, check }: Settling<SnowflakeDraft>,
  layout: SnowflakeLayout,
  registry: SnowflakeKind["registry"],
): ClockPolicy {
  const policy = value("clock_policy");
  if (policy !== "EXTENSION") return policy;
  const withoutBits = "must not be CLOCK_POLICY_EXTENSION without extension_bits in the layout";
  check(layout.extensionBits > 0, "clock_policy", withoutBits);
  const why = "because the store's bound for Redis has no extensions";
  const inRedis = `must not be CLOCK_POLICY_EXTENSION with the registry in Redis, ${why}`;
  check(registry === "STORE", "clock_policy", inRedis);
  return policy;
}

function placeOf(
  draft: SnowflakeDraft,
  of: Settling<SnowflakeDraft>,
  { name, placement, violations }: KindContext,
): Pick<SnowflakeKind, "redisServer" | "registry"> {
  const registry = of.value("registry");
  if (registry === "STORE") return { registry };
  const redisServer = draft.redis_server ?? placement?.redisServerFor(name);
  const notHere =
    "cannot be WORKER_REGISTRY_REDIS here: this server is not configured with redis.urls";
  of.check(redisServer !== undefined, "registry", notHere, "NOT_CONFIGURED");
  const { workerBits } = snowflakeLayoutOf(draft.layout);
  if (workerBits > MAX_REDIS_WORKER_BITS) {
    const field = "tag.snowflake.layout.worker_bits";
    const description = `must be at most ${MAX_REDIS_WORKER_BITS} with the registry in Redis, got ${workerBits}`;
    violations.push({ field, description, reason: "FIELD_CONFLICT" });
  }
  return { registry, redisServer: redisServer ?? "" };
}

function draftOf(settings: SnowflakeKind): SnowflakeDraft {
  const { kind, layout, dataCenter, clockPolicy, clockWaitMs, registry, redisServer } = settings;
  return {
    kind,
    layout: {
      time_unit: layout.timeUnitMs,
      time_bits: layout.timeBits,
      time_origin: layout.timeOriginMs,
      data_center_bits: layout.dataCenterBits,
      worker_bits: layout.workerBits,
      sequence_bits: layout.sequenceBits,
      extension_bits: layout.extensionBits,
    },
    data_center: dataCenter,
    clock_policy: clockPolicy,
    clock_wait: clockWaitMs,
    registry,
    // How long the layout still lives was looked at when it was set.
    allow_short_life: true,
    end_time: endOf(layout),
    ids_per_second: BigInt(idsPerSecond(layout)),
    redis_server: redisServer,
  };
}

function write(kind: SnowflakeKind): string {
  const { layout, dataCenter, clockPolicy, clockWaitMs, registry, redisServer } = kind;
  const { timeUnitMs, timeOriginMs, timeBits, extensionBits, ...low } = layout;
  const { dataCenterBits, workerBits, sequenceBits } = low;
  const high = { timeUnitMs, timeOriginMs, timeBits, extensionBits };
  return JSON.stringify({
    layout: { ...high, dataCenterBits, workerBits, sequenceBits },
    dataCenter,
    clockPolicy,
    clockWaitMs,
    registry,
    redisShard: redisServer ?? null,
  });
}

function read(json: Json): SnowflakeKind {
  const layout = json["layout"] as Json;
  const redisServer = json["redisShard"];
  return {
    kind: "snowflake",
    layout: {
      timeUnitMs: integerFrom(layout["timeUnitMs"], 1),
      timeOriginMs: integerFrom(layout["timeOriginMs"], 0),
      timeBits: integerFrom(layout["timeBits"], 1),
      extensionBits: integerFrom(layout["extensionBits"], 0),
      dataCenterBits: integerFrom(layout["dataCenterBits"], 0),
      workerBits: integerFrom(layout["workerBits"], 0),
      sequenceBits: integerFrom(layout["sequenceBits"], 1),
    },
    dataCenter: integerFrom(json["dataCenter"], 0),
    clockPolicy: oneOf(json["clockPolicy"], POLICIES),
    clockWaitMs: integerFrom(json["clockWaitMs"], 0),
    registry: oneOf(json["registry"], REGISTRIES),
    ...(redisServer === null ? {} : { redisServer: textFrom(redisServer) }),
  };
}

const COMPOSED: Composed<SnowflakeKind> = {
  bits: ({ layout }) =>
    [
      { name: "time", bits: layout.timeBits },
      { name: "extension", bits: layout.extensionBits },
      { name: "data_center", bits: layout.dataCenterBits },
      { name: "worker", bits: layout.workerBits },
      { name: "sequence", bits: layout.sequenceBits },
    ].filter(({ bits }) => bits > 0),
  idsPerSecond: ({ layout }) => {
    const workers = 2n ** BigInt(layout.dataCenterBits + layout.workerBits);
    return BigInt(idsPerSecond(layout)) * workers;
  },
  examples: ({ layout, dataCenter }, nowMs) => {
    const none = { extension: 0, worker: 0, sequence: 0 };
    const now = encode(layout, { tick: tickAt(layout, nowMs), dataCenter, ...none });
    return [now, maxIdOf(layout)];
  },
  layout: ({ layout }) => layout,
  own: ({ dataCenter }) => ({ dataCenter }),
  isShown: true,
};

export const SNOWFLAKE: KindSpec<"snowflake", SnowflakeDraft, SnowflakeKind> = {
  name: "snowflake",
  orders: ["UNORDERED"],
  whyOrders: "each worker makes them by its own clock",
  ids: "number",
  composed: COMPOSED,
  timeEndMs: ({ layout }) => endOf(layout),
  isOfNames: () => false,
  issuesToFloor: false,
  reportsIssued: true,
  isLayout: true,
  fields: FIELDS,
  whyNoCeiling: "it is the highest id of the layout",
  ceiling: ({ layout }) => maxIdOf(layout),
  settle,
  draftOf,
  row: { write, read },
  countedIn: ({ registry }) => (registry === "REDIS" ? "redis" : "store"),
  redisServer: ({ redisServer }) => redisServer,
  placedIn: (settings, redisServer) =>
    settings.registry === "REDIS" ? { ...settings, redisServer } : settings,
  memoryMs: () => MAX_RESERVE_AHEAD_MS + MAX_LEAD_MS,
  // Leases of before go on in the same registry, and ids of another layout are other numbers.
  mayFollow: (dead, next) => {
    const isSame =
      next?.registry === dead.registry &&
      Object.entries(dead.layout).every(
        ([name, value]) => next.layout[name as keyof SnowflakeLayout] === value,
      );
    if (isSame) return undefined;
    const why = "its ids would be repeated";
    const description = `must be that of the deleted snowflake tag of this name, with its registry: ${why}; take another name`;
    return { field: "tag.snowflake.layout", description };
  },
};

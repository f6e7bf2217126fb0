import { type FieldViolation, invalidField } from "../errors.ts";

/**
 * How the ids of a snowflake tag are composed, from the highest bit to the lowest: 0, time, extension, data center, worker,
 * sequence. The time is counted in ticks of `timeUnitMs` since `timeOriginMs`; tick t is the milliseconds from
 * timeOriginMs + t × timeUnitMs to timeOriginMs + (t + 1) × timeUnitMs − 1.
 */
export interface SnowflakeLayout {
  /** 1 … 1,000. */
  readonly timeUnitMs: number;
  /** Milliseconds since 1970. */
  readonly timeOriginMs: number;
  /** 1 … 47. */
  readonly timeBits: number;
  /** 0 … 8. */
  readonly extensionBits: number;
  /** 0 … 16. */
  readonly dataCenterBits: number;
  /** 0 … 22. */
  readonly workerBits: number;
  /** 1 … 30. */
  readonly sequenceBits: number;
}

/** What a snowflake is composed of. */
export interface SnowflakeParts {
  /** Time since the layout's origin, in its unit. */
  readonly tick: number;
  readonly extension: number;
  readonly dataCenter: number;
  readonly worker: number;
  readonly sequence: number;
}

/** 2026-01-01T00:00:00Z. */
export const DEFAULT_TIME_ORIGIN_MS = 1_767_225_600_000;

/** Layouts by name, from 2026-01-01 on. */
export const SNOWFLAKE_PRESETS: Readonly<
  Record<"41-10-12" | "41-5-5-12" | "sonyflake" | "js53", SnowflakeLayout>
> = {
  /** 69 years of milliseconds, 1,024 workers, 4,096 ids a millisecond each. The default. */
  "41-10-12": preset(1, 41, 0, 10, 12),
  /** The same with the worker split: 32 data centers of 32 workers. */
  "41-5-5-12": preset(1, 41, 5, 5, 12),
  /** 174 years of 10 milliseconds, 65,536 workers, 256 ids in 10 milliseconds each. */
  sonyflake: preset(10, 39, 0, 16, 8),
  /** Below 2^53, exact as JavaScript numbers: 69 years of milliseconds, 32 workers, 128 ids a millisecond each. */
  js53: preset(1, 41, 0, 5, 7),
};

/** What each field of a layout may be, by its name in the API. The time unit is in milliseconds. */
export const LAYOUT_RANGES = {
  time_unit: [1, 1_000],
  time_bits: [1, 47],
  data_center_bits: [0, 16],
  worker_bits: [0, 22],
  sequence_bits: [1, 30],
  extension_bits: [0, 8],
} as const;

const MAX_BITS = 63;
/** As many as uid-generator has in its layout 28-22-13. */
export const MAX_WORKER_BITS: number = LAYOUT_RANGES.worker_bits[1];
/** The year 10000: timestamps of the API end there. */
const END_OF_TIME_MS = 253_402_300_800_000;
const SHORTEST_LIFE_MS = 365 * 86_400_000;

function preset(
  timeUnitMs: number,
  timeBits: number,
  dataCenterBits: number,
  workerBits: number,
  sequenceBits: number,
): SnowflakeLayout {
  return {
    timeUnitMs,
    timeOriginMs: DEFAULT_TIME_ORIGIN_MS,
    timeBits,
    extensionBits: 0,
    dataCenterBits,
    workerBits,
    sequenceBits,
  };
}

/** The number of bits below the time. */
function lowBits(layout: SnowflakeLayout): number {
  return layout.extensionBits + layout.dataCenterBits + layout.workerBits + layout.sequenceBits;
}

/** Bits that ids of the layout have at most; with 53 or fewer they are exact as JavaScript numbers. */
export function bitsOf(layout: SnowflakeLayout): number {
  return layout.timeBits + lowBits(layout);
}

/** Highest id of the layout. */
export function maxIdOf(layout: SnowflakeLayout): bigint {
  return 2n ** BigInt(bitsOf(layout)) - 1n;
}

/** When the bits of the time run out: the first millisecond, since 1970, for which there is no id. */
export function endOf(layout: SnowflakeLayout): number {
  return layout.timeOriginMs + 2 ** layout.timeBits * layout.timeUnitMs;
}

/** Most ids one worker makes in a second, rounded down. */
export function idsPerSecond(layout: SnowflakeLayout): number {
  return Math.floor((2 ** layout.sequenceBits * 1_000) / layout.timeUnitMs);
}

/** The tick of a time, negative before the origin; not bounded by the layout's bits. */
export function tickAt(layout: SnowflakeLayout, ms: number): number {
  return Math.floor((ms - layout.timeOriginMs) / layout.timeUnitMs);
}

/** First millisecond of a tick. */
export function timeOf(layout: SnowflakeLayout, tick: number): number {
  return layout.timeOriginMs + tick * layout.timeUnitMs;
}

/**
 * What is wrong with a layout, each by the name of its field in the API below `field`. Its life is counted from `nowMs`
 * (milliseconds since 1970).
 */
export function layoutViolations(
  field: string,
  layout: SnowflakeLayout,
  options: { readonly nowMs: number; readonly allowShortLife: boolean },
): FieldViolation[] {
  const violations: FieldViolation[] = [];
  const ranges = { ...LAYOUT_RANGES, time_origin: [0, options.nowMs] } as const;
  const check = (name: keyof typeof ranges, value: number, unit = ""): void => {
    const [min, max] = ranges[name];
    if (Number.isInteger(value) && value >= min && value <= max) return;
    const description = `must be ${min} to ${max}${unit}, got ${value}`;
    violations.push({ field: `${field}.${name}`, description, reason: "VALUE_OUT_OF_RANGE" });
  };
  check("time_unit", layout.timeUnitMs, " whole milliseconds");
  check("time_bits", layout.timeBits);
  check("time_origin", layout.timeOriginMs, " in milliseconds since 1970");
  check("data_center_bits", layout.dataCenterBits);
  check("worker_bits", layout.workerBits);
  check("sequence_bits", layout.sequenceBits);
  check("extension_bits", layout.extensionBits);
  if (violations.length > 0) return violations;
  const bits = bitsOf(layout);
  if (bits > MAX_BITS) {
    const description = `has ${bits} bits, but a positive id has at most ${MAX_BITS}; give one of its fields fewer bits`;
    return [{ field, description, reason: "FIELD_CONFLICT" }];
  }
  const description = lifeViolation(layout, options);
  if (description === undefined) return [];
  return [{ field: `${field}.time_bits`, description, reason: "VALUE_OUT_OF_RANGE" }];
}

function lifeViolation(
  layout: SnowflakeLayout,
  options: { readonly nowMs: number; readonly allowShortLife: boolean },
): string | undefined {
  const end = endOf(layout);
  if (end > END_OF_TIME_MS)
    return "must be fewer: with this time_unit they end after the year 9999";
  const leftMs = end - options.nowMs;
  if (leftMs <= 0) {
    return "must be more: with this time_origin and time_unit they have already run out";
  }
  if (leftMs >= SHORTEST_LIFE_MS || options.allowShortLife) return undefined;
  const days = Math.floor(leftMs / 86_400_000);
  return `must be more: they run out in ${days} days; set allow_short_life if you want that`;
}

/** An id as two numbers: id = hi × 2^32 + lo; hi below 2^31, lo below 2^32. */
export interface Halves {
  hi: number;
  lo: number;
}

/** A table, since computing a power each time costs as much as an id. */
const POWERS: readonly number[] = Array.from({ length: MAX_BITS + 1 }, (_, bits) => 2 ** bits);

/** 2^bits, for up to 63 bits. */
export function powerOf2(bits: number): number {
  return POWERS[bits] ?? 2 ** bits;
}

/**
 * Adds a field to an id. Exact: whatever is multiplied or divided is by a power of two, and nothing reaches 2^53.
 * Fields do not overlap, so sums never carry from one into the other.
 */
function place(id: Halves, value: number, shift: number): void {
  if (shift >= 32) {
    id.hi += value * powerOf2(shift - 32);
    return;
  }
  const fits = powerOf2(32 - shift);
  const low = value % fits;
  id.hi += (value - low) / fits;
  id.lo += low * powerOf2(shift);
}

/** The field of `width` bits from bit `shift` on. */
function pick(id: Halves, shift: number, width: number): number {
  const { hi, lo } = id;
  if (shift >= 32) return Math.floor(hi / 2 ** (shift - 32)) % 2 ** width;
  const fromLow = 32 - shift;
  const low = Math.floor(lo / 2 ** shift);
  if (width <= fromLow) return low % 2 ** width;
  return (hi % 2 ** (width - fromLow)) * 2 ** fromLow + low;
}

export function bigintOf(id: Halves): bigint {
  return (BigInt(id.hi) << 32n) | BigInt(id.lo);
}

/** The id of these parts as two numbers. Each part must be within its width; see `encode`. */
export function composeHalves(layout: SnowflakeLayout, parts: SnowflakeParts): Halves {
  const { sequenceBits, workerBits, dataCenterBits, extensionBits } = layout;
  const id = { hi: 0, lo: 0 };
  place(id, parts.sequence, 0);
  place(id, parts.worker, sequenceBits);
  place(id, parts.dataCenter, sequenceBits + workerBits);
  place(id, parts.extension, sequenceBits + workerBits + dataCenterBits);
  place(id, parts.tick, sequenceBits + workerBits + dataCenterBits + extensionBits);
  return id;
}

/** The id of these parts. INVALID_ARGUMENT when one of them does not fit its width. */
export function encode(layout: SnowflakeLayout, parts: SnowflakeParts): bigint {
  const check = (name: keyof SnowflakeParts, width: number): void => {
    const value = parts[name];
    if (Number.isInteger(value) && value >= 0 && value < 2 ** width) return;
    throw invalidField(name, `must be 0 to ${2 ** width - 1}, got ${value}`, "VALUE_OUT_OF_RANGE");
  };
  check("tick", layout.timeBits);
  check("extension", layout.extensionBits);
  check("dataCenter", layout.dataCenterBits);
  check("worker", layout.workerBits);
  check("sequence", layout.sequenceBits);
  return bigintOf(composeHalves(layout, parts));
}

/** What an id is composed of. INVALID_ARGUMENT for what is no id of the layout. */
export function decode(layout: SnowflakeLayout, id: bigint): SnowflakeParts {
  if (id < 0n || id > maxIdOf(layout)) {
    const text = `must be 0 to ${maxIdOf(layout)}, the range of the layout, got ${id}`;
    throw invalidField("id", text, "INVALID_ID");
  }
  const { sequenceBits, workerBits, dataCenterBits, extensionBits, timeBits } = layout;
  const halves = { hi: Number(id >> 32n), lo: Number(id & 0xff_ff_ff_ffn) };
  let shift = 0;
  const next = (width: number): number => {
    const value = pick(halves, shift, width);
    shift += width;
    return value;
  };
  const sequence = next(sequenceBits);
  const worker = next(workerBits);
  const dataCenter = next(dataCenterBits);
  const extension = next(extensionBits);
  return { tick: next(timeBits), extension, dataCenter, worker, sequence };
}

/**
 * The last millisecond of which some id is at or below a floor. For a floor of 0 it is the one before the layout's
 * origin.
 */
export function lastMsAtOrBelow(layout: SnowflakeLayout, floor: bigint): number {
  if (floor === 0n) return layout.timeOriginMs - 1;
  return timeOf(layout, decode(layout, floor).tick + 1) - 1;
}

/**
 * The smallest and the largest id that any worker may make from the tick of `fromMs` to the tick of `toMs`, both
 * included. They serve to look up rows by the time in their ids. Throws INVALID_ARGUMENT outside the layout's life.
 */
export function idsOfSpan(
  layout: SnowflakeLayout,
  fromMs: number,
  toMs: number,
): { readonly min: bigint; readonly max: bigint } {
  const end = endOf(layout);
  const bound = (name: string, ms: number, min: number): number => {
    if (Number.isInteger(ms) && ms >= min && ms < end) return tickAt(layout, ms);
    const range = `${min} to ${end - 1}`;
    throw invalidField(name, `must be ${range} in milliseconds since 1970, got ${ms}`);
  };
  const first = bound("from", fromMs, layout.timeOriginMs);
  const last = bound("to", toMs, fromMs);
  const none = { extension: 0, dataCenter: 0, worker: 0, sequence: 0 };
  const all = {
    extension: 2 ** layout.extensionBits - 1,
    dataCenter: 2 ** layout.dataCenterBits - 1,
    worker: 2 ** layout.workerBits - 1,
    sequence: 2 ** layout.sequenceBits - 1,
  };
  return {
    min: bigintOf(composeHalves(layout, { tick: first, ...none })),
    max: bigintOf(composeHalves(layout, { tick: last, ...all })),
  };
}

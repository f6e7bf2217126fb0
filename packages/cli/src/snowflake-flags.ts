import { durationOf, invalidField, SNOWFLAKE_PRESETS, type SnowflakeLayout } from "@idmint/core";
import { ClockPolicy, type SnowflakeKind, WorkerRegistry } from "@idmint/proto";
import { Option } from "commander";
import type { KindFlag } from "./kind.ts";
import { duration, oneOf, type Parser, smallNumber } from "./parse.ts";

/** Flags of kind snowflake, as typed; undefined: not given. */
export interface SnowflakeFlags {
  readonly layout?: SnowflakeLayout;
  readonly timeUnit?: number;
  readonly extensionBits?: number;
  readonly dataCenter?: number;
  readonly clockPolicy?: ClockPolicy;
  readonly clockWait?: number;
  readonly registry?: WorkerRegistry;
  readonly allowShortLife?: boolean;
}

const POLICIES = {
  refuse: ClockPolicy.REFUSE,
  extension: ClockPolicy.EXTENSION,
  "backup-worker": ClockPolicy.BACKUP_WORKER,
};

const REGISTRIES = { store: WorkerRegistry.STORE, redis: WorkerRegistry.REDIS };
const NAMED = Object.keys(SNOWFLAKE_PRESETS).filter((name) => !/^\d/.test(name));

/** Widths in bits: time-worker-sequence, or time-datacenter-worker-sequence; or the name of a preset. */
function layout(field: string): Parser<SnowflakeLayout> {
  return (text) => {
    const named = Object.entries(SNOWFLAKE_PRESETS).find(([name]) => name === text)?.[1];
    if (named !== undefined) return named;
    const widths = /^\d{1,2}(?:-\d{1,2}){2,3}$/.test(text) ? text.split("-").map(Number) : [];
    const [timeBits, ...rest] = widths;
    const [sequenceBits, workerBits, dataCenterBits = 0] = rest.toReversed();
    if (timeBits === undefined || workerBits === undefined || sequenceBits === undefined) {
      const forms = `time-worker-sequence such as 41-10-12, time-datacenter-worker-sequence such as 41-5-5-12, ${NAMED.join(" or ")}`;
      throw invalidField(field, `must be widths in bits, ${forms}, got "${text}"`);
    }
    const widened = { timeBits, dataCenterBits, workerBits, sequenceBits };
    return { ...SNOWFLAKE_PRESETS["41-10-12"], ...widened };
  };
}

/** The flags, as `kind-flags.ts` has those of the other kinds. */
export const SNOWFLAKE_FLAGS: Readonly<Record<keyof SnowflakeFlags, KindFlag>> = {
  layout: {
    kinds: ["snowflake"],
    paths: {},
    option: () =>
      new Option(
        "--layout <widths>",
        `snowflake: bits of time-worker-sequence (default 41-10-12), time-datacenter-worker-sequence, or ${NAMED.join(", ")}`,
      ).argParser(layout("--layout")),
  },
  timeUnit: {
    kinds: ["snowflake"],
    paths: {},
    option: () =>
      new Option(
        "--time-unit <time>",
        "snowflake: the unit of time, 1ms to 1s (default: the layout's, 1ms)",
      ).argParser(duration("--time-unit", { minMs: 1, maxMs: 1_000 })),
  },
  extensionBits: {
    kinds: ["snowflake"],
    paths: {},
    option: () =>
      new Option(
        "--extension-bits <count>",
        "snowflake: bits that count how often a clock went back, 0 (default) to 8",
      ).argParser(smallNumber("--extension-bits", { min: 0, max: 8 })),
  },
  dataCenter: {
    kinds: ["snowflake"],
    paths: { snowflake: "snowflake.data_center" },
    option: () =>
      new Option(
        "--data-center <number>",
        "snowflake: data centre for workers that name none (default 0)",
      ).argParser(smallNumber("--data-center", { min: 0, max: 65_535 })),
  },
  clockPolicy: {
    kinds: ["snowflake"],
    paths: { snowflake: "snowflake.clock_policy" },
    option: () =>
      new Option(
        "--clock-policy <policy>",
        "snowflake: what to do when a clock goes back: refuse (default), extension or backup-worker",
      ).argParser(oneOf("--clock-policy", POLICIES)),
  },
  clockWait: {
    kinds: ["snowflake"],
    paths: { snowflake: "snowflake.clock_wait" },
    option: () =>
      new Option(
        "--clock-wait <time>",
        "snowflake: wait if the clock went back by at most this time, 0ms to 1s (default 5ms)",
      ).argParser(duration("--clock-wait", { minMs: 0, maxMs: 1_000 })),
  },
  registry: {
    kinds: ["snowflake"],
    paths: {},
    option: () =>
      new Option(
        "--registry <place>",
        "snowflake: where worker ids are leased, store (default) or redis",
      ).argParser(oneOf("--registry", REGISTRIES)),
  },
  allowShortLife: {
    kinds: ["snowflake"],
    paths: {},
    option: () =>
      new Option(
        "--allow-short-life",
        "snowflake: allow a layout whose time ends in less than 365 days",
      ),
  },
};

/** The settings that flags ask for; what is not given is the server's to choose. */
export function snowflakeOf(flags: SnowflakeFlags & { readonly timeOrigin?: Date }): SnowflakeKind {
  const { dataCenter = 0, clockWait } = flags;
  return {
    layout: layoutOf(flags),
    dataCenter,
    clockPolicy: flags.clockPolicy ?? ClockPolicy.UNSPECIFIED,
    clockWait: durationOf(clockWait),
    registry: flags.registry ?? WorkerRegistry.UNSPECIFIED,
    allowShortLife: flags.allowShortLife ?? false,
    endTime: undefined,
    idsPerSecond: 0n,
    redisShard: "",
  };
}

function layoutOf(flags: SnowflakeFlags & { readonly timeOrigin?: Date }): SnowflakeKind["layout"] {
  const { timeUnit, timeOrigin, extensionBits } = flags;
  const isDefault = flags.layout === undefined && timeUnit === undefined;
  if (isDefault && timeOrigin === undefined && extensionBits === undefined) return undefined;
  const { timeUnitMs, timeOriginMs, ...bits } = flags.layout ?? SNOWFLAKE_PRESETS["41-10-12"];
  return {
    ...bits,
    extensionBits: extensionBits ?? bits.extensionBits,
    timeUnit: durationOf(timeUnit ?? timeUnitMs),
    timeOrigin: timeOrigin ?? new Date(timeOriginMs),
  };
}

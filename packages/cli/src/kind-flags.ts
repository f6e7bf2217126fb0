import {
  durationOf,
  invalidField,
  MAX_SEGMENT_COUNT,
  MAX_SLOTS,
  MAX_SNOWFLAKE_SHARD,
} from "@idmint/core";
import { DceDomain, ObjectIdVariant, Order, PeriodUnit, SequenceBackend } from "@idmint/proto";
import { Option } from "commander";
import type { Kind, KindFlag, KindName } from "./kind.ts";
import { duration, id, oneOf, smallNumber, timeOrigin } from "./parse.ts";
import { SNOWFLAKE_FLAGS, type SnowflakeFlags, snowflakeOf } from "./snowflake-flags.ts";

/** Flags that only some kinds have, as typed; undefined: not given. */
export interface KindFlags extends SnowflakeFlags {
  readonly start?: bigint;
  readonly min?: number;
  readonly max?: number;
  readonly holdFor?: number;
  readonly maxAge?: number;
  readonly period?: PeriodUnit;
  readonly timeZone?: string;
  readonly keepFor?: number;
  readonly backend?: SequenceBackend;
  readonly step?: number;
  readonly shard?: number;
  readonly timeOrigin?: Date;
  readonly slots?: number;
  readonly version?: number;
  readonly namespace?: string;
  readonly domain?: DceDomain;
  readonly number?: number;
  readonly variant?: ObjectIdVariant;
}

/** Kinds, by the word that is typed after --kind. */
export const KINDS: Readonly<Record<string, KindName>> = {
  segment: "segment",
  sequence: "sequence",
  "redis-snowflake": "redisSnowflake",
  ticket: "ticket",
  snowflake: "snowflake",
  uuid: "uuid",
  "object-id": "objectId",
};

/** A kind as it is typed after --kind. */
export function kindWord(kind: KindName | undefined): string {
  return Object.entries(KINDS).find(([, name]) => name === kind)?.[0] ?? "unknown";
}

/** What `segment` says to those who make a tag. */
export const KIND_TEXT: string = Object.keys(KINDS).join(", ");

export const ORDERS: Readonly<Record<string, Order>> = {
  unordered: Order.UNORDERED,
  "per-client": Order.PER_CLIENT,
  strict: Order.STRICT,
};

const PERIODS = {
  day: PeriodUnit.DAY,
  week: PeriodUnit.WEEK,
  month: PeriodUnit.MONTH,
  year: PeriodUnit.YEAR,
};

const BACKENDS = { store: SequenceBackend.STORE, redis: SequenceBackend.REDIS };

const DOMAINS = { person: DceDomain.PERSON, group: DceDomain.GROUP, org: DceDomain.ORG };

const VARIANTS = {
  classic: ObjectIdVariant.CLASSIC,
  "machine-process": ObjectIdVariant.MACHINE_PROCESS,
};

const DAY_MS = 86_400_000;
const COUNT_LIMITS = { min: 1, max: MAX_SEGMENT_COUNT };
const TIME_LIMITS = { minMs: 1_000, maxMs: DAY_MS };
const KEEP_LIMITS = { minMs: DAY_MS, maxMs: 3_650 * DAY_MS };

/** Which kinds have which flag. Whether a value suits the others is the server's to judge. */
const FLAGS: Readonly<Record<keyof KindFlags, KindFlag>> = {
  start: {
    kinds: ["segment", "sequence", "ticket"],
    paths: { segment: "segment.start", sequence: "sequence.start" },
    option: () => new Option("--start <id>", "first id (default 1)").argParser(id("--start")),
  },
  min: {
    kinds: ["segment"],
    paths: { segment: "segment.min" },
    option: () =>
      new Option(
        "--min <count>",
        "segment: fewest ids that a server takes from the store at once (default 1000)",
      ).argParser(smallNumber("--min", COUNT_LIMITS)),
  },
  max: {
    kinds: ["segment"],
    paths: { segment: "segment.max" },
    option: () =>
      new Option(
        "--max <count>",
        "segment: most ids that a server takes from the store at once (default 100000000)",
      ).argParser(smallNumber("--max", COUNT_LIMITS)),
  },
  holdFor: {
    kinds: ["segment"],
    paths: { segment: "segment.hold_for" },
    option: () =>
      new Option(
        "--hold-for <time>",
        "segment: how long a server's segment should last at the peak rate, 1s to 24h (default 15m)",
      ).argParser(duration("--hold-for", TIME_LIMITS)),
  },
  maxAge: {
    kinds: ["segment"],
    paths: { segment: "segment.max_age" },
    option: () =>
      new Option(
        "--max-age <time>",
        "segment: how long an SDK may keep a segment, 1s to 24h (default 10m)",
      ).argParser(duration("--max-age", TIME_LIMITS)),
  },
  period: {
    kinds: ["sequence"],
    paths: { sequence: "sequence.period" },
    option: () =>
      new Option(
        "--period <unit>",
        "sequence: start again from 1 every day, week, month or year (default never)",
      ).argParser(oneOf("--period", PERIODS)),
  },
  timeZone: {
    kinds: ["sequence"],
    paths: { sequence: "sequence.time_zone" },
    option: () =>
      new Option(
        "--time-zone <zone>",
        "sequence: zone in which periods begin, such as Asia/Shanghai or UTC",
      ),
  },
  keepFor: {
    kinds: ["sequence"],
    paths: { sequence: "sequence.keep_for" },
    option: () =>
      new Option(
        "--keep-for <time>",
        "sequence: how long the last ids of ended periods are kept, 1d to 3650d (default 400d)",
      ).argParser(duration("--keep-for", KEEP_LIMITS)),
  },
  backend: {
    kinds: ["sequence"],
    paths: {},
    option: () =>
      new Option(
        "--backend <backend>",
        "sequence: where the tag counts, store (default) or redis",
      ).argParser(oneOf("--backend", BACKENDS)),
  },
  step: {
    kinds: ["sequence"],
    paths: { sequence: "sequence.step" },
    option: () =>
      new Option(
        "--step <count>",
        "sequence in Redis: fewest ids by which its maximum is raised (default 10000)",
      ).argParser(smallNumber("--step", COUNT_LIMITS)),
  },
  shard: {
    kinds: ["redisSnowflake"],
    paths: {},
    option: () =>
      new Option(
        "--shard <number>",
        "redis-snowflake: shard within the ids, 0 (default) to 4095",
      ).argParser(smallNumber("--shard", { min: 0, max: MAX_SNOWFLAKE_SHARD })),
  },
  timeOrigin: {
    kinds: ["snowflake", "redisSnowflake"],
    paths: {},
    option: () =>
      new Option(
        "--time-origin <time>",
        "snowflakes: where time begins, as a date, a time in UTC or milliseconds since 1970 (default 2026-01-01)",
      ).argParser(timeOrigin("--time-origin")),
  },
  slots: {
    kinds: ["ticket"],
    paths: {},
    option: () =>
      new Option(
        "--slots <count>",
        "ticket: number of residue classes, and so of databases at most, 1 to 1024 (default 60)",
      ).argParser(smallNumber("--slots", { min: 1, max: MAX_SLOTS })),
  },
  ...SNOWFLAKE_FLAGS,
  version: {
    kinds: ["uuid"],
    paths: {},
    option: () =>
      new Option("--version <version>", "uuid: 1 to 7 (required)").argParser(
        smallNumber("--version", { min: 1, max: 7 }),
      ),
  },
  namespace: {
    kinds: ["uuid"],
    paths: {},
    option: () =>
      new Option(
        "--namespace <uuid>",
        "uuid versions 3 and 5: namespace of the names, a UUID or DNS, URL, OID, X500",
      ),
  },
  domain: {
    kinds: ["uuid"],
    paths: {},
    option: () =>
      new Option(
        "--domain <domain>",
        "uuid version 2: kind of the number, person (default), group or org",
      ).argParser(oneOf("--domain", DOMAINS)),
  },
  number: {
    kinds: ["uuid"],
    paths: {},
    option: () =>
      new Option(
        "--number <number>",
        "uuid version 2: the number of the person, group or organization (default 0)",
      ).argParser(smallNumber("--number", { min: 0, max: 2 ** 32 - 1 })),
  },
  variant: {
    kinds: ["objectId"],
    paths: {},
    option: () =>
      new Option(
        "--variant <variant>",
        "object-id: classic (default, random bytes) or machine-process",
      ).argParser(oneOf("--variant", VARIANTS)),
  },
};

const NAMES = Object.keys(FLAGS) as (keyof KindFlags)[];

/** The options of all kinds; with `isNew` also those that cannot be changed later. */
export function kindOptions({ isNew }: { isNew: boolean }): readonly Option[] {
  return NAMES.filter((name) => isNew || Object.keys(FLAGS[name].paths).length > 0).map((name) =>
    FLAGS[name].option(),
  );
}

/** Throws INVALID_ARGUMENT that names the first flag which is not for this kind, and what would be. */
export function assertOfKind(flags: KindFlags, kind: KindName): void {
  for (const name of given(flags)) {
    const { kinds } = FLAGS[name];
    if (kinds.includes(kind)) continue;
    const words = kinds.map((each) => `--kind ${kindWord(each)}`).join(" or ");
    throw invalidField(
      flagOf(name),
      `is for ${words}, and this tag is of kind ${kindWord(kind)}; leave it out, or choose that kind`,
    );
  }
}

/**
 * The kind that flags of `tag update` are for: the only one that all of them have. `undefined`: none is given, or they
 * leave it open. Throws INVALID_ARGUMENT when no kind has all of them.
 */
export function kindMeant(flags: KindFlags): KindName | "any" | undefined {
  const names = given(flags);
  const [first] = names;
  if (first === undefined) return undefined;
  const fitting = Object.values(KINDS).filter((kind) =>
    names.every((name) => FLAGS[name].paths[kind] !== undefined),
  );
  const [only, ...others] = fitting;
  if (only !== undefined) return others.length === 0 ? only : "any";
  const other = names.find(
    (name) => !FLAGS[name].kinds.some((kind) => FLAGS[first].kinds.includes(kind)),
  );
  throw invalidField(
    flagOf(other ?? first),
    `cannot be changed together with ${flagOf(first)}: no kind of tag has both`,
  );
}

/** The paths of UpdateTag's mask for the flags that are given. Throws for one that tags of this kind cannot change. */
export function kindPaths(flags: KindFlags, kind: KindName): string[] {
  return given(flags).map((name) => {
    const path = FLAGS[name].paths[kind];
    if (path !== undefined) return path;
    throw invalidField(flagOf(name), `cannot be changed for tags of kind ${kindWord(kind)}`);
  });
}

/** The settings that flags ask for; what is not given is the server's to choose. */
export function kindOf(kind: KindName, flags: KindFlags): Kind {
  const start = flags.start ?? 0n;
  switch (kind) {
    case "segment": {
      const { min = 0, max = 0 } = flags;
      const [holdFor, maxAge] = [durationOf(flags.holdFor), durationOf(flags.maxAge)];
      return { $case: kind, value: { start, min, max, holdFor, maxAge } };
    }
    case "sequence": {
      const { timeZone = "", step = 0, keepFor } = flags;
      const period = flags.period ?? PeriodUnit.UNSPECIFIED;
      const backend = flags.backend ?? SequenceBackend.UNSPECIFIED;
      const value = { start, period, timeZone, keepFor: durationOf(keepFor), backend, step };
      return { $case: kind, value: { ...value, shard: "" } };
    }
    case "redisSnowflake": {
      const { shard = 0, timeOrigin } = flags;
      return { $case: kind, value: { shard, timeOrigin, endTime: undefined, redisShard: "" } };
    }
    case "ticket":
      return { $case: kind, value: { start, slots: flags.slots ?? 0 } };
    case "snowflake":
      return { $case: kind, value: snowflakeOf(flags) };
    case "uuid": {
      const { version = 0, namespace = "", number = 0 } = flags;
      const domain = flags.domain ?? DceDomain.UNSPECIFIED;
      return { $case: kind, value: { version, namespace, domain, number } };
    }
    case "objectId":
      return { $case: kind, value: { variant: flags.variant ?? ObjectIdVariant.UNSPECIFIED } };
    default:
      return kind satisfies never;
  }
}

function given(flags: KindFlags): readonly (keyof KindFlags)[] {
  return NAMES.filter((name) => flags[name] !== undefined);
}

function flagOf(name: keyof KindFlags): string {
  return `--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

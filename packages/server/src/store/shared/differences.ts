import type { TagKind, TagSettings } from "@idmint/core";

/** A setting that two tags have differently: its path in the API, and both values as JSON has them. */
export interface Difference {
  readonly field: string;
  readonly present: string;
  readonly wanted: string;
}

/** The settings of an existing tag that differ from those that were asked for. */
export function differencesOf(present: TagSettings, wanted: TagSettings): readonly Difference[] {
  const [one, other] = [fieldsOf(present), fieldsOf(wanted)];
  const fields = new Set([...Object.keys(one), ...Object.keys(other)]);
  // Settings of two kinds cannot be compared.
  const kind = present.kind.kind === wanted.kind.kind ? undefined : "kind";
  return [...fields]
    .filter(
      (field) => kind === undefined || !field.includes(".") || /^(format|unguess)/.test(field),
    )
    .map((field) => ({ field, present: one[field] ?? "none", wanted: other[field] ?? "none" }))
    .filter((each) => each.present !== each.wanted)
    .map((each) => (each.field === KEY ? { ...each, present: "one", wanted: "another" } : each));
}

/** The path of a difference that is told without its values. */
const KEY = "unguessable.key";

type Fields = Readonly<Record<string, string>>;

function fieldsOf({ description, order, ceiling, kind, format, unguessable }: TagSettings): Fields {
  return {
    kind: kind.kind,
    description: JSON.stringify(description),
    order,
    ceiling: String(ceiling),
    ...named(kind.kind, kindFields(kind)),
    ...(format === undefined ? {} : { "format.template": JSON.stringify(format.template) }),
    ...(unguessable === undefined
      ? {}
      : named("unguessable", {
          key_id: unguessable.keyId,
          key_digits: unguessable.keyDigits,
          key: unguessable.keys.map(({ keyId, check }) => `${keyId}:${check}`).join(","),
        })),
  };
}

function named(prefix: string, fields: Readonly<Record<string, unknown>>): Fields {
  const set = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(set.map(([name, value]) => [`${prefix}.${name}`, String(value)]));
}

/** The settings by their names in the API, without what servers choose. */
function kindFields(kind: TagKind): Readonly<Record<string, unknown>> {
  switch (kind.kind) {
    case "segment": {
      const { start, min, max, holdForMs, maxAgeMs } = kind;
      return { start, min, max, hold_for: seconds(holdForMs), max_age: seconds(maxAgeMs) };
    }
    case "sequence": {
      const { start, periods, redis } = kind;
      return {
        start,
        period: periods?.unit,
        time_zone: periods?.timeZone,
        keep_for: periods && seconds(periods.keepForMs),
        backend: redis === undefined ? "STORE" : "REDIS",
        step: redis?.step,
      };
    }
    case "redis_snowflake":
      return { shard: kind.shard, time_origin: time(kind.timeOriginMs) };
    case "ticket":
      return { start: kind.start, slots: kind.slots };
    case "snowflake": {
      const { layout, dataCenter, clockPolicy, clockWaitMs, registry } = kind;
      const { timeUnitMs, timeOriginMs, ...bits } = layout;
      return {
        "layout.time_unit": seconds(timeUnitMs),
        "layout.time_origin": time(timeOriginMs),
        "layout.time_bits": bits.timeBits,
        "layout.data_center_bits": bits.dataCenterBits,
        "layout.worker_bits": bits.workerBits,
        "layout.sequence_bits": bits.sequenceBits,
        "layout.extension_bits": bits.extensionBits,
        data_center: dataCenter,
        clock_policy: clockPolicy,
        clock_wait: seconds(clockWaitMs),
        registry,
      };
    }
    case "uuid": {
      const { kind: _, ...fields } = kind;
      return fields;
    }
    case "object_id":
      return { variant: kind.variant };
    default:
      return kind satisfies never;
  }
}

function seconds(ms: number): string {
  return `${ms / 1_000}s`;
}

function time(ms: number): string {
  return new Date(ms).toISOString();
}

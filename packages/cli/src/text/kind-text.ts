// The settings of a tag's kind in words.
import {
  countsToFloor as isCountedToFloor,
  durationText,
  type Field,
  type KindName,
  KINDS,
  plainText,
  type Value,
  type Values,
  wordOf,
} from "@idmint/core/kinds";
import type { Tag } from "@idmint/proto";
import { kindNameOf, valuesOfProto } from "@idmint/server/kind-values";
import { snowflakeRows, snowflakeSummary } from "./snowflake-text.ts";
import { plain } from "../process/plain.ts";
import type { Rows } from "./table.ts";

/** What settings are called that others of a tag would be taken for. */
const LABELS: Readonly<Record<string, string>> = {
  end_time: "ends at",
  "uuid.version": "uuid version",
};

/** Whether the ids of a tag begin again every day, week, month or year. */
export function hasPeriods({ kind }: Tag): boolean {
  return kind !== undefined && valuesOfProto(kind)["period"] !== undefined;
}

/** Whether the floor of a tag is that of all its ids; not of a kind that this release does not know. */
export function countsToFloor({ kind }: Tag): boolean {
  return kind !== undefined && isCountedToFloor({ kind: kindNameOf(kind) });
}

/** The settings as rows. */
export function kindRows(tag: Tag): Rows {
  const { kind, period } = tag;
  if (kind === undefined) return [];
  const present = period === "" ? "none yet" : plain(period);
  const name = kindNameOf(kind);
  const own = ROWS[name](valuesOfProto(kind), name);
  return [...own, ...(hasPeriods(tag) ? [["present period", present] as const] : [])];
}

const ROWS: Readonly<Record<KindName, (values: Values, name: KindName) => Rows>> = {
  segment: settingRows,
  sequence: settingRows,
  redis_snowflake: settingRows,
  ticket: settingRows,
  snowflake: snowflakeRows,
  uuid: settingRows,
  object_id: settingRows,
};

/** The settings that apply, those that servers decide last. */
function settingRows(values: Values, name: KindName): Rows {
  const fields = Object.entries<Field>(KINDS[name].fields).toSorted(
    ([, one], [, other]) => Number(one.role === "placed") - Number(other.role === "placed"),
  );
  return fields.flatMap(([path, field]) => {
    // A server answers what does not apply as empty, and so it does 0.
    const value = values[path] ?? (field.default === 0 ? 0 : undefined);
    const label = LABELS[`${name}.${path}`] ?? LABELS[path] ?? path.replaceAll("_", " ");
    return value === undefined ? [] : [[label, valueText(field, value)] as const];
  });
}

function valueText({ type }: Field, value: Value): string {
  if (type === "duration") return durationText(value as number);
  if (type === "time") return timeText(new Date(value as number));
  const text = plainText(value);
  return type === "enum" ? wordOf(text) : plain(text);
}

/** What tells tags of a kind apart, in one word for a table. */
export function kindSummary({ kind }: Tag): string {
  if (kind === undefined) return "-";
  return TELLING[kindNameOf(kind)](valuesOfProto(kind));
}

/** The same of each kind, by the values of its settings. */
const TELLING: Readonly<Record<KindName, (values: Values) => string>> = {
  segment: () => "-",
  sequence: ({ period, time_zone: zone, redis_server: redisServer }) => {
    if (redisServer !== undefined) return `redis:${plain(plainText(redisServer))}`;
    return period === undefined ? "-" : `${wordOf(plainText(period))}:${plain(plainText(zone))}`;
  },
  redis_snowflake: ({ shard }) => `shard:${plainText(shard ?? 0)}`,
  ticket: ({ slots }) => `slots:${plainText(slots ?? 0)}`,
  snowflake: snowflakeSummary,
  uuid: ({ version }) => `version:${plainText(version ?? 0)}`,
  object_id: ({ variant }) => wordOf(plainText(variant ?? 0)),
};

/** A time as ISO 8601 in UTC. */
export function timeText(time: Date | undefined): string {
  return time === undefined ? "unknown" : time.toISOString();
}

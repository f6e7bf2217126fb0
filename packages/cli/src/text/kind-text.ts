// The settings of a tag's kind in words.
import { durationText, type Field, KINDS, plainText, type Value, wordOf } from "@idmint/core/kinds";
import type { Tag } from "@idmint/proto";
import { kindNameOf, type ProtoKind, valuesOfProto } from "@idmint/server/kind-values";
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
  return kind?.$case === "sequence" && kind.value.period !== 0;
}

/** The settings as rows. */
export function kindRows(tag: Tag): Rows {
  const { kind, period } = tag;
  if (kind === undefined) return [];
  if (kind.$case === "snowflake") return snowflakeRows(kind.value);
  const present = period === "" ? "none yet" : plain(period);
  return [...settingRows(kind), ...(hasPeriods(tag) ? [["present period", present] as const] : [])];
}

/** The settings that apply, those that servers decide last. */
function settingRows(kind: ProtoKind): Rows {
  const name = kindNameOf(kind);
  const values = valuesOfProto(kind);
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
  if (kind.$case === "snowflake") return snowflakeSummary(kind.value);
  const values = valuesOfProto(kind);
  if (kind.$case === "sequence") {
    const { period, time_zone: zone, redis_server: redisServer } = values;
    if (redisServer !== undefined) return `redis:${plain(plainText(redisServer))}`;
    return period === undefined ? "-" : `${wordOf(plainText(period))}:${plain(plainText(zone))}`;
  }
  const name = TELLING[kind.$case];
  if (name === undefined) return "-";
  const text = wordOf(plainText(values[name] ?? 0));
  return name === "variant" ? text : `${name}:${text}`;
}

/** The field that tells tags of a kind apart. */
const TELLING: Readonly<Partial<Record<ProtoKind["$case"], string>>> = {
  redisSnowflake: "shard",
  ticket: "slots",
  uuid: "version",
  objectId: "variant",
};

/** A time as ISO 8601 in UTC. */
export function timeText(time: Date | undefined): string {
  return time === undefined ? "unknown" : time.toISOString();
}

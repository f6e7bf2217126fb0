import {
  type Order,
  type SegmentKind,
  type Tag,
  type TagState,
  orderToJSON,
  tagStateToJSON,
} from "@idmint/proto";
import { durationText } from "./parse.ts";
import { columns, plain } from "./table.ts";

type ProtoDuration = NonNullable<SegmentKind["holdFor"]>;

/** A tag as rows of name and value. */
export function tagText(tag: Tag, more: readonly (readonly [string, string])[] = []): string {
  const segment = tag.kind?.$case === "segment" ? tag.kind.value : undefined;
  const settings: [string, string][] =
    segment === undefined
      ? []
      : [
          ["start", String(segment.start)],
          ["min", String(segment.min)],
          ["max", String(segment.max)],
          ["hold for", protoDurationText(segment.holdFor)],
          ["max age", protoDurationText(segment.maxAge)],
        ];
  return columns([
    ["name", plain(tag.name)],
    ["kind", tag.kind?.$case ?? "unknown"],
    ["order", orderWord(tag.order)],
    ["state", stateWord(tag.state)],
    ["floor", String(tag.floor)],
    ["ceiling", String(tag.ceiling)],
    ...settings,
    ["epoch", String(tag.epoch)],
    ["version", String(tag.version)],
    ["created", timeText(tag.createTime)],
    ["updated", timeText(tag.updateTime)],
    ["etag", plain(tag.etag)],
    ...(tag.description === "" ? [] : [["description", plain(tag.description)]]),
    ...more,
  ]);
}

/** Tags as one row each. */
export function tagTable(tags: readonly Tag[]): string {
  const head = ["NAME", "KIND", "ORDER", "STATE", "FLOOR", "CEILING", "EPOCH", "DESCRIPTION"];
  const rows = tags.map((tag) => [
    plain(tag.name),
    tag.kind?.$case ?? "unknown",
    orderWord(tag.order),
    stateWord(tag.state),
    String(tag.floor),
    String(tag.ceiling),
    String(tag.epoch),
    plain(tag.description),
  ]);
  return columns([head, ...rows]);
}

/** An order as it is typed after --order. */
function orderWord(order: Order): string {
  return orderToJSON(order).replace("ORDER_", "").toLowerCase().replaceAll("_", "-");
}

function stateWord(state: TagState): string {
  return tagStateToJSON(state).replace("TAG_STATE_", "").toLowerCase();
}

/** A time as ISO 8601 in UTC. */
export function timeText(time: Date | undefined): string {
  return time === undefined ? "unknown" : time.toISOString();
}

function protoDurationText(value: ProtoDuration | undefined): string {
  if (value === undefined) return "unknown";
  return durationText(Number(value.seconds) * 1_000 + Math.round(value.nanos / 1e6));
}

/**
 * A tag as proto3 JSON with every field present, as `grpcurl -emit-defaults` has it: a script that reads a floor of 0
 * must not find that the floor is missing.
 */
export function tagJson(tag: Tag | undefined): unknown {
  if (tag === undefined) return null;
  const { kind, createTime, updateTime } = tag;
  return {
    name: tag.name,
    description: tag.description,
    ...(kind?.$case === "segment" ? { segment: segmentJson(kind.value) } : {}),
    order: orderToJSON(tag.order),
    ceiling: String(tag.ceiling),
    floor: String(tag.floor),
    version: String(tag.version),
    epoch: String(tag.epoch),
    state: tagStateToJSON(tag.state),
    createTime: createTime?.toISOString() ?? null,
    updateTime: updateTime?.toISOString() ?? null,
    etag: tag.etag,
  };
}

function segmentJson({ start, min, max, holdFor, maxAge }: SegmentKind): unknown {
  return {
    start: String(start),
    min,
    max,
    holdFor: durationJson(holdFor),
    maxAge: durationJson(maxAge),
  };
}

function durationJson(value: ProtoDuration | undefined): string | null {
  if (value === undefined) return null;
  // As proto3 JSON has it: 0, 3, 6 or 9 digits, as few as state it exactly.
  const nanos = String(value.nanos)
    .padStart(9, "0")
    .replace(/(?:000){1,3}$/, "");
  const fraction = nanos === "" ? "" : `.${nanos}`;
  return `${value.seconds}${fraction}s`;
}

import { type Order, orderToJSON, Tag, type TagState, tagStateToJSON } from "@idmint/proto";
import { kindWord } from "../flags/kind-words.ts";
import { kindRows, kindSummary, timeText } from "./kind-text.ts";
import { protoJson } from "./proto-json.ts";
import { plain } from "../process/plain.ts";
import { columns, type Rows } from "./table.ts";

/** A tag as rows of name and value. */
export function tagText(tag: Tag, more: readonly (readonly [string, string])[] = []): string {
  return columns([
    ["name", plain(tag.name)],
    ["kind", kindWord(tag.kind?.$case)],
    ["order", orderWord(tag.order)],
    ["state", tagStateWord(tag.state)],
    ["floor", String(tag.floor)],
    ["ceiling", String(tag.ceiling)],
    ...kindRows(tag),
    ...writingRows(tag),
    ["epoch", String(tag.epoch)],
    ["version", String(tag.version)],
    ["created", timeText(tag.createTime)],
    ["updated", timeText(tag.updateTime)],
    ["etag", plain(tag.etag)],
    ...(tag.description === "" ? [] : [["description", plain(tag.description)]]),
    ...more,
  ]);
}

function writingRows({ format, unguessable }: Tag): Rows {
  return [
    ...(format === undefined ? [] : [["format", plain(format.template)] as const]),
    ...(unguessable === undefined ? [] : [["key", String(unguessable.keyId)] as const]),
    ...(unguessable === undefined ? [] : [["key digits", String(unguessable.keyDigits)] as const]),
  ];
}

const HEAD = ["NAME", "KIND", "ORDER", "STATE", "FLOOR", "CEILING", "EPOCH", "SETTINGS"];

/** Tags as one row each. */
export function tagTable(tags: readonly Tag[]): string {
  const rows = tags.map((tag) => [
    plain(tag.name),
    kindWord(tag.kind?.$case),
    orderWord(tag.order),
    tagStateWord(tag.state),
    String(tag.floor),
    String(tag.ceiling),
    String(tag.epoch),
    kindSummary(tag),
    plain(tag.description),
  ]);
  return columns([[...HEAD, "DESCRIPTION"], ...rows]);
}

/** An order as it is typed after --order. */
function orderWord(order: Order): string {
  return orderToJSON(order).replace("ORDER_", "").toLowerCase().replaceAll("_", "-");
}

export function tagStateWord(state: TagState): string {
  return tagStateToJSON(state).replace("TAG_STATE_", "").toLowerCase();
}

export function tagJson(tag: Tag | undefined): unknown {
  return tag === undefined ? null : protoJson(Tag, tag);
}

const OUTPUT_ONLY: ReadonlySet<string> = new Set([
  "floor",
  "version",
  "epoch",
  "state",
  "createTime",
  "updateTime",
  "etag",
  "period",
]);

/** The settings of a tag that its creator chooses, as tagJson has them. */
export function settingsJson(tag: Tag): object {
  const fields = Object.entries(protoJson(Tag, tag));
  return Object.fromEntries(fields.filter(([name]) => !OUTPUT_ONLY.has(name)));
}

/** The same settings as rows. */
export function settingsRows(tag: Tag): Rows {
  return [
    ["name", plain(tag.name)],
    ["kind", kindWord(tag.kind?.$case)],
    ["order", orderWord(tag.order)],
    ["ceiling", String(tag.ceiling)],
    ...kindRows(tag),
    ...writingRows(tag),
    ...(tag.description === "" ? [] : [["description", plain(tag.description)] as const]),
  ];
}

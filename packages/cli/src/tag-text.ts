import { type Order, orderToJSON, type Tag, type TagState, tagStateToJSON } from "@idmint/proto";
import { kindWord } from "./kind-flags.ts";
import { kindJson, kindRows, kindSummary, timeText } from "./kind-text.ts";
import { columns, plain, type Rows } from "./table.ts";

/** A tag as rows of name and value. */
export function tagText(tag: Tag, more: readonly (readonly [string, string])[] = []): string {
  return columns([
    ["name", plain(tag.name)],
    ["kind", kindWord(tag.kind?.$case)],
    ["order", orderWord(tag.order)],
    ["state", stateWord(tag.state)],
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
    stateWord(tag.state),
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

function stateWord(state: TagState): string {
  return tagStateToJSON(state).replace("TAG_STATE_", "").toLowerCase();
}

/**
 * A tag as proto3 JSON with every field present, as `grpcurl -emit-defaults` has it: a script that reads a floor of 0
 * must not find that the floor is missing.
 */
export function tagJson(tag: Tag | undefined): unknown {
  if (tag === undefined) return null;
  const { createTime, updateTime } = tag;
  return {
    ...settingsJson(tag),
    floor: String(tag.floor),
    version: String(tag.version),
    epoch: String(tag.epoch),
    state: tagStateToJSON(tag.state),
    createTime: createTime?.toISOString() ?? null,
    updateTime: updateTime?.toISOString() ?? null,
    etag: tag.etag,
    period: tag.period,
  };
}

/** What whoever makes a tag decides about it, as tagJson has it. */
export function settingsJson(tag: Tag): object {
  return {
    name: tag.name,
    description: tag.description,
    ...kindJson(tag.kind),
    order: orderToJSON(tag.order),
    ceiling: String(tag.ceiling),
    format: tag.format ?? null,
    unguessable: tag.unguessable ?? null,
  };
}

/** The same as rows. */
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

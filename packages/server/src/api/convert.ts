import type { FieldViolation, Period, Segment as DomainSegment } from "@idmint/core";
import type { Order as OrderName } from "@idmint/core/kinds";
import { periodName, periodsOf, type Tag as DomainTag } from "@idmint/core/server";
import { Order, type Segment, type Tag, TagState } from "@idmint/proto";
import type { TagDraft } from "../service/tags/settings.ts";
import { etagOf } from "../service/tags/etag.ts";
import { kindDraftOf, outputOnlyOfKind, protoKindOf } from "./kind-values.ts";

export function orderOf(order: OrderName): Order {
  return Order[order];
}

const ORDERS: ReadonlyMap<number, OrderName | undefined> = new Map([
  [Order.UNSPECIFIED, undefined],
  [Order.UNORDERED, "UNORDERED" as const],
  [Order.PER_CLIENT, "PER_CLIENT" as const],
  [Order.STRICT, "STRICT" as const],
]);

export function segmentsOf(segments: readonly DomainSegment[]): Segment[] {
  return segments.map(({ base, increment, count }) => ({ base, increment, count }));
}

/** What answers say of the period of their ids. */
export function periodOf(period: Period | undefined): {
  readonly period: string;
  readonly periodEndTime: Date | undefined;
} {
  if (period === undefined) return NO_PERIOD;
  return { period: periodName(period), periodEndTime: new Date(period.endsAtMs) };
}

const NO_PERIOD = { period: "", periodEndTime: undefined };

/** A tag as callers see it. */
export function tagOf(tag: DomainTag): Tag {
  return {
    name: tag.name,
    description: tag.description,
    kind: protoKindOf(tag.kind),
    order: orderOf(tag.order),
    ceiling: tag.ceiling,
    floor: tag.floor,
    version: tag.version,
    epoch: tag.epoch,
    state: TagState[tag.state],
    createTime: new Date(tag.createdAtMs),
    updateTime: new Date(tag.updatedAtMs),
    etag: etagOf(tag),
    period: presentPeriod(tag),
    format: tag.format === undefined ? undefined : { template: tag.format.template },
    unguessable: unguessableOf(tag),
  };
}

function unguessableOf({ unguessable }: DomainTag): Tag["unguessable"] {
  if (unguessable === undefined) return undefined;
  const { keyId, keyDigits } = unguessable;
  return { keyId, keyDigits };
}

function presentPeriod({ kind, periodStart: start }: DomainTag): string {
  const unit = periodsOf(kind)?.unit;
  return unit === undefined || start === "" ? "" : periodName({ unit, start });
}

/** A tag as a caller wrote it; nothing is checked yet. */
export function draftOf(tag: Tag): TagDraft {
  const { name, description, ceiling } = tag;
  const order = ORDERS.has(tag.order) ? ORDERS.get(tag.order) : "UNKNOWN";
  const kind = tag.kind === undefined ? undefined : kindDraftOf(tag.kind);
  const { unguessable } = tag;
  return { name, description, order, ceiling, kind, format: tag.format?.template, unguessable };
}

/** What only the server may say of a tag, where a caller did. */
export function outputOnlyViolations(tag: Tag): readonly FieldViolation[] {
  const set: readonly [field: string, isSet: boolean, wayOut: string][] = [
    ["tag.floor", tag.floor !== 0n, "; raise it with AdvanceTag"],
    ["tag.version", tag.version !== 0n, ""],
    ["tag.epoch", tag.epoch !== 0n, ""],
    ["tag.state", tag.state !== TagState.UNSPECIFIED, "; use PauseTag, ResumeTag or DeleteTag"],
    ["tag.create_time", tag.createTime !== undefined, ""],
    ["tag.update_time", tag.updateTime !== undefined, ""],
    ["tag.etag", tag.etag !== "", "; there is nothing to compare it with before a tag is made"],
    ["tag.period", tag.period !== "", "; the store's clock and the time zone decide it"],
    ...outputOnlyOfKind(tag.kind),
  ];
  return set
    .filter(([, isSet]) => isSet)
    .map(([field, , wayOut]) => ({
      field,
      description: `is output only, leave it empty${wayOut}`,
      reason: "FIELD_OUTPUT_ONLY",
    }));
}

import type {
  FieldViolation,
  Order as OrderName,
  Segment as DomainSegment,
  Tag as DomainTag,
} from "@idmint/core";
import {
  type AllocateSegmentResponse,
  Order,
  type Segment,
  type Tag,
  TagState,
} from "@idmint/proto";
import type { TagDraft } from "../service/tag-settings.ts";
import { etagOf } from "../service/tags.ts";

type Duration = NonNullable<AllocateSegmentResponse["maxAge"]>;

export function durationOf(ms: number): Duration {
  const seconds = Math.floor(ms / 1_000);
  return { seconds: BigInt(seconds), nanos: (ms - seconds * 1_000) * 1_000_000 };
}

/** Milliseconds of a duration; undefined without one, NaN when no whole number of milliseconds is meant. */
function millisecondsOf(duration: Duration | undefined): number | undefined {
  if (duration === undefined) return undefined;
  const { seconds, nanos } = duration;
  const isValid = Math.abs(nanos) < 1_000_000_000 && nanos % 1_000_000 === 0;
  return isValid ? Number(seconds) * 1_000 + nanos / 1_000_000 : Number.NaN;
}

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

/** A tag as callers see it. */
export function tagOf(tag: DomainTag): Tag {
  const { kind } = tag;
  return {
    name: tag.name,
    description: tag.description,
    kind: {
      $case: "segment",
      value: {
        start: kind.start,
        min: kind.min,
        max: kind.max,
        holdFor: durationOf(kind.holdForMs),
        maxAge: durationOf(kind.maxAgeMs),
      },
    },
    order: orderOf(tag.order),
    ceiling: tag.ceiling,
    floor: tag.floor,
    version: tag.version,
    epoch: tag.epoch,
    state: TagState[tag.state],
    createTime: new Date(tag.createdAtMs),
    updateTime: new Date(tag.updatedAtMs),
    etag: etagOf(tag),
  };
}

/** A tag as a caller wrote it; nothing is checked yet. */
export function draftOf(tag: Tag): TagDraft {
  const { name, description, ceiling } = tag;
  const order = ORDERS.has(tag.order) ? ORDERS.get(tag.order) : "UNKNOWN";
  if (tag.kind === undefined) return { name, description, order, ceiling, kind: undefined };
  const { start, min, max, holdFor, maxAge } = tag.kind.value;
  const holdForMs = millisecondsOf(holdFor);
  const maxAgeMs = millisecondsOf(maxAge);
  const kind = { kind: "segment" as const, start, min, max, holdForMs, maxAgeMs };
  return { name, description, order, ceiling, kind };
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
  ];
  return set
    .filter(([, isSet]) => isSet)
    .map(([field, , wayOut]) => ({
      field,
      description: `is output only, leave it empty${wayOut}`,
    }));
}

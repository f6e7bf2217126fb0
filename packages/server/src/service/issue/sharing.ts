import type { BufferOptions } from "@idmint/core";
import type { Order, SegmentKind, TagKind } from "@idmint/core/kinds";
import type { Tag, TagState } from "@idmint/core/server";

/** What a server keeps of a tag's record beside its revision: what it obeys when it issues. */
export interface TagRules<Kind extends TagKind> {
  readonly state: TagState;
  readonly order: Order;
  readonly kind: Kind;
}

/**
 * The rules of a tag of kind segment: the same object as another tag's where they are equal. Most of 100,000 tags have the same ones, and
 * a whole record of each would be half of what a tag costs.
 */
export function sharedRules(
  { state, order }: Tag,
  kind: SegmentKind,
  other: TagRules<SegmentKind> | undefined,
): TagRules<SegmentKind> {
  if (other === undefined || !isSame(kind, other.kind)) return { state, order, kind };
  if (state === other.state && order === other.order) return other;
  return { state, order, kind: other.kind };
}

/** The same options as another buffer's where they are equal. */
export function sharedOptions(
  options: BufferOptions,
  other: BufferOptions | undefined,
): BufferOptions {
  return other !== undefined && isSame(options, other) ? other : options;
}

/** Whether two flat objects are equal. Either may have a field that the other lacks. */
function isSame<T extends object>(one: T, other: T): boolean {
  for (const key in one) if (one[key] !== other[key]) return false;
  for (const key in other) if (!(key in one)) return false;
  return true;
}

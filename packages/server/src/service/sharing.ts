import type { BufferOptions, Tag } from "@idmint/core";

/**
 * The same record, with whatever it has in common with another one held only once. Most of 100,000 tags have the same
 * settings, and each copy of them is some hundred bytes.
 */
export function sharing(tag: Tag, other: Tag | undefined): Tag {
  if (other === undefined) return tag;
  return {
    ...tag,
    description: tag.description === other.description ? other.description : tag.description,
    order: tag.order === other.order ? other.order : tag.order,
    state: tag.state === other.state ? other.state : tag.state,
    ceiling: tag.ceiling === other.ceiling ? other.ceiling : tag.ceiling,
    kind: isSame(tag.kind, other.kind) ? other.kind : tag.kind,
  };
}

/** The same options as another buffer's where they are equal. */
export function sharingOptions(
  options: BufferOptions,
  other: BufferOptions | undefined,
): BufferOptions {
  return other !== undefined && isSame(options, other) ? other : options;
}

/** Whether two flat objects of one shape are equal. */
function isSame<T extends object>(one: T, other: T): boolean {
  for (const key in one) if (one[key] !== other[key]) return false;
  return true;
}

import { IdmintError } from "@idmint/core";
import type { Tag } from "@idmint/core/server";

/** A tag's etag: says which revision it is of, and nothing that callers should read. */
export function etagOf(tag: Tag): string {
  return `r${tag.revision.toString(36)}`;
}

/** The revision that an etag is of; undefined without one. Throws where the tag has changed since. */
export function expectedRevision(tag: Tag, etag: string): bigint | undefined {
  if (etag === "") return undefined;
  if (etag !== etagOf(tag)) throw etagMismatch(tag.name);
  return tag.revision;
}

export function etagMismatch(tag: string): IdmintError {
  return new IdmintError(
    "ETAG_MISMATCH",
    `tag "${tag}" has changed since this etag; read it again and retry`,
    { metadata: { tag } },
  );
}

import { IdmintError, invalidField } from "@idmint/core";
import { periodsOf, type Tag, tagNotFound } from "@idmint/core/server";
import { countsInRedis, countsToFloor } from "@idmint/core/kinds";
import type { Stamp } from "../shared/change.ts";
import type { PlacedTag } from "../shared/placed-tag.ts";

// How a tag moves from one database to another. Pure: each function decides on one row, which is locked until the
// decision is written. Undefined: the row is to stay as it is, since that step was done before.
//
//   here → leaving (old database) → arriving (new one) → gone (old one) → here (new one)
//
// INVARIANTS
// - At most one row of a tag is `here`, and only that one grants. It stops to be so before the tag arrives anywhere; the
//   new one is opened only when the old one says for good that the tag is gone.
// - The new floor is never below the old one: the row that is copied is `leaving`, so nothing raises its floor any more.
// - Versions and epochs rise with the move. What arrives has a higher version than all rows of the tag had; a row that has
//   one as high is never overwritten: the step was done before, maybe long ago.
// - A row that is `gone` is never `leaving` again without having been `here`. So nothing is copied twice, even where the
//   new database lost what it was given: that is refused, since nobody knows any more what was granted there.

/** Whether the tag's ids are granted here. */
export function isHere({ movedTo, moving }: PlacedTag): boolean {
  return movedTo === "" && !moving;
}

/** Whether nothing of the tag is here but the name of the database where it is. */
export function isGone({ movedTo, moving }: PlacedTag): boolean {
  return movedTo !== "" && !moving;
}

/** Freezes the tag where it is. */
export function leaving(
  name: string,
  row: PlacedTag | undefined,
  to: string,
  stamp: Stamp,
): PlacedTag | undefined {
  if (row === undefined || row.tag.state === "DELETED") throw tagNotFound(name);
  if (!isHere(row)) {
    if (row.movedTo === to) return undefined;
    throw otherMove(name, row.movedTo);
  }
  assertMovable(row.tag);
  return { tag: stamped(row.tag, stamp), movedTo: to, moving: true };
}

/** Puts a tag that left elsewhere in, not open yet. */
export function arriving(
  row: PlacedTag | undefined,
  left: PlacedTag,
  stamp: Stamp,
): PlacedTag | undefined {
  const { tag } = left;
  if (!left.moving || left.movedTo === "") throw new RangeError(`tag "${tag.name}" did not leave`);
  if (row !== undefined && row.tag.version > tag.version) return undefined;
  // Revisions of a tag rise from database to database: servers take its records in their order.
  const revision = stamp.revision > tag.revision ? stamp.revision : tag.revision + 1n;
  // That a server has obeyed a revision of the old database says nothing of one of the new.
  const earlier = tag.earlier === undefined ? {} : { earlier: { ...tag.earlier, revision } };
  const arrived = { ...stamped(tag, { ...stamp, revision }), ...earlier };
  return { tag: arrived, movedTo: "", moving: true };
}

/** Says for good that the tag is in the other database. */
export function gone(row: PlacedTag | undefined, to: string): PlacedTag | undefined {
  if (row === undefined || row.movedTo !== to || !row.moving) return undefined;
  return { ...row, moving: false };
}

/** Opens the tag that arrived. */
export function opened(row: PlacedTag | undefined, stamp: Stamp): PlacedTag | undefined {
  if (row === undefined || row.movedTo !== "" || !row.moving) return undefined;
  const { revision, nowMs } = stamp;
  return { tag: { ...row.tag, revision, updatedAtMs: nowMs }, movedTo: "", moving: false };
}

function stamped(tag: Tag, { revision, nowMs }: Stamp): Tag {
  const { version, epoch } = tag;
  return { ...tag, version: version + 1n, epoch: epoch + 1n, revision, updatedAtMs: nowMs };
}

function assertMovable({ name, kind }: Tag): void {
  if (countsToFloor(kind) && !countsInRedis(kind) && periodsOf(kind) === undefined) return;
  throw new IdmintError(
    "WRONG_KIND",
    `tag "${name}" stays in its database: only segments, and sequences without periods that count in the store, can be moved`,
    { metadata: { tag: name, kind: kind.kind } },
  );
}

/** One move of a tag at a time. */
export function otherMove(name: string, to: string): IdmintError {
  return invalidField(
    "to",
    `must be ${to} first: tag "${name}" is already on its way there; finish that with: idmint store spread move ${name} --to ${to}`,
  );
}

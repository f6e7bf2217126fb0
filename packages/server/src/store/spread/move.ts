import { invalidField } from "@idmint/core";
import {
  type AuditEvent,
  type AuditNote,
  storeUnavailable,
  storeWentBack,
  tagNotFound,
} from "@idmint/core/server";
import { changeOf } from "../shared/records/audit.ts";
import type { Stamp } from "../shared/change.ts";
import type { PlacedTag } from "../shared/placed-tag.ts";
import { homeOf } from "./home.ts";
import { arriving, gone, isGone, isHere, leaving, opened, otherMove } from "./move-state.ts";

/** What a move needs of one database. */
export interface MovePlace {
  getRows(names: readonly string[]): Promise<readonly PlacedTag[]>;
  /** One step, in one transaction; see rewriteTag. */
  rewriteTag(
    name: string,
    decide: (row: PlacedTag | undefined, stamp: Stamp) => PlacedTag | undefined,
    incarnation?: string,
    told?: (stamp: Stamp) => AuditEvent,
  ): Promise<void>;
  standing(): Promise<{ readonly incarnation: string }>;
}

/** Steps of one move, and as many again when it changes its mind about where it stands. */
const MAX_STEPS = 10;

/**
 * Moves a tag to another database, or goes on with a move that was interrupted. Every step is durable before the next one,
 * and each may be repeated. Answers whether anything had to be done. `by` is written with the first step, which decides
 * where the tag goes.
 */
export async function moveTag(
  places: ReadonlyMap<string, MovePlace>,
  name: string,
  to: string,
  onStep: (step: string) => void = () => undefined,
  by?: AuditNote,
): Promise<{ moved: boolean }> {
  const target = places.get(to);
  if (target === undefined) {
    throw invalidField("to", `must be one of ${[...places.keys()].join(", ")}, got ${to}`);
  }
  for (let steps = 0; steps < MAX_STEPS; steps++) {
    // Read before the row that may be copied: what was copied into a history that is over is not copied again.
    const { incarnation } = await target.standing();
    const [member, row] = await current(places, name);
    const place = placeOf(places, member);
    if (isHere(row)) {
      if (member === to) return { moved: steps > 0 };
      const told =
        by === undefined
          ? undefined
          : ({ nowMs }: Stamp) =>
              changeOf(by, nowMs, `tag/${name}`, { database: member }, { database: to });
      const leave = (its: PlacedTag | undefined, stamp: Stamp): PlacedTag | undefined =>
        leaving(name, its, to, stamp);
      await place.rewriteTag(name, leave, undefined, told);
      onStep("left");
    } else if (row.movedTo === "") {
      if (member !== to) throw otherMove(name, member);
      await place.rewriteTag(name, opened);
      onStep("opened");
    } else {
      if (row.movedTo !== to) throw otherMove(name, row.movedTo);
      await target.rewriteTag(name, (its, stamp) => arriving(its, row, stamp), incarnation);
      onStep("arrived");
      await place.rewriteTag(name, (its) => gone(its, to));
      onStep("gone");
    }
  }
  throw storeUnavailable(`tag "${name}" moved about meanwhile; try again`);
}

/**
 * The row that a move has to go on with: the one that is leaving, or else the last one on the tag's way from its home.
 *
 * INVARIANT: nothing is opened before it is gone elsewhere. Where a tag moves to its home, the way from there meets what
 * has arrived first; so all databases are looked at for what is still leaving, after the way was gone: what had arrived
 * by then was leaving before.
 */
async function current(
  places: ReadonlyMap<string, MovePlace>,
  name: string,
): Promise<readonly [string, PlacedTag]> {
  const last = await follow(places, name);
  for (const [member, place] of places) {
    const [row] = await place.getRows([name]);
    if (row !== undefined && row.moving && row.movedTo !== "") return [member, row];
  }
  return last;
}

/** The last row on a tag's way from its home. */
async function follow(
  places: ReadonlyMap<string, MovePlace>,
  name: string,
): Promise<readonly [string, PlacedTag]> {
  let member = homeOf([...places.keys()].toSorted(), name);
  for (let hops = 0; hops <= places.size; hops++) {
    // One step of the way after the other.
    const [row] = await placeOf(places, member).getRows([name]);
    if (row === undefined && hops === 0) throw tagNotFound(name);
    if (row === undefined) break;
    if (!isGone(row)) return [member, row];
    member = row.movedTo;
  }
  throw storeWentBack(`database ${member} has lost tag "${name}", and nobody knows its floor`);
}

function placeOf(places: ReadonlyMap<string, MovePlace>, member: string): MovePlace {
  const place = places.get(member);
  if (place !== undefined) return place;
  throw invalidField("store.more_urls", `must name database ${member}, where the tag is`);
}

import { storeWentBack, type Tag } from "@idmint/core/server";
import type { PlacedTag } from "../shared/placed-tag.ts";
import { homeOf } from "./home.ts";
import { isGone, isHere } from "./move-state.ts";

/** Places of tags away from home that are remembered; others are found by way of their home again. */
const MAX_AWAY = 100_000;

/** Reads the rows of some tags in one database. */
export type ReadRows = (member: string, names: readonly string[]) => Promise<readonly PlacedTag[]>;

/** Where a tag is. */
export interface Found {
  readonly member: string;
  /** Its row there; while it moves the last one of its way, whose settings are those of the tag. */
  readonly tag: Tag;
  /** Whether its ids are granted there. */
  readonly isHere: boolean;
}

/**
 * Knows where tags are.
 *
 * INVARIANT: every tag that was ever made has a row at home, which is the tag or names where it went; and so on from there.
 * So a tag without a row at home does not exist. One whose way ends without a row does: a database has lost it.
 */
export class Locator {
  readonly #members: readonly string[];
  readonly #read: ReadRows;
  /** Tags that are not at home. */
  readonly #away = new Map<string, string>();
  /** Whether tags may have left their homes that are not known here as away. */
  #hasLostPlaces = false;

  constructor(members: readonly string[], read: ReadRows) {
    this.#members = members;
    this.#read = read;
  }

  homeOf(tag: string): string {
    return homeOf(this.#members, tag);
  }

  /** Where a tag was when it was last heard of; at home when nothing was. */
  placeOf(tag: string): string {
    return this.#away.get(tag) ?? this.homeOf(tag);
  }

  /**
   * The databases that have to be heard for a tag. One that is at home, and never was seen to leave, can leave only by that
   * database's word; any other may be anywhere.
   */
  partsOf(tag: string): readonly string[] {
    return this.#hasLostPlaces || this.#away.has(tag) ? this.#members : [this.homeOf(tag)];
  }

  /** More tags have moved than were told one by one. */
  losePlaces(): void {
    this.#hasLostPlaces = true;
  }

  /** A tag was seen to be open there. */
  note(tag: string, member: string): void {
    // One that came home may leave again from where nobody listens: it counts as away.
    if (member === this.homeOf(tag) && !this.#away.has(tag)) return;
    this.noteLeft(tag, member);
  }

  /**
   * A tag that left, or is leaving, was last seen there, and counts as away from now on.
   *
   * INVARIANT: that database has a row of the tag. One without a row would be taken for one that has lost the tag, and so
   * a tag that is leaving is looked for where it leaves: it may be long before it arrives.
   */
  noteLeft(tag: string, member: string): void {
    this.#away.delete(tag);
    this.#away.set(tag, member);
    const [oldest] = this.#away.keys();
    if (this.#away.size <= MAX_AWAY || oldest === undefined) return;
    this.#away.delete(oldest);
    this.losePlaces();
  }

  /** Finds tags; those that do not exist are left out. Rejects when a database on the way does not answer. */
  async find(names: readonly string[]): Promise<ReadonlyMap<string, Found>> {
    const found = new Map<string, Found>();
    let left = new Map(names.map((name) => [name, { member: this.placeOf(name), last: none() }]));
    // Each round is a step on the way; a way never has more databases than there are, and one round may be lost to a
    // place that was remembered and is not right any more.
    for (let hops = 0; left.size > 0 && hops <= this.#members.length + 1; hops++) {
      // A round depends on the one before.
      left = await this.#step(left, found);
    }
    for (const [name, { member, last }] of left) {
      if (last === undefined) throw storeWentBack(lost(name, member));
      found.set(name, { member, tag: last, isHere: false });
    }
    return found;
  }

  async #step(
    left: ReadonlyMap<string, Step>,
    found: Map<string, Found>,
  ): Promise<Map<string, Step>> {
    const next = new Map<string, Step>();
    const members = Map.groupBy(left, ([, { member }]) => member);
    const work = [...members].map(async ([member, steps]) => {
      const names = steps.map(([name]) => name);
      const rows = new Map((await this.#read(member, names)).map((row) => [row.tag.name, row]));
      for (const [name, step] of steps) {
        const to = this.#take(name, step, rows.get(name), found);
        if (to !== undefined) next.set(name, to);
      }
    });
    await Promise.all(work);
    return next;
  }

  /** Where to go on; undefined when the way ends here. */
  #take(
    name: string,
    { member, last }: Step,
    row: PlacedTag | undefined,
    found: Map<string, Found>,
  ): Step | undefined {
    if (row === undefined) {
      if (last !== undefined) {
        // Asked there, that database says that it has lost the tag.
        this.note(name, member);
        found.set(name, { member, tag: last, isHere: false });
      } else if (member !== this.homeOf(name)) {
        this.#away.set(name, this.homeOf(name));
        return { member: this.homeOf(name), last: none() };
      }
      return undefined;
    }
    if (isGone(row)) return { member: row.movedTo, last: row.tag };
    if (isHere(row)) this.note(name, member);
    found.set(name, { member, tag: row.tag, isHere: isHere(row) });
    return undefined;
  }
}

interface Step {
  readonly member: string;
  /** The last row on the way. */
  readonly last: Tag | undefined;
}

function none(): Tag | undefined {
  return undefined;
}

function lost(name: string, member: string): string {
  return `database ${member} has lost tag "${name}"`;
}

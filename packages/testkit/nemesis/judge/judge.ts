// What the histories of a site show.
import path from "node:path";
import type { HistoryRow, RefusalRow, UuidRow } from "../callers/config.ts";
import type { Window } from "../journal.ts";
import type { SiteTag } from "../tags.ts";
import { Availability } from "./availability.ts";
import { type Inversion, OrderCheck } from "./order.ts";
import { filesOf, merged, type Placed, trim } from "./rows.ts";
import { partOf, UuidCheck } from "./uuids.ts";
import { type Verified, verify } from "./verify.ts";

/** All that is judged of a site. */
export interface Case {
  readonly site: string;
  readonly histories: readonly string[];
  readonly tags: readonly SiteTag[];
  readonly windows: readonly Window[];
  readonly servers: number;
  readonly address: string;
  readonly storeUrl: string;
  readonly hasLedger: boolean;
}

/** Lines about what is wrong, by what it is. The first few of each. */
export interface Violations {
  readonly repeats: readonly string[];
  readonly order: readonly string[];
  readonly aboveFloor: readonly string[];
  readonly ledger: readonly string[];
  /** Refusals that nothing here explains. */
  readonly refusals: readonly string[];
}

export interface SiteVerdict {
  readonly site: string;
  readonly violations: Violations;
  readonly calls: number;
  readonly ids: bigint;
  readonly availability: Availability;
  readonly refusals: ReadonlyMap<string, number>;
  /** Of the monotonic clock, in microseconds. */
  readonly from: number;
  readonly to: number;
}

const MAX_LINES = 20;
/** What callers must expect while servers, stores and clocks are away, or an operator holds a tag back. Any other is a fault. */
const EXPECTED: ReadonlySet<string> = new Set([
  "UNAVAILABLE SEGMENT_NOT_READY",
  "UNAVAILABLE STORE_UNAVAILABLE",
  "UNAVAILABLE SERVER_UNAVAILABLE",
  "UNAVAILABLE DRAINING",
  "UNAVAILABLE MAX_NOT_RAISED",
  "UNAVAILABLE CLOCK_MOVED_BACKWARDS",
  "UNAVAILABLE CLOCK_NOT_CONFIRMED",
  "DEADLINE_EXCEEDED DEADLINE_EXCEEDED",
  "FAILED_PRECONDITION CLIENT_CLOSED",
]);
/** Of a store that went back, or that may have. */
const EXPECTED_OF_STORE: ReadonlySet<string> = new Set([
  "FAILED_PRECONDITION STORE_EPOCH_CHANGED",
  "FAILED_PRECONDITION STORE_UNSAFE",
]);
/** A server notices with its next polls that all is well again. */
const NOTICED_US = 15_000_000;
const EXPECTED_OF_DISTURBED: ReadonlySet<string> = new Set([
  "FAILED_PRECONDITION TAG_PAUSED",
  "NOT_FOUND TAG_NOT_FOUND",
]);

/** Judges by the rows themselves, and by `idmint verify`. */
export async function judge(its: Case): Promise<SiteVerdict> {
  for (const history of its.histories) for (const file of filesOf(history)) trim(file);
  const reading = new Reading(its);
  for (const placed of merged(its.histories)) reading.add(placed);
  const files = its.histories
    .map((history) => `${history}.ndjson`)
    .filter((file) => filesOf(file.slice(0, -".ndjson".length)).includes(file));
  const verified = await verify(files, its);
  return reading.verdict(verified);
}

/** One pass over all rows. */
class Reading {
  readonly #case: Case;
  readonly #tags: ReadonlyMap<string, SiteTag>;
  readonly #orders = new Map<string, OrderCheck>();
  readonly #uuids = new Map<string, UuidCheck>();
  readonly #windows: readonly Window[];
  readonly #availability: Availability;
  readonly #refusals = new Map<string, number>();
  readonly #inversions: string[] = [];
  readonly #unexpected: string[] = [];
  #calls = 0;
  #uuidCount = 0;
  #from = Infinity;
  #to = 0;

  constructor(its: Case) {
    this.#case = its;
    this.#tags = new Map(its.tags.map((tag) => [tag.tag.name, tag]));
    this.#windows = its.windows.filter(({ site }) => site === its.site);
    this.#availability = new Availability(its.tags, this.#windows, its.servers);
  }

  add(placed: Placed): void {
    const { history, row } = placed;
    const isSdk = path.basename(history).startsWith("sdk-");
    if (isSdk) this.#availability.add(placed);
    this.#from = Math.min(this.#from, row.from);
    this.#to = Math.max(this.#to, row.to);
    if ("refused" in row) {
      this.#refused(row);
      if (row.refused !== "STALL") this.#calls++;
      return;
    }
    this.#calls++;
    if ("uuid" in row) return this.#uuid(row);
    const { order } = this.#tags.get(row.tag) ?? { order: "none" };
    if (order === "strict") this.#ordered(row.tag, row);
    else if (order === "client" && isSdk) this.#ordered(`${row.tag} ${history}`, row);
  }

  verdict(verified: Verified): SiteVerdict {
    this.#availability.end(this.#to);
    const repeats = [...verified.repeats, ...this.#repeatedUuids()];
    return {
      site: this.#case.site,
      violations: {
        repeats,
        order: this.#inversions,
        aboveFloor: verified.aboveFloor,
        ledger: verified.ledger,
        refusals: this.#unexpected,
      },
      calls: this.#calls,
      ids: verified.ids + BigInt(this.#uuidCount),
      availability: this.#availability,
      refusals: this.#refusals,
      from: this.#from,
      to: this.#to,
    };
  }

  #ordered(scope: string, row: HistoryRow): void {
    let check = this.#orders.get(scope);
    if (check === undefined) this.#orders.set(scope, (check = new OrderCheck()));
    const inversion = check.add(row);
    if (inversion !== undefined && this.#inversions.length < MAX_LINES)
      this.#inversions.push(lineOf(inversion));
  }

  #uuid({ tag, uuid }: UuidRow): void {
    let check = this.#uuids.get(tag);
    if (check === undefined) this.#uuids.set(tag, (check = new UuidCheck()));
    check.add(uuid);
    this.#uuidCount++;
  }

  #refused({ tag, who, time, from, to, refused, message }: RefusalRow): void {
    this.#refusals.set(refused, (this.#refusals.get(refused) ?? 0) + 1);
    if (refused === "STALL" || EXPECTED.has(refused)) return;
    const isDisturbed = this.#tags.get(tag)?.isDisturbed === true;
    if (isDisturbed && EXPECTED_OF_DISTURBED.has(refused)) return;
    if (EXPECTED_OF_STORE.has(refused) && this.#storeWasAway(from, to)) return;
    if (this.#unexpected.length < MAX_LINES)
      this.#unexpected.push(`${tag}: ${refused} to ${who} at ${time}: ${message}`);
  }

  #storeWasAway(from: number, to: number): boolean {
    return this.#windows.some(
      (its) =>
        (its.of === "back" || its.of === "store") && its.from <= to && its.to + NOTICED_US >= from,
    );
  }

  /** Reads the UUIDs again that have a part in common with another one. */
  #repeatedUuids(): readonly string[] {
    const suspects = new Map([...this.#uuids].map(([tag, check]) => [tag, check.suspects()]));
    if ([...suspects.values()].every(({ size }) => size === 0)) return [];
    const seen = new Map<string, string>();
    const lines: string[] = [];
    for (const { row } of merged(this.#case.histories)) {
      if (!("uuid" in row) || suspects.get(row.tag)?.has(partOf(row.uuid)) !== true) continue;
      const key = `${row.tag}: ${row.uuid}`;
      const first = seen.get(key);
      if (first !== undefined) lines.push(`${key} to ${first} and to ${row.who}`);
      seen.set(key, row.who);
    }
    return lines.slice(0, MAX_LINES);
  }
}

function lineOf({ before, after }: Inversion): string {
  return `${after.tag}: ${JSON.stringify(after)} is not above ${JSON.stringify(before)}`;
}

// What the cases of the suite share: settings, wishes, and what is expected of answers.
import { type Code, CODE_OF_REASON, IdmintError, MAX_ID, type Reason } from "@idmint/core";
import type {
  PeriodUnit,
  RedisSnowflakeKind,
  SegmentKind,
  SequenceKind,
  TagKind,
  TicketKind,
} from "@idmint/core/kinds";
import type {
  EndedPeriod,
  Granted,
  GrantRequest,
  Raised,
  RaiseRequest,
  Store,
  StoreChanges,
  TagSettings,
} from "@idmint/core/server";
import { expect } from "vitest";

/** A fresh, empty store for one test. */
export interface StoreHarness {
  /** Opens another handle: several may be open at once, each as if in a server of its own. */
  open(): Promise<Store>;
  /**
   * Moves the periods of all rows, present and ended, by whole days: as if the clock had gone the other way, and with it
   * whatever had been told by it.
   */
  shiftPeriods(days: number): Promise<void>;
  /** Moves what all rows of workers say of time into the past, as if so many milliseconds had gone by. */
  passWorkers(ms: number): Promise<void>;
  /** Whether its tags are in several databases, each of which counts revisions for itself. */
  readonly spreads?: boolean;
  /** Whether it keeps a ledger; false: it refuses the calls about it. Default: true. */
  readonly keepsLedger?: boolean;
  /** Opens a handle on a line that can be cut, which leaves open what became of the calls that are under way. */
  openCut?(): Promise<{ readonly store: Store; readonly cut: () => void }>;
  /** Keeps a copy of the store, which can be put back in its place while no handle is open. Everybody sees then that it went back. */
  keep?(): Promise<() => Promise<void>>;
  /** Removes the store; its handles are closed by then. */
  remove(): Promise<void>;
}

type Common = Partial<Omit<TagSettings, "kind" | "name">>;

/** Where the next poll goes on after this one. */
export function nextOf({ changed, next }: StoreChanges, since: bigint): bigint {
  return next ?? changed.at(-1)?.revision ?? since;
}

/** Settings of a tag: those of its kind over the defaults of `kind`. */
function tagOf<Kind extends TagKind>(
  name: string,
  more: Common & Partial<Kind>,
  kind: Kind,
): TagSettings {
  const { description = "", order = "UNORDERED", ceiling = MAX_ID, ...its } = more;
  return { name, description, order, ceiling, kind: { ...kind, ...its } };
}

/** Settings of a tag of kind segment, defaults filled in. */
export function settingsOf(name: string, more: Common & Partial<SegmentKind> = {}): TagSettings {
  const sizes = { start: 1n, min: 1_000, max: 100_000_000 };
  const times = { holdForMs: 900_000, maxAgeMs: 600_000 };
  return tagOf<SegmentKind>(name, more, { kind: "segment", ...sizes, ...times });
}

/** Settings of a tag of kind sequence, defaults filled in: it counts in the store, without periods. */
export function sequenceOf(
  name: string,
  more: Common & Partial<Omit<SequenceKind, "kind">> = {},
): TagSettings {
  const kind = { kind: "sequence", start: 1n, periods: undefined, redis: undefined } as const;
  return tagOf<SequenceKind>(name, { order: "STRICT", ...more }, kind);
}

/** Settings of a sequence that counts in Redis. */
export function redisSequenceOf(
  name: string,
  more: Common & { readonly server?: string; readonly step?: number } = {},
): TagSettings {
  const { server = "a", step = 10_000, ...common } = more;
  return sequenceOf(name, { ceiling: 2n ** 53n - 1n, ...common, redis: { server, step } });
}

/** Settings of a tag of kind redis_snowflake, defaults filled in. */
export function redisSnowflakeOf(
  name: string,
  more: Common & Partial<Omit<RedisSnowflakeKind, "kind">> = {},
): TagSettings {
  const place = { shard: 0, timeOriginMs: Date.UTC(2026, 0, 1), redisServer: "a" };
  return tagOf<RedisSnowflakeKind>(name, more, { kind: "redis_snowflake", ...place });
}

/** Settings of a tag of kind ticket, defaults filled in. */
export function ticketOf(
  name: string,
  more: Common & Partial<Omit<TicketKind, "kind">> = {},
): TagSettings {
  const slots = { start: 1n, slots: 60, slotsId: `${name}.0` };
  return tagOf<TicketKind>(name, more, { kind: "ticket", ...slots });
}

/** A wish for ids, defaults filled in. */
export function wish(tag: string, more: Partial<Omit<GrantRequest, "tag">> = {}): GrantRequest {
  return { tag, kind: "segment", count: 10, minCount: 1, after: 0n, seenVersion: 0n, ...more };
}

/** A wish for ids of a sequence: all of them or none. */
export function sequenceRequest(
  tag: string,
  count = 1,
  more: Partial<Omit<GrantRequest, "count" | "kind" | "minCount" | "tag">> = {},
): GrantRequest {
  return wish(tag, { kind: "sequence", count, minCount: count, ...more });
}

/** The grant of one wish for ids of a sequence; fails the test when it was refused. */
export async function grantedOf(
  store: Store,
  tag: string,
  count = 1,
  seenVersion = 0n,
): Promise<Granted> {
  return granted(store, tag, sequenceRequest(tag, count, { seenVersion }));
}

/** Why one wish for ids of a sequence was refused; fails the test when it was granted. */
export async function refusalOf(
  store: Store,
  tag: string,
  count = 1,
  seenVersion = 0n,
): Promise<string> {
  return refusal(store, tag, sequenceRequest(tag, count, { seenVersion }));
}

/** A wish to raise the bound of a tag that counts in Redis, defaults filled in. */
export function raiseOf(tag: string, more: Partial<Omit<RaiseRequest, "tag">> = {}): RaiseRequest {
  return { tag, by: 0n, atLeast: 0n, newGeneration: false, seenVersion: 0n, ...more };
}

/** The raise of one bound; fails the test when it was refused. */
export async function raised(
  store: Store,
  tag: string,
  more: Partial<Omit<RaiseRequest, "tag">> = {},
): Promise<Raised> {
  const answer = await store.raise(raiseOf(tag, more));
  if (answer.outcome === "raised") return answer;
  throw new Error(`expected a raise of ${tag}, got ${answer.reason}`);
}

/** The grant of one wish; fails the test when it was refused. */
export async function granted(
  store: Store,
  tag: string,
  more: Partial<Omit<GrantRequest, "tag">> = {},
): Promise<Granted> {
  const [grant] = await store.grant([wish(tag, more)]);
  if (grant?.outcome !== "granted") {
    throw new Error(`expected a grant of ${tag}, got ${JSON.stringify(grant)}`);
  }
  return grant;
}

/** Why one wish was refused; fails the test when it was granted. */
export async function refusal(
  store: Store,
  tag: string,
  more: Partial<Omit<GrantRequest, "tag">> = {},
): Promise<string> {
  const [grant] = await store.grant([wish(tag, more)]);
  if (grant?.outcome !== "refused") throw new Error(`expected a refusal of ${tag}`);
  return grant.reason;
}

/** The reason a promise rejects with; fails the test when it does not, or with anything but an IdmintError. */
export async function reasonOf(work: Promise<unknown>): Promise<Reason> {
  const error: unknown = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (error instanceof IdmintError) return error.reason;
  throw new Error("expected an IdmintError", { cause: error });
}

/** The code of what a call was refused with. */
export async function codeOf(work: Promise<unknown>): Promise<Code> {
  return CODE_OF_REASON[await reasonOf(work)];
}

/** No revision is expected. */
export const NO_CHECK: undefined = undefined;
/** An advance without bounds. */
export const FREE: Parameters<Store["advanceTag"]>[2] = {
  maxRaise: MAX_ID,
  validateOnly: false,
  expectedRevision: NO_CHECK,
};

/** Registers one case, which gets a handle on a fresh store. */
export type Suite = (
  title: string,
  run: (store: Store, open: () => Promise<Store>, harness: StoreHarness) => Promise<void>,
) => void;

/** Every id from the first grant's base on is in exactly one grant. */
export function assertSeamless(grants: readonly Granted[]): void {
  let next = 1n;
  for (const { base, count } of grants.toSorted((a, b) => (a.base < b.base ? -1 : 1))) {
    expect(base).toBe(next);
    next = base + BigInt(count);
  }
}

/** No id is in two ranges. */
export function assertDisjoint(ranges: readonly { from: bigint; to: bigint }[]): void {
  let last = 0n;
  for (const { from, to } of ranges.toSorted((a, b) => (a.from < b.from ? -1 : 1))) {
    if (from <= last) throw new Error(`id ${from} was issued twice`);
    last = to;
  }
}

export const DAY_MS: number = 86_400_000;
export const YEARS_MS: number = 400 * DAY_MS;

/** A zone in which it is noon, so that no test sees midnight, with its offset in milliseconds. */
export function noonZone(): { timeZone: string; offsetMs: number } {
  const hours = 12 - new Date().getUTCHours();
  const sign = hours > 0 ? "-" : "+";
  const timeZone = hours === 0 ? "UTC" : `Etc/GMT${sign}${Math.abs(hours)}`;
  return { timeZone, offsetMs: hours * 3_600_000 };
}

/** Periods of days, as long as the test runs in one and the same. */
export function daily(keepForMs: number = YEARS_MS): {
  unit: PeriodUnit;
  timeZone: string;
  keepForMs: number;
} {
  return { unit: "DAY", timeZone: noonZone().timeZone, keepForMs };
}

export function dayOf(atMs: number): string {
  return new Date(atMs).toISOString().slice(0, 10);
}

export async function ended(
  store: Store,
  before = "",
  limit = 100,
): Promise<readonly EndedPeriod[]> {
  return store.listPeriods({ tag: "t", before, limit });
}

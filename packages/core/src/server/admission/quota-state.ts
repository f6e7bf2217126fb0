import {
  type Bucket,
  type Fill,
  fullBucket,
  isFull,
  mostAtOnce,
  refill,
  waitMs,
} from "./bucket.ts";

/** What a quota counts: calls or ids, of a caller or of a tag; of administrators calls, and tags that they make. */
export type QuotaName =
  | "admin_calls"
  | "admin_tags"
  | "caller_calls"
  | "caller_ids"
  | "tag_calls"
  | "tag_ids";

/** Rates a second over all servers; undefined: without a limit. */
export interface Rates {
  readonly byDefault: number | undefined;
  readonly named: ReadonlyMap<string, number | undefined>;
}

export interface QuotaOptions {
  /** Those that are left out are none. */
  readonly rates: Readonly<Partial<Record<QuotaName, Rates>>>;
  /** For how long a full bucket lasts at the rate of its quota. */
  readonly burstMs: number;
  /** Buckets that each quota keeps. */
  readonly maxBuckets: number;
}

/** What a call takes. */
export interface Take {
  readonly caller: string;
  readonly tag: string;
  /** Of administrators: the tags that it makes. */
  readonly ids: number;
  /** Only a quota that names the caller or the tag counts. */
  readonly isByNameOnly?: boolean;
}

/** Why a call may not be made now. */
export interface OverQuota {
  readonly quota: QuotaName;
  /** The caller or the tag. */
  readonly subject: string;
  /** A second, over all servers. */
  readonly rate: number;
  readonly waitMs: number;
  /** Set when the call takes more than is ever admitted at once. */
  readonly most?: number;
}

interface Table {
  readonly rates: Rates;
  readonly buckets: Map<string, Bucket>;
  /** Where the sweep goes on. */
  cursor: MapIterator<[string, Bucket]>;
}

/**
 * Quotas of callers and tags as this server knows them. Pure.
 *
 * INVARIANTS
 * 1. A call takes from all of its buckets or from none.
 * 2. This server's share of a quota is the quota ÷ live servers, so that all servers together keep it.
 * 3. A bucket is forgotten only when it is full, so that forgetting it gives nobody more. When there are too many that are
 *    not full, newcomers share one.
 */
export interface QuotaState {
  readonly options: QuotaOptions;
  readonly tables: readonly (readonly [QuotaName, Table])[];
  servers: number;
}

/** Buckets that one sweep looks at. */
const SWEPT_AT_ONCE = 2_000;
/** No caller and no tag is called so. */
const OTHERS = " others";
/** What is longer is no name, and not worth keeping. */
const MAX_NAME_LENGTH = 128;

export function createQuotaState(options: QuotaOptions): QuotaState {
  const limited = Object.entries(options.rates).filter(([, rates]) => isLimited(rates));
  const tables = limited.map(([name, rates]) => {
    const buckets = new Map<string, Bucket>();
    return [name as QuotaName, { rates, buckets, cursor: buckets.entries() }] as const;
  });
  return { options, tables, servers: 1 };
}

/** Whether there is a quota at all. */
export function hasQuotas({ tables }: QuotaState): boolean {
  return tables.length > 0;
}

/** Invariant 2. */
export function setServers(state: QuotaState, servers: number): void {
  state.servers = Math.max(1, servers);
}

/** Takes what a call takes; or answers what stands in its way longest, and takes nothing. */
export function takeOfQuotas(state: QuotaState, take: Take, now: number): OverQuota | undefined {
  let refusal: OverQuota | undefined;
  for (const [quota, table] of state.tables) {
    const found = bucketOf(state, quota, table, take, now);
    if (found === undefined) continue;
    const over = refusalOf(quota, take, found);
    if (over !== undefined && over.waitMs >= (refusal?.waitMs ?? 0)) refusal = over;
  }
  if (refusal !== undefined) return refusal;
  // Invariant 1.
  for (const [quota, table] of state.tables) {
    const found = bucketOf(state, quota, table, take, now);
    if (found !== undefined) found.bucket.tokens -= found.count;
  }
  return undefined;
}

/** The ids of a call that was admitted and got none. The call itself stays counted. */
export function giveBackIds(state: QuotaState, take: Take, now: number): void {
  for (const [quota, table] of state.tables) {
    if (!countsIds(quota)) continue;
    const found = bucketOf(state, quota, table, take, now);
    // Whatever is above the burst is cut before it can be taken.
    if (found !== undefined) found.bucket.tokens += found.count;
  }
}

/** To be called about once a second: forgets buckets that are full. */
export function sweepQuotas(state: QuotaState, now: number): void {
  for (const [, table] of state.tables) {
    for (let left = SWEPT_AT_ONCE; left > 0; left--) {
      const next = table.cursor.next();
      if (next.done === true) {
        table.cursor = table.buckets.entries();
        break;
      }
      const [subject, bucket] = next.value;
      const rate = rateOf(table.rates, subject);
      if (rate === undefined) continue;
      const fill = fillOf(state, rate);
      refill(bucket, fill, now);
      // Invariant 3.
      if (isFull(bucket, fill)) table.buckets.delete(subject);
    }
  }
}

interface Found {
  readonly bucket: Bucket;
  readonly fill: Fill;
  readonly rate: number;
  readonly subject: string;
  readonly count: number;
}

/** The bucket that a call takes from, up to date; undefined where it takes nothing. */
function bucketOf(
  state: QuotaState,
  quota: QuotaName,
  { rates, buckets }: Table,
  take: Take,
  now: number,
): Found | undefined {
  const count = countsIds(quota) ? take.ids : 1;
  if (count === 0) return undefined;
  const subject = quota.startsWith("tag_") ? take.tag : take.caller;
  if (take.isByNameOnly === true && !rates.named.has(subject)) return undefined;
  const rate = rateOf(rates, subject);
  if (rate === undefined) return undefined;
  const fill = fillOf(state, rate);
  const max = rates.named.has(subject) ? Infinity : state.options.maxBuckets;
  const bucket = keptBucket(buckets, subject, max, fill, now);
  refill(bucket, fill, now);
  return { bucket, fill, rate, subject, count };
}

/** Invariant 3. Those that have a rate of their own have a bucket of their own. */
function keptBucket(
  buckets: Map<string, Bucket>,
  subject: string,
  max: number,
  fill: Fill,
  now: number,
): Bucket {
  const known = buckets.get(subject);
  if (known !== undefined) return known;
  const isKept = buckets.size < max && subject.length <= MAX_NAME_LENGTH;
  const name = isKept ? subject : OTHERS;
  const shared = buckets.get(name);
  if (shared !== undefined) return shared;
  const bucket = fullBucket(fill, now);
  buckets.set(name, bucket);
  return bucket;
}

function refusalOf(
  quota: QuotaName,
  { caller, tag }: Take,
  { bucket, fill, rate, count }: Found,
): OverQuota | undefined {
  const subject = quota.startsWith("tag_") ? tag : caller;
  const most = mostAtOnce(fill);
  if (count > Math.max(1, most)) {
    return { quota, subject, rate, waitMs: most / fill.perMs, most };
  }
  const wait = waitMs(bucket, fill);
  return wait === 0 ? undefined : { quota, subject, rate, waitMs: wait };
}

/** Invariant 2. */
function fillOf({ servers, options: { burstMs } }: QuotaState, rate: number): Fill {
  const perMs = rate / servers / 1_000;
  return { perMs, burst: Math.max(1, perMs * burstMs) };
}

function rateOf({ byDefault, named }: Rates, subject: string): number | undefined {
  return named.has(subject) ? named.get(subject) : byDefault;
}

function isLimited({ byDefault, named }: Rates): boolean {
  return byDefault !== undefined || [...named.values()].some((rate) => rate !== undefined);
}

function countsIds(quota: QuotaName): boolean {
  return quota.endsWith("_ids") || quota === "admin_tags";
}

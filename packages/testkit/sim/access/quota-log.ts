import { BURST_MS } from "./access-plan.ts";

/** Clocks drift by less than this. */
const DRIFT = 1.01;
/** For how long a call may still arrive whose caller gave it up. */
const UNCERTAIN_MS = 10_000;

/** Most that a rate allows in a time, without the one call more. */
function mostIn(rate: number, ms: number): number {
  return (rate / 1_000) * (BURST_MS + ms * DRIFT);
}

/** A quota, over all servers. */
export interface Quota {
  readonly calls: number;
  readonly ids: number;
}

/** A call of the one who has the quota. */
export interface QuotaCall {
  readonly server: string;
  readonly sentAtMs: number;
  readonly ids: number;
  /** Whether the quota allows it, whatever its server thinks of the others. */
  readonly isAllowed: boolean;
}

interface Taken {
  readonly sentAtMs: number;
  readonly ids: number;
}

/** What one server has admitted, and the least that it may still admit. */
interface Bucket {
  readonly taken: Taken[];
  readonly open: Set<QuotaCall>;
  /** The call that was sent last. */
  last: QuotaCall | undefined;
  calls: number;
  ids: number;
  atMs: number;
  /** Nobody knows until then what it was asked. */
  uncertainUntilMs: number;
}

/**
 * Holds what servers admit against docs/overload.md: in any time no more than the burst, the rate times that time and one call; and
 * a call is admitted as soon as something is left of the share of its server.
 *
 * INVARIANT: what it reckons is on the safe side. No server admits more than the whole quota, and none less than its part of
 * `mostServers`.
 */
export class QuotaLog {
  readonly #quota: Quota;
  readonly #mostServers: number;
  readonly #buckets = new Map<string, Bucket>();

  constructor(quota: Quota, mostServers: number) {
    this.#quota = quota;
    this.#mostServers = mostServers;
  }

  /** `isCertain`: the network brings it once, and its server counts time as it passes. */
  sent(server: string, ids: number, nowMs: number, isCertain: boolean): QuotaCall {
    const bucket = this.#bucket(server, nowMs);
    const isLeft = bucket.calls >= 1 && bucket.ids >= 1;
    const isAlone = bucket.open.size === 0 && nowMs >= bucket.uncertainUntilMs;
    const call = { server, sentAtMs: nowMs, ids, isAllowed: isCertain && isLeft && isAlone };
    bucket.open.add(call);
    bucket.last = call;
    bucket.calls--;
    bucket.ids -= ids;
    return call;
  }

  /** Answers what is wrong; undefined: nothing. */
  ended(
    call: QuotaCall,
    outcome: "answered" | "over quota" | "unknown",
    nowMs: number,
  ): string | undefined {
    const bucket = this.#bucket(call.server, nowMs);
    bucket.open.delete(call);
    if (outcome === "unknown") {
      bucket.uncertainUntilMs = nowMs + UNCERTAIN_MS;
      return undefined;
    }
    if (outcome === "answered") {
      bucket.taken.push(call);
      return this.#tooMany(bucket, call.server, nowMs);
    }
    bucket.calls++;
    bucket.ids += call.ids;
    // Another one may have overtaken it.
    if (!call.isAllowed || bucket.last !== call) return undefined;
    return `a call of ${call.ids} ids was refused by ${call.server}, though its quota allows it`;
  }

  /** What is wrong with what all servers admitted since then, while each of them knew of all others. */
  together(servers: number, sinceMs: number, nowMs: number): string | undefined {
    const all = [...this.#buckets.values()].flatMap(({ taken }) =>
      taken.filter(({ sentAtMs }) => sentAtMs >= sinceMs),
    );
    const { calls } = this.#quota;
    const burst = Math.max(servers, (calls * BURST_MS) / 1_000);
    const most = burst + (calls / 1_000) * (nowMs - sinceMs) * DRIFT + servers;
    return all.length <= most
      ? undefined
      : `${all.length} calls were admitted by ${servers} servers, not ${most.toFixed(1)}`;
  }

  #tooMany({ taken }: Bucket, server: string, nowMs: number): string | undefined {
    const { calls: callRate, ids: idRate } = this.#quota;
    const latest = taken.toSorted((a, b) => b.sentAtMs - a.sentAtMs);
    let [calls, ids, largest] = [0, 0, 0];
    for (const one of latest) {
      calls++;
      ids += one.ids;
      largest = Math.max(largest, one.ids);
      const ms = nowMs - one.sentAtMs;
      if (calls > mostIn(callRate, ms) + 1 || ids > mostIn(idRate, ms) + largest)
        return `${server} admitted ${calls} calls of ${ids} ids in ${ms.toFixed(0)} ms`;
    }
    return undefined;
  }

  #bucket(server: string, nowMs: number): Bucket {
    const most = (rate: number): number =>
      Math.max(1, (rate * BURST_MS) / 1_000 / this.#mostServers);
    const { calls, ids } = this.#quota;
    let bucket = this.#buckets.get(server);
    if (bucket === undefined) {
      const full = { calls: most(calls), ids: most(ids), atMs: nowMs, uncertainUntilMs: 0 };
      bucket = { ...full, taken: [], open: new Set(), last: undefined };
      this.#buckets.set(server, bucket);
    }
    const shareMs = (nowMs - bucket.atMs) / 1_000 / this.#mostServers / DRIFT;
    bucket.calls = Math.min(most(calls), bucket.calls + calls * shareMs);
    bucket.ids = Math.min(most(ids), bucket.ids + ids * shareMs);
    bucket.atMs = nowMs;
    return bucket;
  }
}

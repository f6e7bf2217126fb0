/**
 * What the SDK believes about its endpoints, and where a load goes next: pure, without a clock, a socket or a random
 * number. `endpoints.ts` runs it. This is the circuit of each endpoint.
 *
 * An endpoint is in one of five modes:
 * - `unproved`: it was learned from a list, and no call to it has shown yet that a server of this store is there.
 * - `proving`: that call is under way.
 * - `well`: loads go to it in the tag's order of preference.
 * - `cooling`: it failed; until `retryAtMs` a load asks it only when no endpoint is well.
 * - `probing`: its cool-down is over and a health check is under way; loads treat it as cooling.
 *
 * | mode          | event                     | next                                                            |
 * |---------------|---------------------------|-----------------------------------------------------------------|
 * | –             | seed                      | well                                                            |
 * | –             | learned                   | unproved, at once due                                           |
 * | unproved      | probe begins              | proving                                                         |
 * | proving       | a server of this store    | well                                                            |
 * | proving       | anything else             | unproved, retryAtMs = now + 0.5 … 10 s                          |
 * | well          | a load failed             | cooling, failures + 1, retryAtMs = now + 0.5 … 30 s by failures |
 * | cooling, probing | a load failed          | cooling for longer, failures stay: sent before, or the last way |
 * | cooling       | probe begins              | probing                                                         |
 * | probing       | probe found it well       | well since now; failures stay until a load is answered          |
 * | probing       | probe failed              | cooling, retryAtMs = now + 0.5 … 2 s                            |
 * | any but the first two | a load was answered | well, failures = 0                                              |
 * | any           | a server of another store | unproved; of a learned one only                                 |
 * | other         | result of a probe         | unchanged: a load's own result came first and is newer          |
 *
 * A probe does not reset `failures`: a server that is alive but cannot serve a load would otherwise be asked first, and
 * cost a whole time-out, again after every shortest cool-down. Failures count once for each time that an endpoint was well,
 * so that the many loads that are under way when a server goes do not add up; and an endpoint that probes find away is looked
 * at every few seconds, so that a zone that heals is used again soon.
 *
 * Invariants: a load asks no endpoint twice and at most `MAX_ATTEMPTS` of them; none of them is unproved; every well endpoint
 * comes before every other one; at most one probe per endpoint is under way.
 */

/** Most endpoints one load asks. The next load begins with those that failed longest ago. */
export const MAX_ATTEMPTS = 3;
/** Most endpoints that are looked at beside one load. */
const MAX_PROBES = 8;
/** Shortest and longest cool-down after a load that failed, before jitter, in milliseconds. */
export const COOL_DOWN_MIN_MS = 500;
export const COOL_DOWN_MAX_MS = 30_000;
/** Longest cool-down after a probe that failed, and the same of an endpoint that was never well. */
export const PROBE_AGAIN_MS = 2_000;
const PROVE_AGAIN_MS = 10_000;
/** An endpoint that is back gets its tags back over this time, not all at once. */
export const SLOW_START_MS = 5_000;

type EndpointMode = "unproved" | "proving" | "well" | "cooling" | "probing";

interface EndpointHealth {
  readonly mode: EndpointMode;
  /** How often it failed after it was well, since the last load that was answered. */
  readonly failures: number;
  /** Probes that failed in a row. */
  readonly misses: number;
  /** When an endpoint that is cooling or unproved may be tried again, on the clock of the events. */
  readonly retryAtMs: number;
  /** Since when it is well; −∞: there was nothing to come back from. */
  readonly wellSinceMs: number;
  /** When it was last found not to be well; −∞: never. */
  readonly failedAtMs: number;
}

/** By address. */
export type EndpointsState = ReadonlyMap<string, EndpointHealth>;

interface Moment {
  readonly endpoint: string;
  readonly nowMs: number;
  /** Random, in [0, 1): spreads the return of many clients to a server that restarts. */
  readonly jitter: number;
}

export type EndpointEvent =
  | { readonly type: "seed"; readonly endpoint: string }
  | { readonly type: "learned"; readonly endpoint: string }
  | { readonly type: "forgotten"; readonly endpoint: string }
  | { readonly type: "probeBegan"; readonly endpoint: string }
  | { readonly type: "answered"; readonly endpoint: string; readonly nowMs: number }
  | ({
      readonly type: "failed";
      /** What the server asked for; a cool-down is at least this long. 0: nothing. */
      readonly retryAfterMs: number;
    } & Moment)
  | ({ readonly type: "foreign" } & Moment)
  | ({ readonly type: "probed"; readonly well: boolean } & Moment);

/** The endpoints that a tag may use, best first. */
export interface Order {
  readonly addresses: readonly string[];
  /** Those of the client's own zone. */
  readonly near: ReadonlySet<string>;
}

/** Where one load goes on: the endpoints to ask, in this order, and those to probe beside it. */
export interface LoadPlan {
  readonly attempts: readonly string[];
  readonly probes: readonly string[];
}

const WELL: EndpointHealth = {
  mode: "well",
  failures: 0,
  misses: 0,
  retryAtMs: 0,
  wellSinceMs: -Infinity,
  failedAtMs: -Infinity,
};
const UNPROVED: EndpointHealth = { ...WELL, mode: "unproved" };

export function nextEndpoints(state: EndpointsState, event: EndpointEvent): EndpointsState {
  const { endpoint } = event;
  const before = state.get(endpoint);
  const after = nextHealth(before, event);
  if (after === before) return state;
  const next = new Map(state);
  if (after === undefined) next.delete(endpoint);
  else next.set(endpoint, after);
  return next;
}

function nextHealth(
  before: EndpointHealth | undefined,
  event: EndpointEvent,
): EndpointHealth | undefined {
  if (event.type === "seed") return before ?? WELL;
  if (event.type === "learned") return before ?? UNPROVED;
  if (before === undefined) return undefined;
  const isProved = before.mode !== "unproved" && before.mode !== "proving";
  switch (event.type) {
    case "forgotten":
      return undefined;
    case "answered":
      return isProved ? answered(before, event.nowMs) : before;
    case "failed":
      return isProved ? failed(before, event) : before;
    case "foreign":
      return missed(before, "unproved", PROVE_AGAIN_MS, event);
    case "probeBegan":
      if (before.mode === "cooling") return { ...before, mode: "probing" };
      return before.mode === "unproved" ? { ...before, mode: "proving" } : before;
    case "probed":
      return probed(before, event);
    default:
      return event satisfies never;
  }
}

function answered(before: EndpointHealth, nowMs: number): EndpointHealth {
  if (before.mode !== "well") return { ...WELL, wellSinceMs: nowMs };
  return before.failures === 0 ? before : { ...before, failures: 0 };
}

function failed(
  before: EndpointHealth,
  { nowMs, jitter, retryAfterMs }: Extract<EndpointEvent, { type: "failed" }>,
): EndpointHealth {
  const wasWell = before.mode === "well";
  const failures = wasWell ? before.failures + 1 : before.failures;
  const coolDownMs = spread(failures - 1, COOL_DOWN_MAX_MS, jitter);
  const asked = Math.min(COOL_DOWN_MAX_MS, retryAfterMs);
  const retryAtMs = nowMs + Math.max(coolDownMs, asked);
  const latest = wasWell ? retryAtMs : Math.max(before.retryAtMs, retryAtMs);
  return {
    ...before,
    mode: "cooling",
    failures,
    misses: 0,
    retryAtMs: latest,
    failedAtMs: nowMs,
  };
}

function probed(
  before: EndpointHealth,
  event: Extract<EndpointEvent, { type: "probed" }>,
): EndpointHealth {
  const isProof = before.mode === "proving";
  if (!isProof && before.mode !== "probing") return before;
  if (!event.well) {
    return isProof
      ? missed(before, "unproved", PROVE_AGAIN_MS, event)
      : missed(before, "cooling", PROBE_AGAIN_MS, event);
  }
  // Nobody left a new endpoint, so nobody comes back all at once.
  const wellSinceMs = isProof ? -Infinity : event.nowMs;
  return { ...before, mode: "well", misses: 0, wellSinceMs };
}

function missed(
  before: EndpointHealth,
  mode: "cooling" | "unproved",
  mostMs: number,
  { nowMs, jitter }: Moment,
): EndpointHealth {
  const misses = before.misses + 1;
  const retryAtMs = nowMs + spread(misses, mostMs, jitter);
  return { ...before, mode, misses, retryAtMs, failedAtMs: nowMs };
}

/** Half of it is certain, half is spread. */
function spread(doublings: number, mostMs: number, jitter: number): number {
  const bound = Math.min(mostMs, COOL_DOWN_MIN_MS * 2 ** Math.min(doublings, 16));
  return bound / 2 + (bound / 2) * jitter;
}

/**
 * Where a load of a tag goes that has asked the endpoints of `asked` in vain. It is planned anew for each try, since other loads
 * may have found out meanwhile that an endpoint is away.
 *
 * Well endpoints come first. After them, so that a load is never refused for want of trying, those that are not well,
 * the one that failed longest ago before the others, so that loads that fail go round all of them. One that is back after it failed counts as well for some tags at
 * once and for others up to `SLOW_START_MS` later; `patience`, from 0 to 1, is the tag's place among them. The last try goes to
 * another zone where one is well: what takes one server of a zone away often takes all.
 *
 * Beside the load are probed: the tag's best endpoint whose cool-down is over, when the load itself goes elsewhere, which is how
 * the tag returns to its first choice without a load ever waiting for a server that may still be down; with nobody well, all that
 * failed half a second ago, since one that is back must be found before the load has gone round; and endpoints that the load
 * would ask if they were proved.
 */
export function planLoad(
  state: EndpointsState,
  order: Order,
  {
    nowMs,
    patience,
    asked,
  }: { readonly nowMs: number; readonly patience: number; readonly asked: ReadonlySet<string> },
): LoadPlan {
  const ripe: string[] = [];
  const unripe: string[] = [];
  const others: string[] = [];
  const ideal: string[] = [];
  let returning: string | undefined;
  for (const endpoint of order.addresses) {
    const health = state.get(endpoint);
    if (health === undefined) continue;
    const { mode, retryAtMs, wellSinceMs } = health;
    if (mode === "cooling" || mode === "probing") {
      others.push(endpoint);
      const isDue = mode === "cooling" && retryAtMs <= nowMs;
      if (isDue && returning === undefined && ripe.length === 0) returning = endpoint;
      continue;
    }
    ideal.push(endpoint);
    if (mode !== "well") continue;
    const isRipe = nowMs - wellSinceMs >= patience * SLOW_START_MS;
    (isRipe ? ripe : unripe).push(endpoint);
  }
  const well = [...ripe, ...unripe];
  const failedAt = (endpoint: string): number => state.get(endpoint)?.failedAtMs ?? 0;
  others.sort((a, b) => failedAt(a) - failedAt(b));
  const probes = returning === undefined || well.length === 0 ? [] : [returning];
  for (const endpoint of firstOf(ideal, order, MAX_ATTEMPTS)) {
    const health = state.get(endpoint);
    if (health?.mode === "unproved" && health.retryAtMs <= nowMs) probes.push(endpoint);
  }
  const isLeft = (endpoint: string): boolean => !asked.has(endpoint);
  const left = Math.max(0, MAX_ATTEMPTS - asked.size);
  const first = firstOf(well.filter(isLeft), order, left);
  const attempts = [...first, ...others.filter(isLeft)].slice(0, left);
  // With nobody well, the load is the trial of one endpoint, and does not wait for the cool-downs of the others.
  if (well.length === 0) {
    const isOld = (at: string): boolean => nowMs - failedAt(at) >= COOL_DOWN_MIN_MS;
    const isIdle = (at: string): boolean => state.get(at)?.mode === "cooling";
    probes.push(...others.filter((at) => at !== attempts[0] && isIdle(at) && isOld(at)));
  }
  return { attempts, probes: probes.slice(0, MAX_PROBES) };
}

/** The first few, the last of them of another zone where there is one. */
function firstOf(candidates: readonly string[], { near }: Order, most: number): readonly string[] {
  const first = candidates.slice(0, most);
  if (first.length < most || !first.every((endpoint) => near.has(endpoint))) return first;
  const far = candidates.find((endpoint) => !near.has(endpoint));
  return far === undefined ? first : [...first.slice(0, -1), far];
}

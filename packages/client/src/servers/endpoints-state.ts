/**
 * What the SDK believes about its endpoints, and where a load goes next: pure, without a clock, a socket or a random
 * number. `endpoints.ts` runs it.
 *
 * An endpoint is in one of three modes:
 * - `well`: loads go to it in the tag's order of preference.
 * - `cooling`: it failed; until `retryAtMs` a load asks it only when no endpoint is well.
 * - `probing`: its cool-down is over and a health check is under way; loads treat it as cooling.
 *
 * | mode    | event                    | next                                                   |
 * |---------|--------------------------|--------------------------------------------------------|
 * | any     | answered                 | well, failures = 0                                     |
 * | any     | failed                   | cooling, failures + 1, retryAtMs = now + cool-down     |
 * | cooling | probe begins             | probing                                                |
 * | probing | probe found it well      | well; failures stay until a load is answered           |
 * | probing | probe failed             | cooling, failures + 1                                  |
 * | other   | result of a probe        | unchanged: a load's own result came first and is newer |
 *
 * A probe does not reset `failures`: a server that is alive but cannot serve a load would otherwise be asked first, and
 * cost a whole time-out, again after every shortest cool-down.
 *
 * Invariants: a plan names no endpoint twice and at most `MAX_ATTEMPTS` of them; every well endpoint comes before every
 * other one; at most one probe per endpoint is under way.
 */

/** Most endpoints one load asks. The next load begins with those that failed longest ago. */
export const MAX_ATTEMPTS = 3;
/** Shortest and longest cool-down of an endpoint that failed, before jitter, in milliseconds. */
export const COOL_DOWN_MIN_MS = 500;
export const COOL_DOWN_MAX_MS = 30_000;

type EndpointMode = "well" | "cooling" | "probing";

interface EndpointHealth {
  readonly mode: EndpointMode;
  /** Failures since the last load that was answered. */
  readonly failures: number;
  /** When a cooling endpoint may be tried again, on the clock of the events. */
  readonly retryAtMs: number;
}

export type EndpointsState = readonly EndpointHealth[];

export type EndpointEvent =
  | { readonly type: "answered"; readonly endpoint: number }
  | {
      readonly type: "failed";
      readonly endpoint: number;
      readonly nowMs: number;
      /** Random, in [0, 1): spreads the return of many clients to a server that restarts. */
      readonly jitter: number;
      /** What the server asked for; a cool-down is at least this long. 0: nothing. */
      readonly retryAfterMs: number;
    }
  | { readonly type: "probeBegan"; readonly endpoint: number }
  | {
      readonly type: "probed";
      readonly endpoint: number;
      readonly well: boolean;
      readonly nowMs: number;
      readonly jitter: number;
    };

/** Where one load goes: the endpoints to ask, in this order, and one to probe beside it, if any. */
export interface LoadPlan {
  readonly attempts: readonly number[];
  readonly probe: number | undefined;
}

const UNTRIED: EndpointHealth = { mode: "well", failures: 0, retryAtMs: 0 };

/** All endpoints well: what is not known to be down is tried. */
export function initialEndpoints(count: number): EndpointsState {
  return Array.from({ length: count }, () => UNTRIED);
}

export function nextEndpoints(state: EndpointsState, event: EndpointEvent): EndpointsState {
  const before = state[event.endpoint];
  if (before === undefined) throw new RangeError(`endpoint ${event.endpoint} of ${state.length}`);
  const after = nextHealth(before, event);
  return after === before ? state : state.with(event.endpoint, after);
}

function nextHealth(before: EndpointHealth, event: EndpointEvent): EndpointHealth {
  switch (event.type) {
    case "answered":
      return UNTRIED;
    case "failed":
      return cooled(before, event.nowMs, event.jitter, event.retryAfterMs);
    case "probeBegan":
      return before.mode === "cooling" ? { ...before, mode: "probing" } : before;
    case "probed":
      if (before.mode !== "probing") return before;
      if (event.well) return { ...before, mode: "well" };
      return cooled(before, event.nowMs, event.jitter, 0);
    default:
      return event satisfies never;
  }
}

function cooled(
  before: EndpointHealth,
  nowMs: number,
  jitter: number,
  retryAfterMs: number,
): EndpointHealth {
  const failures = before.failures + 1;
  const bound = Math.min(COOL_DOWN_MAX_MS, COOL_DOWN_MIN_MS * 2 ** Math.min(failures - 1, 16));
  // Half of it is certain, half is spread.
  const coolDownMs = bound / 2 + (bound / 2) * jitter;
  const asked = Math.min(COOL_DOWN_MAX_MS, retryAfterMs);
  return { mode: "cooling", failures, retryAtMs: nowMs + Math.max(coolDownMs, asked) };
}

/**
 * Where a load of a tag goes. `order` is the tag's order of preference over all endpoints.
 *
 * Well endpoints come first. After them, so that a load is never refused for want of trying, those that are not well,
 * the one whose cool-down ends first before the others. The tag's best endpoint whose cool-down is over is probed
 * beside the load when the load itself goes elsewhere: this is how the tag returns to its first choice without a load
 * ever waiting for a server that may still be down.
 */
export function planLoad(state: EndpointsState, order: readonly number[], nowMs: number): LoadPlan {
  const well: number[] = [];
  const others: number[] = [];
  let probe: number | undefined;
  for (const endpoint of order) {
    const health = state[endpoint] ?? UNTRIED;
    if (health.mode === "well") {
      well.push(endpoint);
      continue;
    }
    others.push(endpoint);
    const due = health.mode === "cooling" && health.retryAtMs <= nowMs;
    if (due && probe === undefined && well.length === 0) probe = endpoint;
  }
  others.sort((a, b) => (state[a]?.retryAtMs ?? 0) - (state[b]?.retryAtMs ?? 0));
  const attempts = [...well, ...others].slice(0, MAX_ATTEMPTS);
  return { attempts, probe: well.length === 0 ? undefined : probe };
}

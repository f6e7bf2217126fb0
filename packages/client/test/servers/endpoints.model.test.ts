import fc from "fast-check";
import { expect, test } from "vitest";
import {
  COOL_DOWN_MAX_MS,
  type EndpointEvent,
  type EndpointsState,
  MAX_ATTEMPTS,
  nextEndpoints,
  planLoad,
} from "../../src/servers/endpoints-state.ts";
import { earn, fullBudget, spend } from "../../src/servers/retry-budget.ts";

/** Endpoints have names of one letter. */
const lettersOf = (names: string): string[] => names.split("");

/** a to e were given, f to h were learned. */
const SEEDS = lettersOf("abcde");
const LEARNED = lettersOf("fgh");
const NONE: ReadonlySet<string> = new Set();
const ALL = [...SEEDS, ...LEARNED];

const endpoint = fc.constantFrom(...ALL);
const jitter = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
const moment = { endpoint, nowMs: fc.nat(), jitter };
const event: fc.Arbitrary<EndpointEvent> = fc.oneof(
  fc.record({ type: fc.constant("answered" as const), endpoint, nowMs: fc.nat() }),
  fc.record({ type: fc.constant("failed" as const), ...moment, retryAfterMs: fc.nat() }),
  fc.record({ type: fc.constant("probeBegan" as const), endpoint }),
  fc.record({ type: fc.constant("probed" as const), ...moment, well: fc.boolean() }),
  fc.record({
    type: fc.constant("foreign" as const),
    ...moment,
    endpoint: fc.constantFrom(...LEARNED),
  }),
);

function initial(): EndpointsState {
  let state: EndpointsState = new Map();
  for (const each of SEEDS) state = nextEndpoints(state, { type: "seed", endpoint: each });
  for (const each of LEARNED) state = nextEndpoints(state, { type: "learned", endpoint: each });
  return state;
}

test("whatever happened, a plan is short, names nobody twice, nobody unproved, and prefers the well ones", () => {
  fc.assert(
    fc.property(
      fc.array(event, { maxLength: 40 }),
      fc.shuffledSubarray(ALL, { minLength: ALL.length }),
      fc.subarray(ALL),
      fc.nat(),
      jitter,
      (events, addresses, near, nowMs, patience) => {
        let state = initial();
        const proved = new Set(SEEDS);
        for (const each of events) {
          const before = state.get(each.endpoint)!.mode;
          state = nextEndpoints(state, each);
          if (each.type === "foreign") proved.delete(each.endpoint);
          // Only the call that asks who is there proves anything.
          if (each.type === "probed" && each.well && before === "proving") {
            proved.add(each.endpoint);
          }
        }
        const order = { addresses, near: new Set(near) };
        const { attempts, probes } = planLoad(state, order, { nowMs, patience, asked: NONE });
        expect(attempts.length).toBe(Math.min(MAX_ATTEMPTS, proved.size));
        expect(new Set(attempts).size).toBe(attempts.length);
        for (const at of attempts) expect(proved.has(at)).toBe(true);
        const isWell = attempts.map((at) => state.get(at)!.mode === "well");
        expect(isWell.toSorted((a, b) => Number(b) - Number(a))).toEqual(isWell);
        const well = addresses.filter((at) => state.get(at)!.mode === "well");
        const isFarWell = well.some((at) => !order.near.has(at));
        if (isFarWell && well.length >= MAX_ATTEMPTS)
          expect(attempts.some((at) => !order.near.has(at))).toBe(true);
        expect(new Set(probes).size).toBe(probes.length);
        for (const probe of probes) {
          const { mode, retryAtMs, failedAtMs } = state.get(probe)!;
          const isDue = retryAtMs <= nowMs;
          if (mode === "unproved") expect(isDue).toBe(true);
          // The way back to a better choice than the load's own; with nobody well, all that could be back.
          else
            expect([mode, isDue || (well.length === 0 && failedAtMs < nowMs)]).toEqual([
              "cooling",
              true,
            ]);
          if (well.length === 0) expect(probe).not.toBe(attempts[0]);
        }
      },
    ),
  );
});

test("no endpoint cools for longer than the limit, and none is forgotten", () => {
  fc.assert(
    fc.property(fc.array(event, { maxLength: 60 }), (events) => {
      let state = initial();
      let latest = 0;
      for (const each of events) {
        if ("nowMs" in each) latest = Math.max(latest, each.nowMs);
        state = nextEndpoints(state, each);
      }
      for (const { retryAtMs } of state.values())
        expect(retryAtMs).toBeLessThanOrEqual(latest + COOL_DOWN_MAX_MS);
      // Loads that keep failing go round all endpoints.
      const asked = new Set<string>();
      const order = { addresses: SEEDS, near: new Set<string>() };
      let nowMs = latest + COOL_DOWN_MAX_MS;
      for (let load = 0; load < 4; load++) {
        for (const at of planLoad(state, order, { nowMs, patience: 0, asked: NONE }).attempts) {
          asked.add(at);
          nowMs++;
          state = nextEndpoints(state, {
            type: "failed",
            endpoint: at,
            nowMs,
            jitter: 0,
            retryAfterMs: 0,
          });
        }
      }
      expect(asked.size).toBe(SEEDS.length);
    }),
  );
});

test("further tries are a tenth of the requests, whenever they are made", () => {
  const step = fc.record({
    afterMs: fc.nat({ max: 2_000 }),
    requests: fc.nat({ max: 50 }),
    wished: fc.nat({ max: 100 }),
  });
  fc.assert(
    fc.property(fc.nat({ max: 64 }), fc.array(step, { maxLength: 50 }), (endpoints, steps) => {
      let budget = fullBudget(endpoints, 0);
      let nowMs = 0;
      let requests = 0;
      let retries = 0;
      for (const { afterMs, requests: more, wished } of steps) {
        nowMs += afterMs;
        for (let at = 0; at < more; at++) budget = earn(budget, endpoints, nowMs);
        requests += more;
        for (let at = 0; at < wished; at++) {
          const left = spend(budget);
          if (left === undefined) break;
          budget = left;
          retries++;
        }
        const reserve = Math.max(10, endpoints);
        expect(retries).toBeLessThanOrEqual(reserve + requests / 10 + nowMs / 5_000 + 1e-6);
      }
    }),
  );
});

test("a quiet client may ask every endpoint once", () => {
  let budget = fullBudget(64, 0);
  for (let at = 0; at < 64; at++) budget = spend(budget)!;
  expect(spend(budget)).toBeUndefined();
  budget = earn(budget, 64, 3_600_000);
  for (let at = 0; at < 64; at++) budget = spend(budget)!;
});

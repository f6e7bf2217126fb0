import fc from "fast-check";
import { expect, test } from "vitest";
import {
  COOL_DOWN_MAX_MS,
  type EndpointEvent,
  initialEndpoints,
  MAX_ATTEMPTS,
  nextEndpoints,
  planLoad,
} from "../src/servers/endpoints-state.ts";

const endpoint = fc.nat({ max: 4 });
const jitter = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
const event: fc.Arbitrary<EndpointEvent> = fc.oneof(
  fc.record({ type: fc.constant("answered" as const), endpoint }),
  fc.record({
    type: fc.constant("failed" as const),
    endpoint,
    nowMs: fc.nat(),
    jitter,
    retryAfterMs: fc.nat(),
  }),
  fc.record({ type: fc.constant("probeBegan" as const), endpoint }),
  fc.record({
    type: fc.constant("probed" as const),
    endpoint,
    well: fc.boolean(),
    nowMs: fc.nat(),
    jitter,
  }),
);

test("whatever happened, a plan is short, names nobody twice, and prefers the well ones", () => {
  fc.assert(
    fc.property(
      fc.array(event, { maxLength: 40 }),
      fc.shuffledSubarray([0, 1, 2, 3, 4], { minLength: 5 }),
      fc.nat(),
      (events, order, nowMs) => {
        let state = initialEndpoints(5);
        for (const each of events) state = nextEndpoints(state, each);
        const { attempts, probe } = planLoad(state, order, nowMs);
        expect(attempts.length).toBe(Math.min(MAX_ATTEMPTS, 5));
        expect(new Set(attempts).size).toBe(attempts.length);
        const isWell = attempts.map((at) => state[at]!.mode === "well");
        expect(isWell.toSorted((a, b) => Number(b) - Number(a))).toEqual(isWell);
        const well = order.filter((at) => state[at]!.mode === "well");
        expect(attempts.slice(0, well.length)).toEqual(well.slice(0, MAX_ATTEMPTS));
        if (probe === undefined) return;
        // Only the way back to a better choice than the load's own is probed, and only when its time has come.
        expect(state[probe]!.mode).toBe("cooling");
        expect(state[probe]!.retryAtMs).toBeLessThanOrEqual(nowMs);
        expect(order.indexOf(probe)).toBeLessThan(order.indexOf(attempts[0]!));
      },
    ),
  );
});

test("no endpoint cools for longer than the limit, and none is forgotten", () => {
  fc.assert(
    fc.property(fc.array(event, { maxLength: 60 }), (events) => {
      let state = initialEndpoints(5);
      let latest = 0;
      for (const each of events) {
        if ("nowMs" in each) latest = Math.max(latest, each.nowMs);
        state = nextEndpoints(state, each);
      }
      for (const { retryAtMs } of state)
        expect(retryAtMs).toBeLessThanOrEqual(latest + COOL_DOWN_MAX_MS);
      // Loads that keep failing go round all endpoints.
      const asked = new Set<number>();
      let nowMs = latest + COOL_DOWN_MAX_MS;
      for (let load = 0; load < 4; load++) {
        for (const at of planLoad(state, [0, 1, 2, 3, 4], nowMs).attempts) {
          asked.add(at);
          state = nextEndpoints(state, {
            type: "failed",
            endpoint: at,
            nowMs: nowMs++,
            jitter: 0,
            retryAfterMs: 0,
          });
        }
      }
      expect(asked.size).toBe(5);
    }),
  );
});

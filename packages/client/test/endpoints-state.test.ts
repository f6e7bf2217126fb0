import { expect, test } from "vitest";
import {
  COOL_DOWN_MAX_MS,
  COOL_DOWN_MIN_MS,
  initialEndpoints,
  MAX_ATTEMPTS,
  nextEndpoints,
  planLoad,
} from "../src/servers/endpoints-state.ts";
import { rendezvousOrder, score } from "../src/servers/rendezvous.ts";

const fail = (endpoint: number, nowMs: number, retryAfterMs = 0) =>
  ({ type: "failed", endpoint, nowMs, jitter: 0.5, retryAfterMs }) as const;

test("a load asks well endpoints in the tag's order, at most three", () => {
  const state = initialEndpoints(5);
  const plan = planLoad(state, [3, 1, 4, 0, 2], 0);
  expect(plan).toEqual({ attempts: [3, 1, 4], probe: undefined });
  expect(MAX_ATTEMPTS).toBe(3);
});

test("an endpoint that failed is asked after all well ones while it cools down", () => {
  const state = nextEndpoints(initialEndpoints(3), fail(0, 1_000));
  expect(planLoad(state, [0, 1, 2], 1_001)).toEqual({ attempts: [1, 2, 0], probe: undefined });
});

test("after its cool-down the first choice is probed beside the load, once", () => {
  let state = nextEndpoints(initialEndpoints(2), fail(0, 1_000));
  const due = 1_000 + COOL_DOWN_MIN_MS;
  expect(planLoad(state, [0, 1], due)).toEqual({ attempts: [1, 0], probe: 0 });
  state = nextEndpoints(state, { type: "probeBegan", endpoint: 0 });
  expect(planLoad(state, [0, 1], due)).toEqual({ attempts: [1, 0], probe: undefined });
  state = nextEndpoints(state, { type: "probed", endpoint: 0, well: true, nowMs: due, jitter: 0 });
  expect(planLoad(state, [0, 1], due).attempts).toEqual([0, 1]);
});

test("an endpoint that the tag does not prefer to its present one is not probed", () => {
  const state = nextEndpoints(initialEndpoints(2), fail(1, 0));
  expect(planLoad(state, [0, 1], 1e9).probe).toBeUndefined();
});

test("when no endpoint is well the load itself is the trial, soonest first", () => {
  let state = nextEndpoints(initialEndpoints(3), fail(0, 300));
  state = nextEndpoints(state, fail(1, 100));
  state = nextEndpoints(state, fail(2, 200));
  expect(planLoad(state, [0, 1, 2], 400)).toEqual({ attempts: [1, 2, 0], probe: undefined });
});

test("cool-downs double up to their longest, and a probe alone does not reset them", () => {
  let state = initialEndpoints(1);
  const seen: number[] = [];
  for (let round = 0; round < 12; round++) {
    state = nextEndpoints(state, { ...fail(0, 0), jitter: 1 });
    seen.push(state[0]!.retryAtMs);
    state = nextEndpoints(state, { type: "probeBegan", endpoint: 0 });
    state = nextEndpoints(state, { type: "probed", endpoint: 0, well: true, nowMs: 0, jitter: 0 });
    expect(state[0]!.mode).toBe("well");
  }
  expect(seen.slice(0, 4)).toEqual([500, 1_000, 2_000, 4_000]);
  expect(seen.at(-1)).toBe(COOL_DOWN_MAX_MS);
  state = nextEndpoints(state, { type: "answered", endpoint: 0 });
  expect(nextEndpoints(state, { ...fail(0, 0), jitter: 1 })[0]!.retryAtMs).toBe(COOL_DOWN_MIN_MS);
});

test("what the server asks for is respected, up to the longest cool-down", () => {
  const state = nextEndpoints(initialEndpoints(2), fail(0, 1_000, 5_000));
  expect(state[0]!.retryAtMs).toBe(6_000);
  expect(nextEndpoints(state, fail(1, 1_000, 1e12))[1]!.retryAtMs).toBe(1_000 + COOL_DOWN_MAX_MS);
});

test("a probe's result that comes after a load's own result changes nothing", () => {
  let state = nextEndpoints(initialEndpoints(1), fail(0, 0));
  state = nextEndpoints(state, { type: "probeBegan", endpoint: 0 });
  state = nextEndpoints(state, { type: "answered", endpoint: 0 });
  const late = { type: "probed", endpoint: 0, well: false, nowMs: 9, jitter: 0 } as const;
  expect(nextEndpoints(state, late)).toBe(state);
});

test("an endpoint that is not there is a fault", () => {
  expect(() => nextEndpoints(initialEndpoints(1), fail(1, 0))).toThrow(RangeError);
});

test("rendezvous hashing spreads tags evenly and moves only those of an endpoint that goes", () => {
  const endpoints = ["10.0.0.1:7600", "10.0.0.2:7600", "10.0.0.3:7600", "10.0.0.4:7600"];
  const tags = Array.from({ length: 4_000 }, (_, i) => `tag-${i}`);
  const counts = [0, 0, 0, 0];
  let moved = 0;
  for (const tag of tags) {
    const order = rendezvousOrder(endpoints, tag);
    expect(order.toSorted((a, b) => a - b)).toEqual([0, 1, 2, 3]);
    counts[order[0]!]!++;
    const shorter = rendezvousOrder(endpoints.slice(0, 3), tag);
    if (order[0] === 3) moved++;
    else expect(shorter[0]).toBe(order[0]);
    // The second choice of those that move is spread too, by the same order.
    expect(shorter).toEqual(order.filter((endpoint) => endpoint !== 3));
  }
  // 1,000 each; five standard deviations are 137.
  for (const count of counts) expect(Math.abs(count - 1_000)).toBeLessThan(137);
  expect(moved).toBe(counts[3]);
});

test("scores are exact numbers that depend on where the texts are split", () => {
  expect(score("ab", "c")).not.toBe(score("a", "bc"));
  expect(Number.isSafeInteger(score("a", "b"))).toBe(true);
});

import { expect, test } from "vitest";
import {
  COOL_DOWN_MAX_MS,
  COOL_DOWN_MIN_MS,
  type EndpointEvent,
  type EndpointsState,
  type LoadPlan,
  MAX_ATTEMPTS,
  nextEndpoints,
  planLoad,
  PROBE_AGAIN_MS,
  SLOW_START_MS,
} from "../../src/servers/endpoints-state.ts";
import { rendezvousOrder, score } from "../../src/servers/rendezvous.ts";

/** Endpoints have names of one letter. */
const lettersOf = (names: string): string[] => names.split("");

const fail = (endpoint: string, nowMs: number, retryAfterMs = 0): EndpointEvent => ({
  type: "failed",
  endpoint,
  nowMs,
  jitter: 0.5,
  retryAfterMs,
});
const probed = (endpoint: string, well: boolean, nowMs: number): EndpointEvent => ({
  type: "probed",
  endpoint,
  well,
  nowMs,
  jitter: 1,
});

function after(events: readonly EndpointEvent[], from: EndpointsState = new Map()): EndpointsState {
  return events.reduce(nextEndpoints, from);
}

/** Endpoints a, b, c … as the client was made with them. */
function seeds(count: number): EndpointsState {
  const names = lettersOf("abcdef").slice(0, count);
  return after(names.map((endpoint) => ({ type: "seed", endpoint })));
}

function plan(
  state: EndpointsState,
  order: string,
  nowMs: number,
  { near = "", patience = 0, asked = "" } = {},
): LoadPlan {
  const addresses = lettersOf(order);
  const at = { nowMs, patience, asked: new Set(asked) };
  return planLoad(state, { addresses, near: new Set(near) }, at);
}

test("a load asks well endpoints in the tag's order, at most three", () => {
  expect(plan(seeds(5), "dbeac", 0)).toEqual({ attempts: lettersOf("dbe"), probes: [] });
  expect(MAX_ATTEMPTS).toBe(3);
});

test("an endpoint that failed is asked after all well ones while it cools down", () => {
  const state = after([fail("a", 1_000)], seeds(3));
  expect(plan(state, "abc", 1_001)).toEqual({ attempts: lettersOf("bca"), probes: [] });
});

test("after its cool-down the first choice is probed beside the load, once", () => {
  const due = 1_000 + COOL_DOWN_MIN_MS;
  let state = after([fail("a", 1_000)], seeds(2));
  expect(plan(state, "ab", due)).toEqual({ attempts: lettersOf("ba"), probes: ["a"] });
  state = after([{ type: "probeBegan", endpoint: "a" }], state);
  expect(plan(state, "ab", due)).toEqual({ attempts: lettersOf("ba"), probes: [] });
  state = after([probed("a", true, due)], state);
  expect(plan(state, "ab", due).attempts).toEqual(lettersOf("ab"));
});

test("an endpoint that the tag does not prefer to its present one is not probed", () => {
  const state = after([fail("b", 0)], seeds(2));
  expect(plan(state, "ab", 1e9).probes).toEqual([]);
});

test("when no endpoint is well the load itself is the trial, of the one that failed longest ago", () => {
  const state = after([fail("a", 300), fail("b", 100), fail("c", 200)], seeds(3));
  expect(plan(state, "abc", 400)).toEqual({ attempts: lettersOf("bca"), probes: [] });
});

test("… and the others are looked at, however long their cool-downs are", () => {
  let state = seeds(3);
  // c was well and failed again and again, so it cools for the longest time.
  for (let round = 0; round < 12; round++) {
    state = after([{ type: "probeBegan", endpoint: "c" }, probed("c", true, 0)], state);
    state = after([fail("c", 0)], state);
  }
  state = after([fail("a", 10), fail("b", 20)], state);
  expect(state.get("c")!.retryAtMs).toBeGreaterThan(COOL_DOWN_MAX_MS / 2);
  expect(plan(state, "abc", 100)).toEqual({ attempts: lettersOf("cab"), probes: [] });
  state = after([fail("c", 100)], state);
  expect(plan(state, "abc", COOL_DOWN_MIN_MS + 100)).toEqual({
    attempts: lettersOf("abc"),
    probes: lettersOf("bc"),
  });
});

test("a load goes on by what is known then, and asks nobody twice", () => {
  let state = after([fail("a", 1)], seeds(5));
  expect(plan(state, "abcde", 2, { asked: "a" }).attempts).toEqual(lettersOf("bc"));
  // Another load found out meanwhile.
  state = after([fail("b", 2)], state);
  expect(plan(state, "abcde", 2, { asked: "a" }).attempts).toEqual(lettersOf("cd"));
  expect(plan(state, "abcde", 2, { asked: "ac" }).attempts).toEqual(["d"]);
  expect(plan(state, "abcde", 2, { asked: "acd" }).attempts).toEqual([]);
  expect(plan(state, "abcde", 2, { asked: "a", near: "abcd" }).attempts).toEqual(lettersOf("ce"));
});

test("cool-downs double up to their longest, and a probe alone does not reset them", () => {
  let state = seeds(1);
  const seen: number[] = [];
  for (let round = 0; round < 12; round++) {
    state = after([{ type: "failed", endpoint: "a", nowMs: 0, jitter: 1, retryAfterMs: 0 }], state);
    seen.push(state.get("a")!.retryAtMs);
    state = after([{ type: "probeBegan", endpoint: "a" }, probed("a", true, 0)], state);
    expect(state.get("a")!.mode).toBe("well");
  }
  expect(seen.slice(0, 4)).toEqual([500, 1_000, 2_000, 4_000]);
  expect(seen.at(-1)).toBe(COOL_DOWN_MAX_MS);
  state = after([{ type: "answered", endpoint: "a", nowMs: 0 }, fail("a", 0)], state);
  expect(state.get("a")!.retryAtMs).toBeLessThanOrEqual(COOL_DOWN_MIN_MS);
});

test("many loads that were under way when a server went count as one failure", () => {
  const once = after([fail("a", 1_000)], seeds(1)).get("a")!;
  const often = after(Array<EndpointEvent>(500).fill(fail("a", 1_000)), seeds(1)).get("a")!;
  expect(often).toEqual(once);
});

test("one that probes find away is looked at every few seconds, however long it is away", () => {
  let state = after([fail("a", 0)], seeds(1));
  for (let round = 0; round < 20; round++) {
    const { retryAtMs } = state.get("a")!;
    state = after([{ type: "probeBegan", endpoint: "a" }, probed("a", false, retryAtMs)], state);
    expect(state.get("a")!.retryAtMs).toBeLessThanOrEqual(retryAtMs + PROBE_AGAIN_MS);
  }
});

test("what the server asks for is respected, up to the longest cool-down", () => {
  const state = after([fail("a", 1_000, 5_000), fail("b", 1_000, 1e12)], seeds(2));
  expect(state.get("a")!.retryAtMs).toBe(6_000);
  expect(state.get("b")!.retryAtMs).toBe(1_000 + COOL_DOWN_MAX_MS);
});

test("a probe's result that comes after a load's own result changes nothing", () => {
  const state = after(
    [
      fail("a", 0),
      { type: "probeBegan", endpoint: "a" },
      { type: "answered", endpoint: "a", nowMs: 5 },
    ],
    seeds(1),
  );
  expect(nextEndpoints(state, probed("a", false, 9))).toBe(state);
});

test("an endpoint that is back gets its tags one after the other over five seconds", () => {
  const state = after(
    [fail("a", 0), { type: "probeBegan", endpoint: "a" }, probed("a", true, 1_000)],
    seeds(2),
  );
  const firstOf = (patience: number, nowMs: number): string | undefined =>
    plan(state, "ab", nowMs, { patience }).attempts[0];
  expect([0, 0.1, 0.5, 1].map((patience) => firstOf(patience, 1_000))).toEqual(lettersOf("abbb"));
  expect([0, 0.1, 0.5, 1].map((patience) => firstOf(patience, 3_500))).toEqual(lettersOf("aaab"));
  expect(firstOf(1, 1_000 + SLOW_START_MS)).toBe("a");
  // With nobody else to ask, nobody waits.
  expect(plan(after([fail("b", 900)], state), "ab", 1_000, { patience: 1 }).attempts[0]).toBe("a");
});

test("a learned endpoint is asked by no load before a call to it showed who is there", () => {
  let state = after([{ type: "learned", endpoint: "l" }], seeds(1));
  expect(plan(state, "la", 0)).toEqual({ attempts: ["a"], probes: ["l"] });
  state = after([{ type: "probeBegan", endpoint: "l" }], state);
  expect(plan(state, "la", 0)).toEqual({ attempts: ["a"], probes: [] });
  const missed = after([probed("l", false, 0)], state);
  expect(plan(missed, "la", 100)).toEqual({ attempts: ["a"], probes: [] });
  expect(plan(missed, "la", 1_000)).toEqual({ attempts: ["a"], probes: ["l"] });
  state = after([probed("l", true, 0)], state);
  // It was never away, so nobody comes back to it all at once.
  expect(plan(state, "la", 0, { patience: 1 }).attempts).toEqual(lettersOf("la"));
  // Neither answers nor failures of a load prove one that turned out to be somebody else.
  state = after(
    [
      { type: "foreign", endpoint: "l", nowMs: 0, jitter: 0 },
      { type: "answered", endpoint: "l", nowMs: 0 },
      fail("l", 0),
    ],
    state,
  );
  expect(plan(state, "la", 0).attempts).toEqual(["a"]);
  // Nor does it become a way out when nothing else is well.
  expect(plan(after([fail("a", 0)], state), "la", 0).attempts).toEqual(["a"]);
});

test("those that a load would ask next are proved before they are needed, the others are left alone", () => {
  const names = lettersOf("lmnopq");
  const state = after(
    names.map((endpoint) => ({ type: "learned", endpoint })),
    seeds(1),
  );
  expect(plan(state, "lmnopqa", 0, { near: "lmno" }).probes).toEqual(lettersOf("lmp"));
});

test("the last try of a load goes to another zone", () => {
  expect(plan(seeds(5), "abcde", 0, { near: "abc" }).attempts).toEqual(lettersOf("abd"));
  expect(plan(seeds(3), "abc", 0, { near: "abc" }).attempts).toEqual(lettersOf("abc"));
  // Only where one is well.
  const state = after([fail("d", 0), fail("e", 0)], seeds(5));
  expect(plan(state, "abcde", 0, { near: "abc" }).attempts).toEqual(lettersOf("abc"));
});

test("rendezvous hashing spreads keys evenly and moves only those of an endpoint that goes", () => {
  const servers = [1, 2, 3, 4].map((at) => ({ address: `10.0.0.${at}:7600`, weight: 100 }));
  const keys = Array.from({ length: 4_000 }, (_, i) => `client/tag-${i}`);
  const counts = new Map(servers.map(({ address }) => [address, 0]));
  const last = servers.at(-1)!.address;
  for (const key of keys) {
    const order = rendezvousOrder(servers, key);
    expect(order.toSorted()).toEqual(servers.map(({ address }) => address));
    counts.set(order[0]!, counts.get(order[0]!)! + 1);
    // The second choice of those that move is spread too, by the same order.
    expect(rendezvousOrder(servers.slice(0, 3), key)).toEqual(order.filter((at) => at !== last));
  }
  // 1,000 each; five standard deviations are 137.
  for (const count of counts.values()) expect(Math.abs(count - 1_000)).toBeLessThan(137);
});

test("weights are met, and a weight that changes moves keys only from or to its server", () => {
  const servers = [
    { address: "10.0.0.1:7600", weight: 90 },
    { address: "10.0.0.2:7600", weight: 10 },
    { address: "10.0.0.3:7600", weight: 300 },
  ];
  const keys = Array.from({ length: 8_000 }, (_, i) => `c${i % 40}/tag-${i}`);
  const firsts = keys.map((key) => rendezvousOrder(servers, key)[0]!);
  for (const { address, weight } of servers) {
    const share = firsts.filter((first) => first === address).length / keys.length;
    // Five standard deviations of the widest one are 0.028.
    expect(Math.abs(share - weight / 400)).toBeLessThan(0.028);
  }
  const changed = servers.with(1, { address: servers[1]!.address, weight: 100 });
  for (const [at, key] of keys.entries()) {
    const now = rendezvousOrder(changed, key)[0]!;
    if (now !== firsts[at]) expect(now).toBe(servers[1]!.address);
  }
});

test("scores are exact numbers that depend on where the texts are split", () => {
  expect(score("ab", "c")).not.toBe(score("a", "bc"));
  expect(Number.isSafeInteger(score("a", "b"))).toBe(true);
});

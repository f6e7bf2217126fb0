import { expect, test } from "vitest";
import { isListedAddress } from "../../src/servers/addresses.ts";
import {
  FETCH_AFTER_MS,
  fetchBegan,
  fetchDue,
  fetchFailed,
  initialServers,
  learnedOf,
  type ListedServer,
  listFetched,
  MAX_LEARNED,
  orderOf,
  serverLeft,
  type ServersState,
  versionTold,
  wantList,
} from "../../src/servers/servers-state.ts";

const CHOOSER = { zone: "a", clientId: "c" };
const NOW = 1_000_000;

function server(address: string, more: Partial<ListedServer> = {}): ListedServer {
  return {
    nodeId: `node-${address}`,
    address,
    zone: "a",
    weight: 100,
    isDraining: false,
    isAlive: true,
    heardAtMs: NOW,
    ...more,
  };
}

function listed(
  state: ServersState,
  servers: readonly ListedServer[],
  { version = 7, from = "seed:1", nodeId = "", nowMs = 0, chooser = CHOOSER } = {},
): ServersState {
  const by = { from, nowMs, ...chooser };
  return listFetched(fetchBegan(state), { nodeId, version, servers }, by, isListedAddress);
}

const SEEDED = initialServers(["seed:1"]);
const orderAt = (state: ServersState, key = "c/t", zone = "a"): readonly string[] =>
  orderOf(state, zone, key).addresses;

test("the own zone comes first, then others by weight, then seeds, weight 0, those that drain and those that left", () => {
  let state = listed(SEEDED, [server("gone:1"), server("a:1")]);
  state = listed(state, [
    server("a:1"),
    server("zero-b:1", { weight: 0, zone: "b" }),
    server("zero:1", { weight: 0 }),
    server("drains:1", { isDraining: true }),
    server("b:1", { zone: "b" }),
  ]);
  expect(orderAt(state)).toEqual([
    "a:1",
    "b:1",
    "seed:1",
    "zero:1",
    "zero-b:1",
    "drains:1",
    "gone:1",
  ]);
  expect([...orderOf(state, "a", "c/t").near].toSorted()).toEqual(["a:1", "drains:1", "zero:1"]);
});

test("without a zone, or in one that nobody serves, all servers are asked by their weight", () => {
  const state = listed(SEEDED, [
    server("a:1", { weight: 300 }),
    server("b:1", { zone: "b" }),
    server("c:1", { zone: "", weight: 100 }),
  ]);
  for (const zone of ["", "no-such-zone"]) {
    const firsts = Array.from({ length: 5_000 }, (_, at) => orderAt(state, `c/t${at}`, zone)[0]!);
    const share = firsts.filter((first) => first === "a:1").length / firsts.length;
    expect(Math.abs(share - 0.6)).toBeLessThan(0.035);
    expect(orderOf(state, zone, "c/t").near.size).toBe(0);
  }
});

test("weights of 0 everywhere count the same", () => {
  const state = listed(
    SEEDED,
    ["a:1", "b:1", "c:1", "d:1"].map((address) => server(address, { weight: 0 })),
  );
  const counts = new Map<string, number>();
  for (let at = 0; at < 4_000; at++) {
    const [first] = orderAt(state, `c/t${at}`);
    counts.set(first!, (counts.get(first!) ?? 0) + 1);
  }
  expect([...counts.keys()].toSorted()).toEqual(["a:1", "b:1", "c:1", "d:1"]);
  for (const count of counts.values()) expect(Math.abs(count - 1_000)).toBeLessThan(137);
});

test("clients of one tag, and tags of one client, meet the weights", () => {
  const state = listed(SEEDED, [
    server("a:1", { weight: 90 }),
    server("b:1", { weight: 10 }),
    server("other:1", { weight: 1_000, zone: "b" }),
  ]);
  const byClient = Array.from({ length: 2_000 }, (_, at) => `client-${at}/orders`);
  const byTag = Array.from({ length: 2_000 }, (_, at) => `client/orders-${at}`);
  for (const keys of [byClient, byTag]) {
    const firsts = keys.map((key) => orderAt(state, key)[0]!);
    const share = firsts.filter((first) => first === "a:1").length / keys.length;
    expect(Math.abs(share - 0.9)).toBeLessThan(0.035);
    expect(firsts).not.toContain("other:1");
  }
});

test("an empty list, one of wrong addresses and one of servers that are all away change nothing", () => {
  const state = listed(SEEDED, [server("a:1"), server("b:1")]);
  const wrong = ["", "a", "http://x:1", "unix:/x", "x:0", "dns:///x:1", "ipv4:1.2.3.4:5", "a b:1"];
  for (const servers of [
    [],
    wrong.map((address) => server(address, { nodeId: "node-a:1" })),
    [server("a:1", { isAlive: false }), server("b:1", { isAlive: false })],
  ]) {
    const next = listed(state, servers, { version: 8 });
    expect(next.listed).toBe(state.listed);
    expect(next.version).toBe(7);
    // It is not asked for again until its server says something else.
    const told = { from: "seed:1", nowMs: 1, jitter: 0 };
    expect(versionTold(next, { ...told, version: 8 }).news).toBeUndefined();
    expect(versionTold(next, { ...told, version: 9 }).news).toBeDefined();
  }
  expect(wrong.filter(isListedAddress)).toEqual([]);
});

test("a wrong address takes nothing from the right ones", () => {
  const state = listed(SEEDED, [
    server("nonsense"),
    server("[::1]:7600"),
    server("b.example:7600"),
  ]);
  expect(learnedOf(state).toSorted()).toEqual(["[::1]:7600", "b.example:7600"]);
});

test("a server that the store has not heard of for a while keeps its place, and a new one does not get one", () => {
  const state = listed(SEEDED, [server("a:1"), server("b:1", { weight: 5 })]);
  const next = listed(state, [
    server("a:1"),
    server("b:1", { weight: 5, isAlive: false }),
    server("c:1", { isAlive: false }),
  ]);
  expect([...next.listed.keys()]).toEqual(["a:1", "b:1"]);
  expect(next.listed.get("b:1")).toMatchObject({ weight: 5, zone: "a" });
  // The row of an earlier process at the same address says nothing.
  const again = listed(next, [
    server("a:1"),
    server("b:1", { isAlive: false, weight: 5, nodeId: "old" }),
    server("b:1", { weight: 40 }),
  ]);
  expect(again.listed.get("b:1")!.weight).toBe(40);
});

/** Whether an address drains behind which one process drains, and another one, or not. */
const both = (one: boolean, other: boolean): boolean =>
  listed(SEEDED, [
    server("a:1", { nodeId: "1", isDraining: one }),
    server("a:1", { nodeId: "2", isDraining: other }),
  ]).listed.get("a:1")!.isDraining;

test("several processes behind one address are one server, which drains when all of them do", () => {
  expect([both(false, true), both(true, false), both(true, true)]).toEqual([false, false, true]);
});

test("the list of a server that is cut off from its store is not taken up", () => {
  const state = listed(SEEDED, [server("a:1"), server("b:1")]);
  const frozen = { heardAtMs: NOW - 60_000 };
  const stale = listed(state, [server("a:1"), server("b:1", { ...frozen, weight: 0 })]);
  expect(stale.listed).toBe(state.listed);
  // The only server of a fleet hears of nobody.
  expect(
    listed(SEEDED, [server("a:1"), server("b:1", { ...frozen, isAlive: false })]).listed.size,
  ).toBe(1);
});

test("a list counts from a seed, and from others only if they tell a name that is known", () => {
  const state = listed(SEEDED, [server("a:1"), server("b:1")]);
  const newer = [server("a:1"), server("c:1")];
  const seen = (nodeId: string, from = "a:1"): readonly string[] => [
    ...listed(state, newer, { from, nodeId, version: 8 }).listed.keys(),
  ];
  expect(seen("node-a:1")).toEqual(["a:1", "c:1"]);
  // Whoever is known answers wherever it is.
  expect(seen("node-a:1", "b:1")).toEqual(["a:1", "c:1"]);
  // Of another store: a copy of this one has the rows of these servers.
  for (const nodeId of ["node-c:1", "somebody", ""]) {
    expect(listed(state, newer, { from: "a:1", nodeId, version: 8 })).toEqual({
      ...state,
      stale: new Map([["a:1", 8]]),
    });
  }
  expect(seen("", "seed:1")).toEqual(["a:1", "c:1"]);
  expect(listed(SEEDED, newer, { from: "a:1", nodeId: "node-a:1" }).listed.size).toBe(0);
});

test("after a restart of all, the list of a seed makes the new names known", () => {
  const renewed = [server("a:1", { nodeId: "a2" }), server("b:1", { nodeId: "b2" })];
  let state = listed(SEEDED, [server("a:1"), server("b:1")]);
  const from = { from: "b:1", nodeId: "b2" };
  state = listed(state, [...renewed, server("c:1")], from);
  expect(learnedOf(state)).toEqual(["a:1", "b:1"]);
  state = listed(state, renewed);
  state = listed(state, [...renewed, server("c:1")], from);
  expect(learnedOf(state)).toEqual(["a:1", "b:1", "c:1"]);
});

test("a server that a newer list lacks is the last way, until it fails", () => {
  let state = listed(SEEDED, [server("a:1"), server("b:1")]);
  state = listed(state, [server("a:1")]);
  expect(orderAt(state)).toEqual(["a:1", "seed:1", "b:1"]);
  expect(orderAt(serverLeft(state, "b:1"))).toEqual(["a:1", "seed:1"]);
  // It may come back.
  expect(orderAt(listed(state, [server("b:1")]))).toEqual(["b:1", "seed:1", "a:1"]);
});

test("of a large fleet a client knows some servers, those of its zone first, whatever they weigh", () => {
  const near = Array.from({ length: 40 }, (_, at) => server(`near-${at}:1`));
  const far = Array.from({ length: 400 }, (_, at) =>
    server(`far-${at}:1`, { zone: "b", weight: at < 200 ? 1 : 1_000 }),
  );
  const state = listed(SEEDED, [...far, ...near]);
  const known = learnedOf(state);
  expect(known.length).toBe(MAX_LEARNED);
  expect(known.filter((address) => address.startsWith("near")).length).toBe(40);
  const chooser = { zone: "a", clientId: "another" };
  expect(learnedOf(listed(SEEDED, [...far, ...near], { chooser }))).not.toEqual(known);
});

test("a newer list is fetched after half of the time to all of it, from who told of it, once", () => {
  const told = { from: "a:1", version: 9, nowMs: 100 };
  const state = listed(SEEDED, [server("a:1")]);
  for (const jitter of [0, 0.5, 0.999]) {
    const next = versionTold(state, { ...told, jitter });
    const due = 100 + (FETCH_AFTER_MS / 2) * (1 + jitter);
    expect(fetchDue(next, due - 1)).toBeUndefined();
    expect(fetchDue(next, due)).toBe("a:1");
    // Whoever tells it again delays nothing.
    expect(versionTold(next, { ...told, nowMs: 200, jitter })).toBe(next);
    expect(fetchDue(fetchBegan(next), due)).toBeUndefined();
  }
  expect(FETCH_AFTER_MS).toBe(5_000);
  // The same version, or none, is no news; nor is one that was taken back.
  expect(versionTold(state, { ...told, version: 7, jitter: 0 })).toBe(state);
  expect(versionTold(state, { ...told, version: 0, jitter: 0 })).toBe(state);
  const news = versionTold(state, { ...told, jitter: 0 });
  expect(versionTold(news, { ...told, version: 7, jitter: 0 }).news).toBeUndefined();
});

test("a list with a name that is not known is fetched though its version is the same", () => {
  const told = { from: "seed:1", nowMs: 100, jitter: 0 };
  const state = listed(SEEDED, [server("a:1")]);
  for (const version of [7, 9]) {
    // What was heard of a newer version before is of the name too from then on.
    const next = wantList(versionTold(state, { ...told, version }), told);
    expect(versionTold(next, { ...told, version: 7 })).toBe(next);
    expect(fetchDue(next, 2_600)).toBe("seed:1");
  }
});

test("the first list is fetched at once, and one that cannot be had ever more seldom", () => {
  const told = { from: "seed:1", version: 9, nowMs: 100, jitter: 0.5 };
  let state = versionTold(SEEDED, told);
  expect(fetchDue(state, 100)).toBe("seed:1");
  const waits: number[] = [];
  for (let at = 0; at < 12; at++) {
    state = versionTold(fetchFailed(fetchBegan(state)), told);
    waits.push(state.news!.dueAtMs - 100);
  }
  expect(waits.slice(0, 3)).toEqual([7_500, 15_000, 30_000]);
  expect(waits.at(-1)).toBe(225_000);
});

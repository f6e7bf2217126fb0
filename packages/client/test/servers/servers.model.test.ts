import fc from "fast-check";
import { expect, test } from "vitest";
import { isListedAddress } from "../../src/servers/addresses.ts";
import {
  fetchBegan,
  fetchDue,
  fetchFailed,
  initialServers,
  learnedOf,
  listFetched,
  MAX_LEARNED,
  MAX_NODE_IDS,
  orderOf,
  serverLeft,
  type ServersState,
  versionTold,
} from "../../src/servers/servers-state.ts";

const SEEDS = ["s0:1", "s1:1"];
const ADDRESSES = [...SEEDS, ...Array.from({ length: 90 }, (_, at) => `l${at}:1`)];

/** Servers of this store have a name that begins with "ours", those of another one do not. */
const address = fc.constantFrom(...ADDRESSES, "", "nonsense", "http://x:1");
/** A few come again and again, so that lists name those of earlier ones. */
const name = fc.oneof(fc.nat({ max: 9 }), fc.nat({ max: 3_000 })).map((at) => `ours-${at}`);
const listedServer = fc.record({
  nodeId: name,
  address,
  zone: fc.constantFrom("", "a", "b"),
  weight: fc.constantFrom(0, 0, 1, 100, 1_000),
  isDraining: fc.boolean(),
  isAlive: fc.boolean(),
  heardAtMs: fc.constantFrom(0, 20_000, 100_000),
});
const list = fc.record({
  nodeId: name,
  version: fc.nat({ max: 5 }),
  servers: fc.array(listedServer, { maxLength: 120 }),
});
/** Servers of a copy of this store have names of their own, and list those of the original too. */
const foreignList = list.map(({ nodeId, version, servers }) => ({
  nodeId: nodeId.replace("ours", "theirs"),
  version,
  servers: servers.map((server, at) => ({
    ...server,
    nodeId: at % 2 === 0 ? server.nodeId : server.nodeId.replace("ours", "theirs"),
    address: server.address.replace("l", "x"),
  })),
}));
const step = fc.oneof(
  fc.record({
    type: fc.constant("list" as const),
    from: fc.oneof(fc.constantFrom(...SEEDS), fc.constantFrom(...ADDRESSES)),
    list,
  }),
  fc.record({
    type: fc.constant("foreign" as const),
    from: fc.constantFrom(...ADDRESSES.slice(2)),
    list: foreignList,
  }),
  fc.record({
    type: fc.constant("told" as const),
    from: fc.constantFrom(...ADDRESSES),
    version: fc.nat({ max: 5 }),
  }),
  fc.record({ type: fc.constant("left" as const), from: fc.constantFrom(...ADDRESSES) }),
  fc.record({ type: fc.constant("failed" as const) }),
);
const zone = fc.constantFrom("", "a", "b", "nowhere");

test("whatever is listed, seeds stay, no list empties what is known, and nobody of another store is learned", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 25 }), zone, (steps, own) => {
      let state: ServersState = initialServers(SEEDS);
      let nowMs = 0;
      for (const each of steps) {
        const before = state;
        nowMs += 1_000;
        if (each.type === "told") {
          const { from, version } = each;
          state = versionTold(state, { from, version, nowMs, jitter: 0.5 });
          const due = fetchDue(state, nowMs + 5_000);
          if (due !== undefined) expect(ADDRESSES).toContain(due);
        } else if (each.type === "left") {
          state = serverLeft(state, each.from);
        } else if (each.type === "failed") {
          state = fetchFailed(fetchBegan(state));
          expect(state.listed).toBe(before.listed);
        } else {
          const by = { from: each.from, nowMs, zone: own, clientId: "c" };
          state = listFetched(fetchBegan(state), each.list, by, isListedAddress);
          const isKnown = SEEDS.includes(each.from) || before.nodeIds.has(each.list.nodeId);
          if (!isKnown) expect(state.listed).toBe(before.listed);
          if (each.type === "foreign") expect(isKnown).toBe(false);
          // Nobody is lost by a list, except where there are too many.
          const known = new Set(orderOf(state, own, "k").addresses);
          if (learnedOf(state).length < MAX_LEARNED)
            for (const at of learnedOf(before)) expect(known.has(at)).toBe(true);
        }
        expect(state.isFetching).toBe(false);
        const { addresses, near } = orderOf(state, own, "k");
        expect(new Set(addresses).size).toBe(addresses.length);
        for (const seed of SEEDS) expect(addresses).toContain(seed);
        for (const at of addresses) expect(at.startsWith("x")).toBe(false);
        expect(learnedOf(state).length).toBeLessThanOrEqual(MAX_LEARNED);
        expect(state.nodeIds.size).toBeLessThanOrEqual(MAX_NODE_IDS);
        for (const id of state.nodeIds) expect(id.startsWith("ours")).toBe(true);
        for (const at of near) expect(addresses).toContain(at);
      }
    }),
  );
});

test("an order has the own zone before all others, weight 0 behind all that weigh, and those that drain behind these", () => {
  fc.assert(
    fc.property(
      fc.array(listedServer, { maxLength: 40 }),
      zone,
      fc.string(),
      (servers, own, key) => {
        const state = listFetched(
          fetchBegan(initialServers(SEEDS)),
          {
            nodeId: "ours-1",
            version: 1,
            servers: servers.map((each) => ({ ...each, heardAtMs: 0 })),
          },
          { from: "s0:1", nowMs: 0, zone: own, clientId: "c" },
          isListedAddress,
        );
        const all = [...state.listed.values()].filter(({ isDraining }) => !isDraining);
        const areAllZero = all.every(({ weight }) => weight === 0);
        const ranks = orderOf(state, own, key).addresses.map((at) => {
          const found = state.listed.get(at);
          if (found === undefined) return 2;
          if (found.isDraining) return 5;
          const isFar = own !== "" && found.zone === own ? 0 : 1;
          return found.weight > 0 || areAllZero ? isFar : 3 + isFar;
        });
        expect(ranks).toEqual(ranks.toSorted((a, b) => a - b));
      },
    ),
  );
});

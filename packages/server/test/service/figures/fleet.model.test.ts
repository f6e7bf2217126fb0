// Gathering, against servers that answer in every way there is.
import { createTrafficState, type NodeRow, trafficOf } from "@idmint/core/server";
import fc from "fast-check";
import { expect, test } from "vitest";
import type { CallContext } from "../../../src/service/call.ts";
import {
  type Asking,
  FleetFigures,
  type FiguresRequest,
  type PeerAnswer,
  type SilentNode,
} from "../../../src/service/figures/fleet.ts";
import type { SeenNode } from "../../../src/service/node-watch.ts";

interface Told {
  readonly nodeId: string;
}

const TRAFFIC = trafficOf(createTrafficState(), "");
const OWN = "own";

function seen(id: string, address: string, isAlive = true): SeenNode {
  const row: NodeRow = {
    id,
    instance: `${id}-name`,
    address,
    version: "1",
    zone: "",
    startedAtMs: 0,
    maxOfflineMs: undefined,
    renewals: 1n,
    incarnation: "",
    obeyed: 0n,
    traffic: 0n,
    isProved: true,
  };
  return { row, seenAt: 0, isAlive, isOwn: id === OWN, traffic: TRAFFIC };
}

function callOf(patience: Partial<CallContext> = {}): CallContext {
  return {
    deadline: 10_000,
    signal: new AbortController().signal,
    peer: "",
    caller: "",
    principal: undefined,
    authorization: () => "Bearer of-this-caller",
    ...patience,
  };
}

interface World {
  readonly rows: readonly SeenNode[];
  readonly answers?: (address: string) => PeerAnswer<Told> | Promise<PeerAnswer<Told>>;
  readonly siblings?: readonly string[];
}

function made({ rows, answers, siblings = [] }: World) {
  const asked: { readonly address: string; readonly request: FiguresRequest; asking: Asking }[] =
    [];
  const fleet = new FleetFigures<Told>({
    nodes: { nodes: rows, attend: () => undefined },
    peers: {
      ask: async (address, request, asking) => {
        asked.push({ address, request, asking });
        return (await answers?.(address)) ?? { type: "told", nodes: [] };
      },
    },
    siblings: async () => siblings.map((nodeId) => ({ nodeId })),
    clock: { now: () => 0 },
  });
  return { fleet, asked };
}

const own = (): Told => ({ nodeId: OWN });
const oneRefuses = (address: string): PeerAnswer<Told> =>
  address === "b" ? REFUSED : toldBy(["new"]);
const toldBy = (told: readonly string[]): PeerAnswer<Told> => ({
  type: "told",
  nodes: told.map((nodeId) => ({ nodeId })),
});
const ids = (nodes: readonly Told[]): string[] => nodes.map(({ nodeId }) => nodeId);
const reasons = (silent: readonly SilentNode[]): Record<string, string> =>
  Object.fromEntries(silent.map(({ node, silence }) => [node.row.id, silence.reason]));
const REQUEST = { tag: "", seconds: 60 };
const REFUSED: PeerAnswer<Told> = {
  type: "silent",
  silence: { reason: "REFUSED", detail: "no" },
};

test("every server is told or silent, none is both, and each address of the store is asked once", async () => {
  const row = fc.record({
    id: fc.integer({ min: 1, max: 30 }).map(String),
    address: fc.constantFrom("", "here", "a", "b", "c"),
    isAlive: fc.boolean(),
  });
  const rowsOf = fc.uniqueArray(row, { selector: ({ id }) => id, maxLength: 20 });
  const anyIds = fc.array(fc.integer({ min: 1, max: 35 }).map(String), { maxLength: 5 });
  const answer: fc.Arbitrary<PeerAnswer<Told>> = fc.oneof(
    fc.constant(REFUSED),
    anyIds.map((told) => toldBy(told)),
  );
  await fc.assert(
    fc.asyncProperty(
      rowsOf,
      fc.record({ a: answer, b: answer, c: answer }),
      anyIds,
      async (others, byAddress, siblings) => {
        const rows = [
          seen(OWN, "here"),
          ...others.map(({ id, address, isAlive }) => seen(id, address, isAlive)),
        ];
        const answers = (address: string): PeerAnswer<Told> =>
          byAddress[address as keyof typeof byAddress];
        const { fleet, asked } = made({ rows, answers, siblings });
        const { nodes, silent } = await fleet.ofAll(REQUEST, own, callOf());
        const told = ids(nodes);
        expect(new Set(told).size).toBe(told.length);
        const quiet = silent.map(({ node }) => node.row.id);
        const all = new Set([...told, ...quiet]);
        expect(all.size).toBe(told.length + quiet.length);
        for (const { row: known } of rows) expect(all).toContain(known.id);
        const live = rows.filter(({ isAlive, row: { address } }) => isAlive && address !== "");
        const wanted = new Set(live.map((each) => each.row.address).filter((at) => at !== "here"));
        expect(asked.map(({ address }) => address).toSorted()).toEqual([...wanted].toSorted());
      },
    ),
  );
});

test("each silence has its reason", async () => {
  const rows = [
    seen(OWN, "here"),
    seen("bare", ""),
    seen("dead", "a", false),
    seen("deaf", "b"),
    seen("gone", "c"),
    seen("sibling", "here"),
  ];
  const { nodes, silent } = await made({ rows, answers: oneRefuses }).fleet.ofAll(
    REQUEST,
    own,
    callOf(),
  );
  expect(ids(nodes)).toEqual(["new", OWN]);
  expect(reasons(silent)).toEqual({
    bare: "NO_ADDRESS",
    dead: "NOT_HEARD",
    deaf: "REFUSED",
    gone: "NO_ANSWER",
    sibling: "NO_ANSWER",
  });
});

test("others are asked with what the caller showed, and no longer than it waits", async () => {
  const { fleet, asked } = made({ rows: [seen(OWN, "here"), seen("b", "b")] });
  const { signal } = new AbortController();
  await fleet.ofAll(REQUEST, own, callOf({ deadline: 700, signal }));
  await fleet.ofAll(REQUEST, own, callOf({ authorization: () => undefined }));
  await fleet.ofAll(REQUEST, own, callOf({ deadline: 50 }));
  expect(asked.map(({ asking }) => [asking.authorization, asking.timeoutMs])).toEqual([
    ["Bearer of-this-caller", 600],
    [undefined, 1_000],
    ["Bearer of-this-caller", 0],
  ]);
  expect(asked[0]?.asking.signal).toBe(signal);
});

test("what servers ask each other goes no further", async () => {
  const rows = [seen(OWN, "here"), seen("b", "b"), seen("2", "here"), seen("3", "here")];
  const { fleet, asked } = made({ rows, siblings: ["2"] });
  const { nodes, silent } = await fleet.ofServer(REQUEST, own, callOf());
  expect(ids(nodes)).toEqual(["2", OWN]);
  expect(reasons(silent)).toEqual({ 3: "NO_ANSWER" });
  expect(asked).toEqual([]);
});

test("of very many servers some are asked, for fewer seconds, and the others are named", async () => {
  const others = Array.from({ length: 999 }, (_, at) => seen(`n${at}`, `address${at}`));
  const { fleet, asked } = made({ rows: [seen(OWN, "here"), ...others] });
  const { seconds, silent } = await fleet.ofAll({ tag: "", seconds: 900 }, own, callOf());
  expect(seconds).toBe(45);
  expect(asked).toHaveLength(256);
  expect(asked.every(({ request }) => request.seconds === 45)).toBe(true);
  const count = (reason: string): number =>
    Object.values(reasons(silent)).filter((each) => each === reason).length;
  expect([count("NO_ANSWER"), count("TOO_MANY")]).toEqual([256, 999 - 256]);
});

test("a bounded number of calls asks others at the same time; one that ended makes room", async () => {
  const { promise, resolve } = Promise.withResolvers<PeerAnswer<Told>>();
  const { fleet } = made({ rows: [seen(OWN, "here"), seen("b", "b")], answers: () => promise });
  const calls = Array.from({ length: 16 }, () => fleet.ofAll(REQUEST, own, callOf()));
  await expect(fleet.ofAll(REQUEST, own, callOf())).rejects.toMatchObject({ reason: "OVERLOADED" });
  // What servers ask each other must be answered all the same.
  await expect(fleet.ofServer(REQUEST, own, callOf())).resolves.toBeDefined();
  resolve(REFUSED);
  await Promise.all(calls);
  await expect(fleet.ofAll(REQUEST, own, callOf())).resolves.toBeDefined();
});

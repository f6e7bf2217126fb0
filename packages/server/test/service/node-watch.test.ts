import {
  earlierMemory,
  NEVER_STOPPED,
  type NodeRow,
  type NodeRowKey,
  type StorePart,
  type Tag,
  type Traffic,
} from "@idmint/core/server";
import { FakeTime } from "@idmint/testkit";
import { settingsOf } from "@idmint/testkit/store-suite";
import { expect, test } from "vitest";
import type { ServerEvent } from "../../src/service/events.ts";
import { NodeWatch } from "../../src/service/node-watch.ts";
import { noRecord } from "./no-record.ts";
import { Presence } from "../../src/service/presence.ts";

const MAX_OFFLINE_MS = 1_000;

function row(id: string, renewals: bigint, obeyed: bigint): NodeRow {
  const texts = { instance: id, address: `${id}:1`, version: "", zone: "", incarnation: "one" };
  return {
    id,
    ...texts,
    startedAtMs: 0,
    maxOfflineMs: MAX_OFFLINE_MS,
    renewals,
    obeyed,
    traffic: 0n,
    isProved: true,
  };
}

function part(name: string, revision: bigint, nodes: readonly NodeRow[]): StorePart {
  const more = { traffic: [], issuing: NEVER_STOPPED };
  return { name, incarnation: "one", revision, isRenewed: true, nodes, ...more };
}

function tagAt(revision: bigint, maxAgeMs: number, more: Partial<Tag> = {}): Tag {
  const settings = settingsOf("t", { maxAgeMs });
  return { ...settings, revision, ...more } as Tag;
}

/** A server that watches others, of a store in one database or, with `partsOf`, in several. */
function watching(partsOf?: (tag: string) => readonly string[]) {
  const time = new FakeTime();
  const events: ServerEvent[] = [];
  const forgotten: NodeRowKey[] = [];
  const emit = (event: ServerEvent): void => void events.push(event);
  const texts = { id: "own", instance: "own", version: "", zone: "" };
  const node = { ...texts, startedAtMs: 0, maxOfflineMs: MAX_OFFLINE_MS };
  const its = {
    node,
    firstCount: 0n,
    partsOf,
    proofPatienceMs: 0,
    record: noRecord(),
    clock: time,
    emit,
  };
  const presence = new Presence(its);
  const store = {
    forgetNodes: async (keys: readonly NodeRowKey[]) => {
      forgotten.push(...keys);
      return keys.length;
    },
    ...(partsOf === undefined ? {} : { partsOf, groupOf: (tag: string) => partsOf(tag)[0] ?? "" }),
  };
  const watch = new NodeWatch({ store, presence, clock: time, emit, onTold: () => undefined });
  const open = (names: readonly string[]): void => {
    for (let turn = 0; turn < 2; turn++) {
      const parts = names.map((name) => part(name, 1n, []));
      presence.obeyed(presence.acknowledged(parts, time.now()));
    }
  };
  return { time, watch, presence, forgotten, events, open };
}

test("a change is in effect when callers can hold nothing any more, and a hundredth later", () => {
  const { time, watch } = watching();
  watch.saw([part("", 1n, [row("a", 1n, 1n)])], 0);
  const tag = tagAt(2n, 5_000);
  watch.note(tag);
  expect(watch.effectOf(tag).at).toBeUndefined();
  time.advance(10);
  watch.saw([part("", 2n, [row("a", 2n, 1n)])], 10);
  expect(watch.effectOf(tag).laggards.map(({ row: { id } }) => id)).toEqual(["a"]);
  expect(watch.effectOf(tag).at).toBe(MAX_OFFLINE_MS * 1.01 + 5_050);
  time.advance(90);
  watch.saw([part("", 2n, [row("a", 3n, 2n)])], 100);
  const effect = { at: 100 + 5_050, laggards: [], isHeldForEver: false };
  expect(watch.effectOf(tag)).toEqual(effect);
});

test("the longest time for which callers may still hold ids counts, not the present one", () => {
  const { time, watch } = watching();
  watch.saw([part("", 1n, [])], 0);
  time.advance(100);
  // At revision 2 max_age was lowered from ten minutes to a second, at revision 3 the tag was paused.
  const earlier = { memoryMs: 600_000, revision: 2n };
  watch.saw([part("", 2n, [])], 100);
  time.advance(100);
  watch.saw([part("", 3n, [])], 200);
  const tag = tagAt(3n, 1_000, { earlier });
  expect(watch.effectOf(tag).at).toBe(100 + 606_000);
  expect(watch.isEarlierOver(tag)).toBe(false);
  time.advance(606_000);
  expect(watch.isEarlierOver(tag)).toBe(true);
  expect(watch.isEarlierOver(tagAt(3n, 1_000))).toBe(true);
});

test("what Tinyid's clients hold is never known to be over, also when they get no more", () => {
  const { time, watch } = watching();
  watch.saw([part("", 1n, [])], 0);
  time.advance(100);
  watch.saw([part("", 3n, [])], 100);
  const handing = settingsOf("t", { tinyidStep: 10 }).kind;
  const held = { at: undefined, isHeldForEver: true };
  expect(watch.effectOf(tagAt(2n, 1_000, { kind: handing }))).toMatchObject(held);
  // The step was taken away at revision 3, and the row remembers it.
  const before = tagAt(2n, 1_000, { kind: handing });
  const earlier = earlierMemory(before, tagAt(3n, 1_000).kind, 3n, false);
  const after = tagAt(3n, 1_000, earlier === undefined ? {} : { earlier });
  time.advance(1e12);
  expect(watch.effectOf(after)).toMatchObject(held);
  expect(watch.isEarlierOver(after)).toBe(false);
  expect(watch.effectOf(tagAt(3n, 1_000))).toMatchObject({ at: 1_110, isHeldForEver: false });
  // A stop of everything is not over either.
  const stop = watch.effectOfStop([{ name: "", revision: 3n }], earlier?.memoryMs ?? 0);
  expect(stop).toMatchObject(held);
});

test("rows of servers that have stopped are removed, under the number that was seen", async () => {
  const { time, watch, forgotten, events } = watching();
  watch.saw([part("", 1n, [row("a", 7n, 1n)])], 0);
  time.advance(2_000);
  watch.saw([part("", 1n, [row("a", 7n, 1n)])], 2_000);
  await Promise.resolve();
  await Promise.resolve();
  expect(forgotten).toEqual([{ part: "", id: "a", renewals: 7n }]);
  expect(events).toContainEqual({ type: "node-forgotten", node: "a" });
});

test("a tag that moved is in effect when every database was heard of it", () => {
  const { time, watch } = watching(() => ["b", "a"]);
  watch.saw([part("a", 1n, []), part("b", 1n, [])], 0);
  time.advance(100);
  const tag = tagAt(2n, 1_000);
  watch.note(tag);
  // The database that the tag left does not answer: whoever still listens to it may not know.
  watch.saw([part("b", 2n, [])], 100);
  expect(watch.effectOf(tag).at).toBeUndefined();
  time.advance(100);
  watch.saw([part("a", 1n, []), part("b", 2n, [])], 200);
  expect(watch.effectOf(tag).at).toBe(200 - 100 + 1_010);
});

test("a database that is not heard of stops its own tags, and no others", () => {
  const { time, presence, open, events } = watching((tag) => [tag]);
  open(["a", "b"]);
  expect([presence.refusalOf("a"), presence.refusalOf("b")]).toEqual([undefined, undefined]);
  time.advance(600);
  presence.obeyed(presence.acknowledged([part("a", 1n, [])], time.now()));
  time.advance(400);
  expect(presence.refusalOf("a")).toBeUndefined();
  expect(presence.refusalOf("b")).toMatchObject({
    reason: "STORE_UNAVAILABLE",
    retryAfterMs: 1_000,
    metadata: { tag: "b", database: "b" },
  });
  expect(presence.isCutOff).toBe(false);
  presence.check();
  expect(events).toMatchObject([{ type: "cut-off", databases: ["b"] }]);
});

test("of many servers the rows are asked for now and then, and each time while somebody waits", () => {
  const { watch, time } = watching();
  const rows = Array.from({ length: 120 }, (_, at) => row(`n${at}`, 1n, 1n));
  expect(watch.wantsNodes).toBe(true);
  watch.saw([part("", 1n, rows)], 0);
  const { nodes: _, ...without } = part("", 1n, []);
  expect(watch.wantsNodes).toBe(false);
  watch.saw([{ ...without, nodes: undefined }], 0);
  watch.saw([{ ...without, nodes: undefined }], 0);
  expect(watch.wantsNodes).toBe(true);
  watch.saw([part("", 1n, rows)], 0);
  watch.note(tagAt(2n, 1_000));
  expect(watch.wantsNodes).toBe(true);
  time.advance(10_000);
  expect(watch.wantsNodes).toBe(false);
});

test("a server has a list from its first poll with rows on, and it changes with what callers go by", () => {
  const { time, watch, presence } = watching();
  presence.advertise("own:1");
  const see = (rows: readonly NodeRow[] | undefined, ...traffic: readonly Traffic[]): number => {
    time.advance(800);
    const parts = [{ ...part("", 1n, rows ?? []), nodes: rows, traffic }];
    watch.sawTraffic(parts);
    watch.saw(parts, time.now());
    return watch.version;
  };
  expect([watch.version, see(undefined)]).toEqual([0, 0]);
  const alone = see([]);
  const two = see([row("a", 1n, 1n)]);
  expect(see([row("a", 2n, 5n)])).toBe(two);
  expect(see(undefined)).toBe(two);
  const drained = { server: "a", weight: 100, isDraining: true, revision: 1n };
  const draining = see(undefined, drained);
  const light = see([row("a", 3n, 1n)], { ...drained, isDraining: false, weight: 1 });
  const usual = see([row("a", 4n, 1n)], { ...drained, isDraining: false });
  expect(usual).toBe(two);
  expect(new Set([0, alone, two, draining, light]).size).toBe(5);
  expect(see([])).toBe(alone);
});

test("what operators say is followed as the poll says it, of processes by the server's name", () => {
  const { watch } = watching();
  const traffic = [{ server: "a", weight: 3, isDraining: true, revision: 6n }];
  const parts = [{ ...part("", 1n, [row("a", 1n, 1n), row("a/2", 1n, 1n)]), traffic }];
  expect([watch.sawTraffic(parts), watch.sawTraffic(parts)]).toEqual([true, false]);
  watch.saw(parts, 0);
  expect(watch.trafficRevision).toBe(6n);
  expect(
    watch.nodes.map(({ row: { id }, traffic: { weight, isDraining } }) => [id, weight, isDraining]),
  ).toEqual([
    ["a", 3, true],
    ["a/2", 3, true],
    ["own", 100, false],
  ]);
});

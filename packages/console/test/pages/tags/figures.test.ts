// What the charts of a tag show, and who holds its segments.
import { expect, test } from "vitest";
import { type Entry, holdersOf } from "../../../src/pages/tags/model/holders.ts";
import { type Figures, tagFiguresOf } from "../../../src/pages/tags/model/tag-figures.ts";

type Node = Figures["nodes"][number];

const START = Date.parse("2026-11-23T06:00:00Z");

function node(
  instance: string,
  { ahead = 0, issued = [1, 2, 3], remaining = [9, 8, -1], known = true, epoch = "1" } = {},
): Node {
  const run = {
    startTime: new Date(START + ahead).toISOString(),
    issuedIds: issued.map(String),
    readyIds: issued.map(() => "5"),
    remainingSeconds: remaining,
  };
  const tagFigures = { known, epoch, readyIds: "5", heldIds: "9", waitingCalls: 0, runs: [run] };
  return { instance, aheadMillis: ahead, tagFigures } as unknown as Node;
}

test("figures of servers stand on one line of seconds, whatever their clocks say", () => {
  const nodes = [node("a"), node("b", { ahead: 7_000, issued: [10, 20, 30] })];
  const found = tagFiguresOf({ nodes, seconds: 4, silentNodes: [] });
  const second = START / 1_000;
  expect(found?.rate.seconds).toEqual([second - 1, second, second + 1, second + 2]);
  // Who issues most comes first.
  expect(found?.rate.lines).toEqual([
    { label: "b", values: [null, 10, 20, 30] },
    { label: "a", values: [null, 1, 2, 3] },
  ]);
  // Where nothing was used, nobody knows how long it lasts.
  expect(found?.remaining.lines[1]?.values).toEqual([null, 9, 8, null]);
  expect(found?.readyIds).toBe(10n);
});

test("servers that do not work with the tag have no line, and epochs that differ are told", () => {
  const nodes = [
    node("a", { epoch: "10" }),
    node("b", { epoch: "9" }),
    node("c", { known: false }),
  ];
  const found = tagFiguresOf({ nodes, seconds: 3, silentNodes: [] });
  expect(found?.rate.lines.map(({ label }) => label)).toEqual(["a", "b"]);
  expect(found?.epochs).toEqual(["9", "10"]);
  const none = { nodes: [node("c", { known: false })], seconds: 3, silentNodes: [] };
  expect(tagFiguresOf(none)).toBeUndefined();
});

test("no more lines than a chart can tell apart", () => {
  const nodes = Array.from({ length: 9 }, (_, at) => node(`s${at}`, { issued: [at] }));
  const found = tagFiguresOf({ nodes, seconds: 3, silentNodes: [] });
  expect(found?.rate.lines.map(({ label }) => label)).toEqual(["s8", "s7", "s6", "s5", "s4", "s3"]);
  expect(found?.hidden).toBe(3);
});

function entry(kind: string, change: Partial<Entry>): Entry {
  const plain = {
    nodeId: "n1",
    server: "a",
    instance: "",
    principal: "",
    epoch: "1",
    sequence: "1",
  };
  return { ...plain, kind: `LEDGER_ENTRY_KIND_${kind}`, version: "1", ...change } as Entry;
}

test("holders are those who were given the newest segments, and did not give them back", () => {
  const client = { instance: "shop", version: "5" };
  const entries = [
    entry("GRANT", { firstId: "1", lastId: "100", version: "9" }),
    entry("GRANT", { firstId: "101", lastId: "200", version: "10" }),
    entry("GRANT", { nodeId: "n2", firstId: "201", lastId: "300", version: "11" }),
    entry("GIVE_BACK", { nodeId: "n2", firstId: "201", lastId: "300", version: "12" }),
    entry("ALLOCATION", { ...client, firstId: "1", lastId: "10", sequence: "2" }),
    entry("ALLOCATION", { ...client, firstId: "11", lastId: "20", sequence: "10" }),
    // Only a part: the rest is held.
    entry("RELEASE", { ...client, firstId: "15", lastId: "20", version: "6" }),
    entry("GAP", { nodeId: "n3", firstId: "301", lastId: "400", version: "13" }),
  ];
  expect(holdersOf(entries).map(({ isClient, entry: { firstId } }) => [isClient, firstId])).toEqual(
    [
      [false, "101"],
      [true, "11"],
    ],
  );
});

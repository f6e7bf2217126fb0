import { expect, test } from "vitest";
import {
  isLast,
  matching,
  type Node,
  serverOf,
  versionsOf,
  zonesOf,
} from "../../src/pages/nodes/nodes-state.ts";

function node(instance: string, more: Partial<Node> = {}): Node {
  return {
    nodeId: `id-${instance}`,
    instance,
    address: `${instance}:7600`,
    version: "1.0.0",
    zone: "",
    alive: true,
    weight: 100,
    draining: false,
    startTime: undefined,
    heardTime: undefined,
    maxOffline: undefined,
    ...more,
  };
}

test("servers stand by zone and name", () => {
  const nodes = [
    node("b", { zone: "west" }),
    node("c"),
    node("a", { zone: "west" }),
    node("d", { zone: "east" }),
  ];
  const shown = zonesOf(nodes).map(({ name, nodes: its }) => [
    name,
    its.map(({ instance }) => instance),
  ]);
  expect(shown).toEqual([
    ["", ["c"]],
    ["east", ["d"]],
    ["west", ["a", "b"]],
  ]);
});

test("a filter looks at all that people know a server by", () => {
  const nodes = [node("a", { zone: "West" }), node("b", { version: "2.0.0-rc.1" })];
  expect(matching(nodes, " ")).toEqual(nodes);
  expect(matching(nodes, "west").map(({ instance }) => instance)).toEqual(["a"]);
  expect(matching(nodes, "RC.1").map(({ instance }) => instance)).toEqual(["b"]);
  expect(matching(nodes, "id-b").map(({ instance }) => instance)).toEqual(["b"]);
  expect(matching(nodes, "none")).toEqual([]);
});

test("versions count servers that live", () => {
  const nodes = [
    node("a"),
    node("b", { version: "2.0.0" }),
    node("c", { version: "2.0.0" }),
    node("d", { version: "0.9.0", alive: false }),
  ];
  expect(versionsOf(nodes)).toEqual([
    { version: "2.0.0", count: 2 },
    { version: "1.0.0", count: 1 },
  ]);
});

test("the last server that takes calls is known, all its processes together", () => {
  const one = [node("a:1/1"), node("a:1/2")];
  const dead = node("b", { alive: false });
  const drained = node("c", { draining: true });
  expect(one.map(({ instance }) => serverOf(instance))).toEqual(["a:1", "a:1"]);
  expect(isLast([...one, dead, drained], one)).toBe(true);
  expect(isLast([...one, dead, drained], one.slice(1))).toBe(false);
  expect(isLast([...one, node("d")], one)).toBe(false);
});

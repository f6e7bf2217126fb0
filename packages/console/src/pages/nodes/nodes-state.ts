import type { ResponseOf } from "../../api/json.ts";

export type Node = ResponseOf<"NodeService", "listNodes">["nodes"][number];

export interface Zone {
  /** Empty for servers that named none. */
  readonly name: string;
  readonly nodes: readonly Node[];
}

/** Servers by zone, both in the order of their names. */
export function zonesOf(nodes: readonly Node[]): readonly Zone[] {
  const zones = Map.groupBy(nodes, ({ zone }) => zone);
  return [...zones]
    .map(([name, its]) => ({ name, nodes: its.toSorted(byInstance) }))
    .toSorted((a, b) => compare(a.name, b.name));
}

function byInstance(a: Node, b: Node): number {
  return compare(a.instance, b.instance) || compare(a.nodeId, b.nodeId);
}

function compare(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

/** Those that hold a text in what people know them by. */
export function matching(nodes: readonly Node[], typed: string): readonly Node[] {
  const wanted = typed.trim().toLowerCase();
  if (wanted === "") return nodes;
  return nodes.filter(({ nodeId, instance, address, zone, version }) =>
    [nodeId, instance, address, zone, version].some((text) => text.toLowerCase().includes(wanted)),
  );
}

/** The versions of the servers that live, each with how many have it. More than one: an upgrade is on its way. */
export function versionsOf(
  nodes: readonly Node[],
): readonly { readonly version: string; readonly count: number }[] {
  const versions = Map.groupBy(
    nodes.filter(({ alive }) => alive),
    ({ version }) => version,
  );
  return [...versions]
    .map(([version, its]) => ({ version, count: its.length }))
    .toSorted((a, b) => b.count - a.count || compare(a.version, b.version));
}

/** The name of the server that a process belongs to: its processes have numbers behind it. */
export function serverOf(instance: string): string {
  return instance.replace(/\/\d+$/, "");
}

/** Whether nobody is left to take calls when these processes are drained. */
export function isLast(nodes: readonly Node[], drained: readonly Node[]): boolean {
  const ids = new Set(drained.map(({ nodeId }) => nodeId));
  return !nodes.some(({ nodeId, alive, draining }) => alive && !draining && !ids.has(nodeId));
}

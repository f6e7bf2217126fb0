import type { NodeRow } from "../../../src/server/node/ports.ts";

/** The row of a server that knows its store. */
export function nodeRow(id: string, renewals: number, more: Partial<NodeRow> = {}): NodeRow {
  return {
    id,
    instance: id,
    address: "",
    version: "",
    zone: "",
    startedAtMs: 0,
    maxOfflineMs: 1_000,
    renewals: BigInt(renewals),
    incarnation: "one",
    obeyed: 0n,
    traffic: 0n,
    isProved: true,
    ...more,
  };
}

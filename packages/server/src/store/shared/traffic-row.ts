import type { Traffic } from "@idmint/core/server";

/** A row of the table `traffic`. SQLite has its integers as bigint and booleans as 0 and 1; others write them as text. */
export interface TrafficRow {
  readonly server: string;
  readonly weight: bigint | string | number;
  readonly draining: bigint | string | boolean;
  readonly revision: bigint | string;
}

export const TRAFFIC_COLUMNS: readonly (keyof TrafficRow)[] = [
  "server",
  "weight",
  "draining",
  "revision",
];

export function trafficFromRow({ server, weight, draining, revision }: TrafficRow): Traffic {
  return {
    server,
    weight: Number(weight),
    isDraining: draining === true || String(draining) === "1",
    revision: BigInt(revision),
  };
}

/** The values of TRAFFIC_COLUMNS, in their order. */
export function valuesOfTraffic(row: Traffic): [string, bigint, bigint, bigint] {
  return [row.server, BigInt(row.weight), row.isDraining ? 1n : 0n, row.revision];
}

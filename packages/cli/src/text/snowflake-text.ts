// The settings of kind snowflake in words.
import { endOf, idsPerSecond, type SnowflakeLayout } from "@idmint/core";
import { durationText } from "@idmint/core/kinds";
import { clockPolicyToJSON, type SnowflakeKind, WorkerRegistry } from "@idmint/proto";
import { protoDurationText } from "./proto-duration.ts";
import { domainLayout } from "../flags/snowflake-layout.ts";
import { plain } from "../process/plain.ts";
import type { Rows } from "./table.ts";

/** Widths as they are typed after --layout. */
function layoutWord(layout: SnowflakeLayout): string {
  const { timeBits, dataCenterBits, workerBits, sequenceBits } = layout;
  const widths = [timeBits, ...(dataCenterBits > 0 ? [dataCenterBits] : []), workerBits];
  return [...widths, sequenceBits].join("-");
}

/** What a layout has room for, as rows. */
function layoutRows(layout: SnowflakeLayout): Rows {
  const { timeUnitMs, timeOriginMs, extensionBits, dataCenterBits, workerBits } = layout;
  const rows: (readonly [string, string])[] = [
    ["layout", layoutWord(layout)],
    ["time unit", durationText(timeUnitMs)],
    ["time origin", new Date(timeOriginMs).toISOString()],
    ["ends at", new Date(endOf(layout)).toISOString()],
  ];
  if (extensionBits > 0) rows.push(["extension bits", String(extensionBits)]);
  if (dataCenterBits > 0) rows.push(["data centers", String(2 ** dataCenterBits)]);
  rows.push(
    [dataCenterBits > 0 ? "workers each" : "workers", String(2 ** workerBits)],
    ["ids per second and worker", String(idsPerSecond(layout))],
  );
  return rows;
}

export function snowflakeRows(kind: SnowflakeKind): Rows {
  const { dataCenter, registry, redisServer } = kind;
  return [
    ...layoutRows(domainLayout(kind.layout)),
    ["data center", String(dataCenter)],
    ["clock policy", policyWord(kind)],
    ["clock wait", protoDurationText(kind.clockWait)],
    [
      "worker registry",
      registry === WorkerRegistry.REDIS ? `redis ${plain(redisServer)}` : "store",
    ],
  ];
}

export function snowflakeSummary({ layout }: SnowflakeKind): string {
  return `layout:${layoutWord(domainLayout(layout))}`;
}

/** A policy as it is typed after --clock-policy. */
function policyWord({ clockPolicy }: SnowflakeKind): string {
  const word = clockPolicyToJSON(clockPolicy).replace("CLOCK_POLICY_", "");
  return word.toLowerCase().replaceAll("_", "-");
}

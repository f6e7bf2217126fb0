// The settings of kind snowflake in words.
import { endOf, idsPerSecond, type SnowflakeLayout } from "@idmint/core";
import {
  durationText,
  plainText,
  snowflakeLayoutOf,
  type Values,
  wordOf,
} from "@idmint/core/kinds";
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

/** By the values of the settings, which leave out what is 0. */
export function snowflakeRows(values: Values): Rows {
  const { redis_server: redisServer, clock_policy: policy } = values;
  return [
    ...layoutRows(snowflakeLayoutOf(values["layout"] as Values)),
    ["data center", plainText(values["data_center"] ?? 0)],
    ["clock policy", wordOf(plainText(policy))],
    ["clock wait", durationText((values["clock_wait"] ?? 0) as number)],
    [
      "worker registry",
      values["registry"] === "REDIS" ? `redis ${plain(plainText(redisServer ?? ""))}` : "store",
    ],
  ];
}

export function snowflakeSummary({ layout }: Values): string {
  return `layout:${layoutWord(snowflakeLayoutOf(layout as Values))}`;
}

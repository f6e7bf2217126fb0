// Rows as the values of keys: JSON, its integers as texts.
import type { NodeRow, Tag, TagPage, Traffic, Worker } from "@idmint/core/server";
import {
  NODE_COLUMNS,
  nodeFromRow,
  type NodeTableRow,
  valuesOfNode,
} from "../../shared/node-row.ts";
import {
  TAG_COLUMNS,
  tagFromRow,
  type TagRow,
  tagsFromAll,
  valuesOfTag,
} from "../../shared/tag-row.ts";
import {
  TRAFFIC_COLUMNS,
  trafficFromRow,
  type TrafficRow,
  valuesOfTraffic,
} from "../../shared/traffic-row.ts";
import {
  WORKER_COLUMNS,
  valuesOfWorker,
  workerFromRow,
  type WorkerRow,
} from "../../shared/worker-pool.ts";
import { schemaMismatch } from "../../shared/failures.ts";
import type { StoreRecord } from "../cluster/guard-state.ts";
import type { KeyValue } from "../cluster/protocol.ts";
import { Keys } from "./keys.ts";

type Value = bigint | string | null;

/** The columns that are not null, in their order. */
function textOf(columns: readonly string[], values: readonly Value[]): Buffer {
  const row: Record<string, string> = {};
  for (const [at, column] of columns.entries()) {
    const value = values[at];
    if (value !== null && value !== undefined) row[column] = String(value);
  }
  return Buffer.from(JSON.stringify(row));
}

/** A value of ours; null in every column that it does not have. */
function rowFrom(columns: readonly string[], value: Buffer): object {
  const fields = fieldsOf(value);
  const row: Record<string, string | null> = {};
  for (const column of columns) row[column] = fields[column] ?? null;
  return row;
}

export function fieldsOf(value: Buffer): Readonly<Record<string, string>> {
  try {
    return JSON.parse(value.toString()) as Record<string, string>;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw schemaMismatch("a key of the store was changed by hand: it holds no JSON");
  }
}

export function valueOfTag(tag: Tag): Buffer {
  return textOf(TAG_COLUMNS, valuesOfTag(tag));
}

function tagRowFrom(value: Buffer): TagRow {
  const row = rowFrom(TAG_COLUMNS, value) as TagRow;
  return { ...row, redis: String(row.redis) === "1" };
}

export function tagFrom(value: Buffer): Tag {
  return tagFromRow(tagRowFrom(value));
}

/** Tags of their keys. One that cannot be read keeps no others from being read. */
export function tagsFrom(kvs: readonly KeyValue[]): TagPage {
  return tagsFromAll(kvs, {
    nameOf: (kv) => Keys.lastOf(kv),
    rowOf: ({ value }) => tagRowFrom(value),
  });
}

/** Names of tags have no slash. */
const BETWEEN_NAMES = "/";

export function valueOfPack(names: readonly string[]): Buffer {
  return Buffer.from(names.join(BETWEEN_NAMES));
}

export function namesFrom(value: Buffer): readonly string[] {
  return value.toString().split(BETWEEN_NAMES);
}

const WORKER_NAMES = WORKER_COLUMNS.split(", ");

export function valueOfWorker(row: Worker): Buffer {
  return textOf(WORKER_NAMES, valuesOfWorker(row));
}

export function workerFrom(value: Buffer): Worker {
  return workerFromRow(rowFrom(WORKER_NAMES, value) as WorkerRow);
}

const CLOCK = "clock_ms";
const NODE_NAMES = [...NODE_COLUMNS, CLOCK];

/** `clockMs`: the server's wall clock when it wrote this. */
export function valueOfNode(row: NodeRow, clockMs: number): Buffer {
  return textOf(NODE_NAMES, [...valuesOfNode(row), String(clockMs)]);
}

export function nodeFrom(value: Buffer): NodeRow {
  return nodeFromRow(rowFrom(NODE_COLUMNS, value) as NodeTableRow);
}

export function clockOf(value: Buffer): number {
  return Number(fieldsOf(value)[CLOCK]);
}

/** By names of servers. */
export function valueOfTraffic(rows: readonly Traffic[]): Buffer {
  const entries = rows.map((row) => [
    row.server,
    textOf(TRAFFIC_COLUMNS, valuesOfTraffic(row)).toString(),
  ]);
  return Buffer.from(JSON.stringify(Object.fromEntries(entries)));
}

export function trafficFrom(value: Buffer): readonly Traffic[] {
  return Object.values(fieldsOf(value)).map((row) =>
    trafficFromRow(rowFrom(TRAFFIC_COLUMNS, Buffer.from(row)) as TrafficRow),
  );
}

export function valueOfRecord(record: StoreRecord): Buffer {
  return Buffer.from(
    JSON.stringify({
      ...record,
      generation: String(record.generation),
      lead: String(record.lead),
    }),
  );
}

export function recordFrom(value: Buffer): StoreRecord {
  const { storeId = "", incarnation = "", clusterId = "", ...rest } = fieldsOf(value);
  const { generation = "0", lead = "0", accepting, wentBack } = rest;
  return {
    storeId,
    incarnation,
    clusterId,
    generation: BigInt(generation),
    lead: BigInt(lead),
    ...(accepting === undefined ? {} : { accepting }),
    ...(wentBack === undefined ? {} : { wentBack }),
  };
}

// Histories, read in pieces: they may be larger than memory.
import { closeSync, existsSync, openSync, readSync, statSync, truncateSync } from "node:fs";
import type { HistoryRow, RefusalRow, UuidRow } from "../callers/config.ts";

export type AnyRow = HistoryRow | RefusalRow | UuidRow;

const CHUNK_BYTES = 256 * 1_024;
const PARTS = [".ndjson", ".uuids.ndjson", ".refusals.ndjson"] as const;

/** The files of a history that exist. */
export function filesOf(history: string): readonly string[] {
  return PARTS.map((part) => `${history}${part}`).filter((file) => existsSync(file));
}

/** Cuts off a line that a process was killed in. */
export function trim(file: string): void {
  const size = statSync(file).size;
  const bytes = Buffer.alloc(Math.min(size, CHUNK_BYTES));
  const descriptor = openSync(file, "r");
  readSync(descriptor, bytes, 0, bytes.length, size - bytes.length);
  closeSync(descriptor);
  const whole = size - bytes.length + bytes.lastIndexOf(10) + 1;
  if (whole < size) truncateSync(file, whole);
}

/** All rows of a file, in their order, which is that of `to`. */
function* rowsOf(file: string): Generator<AnyRow, void, undefined> {
  const descriptor = openSync(file, "r");
  try {
    const chunk = Buffer.alloc(CHUNK_BYTES);
    let rest = Buffer.alloc(0);
    let newest = 0;
    for (;;) {
      const read = readSync(descriptor, chunk);
      if (read === 0) return;
      const bytes = Buffer.concat([rest, chunk.subarray(0, read)]);
      const end = bytes.lastIndexOf(10);
      rest = bytes.subarray(end + 1);
      if (end === -1) continue;
      for (const line of bytes.subarray(0, end).toString().split("\n")) {
        const row = JSON.parse(line) as AnyRow;
        if (row.to < newest) throw new Error(`${file} is not in the order of time: ${line}`);
        newest = row.to;
        yield row;
      }
    }
  } finally {
    closeSync(descriptor);
  }
}

export interface Placed {
  /** A process: its history without what its files end with. */
  readonly history: string;
  readonly row: AnyRow;
}

/** The rows of all histories in the order in which they were answered. */
export function* merged(histories: readonly string[]): Generator<Placed, void, undefined> {
  const heads = histories.flatMap((history) =>
    filesOf(history).flatMap((file) => {
      const rows = rowsOf(file);
      const first = rows.next();
      return first.done === true ? [] : [{ history, rows, row: first.value }];
    }),
  );
  heads.sort((a, b) => a.row.to - b.row.to);
  for (;;) {
    const [head] = heads;
    if (head === undefined) return;
    yield { history: head.history, row: head.row };
    const next = head.rows.next();
    if (next.done === true) {
      heads.shift();
      continue;
    }
    head.row = next.value;
    // Down to its place: most often it is near the front.
    for (let at = 0; at + 1 < heads.length; at++) {
      const after = heads[at + 1];
      if (after === undefined || after.row.to >= head.row.to) break;
      heads[at] = after;
      heads[at + 1] = head;
    }
  }
}

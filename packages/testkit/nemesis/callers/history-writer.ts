import { closeSync, openSync, writeSync } from "node:fs";
import path from "node:path";
import type { Segment } from "@idmint/core";
import type { CallerConfig, CallerLoad, HistoryRow, RefusalRow, UuidRow } from "./config.ts";

/** How often a process looks whether it runs, and from which delay on it writes that it did not. */
const LOOK_MS = 100;
const STALL_MS = 150;

/** Microseconds of the monotonic clock. */
function now(): number {
  return Number(process.hrtime.bigint() / 1_000n);
}

/** What an IdmintError says, and what a door of HTTP does. */
export interface Refusal {
  readonly code: string;
  readonly reason: string;
  readonly message: string;
}

interface Call {
  readonly load: CallerLoad;
  readonly stream: number;
  readonly from: number;
}

/** What a call was answered. */
export interface Answer {
  readonly id?: bigint;
  readonly segments?: readonly Segment[];
  readonly uuid?: string;
  readonly period?: string;
  readonly epoch?: bigint;
}

/**
 * Writes down what a process of callers was answered.
 *
 * INVARIANT: `from` is read before the call is begun, rounded down, and `to` after its answer came, rounded up: a call is shown no
 * shorter than it was. Rows are written in the turn of the event loop in which answers came, in order of `to`. A process that is killed
 * leaves out at most the rows of its last turn: that can hide a repeat, and never invent one.
 */
export class HistoryWriter {
  readonly #name: string;
  readonly #files: Readonly<Record<"history" | "refusals" | "uuids", LineFile>>;
  readonly #timer: NodeJS.Timeout;

  constructor({ folder, name }: CallerConfig) {
    this.#name = name;
    this.#files = {
      history: new LineFile(path.join(folder, `${name}.ndjson`)),
      uuids: new LineFile(path.join(folder, `${name}.uuids.ndjson`)),
      refusals: new LineFile(path.join(folder, `${name}.refusals.ndjson`)),
    };
    let looked = now();
    this.#timer = setInterval(() => {
      const lateMs = (now() - looked) / 1_000 - LOOK_MS;
      if (lateMs > STALL_MS) this.#stalled(looked + LOOK_MS * 1_000);
      looked = now();
    }, LOOK_MS);
  }

  begin(load: CallerLoad, stream: number): Call {
    return { load, stream, from: now() };
  }

  answered(call: Call, { id, segments, uuid, period, epoch }: Answer): void {
    const common = {
      ...this.#common(call),
      ...(epoch === undefined ? {} : { epoch: String(epoch) }),
    };
    if (uuid !== undefined) {
      this.#files.uuids.add({ ...common, uuid } satisfies UuidRow);
      return;
    }
    const row: HistoryRow = {
      ...common,
      ...(period === undefined || period === "" ? {} : { period }),
      ...(id === undefined ? {} : { id: String(id) }),
      ...(segments === undefined ? {} : { segments: segments.map(segmentOf) }),
    };
    this.#files.history.add(row);
  }

  refused(call: Call, { code, reason, message }: Refusal): void {
    const row = { ...this.#common(call), refused: `${code} ${reason}`, message };
    this.#files.refusals.add(row satisfies RefusalRow);
  }

  close(): void {
    clearInterval(this.#timer);
    for (const file of Object.values(this.#files)) file.close();
  }

  #stalled(from: number): void {
    const load = { tag: "-", call: "next", perSecond: 1 } as const;
    const row = { ...this.#common({ load, stream: 0, from }), refused: "STALL", message: "" };
    this.#files.refusals.add(row satisfies RefusalRow);
  }

  #common({ load: { tag }, stream, from }: Call): Omit<HistoryRow, "id" | "period" | "segments"> {
    const who = `${this.#name}/${stream}`;
    return { tag, who, time: new Date().toISOString(), from, to: now() + 1 };
  }
}

function segmentOf({ base, count, increment }: Segment): {
  base: string;
  count: number;
  increment: string;
} {
  return { base: String(base), count, increment: String(increment) };
}

/** Appends lines, those of one turn in one system call. */
class LineFile {
  readonly #file: number;
  #lines: string[] = [];

  constructor(name: string) {
    this.#file = openSync(name, "ax");
  }

  add(row: object): void {
    if (this.#lines.push(JSON.stringify(row)) === 1) setImmediate(() => this.#flush());
  }

  close(): void {
    this.#flush();
    closeSync(this.#file);
  }

  #flush(): void {
    if (this.#lines.length === 0) return;
    const bytes = Buffer.from(`${this.#lines.join("\n")}\n`);
    this.#lines = [];
    for (let at = 0; at < bytes.length;) at += writeSync(this.#file, bytes, at);
  }
}

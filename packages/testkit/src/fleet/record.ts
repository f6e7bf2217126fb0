import { closeSync, openSync, readSync, writeSync } from "node:fs";
import type { Segment } from "@idmint/core";

/**
 * What callers received, on disk: one file per process and tag, written while they run.
 *
 * INVARIANTS
 * 1. A record is written with one synchronous system call in the turn in which its ids arrived, so a process that is
 *    killed leaves out at most what it had not been told of. Ids that are left out can hide a repeat, never invent one.
 * 2. Records have a fixed size that divides a page. SIGKILL ends a write at a page's border only, so a record is there
 *    whole or not at all; a torn end is left out by the reader all the same.
 */
export const RECORD_BYTES = 32;

const RECEIVED = 0;
const ASKED_IN_VAIN = 1;

/** One answer, or one call that may have cost ids although it brought none. */
export interface Received {
  readonly kind: "received" | "asked-in-vain";
  readonly base: bigint;
  readonly count: number;
  readonly increment: number;
  /** Which caller of the process: ids of one stream are in the order in which they were received. */
  readonly stream: number;
  /** Wall clock, milliseconds since 1970. */
  readonly atMs: number;
}

/** Appends to one file of records; for one process. */
export class Recorder {
  readonly #file: number;
  readonly #record = Buffer.alloc(RECORD_BYTES);

  constructor(path: string) {
    this.#file = openSync(path, "ax");
  }

  /** One id that a caller was given. */
  id(stream: number, id: bigint): void {
    this.#write(RECEIVED, stream, id, 1, 1);
  }

  /** Segments that a caller was given. */
  segments(stream: number, segments: readonly Segment[]): void {
    for (const { base, count, increment } of segments) {
      this.#write(RECEIVED, stream, base, count, increment);
    }
  }

  /** A call for `count` ids failed; they may have been carved for it and lost. */
  askedInVain(stream: number, count: number): void {
    this.#write(ASKED_IN_VAIN, stream, 0n, count, 1);
  }

  close(): void {
    closeSync(this.#file);
  }

  #write(kind: number, stream: number, base: bigint, count: number, increment: number): void {
    const record = this.#record;
    record.writeBigInt64LE(base, 0);
    record.writeDoubleLE(Date.now(), 8);
    record.writeUInt32LE(count, 16);
    record.writeUInt32LE(increment, 20);
    record.writeUInt32LE(stream, 24);
    record.writeUInt32LE(kind, 28);
    const written = writeSync(this.#file, record);
    if (written !== RECORD_BYTES) throw new Error(`wrote ${written} of ${RECORD_BYTES} bytes`);
  }
}

const RECORDS_PER_READ = 2_048;

/**
 * The records of a file from a byte at which one begins, in the order they were written; a torn one at the end is left
 * out.
 */
export function* readRecords(path: string, from = 0): Generator<Received, void, undefined> {
  const file = openSync(path, "r");
  try {
    const chunk = Buffer.alloc(RECORDS_PER_READ * RECORD_BYTES);
    for (let position = from; ;) {
      const length = readSync(file, chunk, 0, chunk.length, position);
      const whole = length - (length % RECORD_BYTES);
      for (let at = 0; at < whole; at += RECORD_BYTES) yield decode(chunk, at);
      position += whole;
      if (whole === 0) return;
    }
  } finally {
    closeSync(file);
  }
}

function decode(chunk: Buffer, at: number): Received {
  const kind = chunk.readUInt32LE(at + 28);
  const count = chunk.readUInt32LE(at + 16);
  const increment = chunk.readUInt32LE(at + 20);
  if ((kind !== RECEIVED && kind !== ASKED_IN_VAIN) || count < 1 || increment < 1) {
    throw new Error("not a file of records");
  }
  return {
    kind: kind === RECEIVED ? "received" : "asked-in-vain",
    base: chunk.readBigInt64LE(at),
    count,
    increment,
    stream: chunk.readUInt32LE(at + 24),
    atMs: chunk.readDoubleLE(at + 8),
  };
}

import { closeSync, openSync, readFileSync, writeSync } from "node:fs";

/**
 * What callers of a sequence were answered, and when they had asked: one file per process, for judging strict order. The
 * times are of the monotonic clock, which all processes of a machine share.
 *
 * INVARIANT: `asked` is read before the call is begun and `answered` after its answer came, so a call is shown no shorter
 * than it was. A call that was before another one by these times was so in truth.
 */
const RECORD_BYTES = 32;
const DAY_MS = 86_400_000;

/** One answer: the ids first … first + count − 1 of a period. */
export interface Answer {
  /** First day of the period, YYYY-MM-DD; empty without periods. */
  readonly period: string;
  readonly first: bigint;
  readonly last: bigint;
  /** Nanoseconds. */
  readonly asked: bigint;
  readonly answered: bigint;
  readonly file: string;
  readonly stream: number;
}

/** Appends to one file, in one synchronous call an answer; for one process. */
export class HistoryRecorder {
  readonly #file: number;
  readonly #record = Buffer.alloc(RECORD_BYTES);

  constructor(path: string) {
    this.#file = openSync(path, "ax");
  }

  /** `count` is at most 65,535, `stream` too. */
  answer(stream: number, asked: bigint, period: string, first: bigint, count: number): void {
    const record = this.#record;
    record.writeBigInt64LE(first, 0);
    record.writeBigInt64LE(asked, 8);
    record.writeBigInt64LE(process.hrtime.bigint(), 16);
    record.writeUInt16LE(count, 24);
    record.writeUInt16LE(stream, 26);
    record.writeUInt32LE(period === "" ? 0 : Date.parse(period) / DAY_MS, 28);
    const written = writeSync(this.#file, record);
    if (written !== RECORD_BYTES) throw new Error(`wrote ${written} of ${RECORD_BYTES} bytes`);
  }

  close(): void {
    closeSync(this.#file);
  }
}

/** All answers of all files; a torn record at the end of one is left out. */
export function readHistory(files: readonly string[]): Answer[] {
  return files.flatMap((file) => {
    const bytes = readFileSync(file);
    const whole = bytes.length - (bytes.length % RECORD_BYTES);
    const answers: Answer[] = [];
    for (let at = 0; at < whole; at += RECORD_BYTES) {
      const day = bytes.readUInt32LE(at + 28);
      const first = bytes.readBigInt64LE(at);
      answers.push({
        period: day === 0 ? "" : new Date(day * DAY_MS).toISOString().slice(0, 10),
        first,
        last: first + BigInt(bytes.readUInt16LE(at + 24)) - 1n,
        asked: bytes.readBigInt64LE(at + 8),
        answered: bytes.readBigInt64LE(at + 16),
        file,
        stream: bytes.readUInt16LE(at + 26),
      });
    }
    return answers;
  });
}

/** What is wrong with a history; nothing, of a strict sequence. */
export interface Faults {
  /** Pairs of answers that share ids of a period. */
  readonly repeats: readonly (readonly [Answer, Answer])[];
  /** Answers with an id that is not above one that had been answered before they were asked for. */
  readonly inversions: readonly (readonly [before: Answer, after: Answer])[];
}

const MAX_SHOWN = 20;

/**
 * Checks that no id of a period was answered twice, and that whatever was answered before a call was asked is smaller, by
 * period and id. So each session, which asks one call after the other, sees them rise too.
 */
export function faultsOf(history: readonly Answer[]): Faults {
  return { repeats: repeatsOf(history), inversions: inversionsOf(history) };
}

function repeatsOf(history: readonly Answer[]): Faults["repeats"] {
  const repeats: (readonly [Answer, Answer])[] = [];
  let highest: Answer | undefined;
  for (const answer of history.toSorted(byFirst)) {
    if (highest?.period === answer.period && answer.first <= highest.last) {
      repeats.push([highest, answer]);
    }
    if (highest?.period !== answer.period || answer.last > highest.last) highest = answer;
  }
  return repeats.slice(0, MAX_SHOWN);
}

function inversionsOf(history: readonly Answer[]): Faults["inversions"] {
  const inversions: (readonly [Answer, Answer])[] = [];
  const byEnd = history.toSorted((a, b) => Number(a.answered - b.answered));
  let ended = 0;
  let highest: Answer | undefined;
  for (const answer of history.toSorted((a, b) => Number(a.asked - b.asked))) {
    for (let before = byEnd[ended]; before !== undefined; before = byEnd[++ended]) {
      if (before.answered >= answer.asked) break;
      if (highest === undefined || isAbove(before, highest)) highest = before;
    }
    if (highest !== undefined && !startsAbove(answer, highest)) inversions.push([highest, answer]);
  }
  return inversions.slice(0, MAX_SHOWN);
}

function byFirst(a: Answer, b: Answer): number {
  if (a.period !== b.period) return a.period < b.period ? -1 : 1;
  return a.first < b.first ? -1 : 1;
}

function isAbove(one: Answer, other: Answer): boolean {
  return one.period > other.period || (one.period === other.period && one.last > other.last);
}

function startsAbove(one: Answer, other: Answer): boolean {
  return one.period > other.period || (one.period === other.period && one.first > other.last);
}

/** How long after a moment the first call that was asked then was answered, in milliseconds; Infinity: none was. */
export function answeredAfter(history: readonly Answer[], moment: bigint): number {
  let first: bigint | undefined;
  for (const { asked, answered } of history) {
    if (asked > moment && (first === undefined || answered < first)) first = answered;
  }
  return first === undefined ? Infinity : Number(first - moment) / 1e6;
}

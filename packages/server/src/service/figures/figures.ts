import {
  assertNoViolations,
  type Clock,
  type FieldViolation,
  tagNameViolation,
  type Timers,
} from "@idmint/core";
import { CALL_BOUNDS, type CallTimes } from "../call-times.ts";
import type { Counters } from "../counters.ts";
import type { Entry } from "../issue/entries.ts";
import {
  createFiguresState,
  type FigureRun,
  figureRuns,
  type FiguresState,
  KEPT_SECONDS,
  type Latency,
  latencyOf,
  type Sample,
  sampled,
  type TagFigureRun,
  tagFigureRuns,
  type TagLook,
  watchTag,
} from "./figures-state.ts";

export interface FiguresPorts {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly wallClock: () => number;
  readonly counters: Readonly<Counters>;
  /** Undefined: calls are not timed. */
  readonly callTimes: CallTimes | undefined;
  /** How late timers were since the last reading, and the share of the time that the event loop worked. In seconds. */
  readonly readLoop: () => { readonly max: number; readonly utilization: number };
  readonly admission: { readonly waitingCalls: number };
  readonly directory: { peek(name: string): Entry | undefined };
}

/** What is told of a tag. */
export interface TagFigures {
  /** Undefined: this server does not work with it. */
  readonly present:
    | {
        readonly epoch: bigint;
        readonly ready: number;
        readonly held: number;
        readonly waiting: number;
      }
    | undefined;
  readonly runs: readonly TagFigureRun[];
}

const DEFAULT_SECONDS = 60;
/** After the end of a second, so that a timer that comes a little early still comes after it. */
const MARGIN_MS = 3;
/** Calls whose time is told: those for ids. Streams last as long as their callers want. */
const TIMED = ["GenerateId", "GenerateIds", "AllocateSegment"].map(
  (name) => `/idmint.v1.IdService/${name}`,
);
const OK = 0;

/** How many seconds back a request wants figures. */
export function secondsOf(seconds: number): number {
  assertNoViolations(secondsViolation(seconds));
  return seconds === 0 ? DEFAULT_SECONDS : seconds;
}

function secondsViolation(seconds: number): FieldViolation | undefined {
  if (seconds >= 0 && seconds <= KEPT_SECONDS) return undefined;
  const description = `must be 1 to ${KEPT_SECONDS}, or 0 for ${DEFAULT_SECONDS}; got ${seconds}`;
  return { field: "seconds", description, reason: "VALUE_OUT_OF_RANGE" };
}

/** Counts what this process does, second by second: the shell around figures-state.ts. Calls are not slower for it. */
export class Figures {
  readonly #ports: FiguresPorts;
  readonly #state: FiguresState;
  #cancelTimer: (() => void) | undefined;

  constructor(ports: FiguresPorts) {
    this.#ports = ports;
    this.#state = createFiguresState(this.#sample(), CALL_BOUNDS);
  }

  /** Takes a sample at the end of each second, until `stop`. */
  start(): void {
    const { clock, timers } = this.#ports;
    const waitMs = 1_000 - (clock.now() % 1_000) + MARGIN_MS;
    this.#cancelTimer = timers.after(waitMs, () => {
      sampled(this.#state, this.#sample(), (tag) => this.#look(tag));
      this.start();
    });
  }

  stop(): void {
    this.#cancelTimer?.();
  }

  /** What was counted in the last `seconds`. */
  runs(seconds: number): readonly FigureRun[] {
    return figureRuns(this.#state, this.#second, seconds);
  }

  latency(seconds: number): Latency | undefined {
    return latencyOf(this.#state, this.#second, seconds);
  }

  /** The same of a tag, which is counted from now on if it was not. */
  tag(name: string, seconds: number): TagFigures {
    assertNoViolations(tagNameViolation("tag", name));
    watchTag(this.#state, name, () => this.#look(name));
    const runs = tagFigureRuns(this.#state, name, this.#second, seconds);
    const entry = this.#ports.directory.peek(name);
    return { present: entry === undefined ? undefined : presentOf(entry), runs };
  }

  /** The one that is not over yet. */
  get #second(): number {
    return Math.floor(this.#ports.clock.now() / 1_000);
  }

  #sample(): Sample {
    const { clock, wallClock, counters, callTimes, readLoop, admission } = this.#ports;
    const second = this.#second - 1;
    const loop = readLoop();
    return {
      second,
      wallMs: wallClock() - (clock.now() - second * 1_000),
      // What callers return was issued all the same.
      issued: counters.issuedIds + counters.returnedIds,
      calls: counters.calls,
      refused: counters.refusedCalls,
      refusals: counters.refusals,
      times: callTimes === undefined ? undefined : timesOf(callTimes),
      loopDelayMicros: loop.max * 1e6,
      loopBusyPermille: loop.utilization * 1e3,
      waiting: admission.waitingCalls,
    };
  }

  #look(name: string): TagLook {
    const entry = this.#ports.directory.peek(name);
    return { counted: entry, ready: entry?.buffer?.ready };
  }
}

function presentOf(entry: Entry): NonNullable<TagFigures["present"]> {
  if (entry.buffer === undefined) {
    const { source, epoch } = entry;
    return { epoch, ready: 0, held: 0, waiting: source.waiting };
  }
  const { epoch, ready, held, waiting } = entry.buffer;
  return { epoch, ready, held, waiting };
}

/** Calls for ids that got them, by how long they took. */
function timesOf(callTimes: CallTimes): readonly number[] {
  const all = TIMED.map((path) => callTimes.of(path).byCode[OK]?.counts ?? []);
  return Array.from({ length: CALL_BOUNDS.length + 1 }, (_, bucket) =>
    all.reduce((sum, counts) => sum + (counts[bucket] ?? 0), 0),
  );
}

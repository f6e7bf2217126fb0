import { setImmediate as turn, setTimeout as sleep } from "node:timers/promises";
import type { Caller } from "./callers.ts";
import { type Load, Pacer } from "./pacer-state.ts";
import { Tally } from "./tally.ts";

/** A caller whose call was refused calls again after this time: a server that is away is not stormed. */
const AFTER_REFUSAL_MS = 100;
/** Calls that are sent before timers and Ctrl-C have a turn. */
const MOST_IN_A_TURN = 1_000;
/** Timers are late by a millisecond or two; shorter waits go through the event loop. */
const SHORT_MS = 3;
/** How often somebody is told how far it is, and the longest time until the end of a run is noticed. */
const TELL_EVERY_MS = 200;
/** What is left of a call's deadline for its answer to come in. */
const MARGIN_MS = 1_000;

/** How far a run is. */
export interface Progress {
  readonly share: number;
  readonly answered: number;
  readonly perSecond: number;
  readonly p99Ms: number;
}

export interface BenchRun {
  readonly tally: Tally;
  readonly elapsedMs: number;
  readonly end: "full" | "interrupted" | "over";
}

/** One run. */
class Run {
  readonly #load: Load;
  readonly #callers: readonly Caller[];
  readonly #startMs = performance.now();
  readonly #pacer: Pacer;
  readonly #tally = new Tally();
  #wake = (): void => {};
  #inTurn = 0;

  constructor(load: Load, callers: readonly Caller[]) {
    this.#load = load;
    this.#callers = callers;
    this.#pacer = new Pacer(load, this.#startMs);
  }

  /** Sends until the run is over, and says why it is. */
  async send(signal: AbortSignal): Promise<BenchRun["end"]> {
    for (;;) {
      this.#sendDue();
      if (signal.aborted) return "interrupted";
      if (this.#tally.isFull) return "full";
      if (this.#pacer.isOver(performance.now())) return "over";
      // Each wait is for what the calls before it did.
      await this.#wait();
    }
  }

  /** Waits for the calls in flight. What has no answer by its deadline is refused. */
  async end(end: BenchRun["end"], timeoutMs: number): Promise<BenchRun> {
    const stoppedMs = performance.now();
    for (const dueMs of this.#pacer.unsent(stoppedMs)) this.#tally.neverSent(stoppedMs - dueMs);
    const untilMs = stoppedMs + timeoutMs + MARGIN_MS;
    while (this.#pacer.inFlight > 0 && performance.now() < untilMs) await sleep(1);
    const elapsedMs = performance.now() - this.#startMs;
    for (let left = this.#pacer.inFlight; left > 0; left -= 1) {
      this.#tally.refuse("DEADLINE_EXCEEDED", elapsedMs);
    }
    return { tally: this.#tally, elapsedMs, end };
  }

  progress(): Progress {
    const nowMs = performance.now();
    const { answered, p99Ms } = this.#tally;
    const perSecond = (answered * 1_000) / Math.max(1, nowMs - this.#startMs);
    return { share: this.#pacer.progress(nowMs), answered, perSecond, p99Ms };
  }

  wake(): void {
    this.#wake();
  }

  #sendDue(): void {
    while (this.#inTurn < MOST_IN_A_TURN) {
      const dueMs = this.#pacer.send(performance.now());
      if (dueMs === undefined) return;
      this.#inTurn += 1;
      this.#callers[this.#pacer.sent % this.#callers.length]?.call((got, refusal) => {
        const latencyMs = performance.now() - dueMs;
        if (got !== undefined) this.#tally.answer(got, latencyMs);
        else this.#tally.refuse(refusal, latencyMs);
        const isStorm = got === undefined && this.#load.ratePerSecond === undefined;
        if (isStorm) setTimeout(() => this.#free(), AFTER_REFUSAL_MS);
        else this.#free();
      });
    }
  }

  #free(): void {
    this.#pacer.answered();
    this.#wake();
  }

  async #wait(): Promise<void> {
    if (this.#inTurn < MOST_IN_A_TURN) {
      if (this.#pacer.inFlight >= this.#load.maxInFlight) {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
        return;
      }
      const nowMs = performance.now();
      const waitMs = this.#pacer.dueMs(nowMs) - nowMs;
      if (waitMs >= SHORT_MS) await sleep(Math.min(waitMs - SHORT_MS / 2, TELL_EVERY_MS));
    }
    await turn();
    this.#inTurn = 0;
  }
}

/** Makes the calls of a run, and waits for their answers. */
export async function runLoad(
  load: Load,
  callers: readonly Caller[],
  { signal, timeoutMs }: { readonly signal: AbortSignal; readonly timeoutMs: number },
  tell: (progress: Progress) => void,
): Promise<BenchRun> {
  const run = new Run(load, callers);
  const ticker = setInterval(() => {
    tell(run.progress());
    run.wake();
  }, TELL_EVERY_MS);
  try {
    return await run.end(await run.send(signal), timeoutMs);
  } finally {
    clearInterval(ticker);
  }
}

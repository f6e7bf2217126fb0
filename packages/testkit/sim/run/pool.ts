import { Worker } from "node:worker_threads";
import { didNotEnd } from "./explain.ts";
import type { Asked, Done } from "./worker.ts";

/** A history leaves much behind at once: with room for it, little is moved. */
const YOUNG_MB = 192;
/** A history takes a second or two of a busy machine. */
const MOST_SECONDS = 60;
/** To find the faults that it takes, it is run up to sixty times. */
const MOST_EXPLAIN_SECONDS = 600;
/** Threads that may be lost. Where more are, something else is wrong than a history. */
const MOST_LOST = 10;

export interface Run {
  readonly from: number;
  readonly histories: number;
  readonly jobs: number;
  readonly shrinks: boolean;
  /** How long a history may take before its thread is ended. */
  readonly mostSeconds?: number;
  /** What a thread runs. */
  readonly worker?: URL;
}

/**
 * Runs histories in threads. Which of them runs which seed is left to chance, and changes nothing: a history follows from its seed
 * alone. `heard` is told of each; answers it false, no further one begins.
 *
 * INVARIANT: every history is heard of. A loop without an end in one hangs no more than its own thread, which is ended then, and
 * another one goes on.
 */
export async function runAll(
  { from, histories, jobs, shrinks, mostSeconds = MOST_SECONDS, worker: url = WORKER }: Run,
  heard: (done: Done) => boolean,
): Promise<void> {
  const seeds = Array.from({ length: histories }, (_, at) => String(from + at));
  let lost = 0;
  const runSeeds = async (thread: Thread): Promise<void> => {
    for (let seed = seeds.shift(); seed !== undefined; seed = seeds.shift()) {
      let done = await thread.ask({ seed, explains: false }, mostSeconds);
      if (shrinks && done !== undefined && done.lines.length > 0) {
        const explained = await thread.ask({ seed, explains: true }, MOST_EXPLAIN_SECONDS);
        done = { ...done, lines: explained?.lines ?? done.lines };
      }
      done ??= { counted: undefined, lines: didNotEnd(seed, thread.end) };
      if (!heard(done)) seeds.length = 0;
      if (thread.end === undefined) continue;
      if (++lost > MOST_LOST) throw new Error(`${lost} threads were lost: ${thread.end}`);
      return;
    }
  };
  const work = async (): Promise<void> => {
    while (seeds.length > 0) {
      const thread = new Thread(url);
      try {
        await runSeeds(thread);
      } finally {
        await thread.close();
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(jobs, histories) }, work));
}

const WORKER = new URL("./worker.ts", import.meta.url);

/** A thread that is asked for one history after another. */
class Thread {
  readonly #worker: Worker;
  #settle: ((done: Done | undefined) => void) | undefined;
  #end: string | undefined;

  constructor(url: URL) {
    this.#worker = new Worker(url, { resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB } });
    this.#worker.on("message", (done: Done) => this.#settle?.(done));
    this.#worker.on("error", (error) => this.#lose(String(error)));
  }

  /** Why it is not there any more; undefined: it is. */
  get end(): string | undefined {
    return this.#end;
  }

  /** Undefined: it did not end within this time, and the thread with it. */
  async ask(asked: Asked, mostSeconds: number): Promise<Done | undefined> {
    const { promise, resolve } = Promise.withResolvers<Done | undefined>();
    this.#settle = resolve;
    // Seconds in which this thread ran too: a process that was stopped took no time.
    let left = mostSeconds;
    const timer = setInterval(() => {
      if (--left <= 0) this.#lose(`no answer in ${mostSeconds} s`);
    }, 1_000);
    this.#worker.postMessage(asked);
    try {
      return await promise;
    } finally {
      clearInterval(timer);
    }
  }

  async close(): Promise<void> {
    await this.#worker.terminate();
  }

  #lose(why: string): void {
    this.#end = why;
    this.#settle?.(undefined);
  }
}

// Ends a process whose event loop stands still: nothing in it could say so.
import { Worker } from "node:worker_threads";

const MOST_BYTES = 64 * 1_024;
const BEAT_MS = 100;

/** What the thread looks at: how often the event loop has come round, and the inputs that were begun last. */
export interface Watched {
  readonly beats: SharedArrayBuffer;
  readonly input: SharedArrayBuffer;
  readonly hangMs: number;
}

export class Heartbeat {
  readonly #worker: Worker;
  readonly #timer: NodeJS.Timeout;
  readonly #length: Int32Array;
  readonly #input: Buffer;
  readonly #last: string[] = [];

  constructor(hangMs: number) {
    const watched: Watched = {
      beats: new SharedArrayBuffer(8),
      input: new SharedArrayBuffer(MOST_BYTES),
      hangMs,
    };
    const beats = new Int32Array(watched.beats, 0, 1);
    this.#length = new Int32Array(watched.beats, 4, 1);
    this.#input = Buffer.from(watched.input);
    this.#timer = setInterval(() => Atomics.add(beats, 0, 1), BEAT_MS);
    const thread = new URL("./watchdog-thread.ts", import.meta.url);
    this.#worker = new Worker(thread, { workerData: watched });
  }

  /** `atOnce`: so many of the last ones may be under way. */
  begins(input: string, atOnce: number): void {
    this.#last.unshift(input);
    if (this.#last.length > atOnce) this.#last.pop();
    this.#length[0] = this.#input.write(this.#last.join("\n  "));
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#worker.terminate();
  }
}

import { constants, fstatSync, openSync, write } from "node:fs";
import { bounded } from "@idmint/core";
import { nodeTimers } from "../timers.ts";

const STDERR = 2;
/**
 * Most bytes of lines that wait while nobody reads stderr. Further lines are dropped, since a log must not stop the
 * server.
 */
const MAX_WAITING_BYTES = 8 * 1_024 * 1_024;
/** Time between two tries while a pipe is full. */
const RETRY_MS = 50;
/** How long a process that ends waits until stderr is read. */
const FLUSH_MS = 1_000;

/** Stderr, opened a second time. The process opens it once and never closes it. */
let pipe: number | undefined;

/**
 * Writes lines to stderr in the background, in their order.
 *
 * INVARIANT: nobody waits for the reader of stderr without a bound. A full pipe is tried again by a timer that does not
 * keep the process; one that was closed takes no more lines.
 */
export class StderrLines {
  readonly #file = nonBlockingStderr();
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #isWriting = false;
  #isBroken = false;
  #onIdle: (() => void) | undefined;

  write(line: string): void {
    const bytes = Buffer.from(line);
    if (this.#isBroken || this.#waitingBytes + bytes.length > MAX_WAITING_BYTES) return;
    this.#waiting.push(bytes);
    this.#waitingBytes += bytes.length;
    if (!this.#isWriting) this.#writeNext();
  }

  /** Fulfils when all lines are written, or when nobody reads them in time. */
  async flush(): Promise<void> {
    if (!this.#isWriting) return;
    const idle = new Promise<void>((resolve) => {
      this.#onIdle = resolve;
    });
    await bounded(idle, FLUSH_MS, nodeTimers, () => undefined);
  }

  #writeNext(): void {
    this.#isWriting = this.#waiting.length > 0;
    if (!this.#isWriting) {
      this.#onIdle?.();
      return;
    }
    const piece = Buffer.concat(this.#waiting);
    this.#waiting = [piece];
    write(this.#file, piece, (error, written) => this.#wrote(piece, error, written));
  }

  #wrote(piece: Buffer, error: NodeJS.ErrnoException | null, written: number): void {
    if (error?.code === "EAGAIN") {
      setTimeout(() => this.#writeNext(), RETRY_MS).unref();
      return;
    }
    if (error !== null) {
      // Nobody reads stderr any more; there is nowhere to say so.
      this.#isBroken = true;
      this.#waiting = [];
    } else {
      this.#waitingBytes -= written;
      const [, ...later] = this.#waiting;
      const rest = piece.subarray(written);
      this.#waiting = rest.length === 0 ? later : [rest, ...later];
    }
    this.#writeNext();
  }
}

/**
 * Stderr opened so that a write to a full pipe fails at once. A blocking write holds a thread, and a process that ends
 * waits for its threads.
 */
function nonBlockingStderr(): number {
  // The getter makes pipes and sockets non-blocking.
  void process.stderr;
  // Starting a process that inherits the pipe makes it blocking again for all who share it. So this process opens it
  // anew.
  try {
    if (fstatSync(STDERR).isFIFO()) {
      pipe ??= openSync(`/proc/self/fd/${STDERR}`, constants.O_WRONLY | constants.O_NONBLOCK);
    }
  } catch {
    // There is no /proc, or nobody reads the pipe.
  }
  return pipe ?? STDERR;
}

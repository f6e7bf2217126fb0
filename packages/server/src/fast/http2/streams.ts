import { Stream } from "./stream.ts";
import { StreamTable } from "./stream-table.ts";

/** Streams that wait for their next use on one connection. */
const MAX_FREE = 32;
/** Own resets that are remembered: as many as may have been open at once. */
const REMEMBERED = 1_024;

/**
 * The streams of one connection.
 *
 * INVARIANT: `slots` is the number of streams that are open, or whose user has not released them. A stream is used again when
 * it is neither. So a peer that resets its streams while their handlers work waits like one that does not (CVE-2023-44487).
 */
export class Streams {
  readonly #open = new StreamTable();
  readonly #free: Stream[] = [];
  /** What comes on these was under way when we reset them. Most connections never have one. */
  #reset: Set<number> | undefined;
  #slots = 0;
  /** The last one that the peer began. */
  last = 0;

  get slots(): number {
    return this.#slots;
  }

  get size(): number {
    return this.#open.size;
  }

  get(id: number): Stream | undefined {
    return this.#open.get(id);
  }

  all(): readonly Stream[] {
    return this.#open.all();
  }

  /** One that may be opened, or is given back. */
  unused(): Stream {
    return this.#free.pop() ?? new Stream();
  }

  giveBack(stream: Stream): void {
    // What waits for its next use keeps nothing of the last one's.
    stream.head.clear();
    if (this.#free.length < MAX_FREE) this.#free.push(stream);
  }

  open(stream: Stream): void {
    this.#slots++;
    this.#open.add(stream);
  }

  /** Answers false when it was closed before. */
  close(stream: Stream): boolean {
    return this.#open.delete(stream.id);
  }

  /** It is closed, and nobody uses it. */
  free(stream: Stream): void {
    this.#slots--;
    this.giveBack(stream);
  }

  /** Answers all that were open. */
  clear(): readonly Stream[] {
    const all = this.#open.all();
    this.#open.clear();
    return all;
  }

  wasReset(id: number): boolean {
    return this.#reset?.has(id) ?? false;
  }

  rememberReset(id: number): void {
    const reset = (this.#reset ??= new Set());
    reset.add(id);
    if (reset.size <= REMEMBERED) return;
    for (const oldest of reset) {
      reset.delete(oldest);
      return;
    }
  }
}

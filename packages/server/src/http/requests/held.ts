/**
 * Bytes that all connections of a door keep of requests that are not answered: headers, whole or not, and bodies. Above it those
 * are refused that keep the most.
 */
export const HELD_OF_ALL: number = 16 * 1_024 * 1_024;
/** What each connection may keep uncounted: the headers of most requests. `limits.connections` bounds that. */
export const USUALLY_HELD = 1_024;
/**
 * So many connections are not asked what comes on them, since each chunk that is looked at makes a call slower by a tenth. Each
 * keeps 16 KiB of headers at most, and bodies are counted all the same.
 */
export const NOT_ASKED = 512;
/** How long the headers of a request may take. */
export const HEADERS_MS = 10_000;
/** Of one request. Each takes memory beside its bytes. */
export const MAX_HEADERS = 100;

/** What all connections of a door keep. */
export interface HeldOfAll {
  bytes: number;
  /** There is more than may be. To be done soon, and not at once: a connection is just being read. */
  readonly makeRoom: () => void;
}

/**
 * What one connection keeps, and with it all of a door. Pure.
 *
 * Node does not tell how much of a chunk belongs to which request. So a connection keeps what came since the chunk in which its
 * oldest request began that is not answered; or the last one, if all are answered, since the next may begin in that chunk too.
 */
export class Held {
  readonly #all: HeldOfAll;
  /** Bytes that came, and where the last chunk of them begins. */
  #came = 0;
  #chunk = 0;
  /** What came before is not kept. */
  #from = 0;
  #bodies = 0;
  #counted = 0;
  #isOver = false;

  constructor(all: HeldOfAll) {
    this.#all = all;
  }

  /** What counts of it. */
  get bytes(): number {
    return this.#counted;
  }

  /** Where the chunk begins that came last, and with it whatever request begins now. */
  get chunk(): number {
    return this.#chunk;
  }

  came(bytes: number): void {
    this.#chunk = this.#came;
    this.#came += bytes;
    this.#count();
  }

  /** Nothing is kept of what came before. */
  forgetBefore(chunk: number): void {
    this.#from = Math.max(this.#from, chunk);
    this.#count();
  }

  /** No request is open, and none can have begun: it would have been refused by now for being slow. */
  rested(): void {
    this.forgetBefore(this.#came);
  }

  /** A body takes so much more, or less. */
  keep(bytes: number): void {
    this.#bodies += bytes;
    this.#count();
  }

  /** Nothing is kept any more, whatever else comes. */
  end(): void {
    this.#isOver = true;
    this.#count();
  }

  #count(): void {
    const kept = Math.max(this.#came - this.#from, this.#bodies) - USUALLY_HELD;
    const counted = this.#isOver ? 0 : Math.max(0, kept);
    const more = counted - this.#counted;
    this.#counted = counted;
    this.#all.bytes += more;
    if (more > 0 && this.#all.bytes > HELD_OF_ALL) this.#all.makeRoom();
  }
}

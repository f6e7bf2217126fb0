/** What a connection may cost. Each limit has its attack beside it. */
export interface ConnectionLimits {
  /** Streams that are open or whose handler still works (rapid reset, CVE-2023-44487: a reset does not free the slot). */
  readonly streams: number;
  /** Bytes of a header list, as RFC 7541 counts them; nothing beyond is made (HPACK bomb, CVE-2016-6581). */
  readonly headerListBytes: number;
  /** Bytes and frames of a header block (CONTINUATION flood, CVE-2024-27316). */
  readonly headerBlockBytes: number;
  readonly headerBlockFrames: number;
  /**
   * Bytes on their way to a peer that does not read, above which nothing more of it is read (CVE-2019-9511 to 9517: pings,
   * settings, resets and answers all go this way).
   */
  readonly queuedBytes: number;
  /**
   * Bytes that are kept for a peer: answers that it does not take (CVE-2019-9517), requests that are not whole. Its further
   * calls are refused.
   */
  readonly heldBytes: number;
  /** What a peer may do without a use, in a burst, and how much of it each second takes away. */
  readonly nuisanceBurst: number;
  readonly nuisancePerSecond: number;
  /** Resets, ours among them (CVE-2025-8671), in a burst, and how much of it each second takes away. */
  readonly resetBurst: number;
  readonly resetPerSecond: number;
}

export const CONNECTION_LIMITS: ConnectionLimits = {
  streams: 1_024,
  headerListBytes: 8 * 1_024,
  headerBlockBytes: 16 * 1_024,
  headerBlockFrames: 8,
  queuedBytes: 1_024 * 1_024,
  heldBytes: 2 * 1_024 * 1_024,
  nuisanceBurst: 10_000,
  nuisancePerSecond: 1_000,
  resetBurst: 10_000,
  resetPerSecond: 1_000,
};

/** Bytes that are kept for all peers of a door. Above it each peer has only a little. */
export const HELD_OF_ALL: number = 12 * 1_024 * 1_024;
export const LITTLE: number = 16 * 1_024;
/** Above so many bytes that are kept for peers, those end that keep the most: each may keep a little, and there may be many. */
export const KEPT_OF_ALL: number = 2 * HELD_OF_ALL;
/** What a stream takes that waits, besides its head and its bytes; and so does each answer that waits. */
export const STREAM_BYTES = 1_024;

/**
 * Bytes of all peers of a door that their connections keep between two calls: parts of frames, header blocks that did not end,
 * HPACK's tables. Above it those end that keep the most of it.
 */
export const BEGUN_OF_ALL: number = 16 * 1_024 * 1_024;
/** What each connection may keep of it uncounted: a small table. `limits.connections` bounds that. */
export const USUALLY_BEGUN: number = 3 * 1_024;
/**
 * So many connections of a door may have whole tables, which some libraries fill with fields that differ in each call; those
 * above are told to have small ones. Both fit, so only what keeps more than it was told ever makes others end.
 */
export const WHOLE_TABLES = 1_024;
export const SMALL_TABLE_BYTES = 1_024;

/** What all connections of a door keep. */
export interface HeldOfAll {
  /** Of what is kept for peers, and of what was read and is on its way through. */
  bytes: number;
  /** What of it is kept for peers. */
  kept: number;
  begun: number;
  /** There is more of what was begun, or kept, than may be. To be done soon, and not at once: a connection is being read. */
  readonly makeRoom: () => void;
}

/** What one connection keeps, and with it all of a door. */
export class Held {
  readonly #all: HeldOfAll;
  readonly #most: number;
  #bytes = 0;
  #begun = 0;

  constructor(all: HeldOfAll, { heldBytes }: Pick<ConnectionLimits, "heldBytes">) {
    this.#all = all;
    this.#most = heldBytes;
  }

  add(bytes: number): void {
    this.#bytes += bytes;
    this.#all.bytes += bytes;
    this.#all.kept += bytes;
    if (bytes > 0 && this.#all.kept > KEPT_OF_ALL) this.#all.makeRoom();
  }

  /**
   * Counts for all, and takes nothing from the connection: what of its bytes was read and waits for its turn, and what the
   * memory of its answers is larger than they are.
   */
  lend(bytes: number): void {
    this.#all.bytes += bytes;
  }

  /** The peer began what it did not end, or ended some of it. It takes nothing from what the connection may keep otherwise. */
  begin(bytes: number): void {
    const before = this.begun;
    this.#begun += bytes;
    this.#all.begun += this.begun - before;
    if (bytes > 0 && this.#all.begun > BEGUN_OF_ALL) this.#all.makeRoom();
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** What counts of what was begun. */
  get begun(): number {
    return Math.max(0, this.#begun - USUALLY_BEGUN);
  }

  /** Whether all connections together keep as much as they may. */
  get isShort(): boolean {
    return this.#all.bytes >= HELD_OF_ALL;
  }

  /** Whether nothing more is to be kept for this connection. */
  get isTooMuch(): boolean {
    return this.#bytes > this.most(this.#most);
  }

  /** What of a limit a connection may use now. */
  most(limit: number): number {
    return this.isShort ? LITTLE : limit;
  }
}

/** A bucket that fills up with what somebody does, and leaks. Time is in milliseconds, by a clock that is never set back. */
export class Leak {
  readonly #burst: number;
  readonly #perMs: number;
  #level = 0;
  #at = 0;

  constructor(burst: number, perSecond: number) {
    this.#burst = burst;
    this.#perMs = perSecond / 1_000;
  }

  /** Whether one more is too many. */
  overflows(now: number): boolean {
    this.#leak(now);
    this.#level++;
    return this.#level > this.#burst;
  }

  /** How many milliseconds it takes until there is less than `level` in it. */
  msUntil(level: number, now: number): number {
    this.#leak(now);
    return Math.max(0, (this.#level - level) / this.#perMs);
  }

  #leak(now: number): void {
    this.#level = Math.max(0, this.#level - (now - this.#at) * this.#perMs);
    this.#at = now;
  }
}

import { CODE, ConnectionError } from "./frames.ts";
import type { ConnectionLimits, Held } from "./limits.ts";

/** What a part takes besides its bytes. */
const PART_BYTES = 192;

type Limits = Pick<ConnectionLimits, "headerBlockBytes" | "headerBlockFrames">;

/**
 * A header block of several frames, as it is put together (RFC 9113, 4.3 and 6.10).
 *
 * It has an end: bytes and frames are counted, since nothing else of the connection is read meanwhile.
 *
 * INVARIANT: its parts are counted in `held` until it is whole or forgotten.
 */
export class HeaderBlock {
  readonly id: number;
  /** The flags of its HEADERS. */
  readonly flags: number;
  readonly #limits: Limits;
  readonly #held: Pick<Held, "begin">;
  readonly #parts: Buffer[] = [];
  #bytes = 0;

  constructor(id: number, flags: number, limits: Limits, held: Pick<Held, "begin">) {
    this.id = id;
    this.flags = flags;
    this.#limits = limits;
    this.#held = held;
  }

  add(bytes: Buffer, from: number, to: number): void {
    // Of its own memory: a part would keep all of Node's pool, which is not counted.
    const part = Buffer.allocUnsafeSlow(to - from);
    bytes.copy(part, 0, from, to);
    this.#parts.push(part);
    this.#bytes += part.length;
    this.#held.begin(part.length + PART_BYTES);
    const { headerBlockBytes, headerBlockFrames } = this.#limits;
    if (this.#bytes > headerBlockBytes || this.#parts.length > headerBlockFrames) {
      throw new ConnectionError(CODE.ENHANCE_YOUR_CALM, "a header block that does not end");
    }
  }

  whole(): Buffer {
    const bytes = Buffer.concat(this.#parts);
    this.forget();
    return bytes;
  }

  /** Keeps nothing any more. */
  forget(): void {
    this.#held.begin(-this.#bytes - this.#parts.length * PART_BYTES);
    this.#parts.length = 0;
    this.#bytes = 0;
  }
}

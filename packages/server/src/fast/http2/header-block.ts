import { CODE, ConnectionError } from "./frames.ts";
import type { ConnectionLimits } from "./limits.ts";

type Limits = Pick<ConnectionLimits, "headerBlockBytes" | "headerBlockFrames">;

/**
 * A header block of several frames, as it is put together (RFC 9113, 4.3 and 6.10).
 *
 * It has an end: bytes and frames are counted, since nothing else of the connection is read meanwhile.
 */
export class HeaderBlock {
  readonly id: number;
  /** The flags of its HEADERS. */
  readonly flags: number;
  readonly #limits: Limits;
  readonly #parts: Buffer[] = [];
  #bytes = 0;

  constructor(id: number, flags: number, limits: Limits) {
    this.id = id;
    this.flags = flags;
    this.#limits = limits;
  }

  add(bytes: Buffer, from: number, to: number): void {
    this.#parts.push(Buffer.from(bytes.subarray(from, to)));
    this.#bytes += to - from;
    const { headerBlockBytes, headerBlockFrames } = this.#limits;
    if (this.#bytes > headerBlockBytes || this.#parts.length > headerBlockFrames) {
      throw new ConnectionError(CODE.ENHANCE_YOUR_CALM, "a header block that does not end");
    }
  }

  whole(): Buffer {
    return Buffer.concat(this.#parts);
  }
}

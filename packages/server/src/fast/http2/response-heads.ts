import {
  type Field,
  indexed,
  kept,
  plain,
  plainSize,
  resized,
  writePlain,
} from "./hpack/encode.ts";
import type { PeerSettings } from "./peer-settings.ts";

const STATUS_200 = indexed(8);
const TYPE = ["content-type", "application/grpc"] as const;
const OK = ["grpc-status", "0"] as const;
/** Where RFC 7541 begins to count what entered the table; the newest is first. */
const NEWEST = 62;

const PLAIN_HEAD = Uint8Array.from([...STATUS_200, ...plain(...TYPE)]);
const PLAIN_END = Uint8Array.from(plain(...OK));
const FIRST_HEAD = Uint8Array.from([...STATUS_200, ...kept(...TYPE)]);
const FIRST_END = Uint8Array.from(kept(...OK));
const HEAD_ALONE = Uint8Array.from([...STATUS_200, ...indexed(NEWEST)]);
const HEAD_BELOW = Uint8Array.from([...STATUS_200, ...indexed(NEWEST + 1)]);
const END_ON_TOP = Uint8Array.from(indexed(NEWEST));
const NO_TABLE = resized(0);
const NOTHING = new Uint8Array();

/**
 * Header blocks of one connection's answers: the two fields that each answer has enter the peer's table with the first one.
 *
 * INVARIANT: what is sent names only what the peer's table has. Nothing else ever enters it, so nothing leaves it, and a peer
 * whose table is smaller than HTTP/2's own is told that none is used (RFC 7541, 4.2) in front of its next block. So each
 * block is to be asked for at the moment in which it is sent: one that waits would come behind blocks that were made later.
 */
export class ResponseHeads {
  readonly #peer: PeerSettings;
  #state: "none" | "head" | "both" | "plain" = "none";

  constructor(peer: PeerSettings) {
    this.#peer = peer;
  }

  /** The head of an answer with messages. */
  head(): Uint8Array {
    if (this.#state === "both" && this.#mayKeep) return HEAD_BELOW;
    if (this.#state === "head" && this.#mayKeep) return HEAD_ALONE;
    if (this.#state === "none" && this.#mayKeep) {
      this.#state = "head";
      return FIRST_HEAD;
    }
    return this.plain(PLAIN_HEAD);
  }

  /** The end of an answer that went well. */
  end(): Uint8Array {
    if (this.#state === "both" && this.#mayKeep) return END_ON_TOP;
    if (this.#state === "head" && this.#mayKeep) {
      this.#state = "both";
      return FIRST_END;
    }
    return this.plain(PLAIN_END);
  }

  /** A block that was made beforehand, and names nothing of the table. It says so first, where the peer's is small. */
  plain(block: Uint8Array): Uint8Array {
    if (!this.#peer.hasSmallTable || this.#state === "plain") return block;
    this.#state = "plain";
    return Uint8Array.from([...NO_TABLE, ...block]);
  }

  get #mayKeep(): boolean {
    return !this.#peer.hasSmallTable;
  }
}

/** The end of an answer that failed; `isWhole`: it is all of the answer. */
export function failure(fields: readonly Field[], isWhole: boolean): Uint8Array {
  const head = isWhole ? PLAIN_HEAD : NOTHING;
  const most = fields.reduce((sum, field) => sum + plainSize(...field), head.length);
  const block = Buffer.allocUnsafe(most);
  block.set(head);
  let at = head.length;
  for (const [name, value] of fields) at = writePlain(block, at, name, value);
  return block.subarray(0, at);
}

/** The head of an answer that is none of gRPC. */
export function otherHead(status: number): Uint8Array {
  return Uint8Array.from([
    ...plain(":status", String(status)),
    ...plain("content-type", "text/plain; charset=utf-8"),
  ]);
}

// Just enough of HTTP/2 for load generators: node:http2 as a client costs as much as the server that is measured.

/** What a client sends first. */
export const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");
/** Bytes before the payload of a frame. */
export const FRAME_HEAD = 9;
/** Types of frames. */
export const TYPE = {
  data: 0,
  headers: 1,
  reset: 3,
  settings: 4,
  ping: 6,
  goAway: 7,
  window: 8,
} as const;
/** Flags of frames. */
export const END_STREAM = 1;
export const END_HEADERS = 4;
export const ACK = 1;

/** A whole frame. */
export function frame(type: number, flags: number, stream: number, payload: Uint8Array): Buffer {
  const bytes = Buffer.alloc(FRAME_HEAD + payload.length);
  bytes.writeUIntBE(payload.length, 0, 3);
  bytes[3] = type;
  bytes[4] = flags;
  bytes.writeUInt32BE(stream, 5);
  bytes.set(payload, FRAME_HEAD);
  return bytes;
}

/** A string as it is, without Huffman's code. */
function text(string: string): Buffer {
  return Buffer.concat([Buffer.from([string.length]), Buffer.from(string, "latin1")]);
}

/** A literal header that both ends add to their tables; `name` is its number in the static table, or a new name. */
function literal(name: number | string, value: string): Buffer {
  return typeof name === "number"
    ? Buffer.concat([Buffer.from([0x40 | name]), text(value)])
    : Buffer.concat([Buffer.from([0x40]), text(name), text(value)]);
}

/**
 * Headers of the first call on a connection. Static table of HPACK: 1 :authority, 3 :method POST, 4 :path, 6 :scheme http,
 * 31 content-type.
 */
export function firstHeaders(address: string, path: string): Buffer {
  return Buffer.concat([
    Buffer.from([0x83, 0x86]),
    literal(4, path),
    literal(1, address),
    literal(31, "application/grpc"),
    literal("te", "trailers"),
  ]);
}

/** Headers of later calls, the same by number: what the first block added, newest first, from 62 on. */
export const LATER_HEADERS = Buffer.from([0x83, 0x86, 0x80 | 65, 0x80 | 64, 0x80 | 63, 0x80 | 62]);

/** A frame that came in. */
type OnFrame = (type: number, flags: number, stream: number, payload: Buffer) => void;

/** Cuts what a server sends into frames, wherever the chunks of it end. */
export class FrameReader {
  readonly #onFrame: OnFrame;
  #rest: Buffer = Buffer.alloc(0);

  constructor(onFrame: OnFrame) {
    this.#onFrame = onFrame;
  }

  read(chunk: Buffer): void {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    let at = 0;
    while (bytes.length - at >= FRAME_HEAD) {
      const end = at + FRAME_HEAD + bytes.readUIntBE(at, 3);
      if (bytes.length < end) break;
      const [type = 0, flags = 0] = [bytes[at + 3], bytes[at + 4]];
      this.#onFrame(type, flags, bytes.readUInt32BE(at + 5), bytes.subarray(at + FRAME_HEAD, end));
      at = end;
    }
    this.#rest = bytes.subarray(at);
  }
}

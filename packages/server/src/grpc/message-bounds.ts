/** Before each message of gRPC: whether it is compressed, and its length. */
const PREFIX_BYTES = 5;

/** Where the messages of one stream end, across its chunks. */
export interface MessageBounds {
  /** Of the present message: bytes of its prefix that came, the length they say so far, and how many came of the rest. */
  prefix: number;
  length: number;
  body: number;
}

/** Whether a chunk is one message exactly, as nearly every chunk is. */
export function isOneMessage(chunk: Buffer): boolean {
  return chunk.length >= PREFIX_BYTES && chunk.readUInt32BE(1) === chunk.length - PREFIX_BYTES;
}

/** Takes the next chunk of the stream. Answers whether a message ended in it. */
export function endsMessage(bounds: MessageBounds, chunk: Buffer): boolean {
  let ends = false;
  for (let at = 0; at < chunk.length;) {
    if (bounds.prefix < PREFIX_BYTES) {
      if (bounds.prefix > 0) bounds.length = bounds.length * 256 + (chunk[at] ?? 0);
      bounds.prefix++;
      at++;
    } else {
      const part = Math.min(bounds.length - bounds.body, chunk.length - at);
      bounds.body += part;
      at += part;
    }
    if (bounds.prefix === PREFIX_BYTES && bounds.body === bounds.length) {
      ends = true;
      bounds.prefix = 0;
      bounds.length = 0;
      bounds.body = 0;
    }
  }
  return ends;
}

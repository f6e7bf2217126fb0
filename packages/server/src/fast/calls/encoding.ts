import { inflateSync, gunzipSync } from "node:zlib";
import { MAX_MESSAGE_BYTES } from "./deframer.ts";
import { FRAMING, type FramingRefusal } from "./framing.ts";

/** The encodings of messages that are read, as `grpc-accept-encoding` names them. Answers are never compressed: they are small. */
export const ACCEPTED = "identity,deflate,gzip";

const KNOWN: ReadonlySet<string> = new Set(["", ...ACCEPTED.split(",")]);

/** Whether messages may come in this encoding; empty: the caller names none. */
export function isKnownEncoding(encoding: string): boolean {
  return KNOWN.has(encoding);
}

/** A message as it was before, or why nobody can tell. */
export function decompress(bytes: Buffer, encoding: string): Buffer | FramingRefusal {
  const options = { maxOutputLength: MAX_MESSAGE_BYTES };
  try {
    if (encoding === "gzip") return gunzipSync(bytes, options);
    if (encoding === "deflate") return inflateSync(bytes, options);
    return FRAMING.noEncoding;
  } catch (thrown) {
    const { code } = thrown as NodeJS.ErrnoException;
    return code === "ERR_BUFFER_TOO_LARGE" ? FRAMING.tooLargeInside : FRAMING.notCompressed;
  }
}

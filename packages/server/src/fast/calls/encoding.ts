import { inflateSync, gunzipSync } from "node:zlib";
import { MAX_MESSAGE_BYTES } from "./deframer.ts";

/** The encodings of messages that are read, as `grpc-accept-encoding` names them. Answers are never compressed: they are small. */
export const ACCEPTED = "identity,deflate,gzip";

const KNOWN: ReadonlySet<string> = new Set(["", ...ACCEPTED.split(",")]);

/** Whether messages may come in this encoding; empty: the caller names none. */
export function isKnownEncoding(encoding: string): boolean {
  return KNOWN.has(encoding);
}

/** A message as it was before. Undefined: it is not what its encoding says, or larger than a message may be. */
export function decompress(bytes: Buffer, encoding: string): Buffer | undefined {
  const options = { maxOutputLength: MAX_MESSAGE_BYTES };
  try {
    if (encoding === "gzip") return gunzipSync(bytes, options);
    if (encoding === "deflate") return inflateSync(bytes, options);
    // The flag says that it is compressed, and the head that nothing is.
    return undefined;
  } catch {
    return undefined;
  }
}

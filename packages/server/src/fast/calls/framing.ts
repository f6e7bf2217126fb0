import { Code } from "@idmint/proto/rpc";
import type { WireStatus } from "../../api/status/wire-status.ts";
import { MAX_MESSAGE_BYTES } from "./deframer.ts";

/** Why a call ends whose messages cannot be told from each other, or not be read. No error: nothing is to be found out. */
export class FramingRefusal {
  /** The same object each time, so that what is sent of it is made once. */
  readonly status: WireStatus;

  constructor(code: Code, message: string) {
    this.status = Object.freeze({ code, message, details: new Uint8Array() });
  }
}

type Fault =
  | "flag"
  | "tooLarge"
  | "tooLargeInside"
  | "notCompressed"
  | "noEncoding"
  | "half"
  | "none"
  | "several";

/**
 * What may be wrong around the messages of a call, with the codes of gRPC's documents on compression and on status codes. It is
 * gRPC that refuses here and not idmint, so there is no reason beside the code.
 */
export const FRAMING: Readonly<Record<Fault, FramingRefusal>> = {
  flag: new FramingRefusal(Code.INTERNAL, "the flag before a message is neither 0 nor 1"),
  tooLarge: new FramingRefusal(
    Code.RESOURCE_EXHAUSTED,
    `a message of more than ${MAX_MESSAGE_BYTES} bytes`,
  ),
  tooLargeInside: new FramingRefusal(
    Code.RESOURCE_EXHAUSTED,
    `a message that decompresses to more than ${MAX_MESSAGE_BYTES} bytes`,
  ),
  notCompressed: new FramingRefusal(
    Code.INTERNAL,
    "a message does not decompress as grpc-encoding says",
  ),
  noEncoding: new FramingRefusal(
    Code.INTERNAL,
    "a message is flagged as compressed, and grpc-encoding does not say how",
  ),
  half: new FramingRefusal(Code.INTERNAL, "the request ends in the middle of a message"),
  none: new FramingRefusal(Code.UNIMPLEMENTED, "no message in a call that takes one"),
  several: new FramingRefusal(Code.UNIMPLEMENTED, "more than one message in a call that takes one"),
};

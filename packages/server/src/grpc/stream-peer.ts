import type { ServerDuplexStream } from "@grpc/grpc-js";
import type { StreamHandler } from "../api/method.ts";
import type { StreamPeer } from "../doors/call-stream.ts";

/** A stream of grpc-js as `CallStream` sees it. */
export function streamPeerOf(
  call: ServerDuplexStream<Buffer, Buffer>,
  { response }: Pick<StreamHandler, "response">,
): StreamPeer {
  return {
    get isPaused() {
      return call.isPaused();
    },
    write: (message) => call.write(bufferOf(response.encode(message))),
    pause: () => void call.pause(),
    resume: () => void call.resume(),
    end: () => void call.end(),
  };
}

/** The same bytes, as the class that grpc-js asks for. */
export function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

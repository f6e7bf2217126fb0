import type { ChannelOptions, Server } from "@grpc/grpc-js";

export const MAX_STREAMS = 1_024;
/**
 * Bounds of one connection. Requests are small: the largest that is valid has some 5 KiB. The size of a message times the
 * streams, and the memory of a session, bound what a hostile connection takes. The age sends callers to new servers now
 * and then, and pings find connections whose other end is gone without a word.
 *
 * Calls past the limit of streams wait in the client, where no server can tell them why. And when the client gives up
 * calls that it has sent, it sends others at once; Node still counts the old ones for a moment, and resets the new ones
 * ("Bandwidth exhausted"). So the limit is far above what waits on one connection in practice.
 */
export const SERVER_OPTIONS: ChannelOptions = {
  "grpc.max_receive_message_length": 16 * 1_024,
  "grpc.max_concurrent_streams": MAX_STREAMS,
  "grpc-node.max_session_memory": 8,
  "grpc.max_connection_age_grace_ms": 30_000,
  "grpc.keepalive_time_ms": 30_000,
  "grpc.keepalive_timeout_ms": 20_000,
  "grpc.enable_channelz": 0,
};
const MAX_METADATA_BYTES = 8 * 1_024;
/** Calls a caller may cancel in a burst, and each second after that, before its connection is taken for an attack. */
const CANCEL_BURST = 10_000;
const CANCEL_RATE = 1_000;
/**
 * Frames of one connection that HTTP/2 turns away, most of them streams past the limit, before it is closed. It takes less
 * to turn them away than to end all streams of a connection that comes back at once.
 */
const MAX_INVALID_FRAMES = 50_000;

/**
 * HTTP/2 bounds that grpc-js has no options for. The field is private, so it is only touched when it is as expected;
 * otherwise Node's own bounds hold (64 KiB of headers, a burst of 1,000 cancels, 100 streams past the limit).
 */
export function boundHttp2(server: Server): void {
  const { commonServerOptions } = server as unknown as {
    commonServerOptions?: { settings?: Record<string, number> } & Record<string, unknown>;
  };
  if (typeof commonServerOptions?.settings !== "object") return;
  commonServerOptions.settings["maxHeaderListSize"] = MAX_METADATA_BYTES;
  commonServerOptions["maxSessionRejectedStreams"] = MAX_INVALID_FRAMES;
  commonServerOptions["maxSessionInvalidFrames"] = MAX_INVALID_FRAMES;
  commonServerOptions["streamResetBurst"] = CANCEL_BURST;
  commonServerOptions["streamResetRate"] = CANCEL_RATE;
}

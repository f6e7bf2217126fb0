import type { ServerHttp2Session } from "node:http2";
import { callerOf } from "../api/caller.ts";
import type { LimitedConnection } from "../doors/stream-limits.ts";

/** A session of node:http2 as `StreamLimits` sees it. To be called before its first stream. */
export function limitedSession(session: ServerHttp2Session): LimitedConnection {
  const { remoteAddress = "?", remotePort = 0 } = session.socket;
  let inFlight = 0;
  session.on("stream", (stream) => {
    inFlight++;
    stream.once("close", () => inFlight--);
  });
  return {
    caller: callerOf(`${remoteAddress}:${remotePort}`),
    get inFlight() {
      return inFlight;
    },
    get isClosed() {
      return session.closed;
    },
    limitStreams: (maxConcurrentStreams) => session.settings({ maxConcurrentStreams }),
  };
}

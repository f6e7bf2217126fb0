import type { ServerHttp2Session } from "node:http2";
import { callerOf } from "../api/caller.ts";
import { openStreams } from "./gc-cures.ts";
import type { LimitedConnection } from "./stream-limits.ts";

/** A session of node:http2 as `StreamLimits` sees it. */
export function limitedSession(session: ServerHttp2Session): LimitedConnection {
  const { remoteAddress = "?", remotePort = 0 } = session.socket;
  return {
    caller: callerOf(`${remoteAddress}:${remotePort}`),
    get inFlight() {
      return openStreams(session);
    },
    get isClosed() {
      return session.closed;
    },
    limitStreams: (maxConcurrentStreams) => session.settings({ maxConcurrentStreams }),
  };
}

import type { ServerHttp2Session } from "node:http2";
import type { Leaver } from "../doors/leave.ts";
import { nodeTimers } from "../timers.ts";

const NO_ERROR = 0;
const MAX_STREAM = 2 ** 31 - 1;
/** What the PING behind GOAWAY carries. */
const PING: Buffer = Buffer.from("idmint-l", "latin1");
/** How long a peer may take to answer it, as on the fast door. */
const LAST_CALL_MS = 5_000;

/**
 * A session of node:http2 that can be told to go. Calls that its peer sends before it has heard of it are still taken: the last
 * stream is named when it has (RFC 9113, 6.8). Calls that stay on it end when grpc-js ends it for its age.
 */
export function leavingSession(session: ServerHttp2Session): Leaver {
  let isTold = false;
  const close = (): void => {
    if (!session.closed && !session.destroyed) session.close();
  };
  return {
    leave: () => {
      if (isTold || session.closed || session.destroyed) return;
      isTold = true;
      session.goaway(NO_ERROR, MAX_STREAM);
      // Answers false where too many PINGs are under way.
      session.ping(PING, close);
      session.once("close", nodeTimers.after(LAST_CALL_MS, close));
    },
  };
}

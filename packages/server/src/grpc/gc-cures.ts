import { connect, createServer, type Http2Session } from "node:http2";
import { duplexPair } from "node:stream";
import { type CureStatus, type FlagCures, flagCures } from "./v8-flags.ts";
import { PendingStreams, StreamRing } from "./stream-ring.ts";

// A gRPC server on Node falls into a state in which a quarter of its young objects survive each collection, and every
// collection takes 10 to 25 ms instead of 1. It has two causes, and both must go: then a server answers a third more
// calls, and its 99th percentile falls to a third or less (`pnpm bench generate-id`). The third cure is for its memory.
//
// 1. V8's allocation-site pretenuring. V8 remembers per place in the code whether the objects made there live long, and
//    makes further ones in the old space where they do. Under load a call's objects outlive one collection now and then,
//    so V8 comes to make all of them in the old space, where they pile up and keep young ones alive.
// 2. The hash tables of node:http2. Each session keeps its streams in a Map and a Set, filled and emptied with every
//    call. V8 makes a new table every few entries and chains the old one to it; once a full collection has moved such a
//    table to the old space, its dead streams stay, and all they refer to. The cure puts a ring in place of them.
// 3. V8 lets the old space grow to several times what lives before it collects it. node:http2 makes a string in it for each
//    value of each call's headers, and each holds memory outside the heap. So a server under full load grew to 630 MB, and
//    then stood still for 0.4 s to free it. With half as much again as what lives it takes 340 MB, and stands still for
//    0.05 s every three seconds.

/** Which cures this process has. */
export interface GcCures extends FlagCures {
  readonly streamRing: CureStatus;
}

let streamRing: CureStatus = "not_applied";

/** Which cures this process has, for the log. */
export function gcCures(): GcCures {
  return { ...flagCures(), streamRing };
}

/** What is replaced of a session's private state. */
interface SessionState {
  streams: Map<number, object> | StreamRing<object>;
  pendingStreams: Set<object> | PendingStreams<object>;
}

/**
 * Puts the ring in place of one server session's Map and Set. To be called from the `session` event, before its first
 * stream. Answers whether it did; false leaves the session as it was: when the fields are not where this code knows
 * them, when they hold something already, or when `verifyStreamRingCure` found that they are used in another way.
 */
export function applyStreamRingCure(session: Http2Session): boolean {
  if (streamRing === "unavailable") return false;
  const state = stateOf(session);
  if (state === undefined) return false;
  state.streams = new StreamRing();
  state.pendingStreams = new PendingStreams();
  return true;
}

/**
 * Tries the ring on a connection in memory: two calls at once, one of them cancelled, then the end of the session. To be
 * awaited before the server listens; takes a few milliseconds. A Node that keeps its streams elsewhere, or uses what
 * they are kept in in ways a ring does not know, gets no ring then (`unavailable`). Never rejects.
 */
export async function verifyStreamRingCure(): Promise<CureStatus> {
  streamRing = "not_applied";
  const isGood = await tryRing().catch(() => false);
  streamRing = isGood ? "active" : "unavailable";
  return streamRing;
}

/** Calls that a session has in flight; 0 where Node keeps them in another place than this code knows. */
export function openStreams(session: Http2Session): number {
  const { streams } = privateStateOf(session);
  const size: unknown =
    typeof streams === "object" && streams !== null && Reflect.get(streams, "size");
  return typeof size === "number" ? size : 0;
}

function privateStateOf(session: Http2Session): Readonly<Record<string, unknown>> {
  const key = Object.getOwnPropertySymbols(session).find(
    ({ description }) => description === "state",
  );
  const state: unknown = key === undefined ? undefined : Reflect.get(session, key);
  return typeof state === "object" && state !== null ? (state as Record<string, unknown>) : {};
}

/** The private state of a session on which the ring may be put. */
function stateOf(session: Http2Session): SessionState | undefined {
  const state: unknown = privateStateOf(session);
  const { streams, pendingStreams } = state as Record<string, unknown>;
  const isKnown =
    isEmptyWith(streams, "get", "set", "delete", "forEach") &&
    isEmptyWith(pendingStreams, "add", "delete", "forEach");
  return isKnown ? (state as SessionState) : undefined;
}

/** Node's own Map and Set here have no prototype in common with anybody's, so they are known by what they can do. */
function isEmptyWith(value: unknown, ...methods: readonly string[]): boolean {
  if (typeof value !== "object" || value === null) return false;
  // Not put there twice.
  if (value instanceof StreamRing || value instanceof PendingStreams) return false;
  const members = value as Record<string, unknown>;
  return members["size"] === 0 && methods.every((name) => typeof members[name] === "function");
}

/** Longest time the self-check may take. Nothing in it waits for a network or a disk. */
const TRY_MS = 2_000;

/** Whether two calls at once, of which one is cancelled, and the end of the session go through a ring as they should. */
async function tryRing(): Promise<boolean> {
  const [near, far] = duplexPair();
  const { promise, resolve, reject } = Promise.withResolvers<boolean>();
  const timer = setTimeout(reject, TRY_MS);
  const server = createServer();
  let wasAnswered = false;
  let heldBoth = false;
  server.once("session", (session) => {
    session.once("error", reject);
    const state = stateOf(session);
    if (!applyStreamRingCure(session)) reject();
    server.on("stream", (stream, headers) => {
      stream.on("error", () => undefined);
      const isLast = headers[":path"] === "/answered";
      if (isLast) heldBoth = state?.streams.size === 2;
      stream.respond({ ":status": 200 }, { endStream: isLast });
    });
    session.once("close", () => {
      resolve(wasAnswered && heldBoth && state?.streams.size === 0);
    });
  });
  server.emit("connection", far);
  const client = connect("http://in-memory", { createConnection: () => near });
  client.once("error", reject);
  const cancelled = client.request({ ":path": "/cancelled" });
  cancelled.on("error", () => undefined);
  cancelled.once("response", () => {
    const answered = client.request({ ":path": "/answered" });
    answered.once("response", (headers) => {
      wasAnswered = headers[":status"] === 200;
      answered.resume();
      cancelled.close();
      client.close();
    });
  });
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    client.destroy();
  }
}

import type { ServerHttp2Session } from "node:http2";
import type { Clock } from "@idmint/core";
import {
  type CallerStreams,
  createStreamLimitsState,
  lookAtStreams,
  type StreamLimitsState,
} from "@idmint/core/server";
import { callerOf } from "../api/caller.ts";
import { openStreams } from "./gc-cures.ts";

/** docs/operations.md explains them. */
const OPTIONS = { heldMost: 128, least: 4, calmMs: 10_000 };

const NOBODY: ReadonlySet<string> = new Set();

interface Connection {
  readonly caller: string;
  limit: number;
}

/** Tells connections how many calls they may have in flight: the shell around core's stream-limits-state.ts. */
export class StreamLimits {
  readonly #clock: Clock;
  readonly #usual: number;
  readonly #state: StreamLimitsState = createStreamLimitsState(OPTIONS);
  readonly #sessions = new Map<ServerHttp2Session, Connection>();

  /** `usual`: what each connection begins with. */
  constructor(clock: Clock, usual: number) {
    this.#clock = clock;
    this.#usual = usual;
  }

  /** A connection is there. */
  add(session: ServerHttp2Session): void {
    const { remoteAddress = "?", remotePort = 0 } = session.socket;
    const caller = callerOf(`${remoteAddress}:${remotePort}`);
    this.#sessions.set(session, { caller, limit: this.#usual });
    session.once("close", () => this.#sessions.delete(session));
  }

  /**
   * To be called about once a second, with the refusals that are held of each caller. Answers the callers whose connections
   * are narrow.
   */
  look(held: ReadonlyMap<string, number>): ReadonlySet<string> {
    if (held.size === 0 && this.#state.narrow.size === 0) return NOBODY;
    const limits = lookAtStreams(this.#state, this.#callers(held), this.#clock.now());
    for (const [session, connection] of this.#sessions) {
      const limit = limits.get(connection.caller) ?? this.#usual;
      if (limit === connection.limit || session.closed) continue;
      connection.limit = limit;
      session.settings({ maxConcurrentStreams: limit });
    }
    return new Set(limits.keys());
  }

  #callers(held: ReadonlyMap<string, number>): ReadonlyMap<string, CallerStreams> {
    const callers = new Map<string, CallerStreams>();
    for (const [session, { caller }] of this.#sessions) {
      const { connections = 0, inFlight = 0 } = callers.get(caller) ?? {};
      callers.set(caller, {
        connections: connections + 1,
        inFlight: inFlight + openStreams(session),
        held: held.get(caller) ?? 0,
      });
    }
    return callers;
  }
}

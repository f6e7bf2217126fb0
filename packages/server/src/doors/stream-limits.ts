import type { Clock, Timers } from "@idmint/core";
import {
  type CallerStreams,
  createStreamLimitsState,
  lookAtStreams,
  type StreamLimitsState,
} from "@idmint/core/server";

/** docs/overload.md explains them. */
const OPTIONS = { heldMost: 128, least: 4, calmMs: 10_000 };
/** How often a connection that is to become narrow is looked at, and how many times. */
const FILL_MS = 5;
const MAX_LOOKS = 50;
/** Share of what a connection may have in flight from which on it may become full. */
const NEARLY_FULL = 0.75;
const NOBODY: ReadonlySet<string> = new Set();

/** A connection, as this file sees it. */
export interface LimitedConnection {
  readonly caller: string;
  /** Calls that are open on it. */
  readonly inFlight: number;
  readonly isClosed: boolean;
  /** Tells its client how many calls it may have in flight. */
  limitStreams(streams: number): void;
}

interface Connection {
  readonly its: LimitedConnection;
  readonly caller: string;
  limit: number;
  /** It was to become narrow and did not become full: its client bounds itself. */
  isBounded: boolean;
}

export interface StreamLimitsPorts {
  readonly clock: Clock;
  readonly timers: Timers;
  /** Answers nothing to these callers, and refuses what comes of them, until it is told others. */
  readonly holdAll: (callers: ReadonlySet<string>) => void;
}

/**
 * Tells connections how many calls they may have in flight: the shell around core's stream-limits-state.ts.
 *
 * INVARIANT: a limit falls only while the connection is full. Then nothing can be on its way that the new limit would refuse:
 * HTTP/2 refuses without a word why (REFUSED_STREAM), and clients call again at once. A connection becomes full as soon as
 * none of its calls is answered any more, if its client has more of them.
 */
export class StreamLimits {
  readonly #ports: StreamLimitsPorts;
  readonly #usual: number;
  readonly #state: StreamLimitsState = createStreamLimitsState(OPTIONS);
  readonly #connections = new Set<Connection>();
  #isFilling = false;

  /** `usual`: what each connection begins with. */
  constructor(ports: StreamLimitsPorts, usual: number) {
    this.#ports = ports;
    this.#usual = usual;
  }

  /** A connection is there. To be told by what is answered when it is gone. */
  add(its: LimitedConnection): () => void {
    const connection = { its, caller: its.caller, limit: this.#usual, isBounded: false };
    this.#connections.add(connection);
    return () => this.#connections.delete(connection);
  }

  /**
   * To be called about once a second, with the refusals that are held of each caller. Answers the callers whose connections
   * are narrow.
   */
  look(held: ReadonlyMap<string, number>): ReadonlySet<string> {
    if (held.size === 0 && this.#state.narrow.size === 0) return NOBODY;
    const limits = lookAtStreams(this.#state, this.#callers(held), this.#ports.clock.now());
    const full = new Map<Connection, number>();
    for (const connection of this.#connections) {
      const limit = limits.get(connection.caller);
      if (limit === undefined) connection.isBounded = false;
      if (limit === undefined || limit > connection.limit)
        setLimit(connection, limit ?? this.#usual);
      else if (mayBecomeFull(connection, limit)) full.set(connection, limit);
    }
    if (full.size > 0 && !this.#isFilling) this.#waitFor(full, MAX_LOOKS);
    const narrow = [...this.#connections].filter(({ limit }) => limit < this.#usual);
    return new Set(narrow.map(({ caller }) => caller));
  }

  #callers(held: ReadonlyMap<string, number>): ReadonlyMap<string, CallerStreams> {
    const callers = new Map<string, CallerStreams>();
    for (const { its, caller } of this.#connections) {
      const { connections = 0, inFlight = 0 } = callers.get(caller) ?? {};
      callers.set(caller, {
        connections: connections + 1,
        inFlight: inFlight + its.inFlight,
        held: held.get(caller) ?? 0,
      });
    }
    return callers;
  }

  /** The invariant: waits until they are full, and tells each its limit then. */
  #fill(waiting: Map<Connection, number>, looks: number): void {
    for (const [connection, limit] of waiting) {
      if (connection.its.isClosed) waiting.delete(connection);
      else if (connection.its.inFlight >= connection.limit) {
        setLimit(connection, limit);
        waiting.delete(connection);
      } else if (looks === 0) connection.isBounded = true;
    }
    if (looks === 0) waiting.clear();
    this.#waitFor(waiting, looks - 1);
  }

  #waitFor(waiting: Map<Connection, number>, looks: number): void {
    this.#isFilling = waiting.size > 0;
    this.#ports.holdAll(new Set([...waiting.keys()].map(({ caller }) => caller)));
    if (this.#isFilling) this.#ports.timers.after(FILL_MS, () => this.#fill(waiting, looks));
  }
}

function mayBecomeFull({ its, limit, isBounded }: Connection, wanted: number): boolean {
  return wanted < limit && !isBounded && its.inFlight >= limit * NEARLY_FULL;
}

function setLimit(connection: Connection, limit: number): void {
  if (limit === connection.limit || connection.its.isClosed) return;
  connection.limit = limit;
  connection.its.limitStreams(limit);
}

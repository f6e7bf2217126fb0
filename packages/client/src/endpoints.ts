import { type Clock, IdmintError, type Random } from "@idmint/core";
import type { AllocateSegmentRequest, AllocateSegmentResponse } from "@idmint/proto";
import type { Transport } from "./channel.ts";
import {
  type EndpointEvent,
  type EndpointsState,
  initialEndpoints,
  nextEndpoints,
  planLoad,
} from "./endpoints-state.ts";
import type { EndpointChange } from "./events.ts";
import { rendezvousOrder } from "./rendezvous.ts";

export interface EndpointsPorts {
  readonly transport: Transport;
  readonly clock: Clock;
  readonly random: Random;
  readonly emit: (event: EndpointChange) => void;
  /** Throws when no request may be sent any more: the client is closed, or in another process. */
  readonly assertUsable: () => void;
}

/** An answer, where it came from, and when its request was sent, on the clock. */
export interface Answered {
  readonly answer: AllocateSegmentResponse;
  readonly endpoint: number;
  readonly sentAtMs: number;
}

/**
 * Runs `endpoints-state.ts`: asks the endpoints of a plan one after the other until one answers. Only UNAVAILABLE moves
 * on; every other error is the answer, whichever server gives it.
 */
export class Endpoints {
  readonly #addresses: readonly string[];
  readonly #ports: EndpointsPorts;
  readonly #rpcDeadlineMs: number;
  #state: EndpointsState;

  constructor(addresses: readonly string[], rpcDeadlineMs: number, ports: EndpointsPorts) {
    this.#addresses = addresses;
    this.#rpcDeadlineMs = rpcDeadlineMs;
    this.#ports = ports;
    this.#state = initialEndpoints(addresses.length);
  }

  /** The order in which a tag prefers the endpoints: constant, so tags compute it once. */
  preference(tag: string): readonly number[] {
    return rendezvousOrder(this.#addresses, tag);
  }

  /**
   * Asks for a segment: each endpoint of one plan at most once. `accept` turns an answer into the result; the retryable
   * error it throws for an answer that cannot be used sends the request on, without a mark against the endpoint.
   */
  async allocate<T>(
    preference: readonly number[],
    request: AllocateSegmentRequest,
    accept: (answered: Answered) => T,
  ): Promise<T> {
    const { transport, clock, assertUsable } = this.#ports;
    const plan = planLoad(this.#state, preference, clock.now());
    if (plan.probe !== undefined) void this.#probe(plan.probe);
    let failure: IdmintError | undefined;
    for (const endpoint of plan.attempts) {
      assertUsable();
      const sentAtMs = clock.now();
      let answer: AllocateSegmentResponse;
      try {
        answer = await transport.allocate(endpoint, request, this.#rpcDeadlineMs);
      } catch (thrown) {
        // A call that `close` cancelled says nothing about its endpoint.
        assertUsable();
        failure = IdmintError.from(thrown);
        this.#noteFailure(endpoint, failure);
        if (!failure.retryable) throw failure;
        continue;
      }
      this.#note({ type: "answered", endpoint });
      try {
        return accept({ answer, endpoint, sentAtMs });
      } catch (thrown) {
        failure = IdmintError.from(thrown);
        if (!failure.retryable) throw failure;
      }
    }
    throw failure ?? new IdmintError("SERVER_UNAVAILABLE", "there is no endpoint to ask");
  }

  #noteFailure(endpoint: number, error: IdmintError): void {
    // Whoever refuses for another reason is there and well.
    if (!error.retryable) {
      if (error.reason !== "CLIENT_CLOSED") this.#note({ type: "answered", endpoint });
      return;
    }
    const nowMs = this.#ports.clock.now();
    const jitter = this.#ports.random();
    const retryAfterMs = error.retryAfterMs ?? 0;
    this.#note({ type: "failed", endpoint, nowMs, jitter, retryAfterMs });
    const coolDownMs = (this.#state[endpoint]?.retryAtMs ?? nowMs) - nowMs;
    const address = this.#addresses[endpoint] ?? "";
    this.#ports.emit({ type: "endpoint-failed", address, error, coolDownMs });
  }

  async #probe(endpoint: number): Promise<void> {
    this.#note({ type: "probeBegan", endpoint });
    const well = await this.#ports.transport.isServing(endpoint, this.#rpcDeadlineMs);
    const nowMs = this.#ports.clock.now();
    this.#note({ type: "probed", endpoint, well, nowMs, jitter: this.#ports.random() });
  }

  #note(event: EndpointEvent): void {
    const before = this.#state[event.endpoint]?.mode;
    this.#state = nextEndpoints(this.#state, event);
    const after = this.#state[event.endpoint]?.mode;
    if (before !== "well" && after === "well") {
      this.#ports.emit({
        type: "endpoint-well",
        address: this.#addresses[event.endpoint] ?? "",
      });
    }
  }
}

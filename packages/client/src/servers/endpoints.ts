import { type Clock, IdmintError, type Random } from "@idmint/core";
import type {
  AllocateSegmentRequest,
  AllocateSegmentResponse,
  GenerateIdsRequest,
  GenerateIdsResponse,
  LeaseWorkerRequest,
  LeaseWorkerResponse,
  ReleaseWorkerLeaseRequest,
  RenewWorkerLeaseRequest,
  RenewWorkerLeaseResponse,
} from "@idmint/proto";
import type { Transport } from "./channel.ts";
import {
  type EndpointEvent,
  type EndpointsState,
  initialEndpoints,
  nextEndpoints,
  planLoad,
} from "./endpoints-state.ts";
import type { EndpointChange } from "../events.ts";
import { rendezvousOrder } from "./rendezvous.ts";

export interface EndpointsPorts {
  readonly transport: Transport;
  readonly clock: Clock;
  readonly random: Random;
  readonly emit: (event: EndpointChange) => void;
  /** Throws when no request may be sent any more: the client is closed, or in another process. */
  readonly assertUsable: () => void;
}

/** For how long servers that were never reached are tried before calls are refused, in milliseconds. */
const FIRST_CONTACT_MS = 1_000;

/** An answer, where it came from, and when its request was sent, on the clock. */
export interface Answered<A> {
  readonly answer: A;
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
  /** When the first try failed; undefined once any server has answered. */
  #unreachableSinceMs: number | undefined = Infinity;

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
   * Whether no server has been reached since this client was made, and they were tried for a while: most likely the
   * address is wrong, which waiting does not cure.
   */
  get isUnreachable(): boolean {
    const sinceMs = this.#unreachableSinceMs ?? Infinity;
    return this.#ports.clock.now() - sinceMs >= FIRST_CONTACT_MS;
  }

  addressOf(endpoint: number): string {
    return this.#addresses[endpoint] ?? "";
  }

  /** Asks for a segment; see `#ask`. */
  allocate<T>(
    preference: readonly number[],
    request: AllocateSegmentRequest,
    accept: (answered: Answered<AllocateSegmentResponse>) => T,
  ): Promise<T> {
    const { transport } = this.#ports;
    const send = (endpoint: number): Promise<AllocateSegmentResponse> =>
      transport.allocate(endpoint, request, this.#rpcDeadlineMs);
    return this.#ask(preference, send, accept);
  }

  /** Asks for ids that nobody holds in memory; see `#ask`. */
  generate<T>(
    preference: readonly number[],
    request: GenerateIdsRequest,
    accept: (answered: Answered<GenerateIdsResponse>) => T,
  ): Promise<T> {
    const { transport } = this.#ports;
    const send = (endpoint: number): Promise<GenerateIdsResponse> =>
      transport.generate(endpoint, request, this.#rpcDeadlineMs);
    return this.#ask(preference, send, accept);
  }

  /** Asks for a worker id; see `#ask`. */
  lease<T>(
    preference: readonly number[],
    request: LeaseWorkerRequest,
    accept: (answered: Answered<LeaseWorkerResponse>) => T,
  ): Promise<T> {
    const { transport } = this.#ports;
    const send = (endpoint: number): Promise<LeaseWorkerResponse> =>
      transport.lease(endpoint, request, this.#rpcDeadlineMs);
    return this.#ask(preference, send, accept);
  }

  /** Keeps a worker id; see `#ask`. No endpoint gets more than `timeoutMs`, since reservations end. */
  renewLease<T>(
    preference: readonly number[],
    request: RenewWorkerLeaseRequest,
    timeoutMs: number,
    accept: (answered: Answered<RenewWorkerLeaseResponse>) => T,
  ): Promise<T> {
    const { transport } = this.#ports;
    const send = (endpoint: number): Promise<RenewWorkerLeaseResponse> =>
      transport.renewLease(endpoint, request, Math.min(timeoutMs, this.#rpcDeadlineMs));
    return this.#ask(preference, send, accept);
  }

  /** Gives a worker id back: one try, also while the client closes. Rejects when it is not known to have arrived. */
  async releaseLease(
    endpoint: number,
    request: ReleaseWorkerLeaseRequest,
    timeoutMs: number,
  ): Promise<void> {
    await this.#ports.transport.releaseLease(endpoint, request, timeoutMs);
  }

  /**
   * Sends one request: to each endpoint of one plan at most once. `accept` turns an answer into the result; the retryable
   * error it throws for an answer that cannot be used sends the request on, without a mark against the endpoint.
   */
  async #ask<A, T>(
    preference: readonly number[],
    send: (endpoint: number) => Promise<A>,
    accept: (answered: Answered<A>) => T,
  ): Promise<T> {
    const { clock, assertUsable } = this.#ports;
    const plan = planLoad(this.#state, preference, clock.now());
    if (plan.probe !== undefined) void this.#probe(plan.probe);
    const failures: IdmintError[] = [];
    for (const endpoint of plan.attempts) {
      assertUsable();
      const sentAtMs = clock.now();
      let answer: A;
      try {
        answer = await send(endpoint);
      } catch (thrown) {
        // A call that `close` cancelled says nothing about its endpoint.
        assertUsable();
        const failure = IdmintError.from(thrown);
        this.#noteContact(failure, sentAtMs);
        if (!isOfEndpoint(failure)) {
          if (failure.reason !== "CLIENT_CLOSED") this.#note({ type: "answered", endpoint });
          throw failure;
        }
        failures.push(failure);
        this.#noteFailure(endpoint, failure);
        continue;
      }
      this.#unreachableSinceMs = undefined;
      this.#note({ type: "answered", endpoint });
      try {
        return accept({ answer, endpoint, sentAtMs });
      } catch (thrown) {
        const failure = IdmintError.from(thrown);
        if (!failure.retryable) throw failure;
        failures.push(failure);
      }
    }
    throw oneOf(failures);
  }

  /** A refusal that a server sent shows that it was reached. */
  #noteContact({ reason }: IdmintError, sentAtMs: number): void {
    if (this.#unreachableSinceMs === undefined) return;
    if (reason !== "SERVER_UNAVAILABLE") this.#unreachableSinceMs = undefined;
    else this.#unreachableSinceMs = Math.min(this.#unreachableSinceMs, sentAtMs);
  }

  #noteFailure(endpoint: number, error: IdmintError): void {
    const nowMs = this.#ports.clock.now();
    const jitter = this.#ports.random();
    const retryAfterMs = error.retryAfterMs ?? 0;
    this.#note({ type: "failed", endpoint, nowMs, jitter, retryAfterMs });
    const coolDownMs = (this.#state[endpoint]?.retryAtMs ?? nowMs) - nowMs;
    const address = this.addressOf(endpoint);
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
        address: this.addressOf(event.endpoint),
      });
    }
  }
}

/**
 * Whether another endpoint may do better. Whoever refuses for a reason that does not pass by itself is there and well; and
 * the maximum of a sequence is the same whichever server is asked.
 */
function isOfEndpoint(error: IdmintError): boolean {
  return error.retryable && error.reason !== "MAX_NOT_RAISED";
}

/** The failures of several endpoints as one error: the last one, which names all that could not be reached. */
function oneOf(failures: readonly IdmintError[]): IdmintError {
  const last = failures.at(-1);
  if (last === undefined) {
    return new IdmintError("SERVER_UNAVAILABLE", "there is no endpoint to ask");
  }
  const { reason } = last;
  if (failures.length === 1 || failures.some((failure) => failure.reason !== reason)) return last;
  const texts = failures.map(({ message }) => message.slice(reason.length + ": ".length));
  const retryAfterMs = last.retryAfterMs ?? 0;
  const text = [...new Set(texts)].join("; ");
  return new IdmintError(reason, text, { metadata: last.metadata, cause: last, retryAfterMs });
}

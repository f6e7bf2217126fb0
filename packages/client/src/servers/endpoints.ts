import { IdmintError, type Timers } from "@idmint/core";
import {
  type AllocateSegmentRequest,
  type AllocateSegmentResponse,
  type GenerateIdsRequest,
  type GenerateIdsResponse,
  type LeaseWorkerRequest,
  type LeaseWorkerResponse,
  type ReleaseWorkerLeaseRequest,
  type RenewWorkerLeaseRequest,
  type RenewWorkerLeaseResponse,
  IdServiceService,
  WorkerServiceService,
} from "@idmint/proto";
import { announced } from "../channels.ts";
import { Fleet, type FleetOptions, type FleetPorts, LOOK_AFTER, type Route } from "./fleet.ts";
import { Gate } from "./gate.ts";
import { earn, fullBudget, type RetryBudget, spend } from "./retry-budget.ts";

export interface EndpointsPorts extends FleetPorts {
  readonly timers: Timers;
  /** Throws when no request may be sent any more: the client is closed, or in another process. */
  readonly assertUsable: () => void;
}

/** For how long servers that were never reached are tried before calls are refused, in milliseconds. */
const FIRST_CONTACT_MS = 1_000;

/** Why the next endpoint is to be asked. */
class Failed {
  readonly why: IdmintError;

  constructor(why: IdmintError) {
    this.why = why;
  }
}

/** An answer, where it came from, and when its request was sent, on the clock. */
export interface Answered<A> {
  readonly answer: A;
  readonly endpoint: string;
  readonly sentAtMs: number;
}

/** What every answer tells about the server that sent it. */
interface Told {
  readonly nodeId: string;
  readonly nodesVersion: number;
}

/**
 * Asks the endpoints that `fleet.ts` plans one after the other until one answers. UNAVAILABLE moves on, and STORE_EPOCH_CHANGED, by
 * which a server tells what it last saw of the store: another one may have heard of an accept before it. Every other error is the
 * answer, whichever server gives it. `fleet.ts` says which servers there are, and which of their answers may be used.
 */
export class Endpoints {
  readonly #ports: EndpointsPorts;
  readonly #fleet: Fleet;
  readonly #rpcDeadlineMs: number;
  readonly #gates = new Map<string, Gate>();
  #budget: RetryBudget;
  /** When the first try failed; undefined once any server has answered. */
  #unreachableSinceMs: number | undefined = Infinity;

  constructor(options: FleetOptions, ports: EndpointsPorts) {
    this.#ports = ports;
    this.#fleet = new Fleet(options, ports);
    this.#rpcDeadlineMs = options.rpcDeadlineMs;
    this.#budget = fullBudget(this.#fleet.size, ports.clock.now());
  }

  /** How a tag goes through the servers; `isShared`: as all clients do, so that their calls share round trips. */
  routeOf(tag: string, isShared = false): Route {
    return isShared ? this.#fleet.sharedRouteOf(tag) : this.#fleet.routeOf(tag);
  }

  /**
   * Whether no server has been reached since this client was made, and they were tried for a while: most likely the
   * address is wrong, which waiting does not cure.
   */
  get isUnreachable(): boolean {
    const sinceMs = this.#unreachableSinceMs ?? Infinity;
    return this.#ports.clock.now() - sinceMs >= FIRST_CONTACT_MS;
  }

  /** Asks for a segment; see `#ask`. */
  allocate<T>(
    route: Route,
    request: AllocateSegmentRequest,
    accept: (answered: Answered<AllocateSegmentResponse>) => T,
  ): Promise<T> {
    const { transport } = this.#ports;
    const send = (endpoint: string): Promise<AllocateSegmentResponse> =>
      announced(
        { method: methodOf(IdServiceService.allocateSegment), tag: request.tag, endpoint },
        (headers) => transport.allocate(endpoint, request, this.#rpcDeadlineMs, headers),
      );
    return this.#ask(route, send, accept);
  }

  /** Asks for ids that nobody holds in memory; see `#ask`. */
  generate<T>(
    route: Route,
    request: GenerateIdsRequest,
    accept: (answered: Answered<GenerateIdsResponse>) => T,
  ): Promise<T> {
    const { transport } = this.#ports;
    const send = (endpoint: string): Promise<GenerateIdsResponse> =>
      announced(
        { method: methodOf(IdServiceService.generateIds), tag: request.tag, endpoint },
        (headers) => transport.generate(endpoint, request, this.#rpcDeadlineMs, headers),
      );
    return this.#ask(route, send, accept, "first");
  }

  /** Asks for a worker id; see `#ask`. */
  lease<T>(
    route: Route,
    request: LeaseWorkerRequest,
    accept: (answered: Answered<LeaseWorkerResponse>) => T,
  ): Promise<T> {
    const { transport } = this.#ports;
    const send = (endpoint: string): Promise<LeaseWorkerResponse> =>
      announced(
        { method: methodOf(WorkerServiceService.leaseWorker), tag: request.tag, endpoint },
        (headers) => transport.lease(endpoint, request, this.#rpcDeadlineMs, headers),
      );
    return this.#ask(route, send, accept);
  }

  /**
   * Keeps a worker id; see `#ask`. No endpoint gets more than `timeoutMs`, and nothing is waited for before, since
   * reservations end.
   */
  renewLease<T>(
    route: Route,
    request: RenewWorkerLeaseRequest,
    timeoutMs: number,
    accept: (answered: Answered<RenewWorkerLeaseResponse>) => T,
  ): Promise<T> {
    const { transport } = this.#ports;
    const send = (endpoint: string): Promise<RenewWorkerLeaseResponse> =>
      announced(
        { method: methodOf(WorkerServiceService.renewWorkerLease), tag: request.tag, endpoint },
        (headers) =>
          transport.renewLease(
            endpoint,
            request,
            Math.min(timeoutMs, this.#rpcDeadlineMs),
            headers,
          ),
      );
    return this.#ask(route, send, accept, "at once");
  }

  /** Gives a worker id back: one try, also while the client closes. Rejects when it is not known to have arrived. */
  async releaseLease(
    endpoint: string,
    request: ReleaseWorkerLeaseRequest,
    timeoutMs: number,
  ): Promise<void> {
    await this.#ports.transport.releaseLease(endpoint, request, timeoutMs);
  }

  /**
   * Sends one request: to at most `MAX_ATTEMPTS` endpoints, each at most once, and to a second one only within the retry budget.
   * Each is chosen when it is asked, by what is known then. `accept` turns an answer into the result; the retryable error it
   * throws for an answer that cannot be used sends the request on, without a mark against the endpoint.
   */
  async #ask<A extends Told, T>(
    route: Route,
    send: (endpoint: string) => Promise<A>,
    accept: (answered: Answered<A>) => T,
    turn: "at once" | "first" | "in turn" = "in turn",
  ): Promise<T> {
    this.#budget = earn(this.#budget, this.#fleet.size, this.#ports.clock.now());
    const rpcDeadlineMs = this.#rpcDeadlineMs;
    const { timers } = this.#ports;
    const failures: IdmintError[] = [];
    const behind = new Map<string, IdmintError>();
    const asked = new Set<string>();
    let tries = 0;
    for (;;) {
      const [endpoint] = this.#fleet.plan(route, asked).attempts;
      if (endpoint === undefined) throw oneOf(failures);
      asked.add(endpoint);
      const gate = this.#gateOf(endpoint);
      const entering = turn === "at once" ? gate.enterAtOnce() : gate.enter(turn === "first");
      // Sent in the turn, and the context, of its caller where nothing has to be waited for.
      const silence = entering === undefined ? undefined : await entering;
      // It was not sent, so it costs no budget.
      if (silence !== undefined) {
        failures.push(silence);
        continue;
      }
      try {
        this.#ports.assertUsable();
        // What others found out while this one waited; each endpoint is left once, so this ends.
        const isLeft = entering !== undefined && !this.#fleet.isWell(endpoint);
        if (isLeft && this.#hasBetter(route, asked)) continue;
        if (tries > 0 && !this.#mayRetry()) throw oneOf(failures);
        tries++;
        const stopLook = timers.after(rpcDeadlineMs * LOOK_AFTER, () =>
          this.#fleet.lookAhead(route, asked),
        );
        const tried = await this.#try(endpoint, gate, send, accept)
          .catch((thrown: unknown) => {
            this.#leave(behind);
            throw thrown;
          })
          .finally(stopLook);
        if (!(tried instanceof Failed)) {
          this.#leave(behind);
          return tried;
        }
        failures.push(tried.why);
        if (isOfView(tried.why)) behind.set(endpoint, tried.why);
      } finally {
        gate.leave();
        if (gate.isIdle) this.#gates.delete(endpoint);
      }
    }
  }

  /** What all servers refuse is the answer. Where another one answers, whatever it says, those that refused are not well. */
  #leave(behind: ReadonlyMap<string, IdmintError>): void {
    for (const [endpoint, refusal] of behind) this.#fleet.failed(endpoint, refusal);
  }

  /** Whether somebody is well among those that were not asked. */
  #hasBetter(route: Route, asked: ReadonlySet<string>): boolean {
    const [next] = this.#fleet.plan(route, asked).attempts;
    return next !== undefined && this.#fleet.isWell(next);
  }

  /** One request to one endpoint. Throws what is the answer, whoever is asked. */
  async #try<A extends Told, T>(
    endpoint: string,
    gate: Gate,
    send: (endpoint: string) => Promise<A>,
    accept: (answered: Answered<A>) => T,
  ): Promise<T | Failed> {
    const { clock, assertUsable } = this.#ports;
    const sentAtMs = clock.now();
    let answer: A;
    try {
      answer = await send(endpoint);
    } catch (thrown) {
      // A call that `close` cancelled says nothing about its endpoint.
      assertUsable();
      const failure = IdmintError.from(thrown);
      this.#pace(gate, failure, sentAtMs);
      return new Failed(await this.#judged(endpoint, failure, sentAtMs));
    }
    this.#unreachableSinceMs = undefined;
    gate.heard(clock.now());
    if (!this.#fleet.isOfStore(endpoint, answer.nodeId)) {
      return new Failed(this.#fleet.foreign(endpoint));
    }
    this.#fleet.answered(endpoint, answer.nodesVersion);
    try {
      return accept({ answer, endpoint, sentAtMs });
    } catch (thrown) {
      const failure = IdmintError.from(thrown);
      if (!failure.retryable) throw failure;
      return new Failed(failure);
    }
  }

  /** What a failure says of how much the endpoint can do. */
  #pace(gate: Gate, failure: IdmintError, sentAtMs: number): void {
    const nowMs = this.#ports.clock.now();
    if (failure.reason === "SERVER_UNAVAILABLE") gate.unanswered(sentAtMs, nowMs, failure);
    else if (failure.reason === "OVERLOADED") gate.overloaded(sentAtMs, nowMs);
    else gate.heard(nowMs);
  }

  #gateOf(endpoint: string): Gate {
    let gate = this.#gates.get(endpoint);
    if (gate === undefined) {
      gate = new Gate();
      this.#gates.set(endpoint, gate);
    }
    return gate;
  }

  /** Why the next endpoint is to be asked. Throws what is the answer, whoever is asked. */
  async #judged(endpoint: string, failure: IdmintError, sentAtMs: number): Promise<IdmintError> {
    this.#noteContact(failure, sentAtMs);
    if (isOfEndpoint(failure)) {
      this.#fleet.failed(endpoint, failure);
      return failure;
    }
    if (failure.reason === "CLIENT_CLOSED") throw failure;
    // Nothing is given up for the refusal of a busy server, and it is not asked even more.
    const isBusy = failure.code === "RESOURCE_EXHAUSTED";
    if (!isBusy && this.#fleet.isLearned(endpoint)) {
      const found = await this.#fleet.identify(endpoint);
      this.#ports.assertUsable();
      if (found === undefined) {
        const text = `${endpoint} refused a request and does not say who it is: ${failure.message}`;
        const silent = new IdmintError("SERVER_UNAVAILABLE", text, { cause: failure });
        this.#fleet.failed(endpoint, silent);
        return silent;
      }
      if (!found.isOfStore) return this.#fleet.foreign(endpoint);
    }
    this.#fleet.refused(endpoint);
    if (isOfView(failure)) return failure;
    throw failure;
  }

  #mayRetry(): boolean {
    const budget = spend(this.#budget);
    if (budget === undefined) return false;
    this.#budget = budget;
    return true;
  }

  /** A refusal that a server sent shows that it was reached. */
  #noteContact({ reason }: IdmintError, sentAtMs: number): void {
    if (this.#unreachableSinceMs === undefined) return;
    if (reason !== "SERVER_UNAVAILABLE") this.#unreachableSinceMs = undefined;
    else this.#unreachableSinceMs = Math.min(this.#unreachableSinceMs, sentAtMs);
  }
}

/**
 * Whether another endpoint may do better. Whoever refuses for a reason that does not pass by itself is there and well; and
 * the maximum of a sequence is the same whichever server is asked.
 */
function isOfEndpoint(error: IdmintError): boolean {
  return error.retryable && error.reason !== "MAX_NOT_RAISED";
}

/** Whether a server refuses by what it last saw of the store. */
function isOfView({ reason }: IdmintError): boolean {
  return reason === "STORE_EPOCH_CHANGED";
}

function methodOf({ path }: { readonly path: string }): string {
  return path.slice(1);
}

/**
 * The failures of several endpoints as one error: that the store went back, where a server says so; else the last one, which names all
 * that could not be reached.
 */
function oneOf(failures: readonly IdmintError[]): IdmintError {
  const last = failures.find(isOfView) ?? failures.at(-1);
  if (last === undefined) {
    return new IdmintError("SERVER_UNAVAILABLE", "there is no endpoint to ask");
  }
  const { reason } = last;
  if (
    failures.length === 1 ||
    isOfView(last) ||
    failures.some((failure) => failure.reason !== reason)
  )
    return last;
  const texts = failures.map(({ message }) => message.slice(reason.length + ": ".length));
  const retryAfterMs = last.retryAfterMs ?? 0;
  const text = [...new Set(texts)].join("; ");
  return new IdmintError(reason, text, { metadata: last.metadata, cause: last, retryAfterMs });
}

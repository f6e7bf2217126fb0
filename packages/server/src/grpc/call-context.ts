import type { EventEmitter } from "node:events";
import type { ServerDuplexStream, ServerUnaryCall } from "@grpc/grpc-js";
import type { Clock } from "@idmint/core";
import type { Principal } from "@idmint/core/server";
import { callerOf } from "../api/caller.ts";
import type { CallContext } from "../service/call.ts";

type AnyCall = ServerUnaryCall<unknown, unknown> | ServerDuplexStream<unknown, unknown>;

/** How long a call without a deadline may take, and each request of a stream at most. */
const DEFAULT_DEADLINE_MS = 10_000;

/**
 * A grpc-js call as the services see it. Warm calls read none of this, so nothing is made before it is read.
 */
export class GrpcCallContext implements CallContext {
  readonly #call: AnyCall;
  readonly #clock: Clock;
  #deadline: number | undefined;
  #controller: AbortController | undefined;
  #caller: string | undefined;

  constructor(call: AnyCall, clock: Clock) {
    this.#call = call;
    this.#clock = clock;
  }

  get deadline(): number {
    if (this.#deadline === undefined) {
      const at = this.#call.getDeadline();
      const leftMs = at === Infinity ? DEFAULT_DEADLINE_MS : Number(at) - Date.now();
      this.#deadline = this.#clock.now() + leftMs;
    }
    return this.#deadline;
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      const controller = new AbortController();
      this.#controller = controller;
      if (this.#call.cancelled) controller.abort();
      else (this.#call as EventEmitter).on("cancelled", () => controller.abort());
    }
    return this.#controller.signal;
  }

  get peer(): string {
    return this.#call.getPeer();
  }

  get caller(): string {
    this.#caller ??= callerOf(this.peer);
    return this.#caller;
  }

  get principal(): Principal | undefined {
    return undefined;
  }
}

/** A stream as the services see it: its requests have the time of a call of their own, within that of the stream. */
export class GrpcStreamContext extends GrpcCallContext {
  readonly #clock: Clock;
  readonly #endsAt: number;

  constructor(call: AnyCall, clock: Clock) {
    super(call, clock);
    this.#clock = clock;
    const at = call.getDeadline();
    this.#endsAt = at === Infinity ? Infinity : clock.now() + Number(at) - Date.now();
  }

  override get deadline(): number {
    return Math.min(this.#endsAt, this.#clock.now() + DEFAULT_DEADLINE_MS);
  }
}

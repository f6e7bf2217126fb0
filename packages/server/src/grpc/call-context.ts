import type { ServerUnaryCall } from "@grpc/grpc-js";
import type { Clock } from "@idmint/core";
import type { CallContext } from "../service/call.ts";

/** How long a call without a deadline may take. */
const DEFAULT_DEADLINE_MS = 10_000;

/**
 * A grpc-js call as the services see it. Warm calls read none of this, so nothing is made before it is read.
 */
export class GrpcCallContext implements CallContext {
  readonly #call: ServerUnaryCall<unknown, unknown>;
  readonly #clock: Clock;
  #deadline: number | undefined;
  #controller: AbortController | undefined;

  constructor(call: ServerUnaryCall<unknown, unknown>, clock: Clock) {
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
      else this.#call.on("cancelled", () => controller.abort());
    }
    return this.#controller.signal;
  }

  get peer(): string {
    return this.#call.getPeer();
  }
}

import type { EventEmitter } from "node:events";
import type { ServerDuplexStream, ServerUnaryCall } from "@grpc/grpc-js";
import type { Clock } from "@idmint/core";
import type { Principal } from "@idmint/core/server";
import { callerOf, DEFAULT_DEADLINE_MS } from "../api/caller.ts";
import type { Access, Shown } from "../service/access/access.ts";
import type { CallContext } from "../service/call.ts";
import type { CertificateNames } from "./certificate-names.ts";

type AnyCall = ServerUnaryCall<unknown, unknown> | ServerDuplexStream<unknown, unknown>;

/** Tells who calls. */
export interface Callers {
  readonly access: Pick<Access, "assertKnown" | "identify">;
  readonly certificates: CertificateNames;
}

/**
 * A grpc-js call as the services see it. Warm calls read none of this, so nothing is made before it is read.
 */
export class GrpcCallContext implements CallContext, Shown {
  readonly #call: AnyCall;
  readonly #clock: Clock;
  readonly #callers: Callers;
  #deadline: number | undefined;
  #controller: AbortController | undefined;
  #caller: string | undefined;

  constructor(call: AnyCall, clock: Clock, callers: Callers) {
    this.#call = call;
    this.#clock = clock;
    this.#callers = callers;
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

  /** Anew each time: who has a stream may lose the right to it. */
  get principal(): Principal | undefined {
    return this.#callers.access.identify(this);
  }

  authorization(): string | undefined {
    // Of two there is an empty one (sessions.ts).
    const [value] = this.#call.metadata.get("authorization");
    return value === undefined ? undefined : String(value);
  }

  certificateNames(): readonly string[] {
    return this.#callers.certificates.of(this.#call);
  }
}

/** A stream as the services see it: its requests have the time of a call of their own, within that of the stream. */
export class GrpcStreamContext extends GrpcCallContext {
  readonly #clock: Clock;
  readonly #endsAt: number;

  constructor(call: AnyCall, clock: Clock, callers: Callers) {
    super(call, clock, callers);
    this.#clock = clock;
    const at = call.getDeadline();
    this.#endsAt = at === Infinity ? Infinity : clock.now() + Number(at) - Date.now();
  }

  override get deadline(): number {
    return Math.min(this.#endsAt, this.#clock.now() + DEFAULT_DEADLINE_MS);
  }
}

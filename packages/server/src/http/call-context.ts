import type { Clock } from "@idmint/core";
import type { Principal } from "@idmint/core/server";
import { callerOf } from "../api/caller.ts";
import type { Access, Shown } from "../service/access/access.ts";
import type { CallContext } from "../service/call.ts";
import type { HttpRequest } from "./route.ts";

/** How long a call may take that does not say it. */
const DEFAULT_TIMEOUT_MS = 10_000;

export interface ContextPorts {
  readonly clock: Clock;
  readonly access: Pick<Access, "identify">;
}

/** A call over HTTP as the services see it. Whoever shows their token elsewhere than in a header overrides `authorization`. */
export class HttpCallContext implements CallContext, Shown {
  readonly deadline: number;
  readonly #request: HttpRequest;
  readonly #access: ContextPorts["access"];
  #controller: AbortController | undefined;
  #caller: string | undefined;
  #isGone = false;

  constructor(
    request: HttpRequest,
    { clock, access }: ContextPorts,
    timeoutMs: number = DEFAULT_TIMEOUT_MS,
  ) {
    this.#request = request;
    this.#access = access;
    this.deadline = clock.now() + timeoutMs;
    request.onGone(() => this.abort());
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#isGone) this.#controller.abort();
    }
    return this.#controller.signal;
  }

  get peer(): string {
    return this.#request.peer;
  }

  get caller(): string {
    this.#caller ??= callerOf(this.peer);
    return this.#caller;
  }

  get principal(): Principal | undefined {
    return this.#access.identify(this);
  }

  authorization(): string | undefined {
    return this.#request.headers.authorization;
  }

  certificateNames(): readonly string[] {
    return this.#request.certificateNames();
  }

  /** Nobody waits any more. */
  abort(): void {
    this.#isGone = true;
    this.#controller?.abort();
  }
}

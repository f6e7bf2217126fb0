import type { Clock } from "@idmint/core";
import { callerOf, DEFAULT_DEADLINE_MS, DoorCall } from "../api/caller.ts";
import type { Access } from "../service/access/access.ts";
import type { HttpRequest } from "./route.ts";

export interface ContextPorts {
  readonly clock: Clock;
  readonly access: Pick<Access, "identify">;
}

/** A call over HTTP as the services see it. Whoever shows their token elsewhere than in a header overrides `authorization`. */
export class HttpCallContext extends DoorCall {
  readonly deadline: number;
  readonly #request: HttpRequest;
  #caller: string | undefined;

  constructor(
    request: HttpRequest,
    { clock, access }: ContextPorts,
    timeoutMs: number = DEFAULT_DEADLINE_MS,
  ) {
    super(access);
    this.#request = request;
    this.deadline = clock.now() + timeoutMs;
    request.onGone(() => this.abort());
  }

  get peer(): string {
    return this.#request.peer;
  }

  get caller(): string {
    this.#caller ??= callerOf(this.peer);
    return this.#caller;
  }

  authorization(): string | undefined {
    return this.#request.headers.authorization;
  }

  certificateNames(): readonly string[] {
    return this.#request.certificateNames();
  }
}

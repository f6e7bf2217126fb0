import type { Clock } from "@idmint/core";
import type { Principal } from "@idmint/core/server";
import { callerOf } from "../../api/caller.ts";
import type { Access, Shown } from "../../service/access/access.ts";
import type { CallContext } from "../../service/call.ts";
import { namesNow, type ShownNames } from "../../tls/names.ts";
import { timeoutOf } from "./grpc.ts";
import type { Head } from "../http2/head.ts";

/** How long a call without a deadline may take. */
const DEFAULT_DEADLINE_MS = 10_000;

/** The peer of a connection, as its calls see it. */
export interface Peer {
  readonly address: string;
  /** Who the peer is to admission; looked up once. */
  readonly caller: string;
  /** What its certificate says. */
  readonly shown: ShownNames;
}

export function peerOf(address: string, shown: ShownNames): Peer {
  return { address, caller: callerOf(address), shown };
}

interface ContextPorts {
  readonly clock: Clock;
  readonly access: Pick<Access, "identify">;
}

/** A call as the services see it. Warm calls read none of this. */
export class FastCallContext implements CallContext, Shown {
  readonly #peer: Peer;
  readonly #access: ContextPorts["access"];
  readonly #authorization: string | undefined;
  readonly #timeoutMs: number;
  readonly #beganAt: number;
  #controller: AbortController | undefined;
  #isGone = false;

  constructor(peer: Peer, { clock, access }: ContextPorts, { authorization, timeout }: Head) {
    this.#peer = peer;
    this.#access = access;
    this.#authorization = authorization;
    this.#timeoutMs = timeoutOf(timeout) ?? DEFAULT_DEADLINE_MS;
    this.#beganAt = clock.now();
  }

  get deadline(): number {
    return this.#beganAt + this.#timeoutMs;
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#isGone) this.#controller.abort();
    }
    return this.#controller.signal;
  }

  get peer(): string {
    return this.#peer.address;
  }

  get caller(): string {
    return this.#peer.caller;
  }

  get principal(): Principal | undefined {
    return this.#access.identify(this);
  }

  authorization(): string | undefined {
    return this.#authorization;
  }

  certificateNames(): readonly string[] {
    return namesNow(this.#peer.shown);
  }

  /** Nobody waits for the answer any more. */
  abort(): void {
    this.#isGone = true;
    this.#controller?.abort();
  }
}

/** A stream as the services see it: its requests have the time of a call of their own, within that of the stream. */
export class FastStreamContext extends FastCallContext {
  readonly #clock: Clock;
  /** Infinity: its caller set no deadline. */
  readonly endsAt: number;

  constructor(peer: Peer, ports: ContextPorts, head: Head) {
    super(peer, ports, head);
    this.#clock = ports.clock;
    this.endsAt = head.timeout === "" ? Infinity : super.deadline;
  }

  override get deadline(): number {
    return Math.min(this.endsAt, this.#clock.now() + DEFAULT_DEADLINE_MS);
  }
}

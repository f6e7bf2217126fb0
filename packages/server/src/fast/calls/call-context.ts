import type { Clock } from "@idmint/core";
import { callerOf, DEFAULT_DEADLINE_MS, DoorCall } from "../../api/caller.ts";
import type { Access } from "../../service/access/access.ts";
import { namesNow, type ShownNames } from "../../tls/names.ts";
import { timeoutOf } from "./grpc.ts";
import type { Head } from "../http2/head.ts";

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
  readonly access: Pick<Access, "identify">;
}

/** A call as the services see it. Warm calls read none of this. */
export class FastCallContext extends DoorCall {
  readonly #peer: Peer;
  readonly #authorization: string | undefined;
  readonly #timeout: string;
  readonly #beganAt: number;

  /** `beganAt`: since when its caller waits. */
  constructor(
    peer: Peer,
    { access }: ContextPorts,
    { authorization, timeout }: Head,
    beganAt: number,
  ) {
    super(access);
    this.#peer = peer;
    this.#authorization = authorization;
    this.#timeout = timeout;
    this.#beganAt = beganAt;
  }

  get deadline(): number {
    return this.#beganAt + (timeoutOf(this.#timeout) ?? DEFAULT_DEADLINE_MS);
  }

  get peer(): string {
    return this.#peer.address;
  }

  get caller(): string {
    return this.#peer.caller;
  }

  authorization(): string | undefined {
    return this.#authorization;
  }

  certificateNames(): readonly string[] {
    return namesNow(this.#peer.shown);
  }
}

/** A stream as the services see it: its requests have the time of a call of their own, within that of the stream. */
export class FastStreamContext extends FastCallContext {
  readonly #clock: Clock;
  /** Infinity: its caller set no deadline. */
  readonly endsAt: number;

  constructor(peer: Peer, ports: ContextPorts & { readonly clock: Clock }, head: Head) {
    super(peer, ports, head, ports.clock.now());
    this.#clock = ports.clock;
    this.endsAt = head.timeout === "" ? Infinity : super.deadline;
  }

  override get deadline(): number {
    return Math.min(this.endsAt, this.#clock.now() + DEFAULT_DEADLINE_MS);
  }
}

import type { Principal } from "@idmint/core/server";
import type { Access, Shown } from "../service/access/access.ts";
import type { CallContext } from "../service/call.ts";

/** How long a call without a deadline may take, and each request of a stream at most. */
export const DEFAULT_DEADLINE_MS = 10_000;

/** A call through a door that hears when its caller goes away. Nothing is made before somebody reads it. */
export abstract class DoorCall implements CallContext, Shown {
  abstract readonly deadline: number;
  abstract readonly peer: string;
  abstract readonly caller: string;
  readonly #access: Pick<Access, "identify">;
  #controller: AbortController | undefined;
  #isGone = false;

  constructor(access: Pick<Access, "identify">) {
    this.#access = access;
  }

  abstract authorization(): string | undefined;
  abstract certificateNames(): readonly string[];

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#isGone) this.#controller.abort();
    }
    return this.#controller.signal;
  }

  /** Anew each time: who has a stream may lose the right to it. */
  get principal(): Principal | undefined {
    return this.#access.identify(this);
  }

  /** Nobody waits for the answer any more. */
  abort(): void {
    this.#isGone = true;
    this.#controller?.abort();
  }
}

const V4_IN_V6 = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i;
/** Groups of an IPv6 address that tell one network from another; a host may take any address in its network. */
const NETWORK_GROUPS = 4;
const GROUPS = 8;

/**
 * Who a caller is, by the address of its connection: `192.0.2.1:4711` is `192.0.2.1`, and of IPv6 it is the network of 64
 * bits.
 */
export function callerOf(peer: string): string {
  const colon = peer.lastIndexOf(":");
  const isV4 = peer.indexOf(":") === colon;
  if (isV4) return colon < 0 ? peer : peer.slice(0, colon);
  // An IPv6 address comes with its port behind it, and without brackets.
  const address = peer.slice(0, colon);
  const [, mapped] = V4_IN_V6.exec(address) ?? [];
  if (mapped !== undefined) return mapped;
  const [before = "", after = ""] = (address.split("%")[0] ?? "").split("::");
  const head = before === "" ? [] : before.split(":");
  const tail = after === "" ? [] : after.split(":");
  const zeros = Math.max(0, GROUPS - head.length - tail.length);
  const groups = [...head, ...Array<string>(zeros).fill("0"), ...tail].slice(0, NETWORK_GROUPS);
  return `${groups.join(":")}::/64`;
}

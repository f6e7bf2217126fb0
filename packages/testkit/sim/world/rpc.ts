import type { GrpcFailure } from "../../../client/src/servers/errors.ts";
import type { WireStatus } from "../../../server/src/api/status/wire-status.ts";
import type { Network } from "./network.ts";
import type { World } from "./world.ts";

/** Codes of gRPC that a caller or a connection makes by itself. */
export const CANCELLED = 1;
const DEADLINE_EXCEEDED = 4;
export const UNAVAILABLE = 14;

export type Reply = { readonly bytes: Uint8Array } | { readonly status: WireStatus };

/** A request as a server gets it. */
export interface Incoming {
  readonly path: string;
  readonly bytes: Uint8Array;
  readonly timeoutMs: number;
  readonly peer: string;
  readonly authorization: string | undefined;
  readonly onAbort: (abort: () => void) => void;
}

/** What listens at an address. */
export interface Listener {
  readonly world: World;
  /** Never rejects. */
  answer(request: Incoming): Promise<Reply>;
  /** Calls `broken` when its process ends; the answer takes that back. */
  whenBroken(broken: () => void): () => void;
  /** A caller opens a stream; what it sends comes to the answer. */
  open(stream: IncomingStream): StreamEnd;
}

/** A stream as a server gets it, and how it answers. */
export interface IncomingStream {
  readonly path: string;
  readonly peer: string;
  readonly authorization: string | undefined;
  send(bytes: Uint8Array): void;
  /** Undefined: it ended well. */
  end(status: WireStatus | undefined): void;
}

/** One end of a stream. */
export interface StreamEnd {
  send(bytes: Uint8Array): void;
  /** Sends nothing more. */
  end(): void;
  /** Gives it up. */
  cancel(): void;
}

export interface Outgoing {
  readonly to: string;
  readonly path: string;
  readonly bytes: Uint8Array;
  readonly timeoutMs: number;
  /** What proves the caller. */
  readonly authorization?: string | undefined;
  /** Takes what gives the call up; the answer takes that back. */
  readonly onStart?: ((cancel: () => void) => () => void) | undefined;
}

/** An address that leads some callers to another listener than the others. */
export interface Diversion {
  readonly address: string;
  readonly listener: Listener;
  readonly misleads: (caller: World) => boolean;
}

/** A failed call as grpc-js tells it. */
export class RpcFailure extends Error implements GrpcFailure {
  readonly code: number;
  readonly details: string;
  readonly metadata: GrpcFailure["metadata"];

  constructor(code: number, details: string, detailBytes?: Uint8Array) {
    super(details);
    this.code = code;
    this.details = details;
    const found = detailBytes === undefined ? [] : [detailBytes];
    this.metadata = { get: (key) => (key === "grpc-status-details-bin" ? found : []) };
  }
}

/**
 * Unary calls of nodes to addresses, as gRPC carries them: one try each. A caller hears an answer, or that the connection broke, or
 * nothing until its deadline; a request that was sent may have been carried out in each of these cases, and a proxy on the way may
 * send it twice.
 */
export class Rpc {
  /** How often a method was answered, by its path. */
  readonly answered = new Map<string, number>();
  readonly #network: Network;
  readonly #listeners = new Map<string, Listener>();
  readonly #diversions = new Set<Diversion>();

  constructor(network: Network) {
    this.#network = network;
  }

  /** What a caller reaches at an address. */
  at(address: string, from?: World): Listener | undefined {
    for (const diverted of this.#diversions) {
      if (diverted.address !== address || from === undefined) continue;
      if (diverted.misleads(from)) return diverted.listener;
    }
    return this.#listeners.get(address);
  }

  divert(diversion: Diversion): () => void {
    this.#diversions.add(diversion);
    return () => void this.#diversions.delete(diversion);
  }

  /** A call of this method, or a request of a stream, got its answer. */
  count(path: string): void {
    this.answered.set(path, (this.answered.get(path) ?? 0) + 1);
  }

  listen(address: string, listener: Listener): () => void {
    this.#listeners.set(address, listener);
    return () => {
      if (this.#listeners.get(address) === listener) this.#listeners.delete(address);
    };
  }

  /** Rejects with RpcFailure. */
  call(from: World, outgoing: Outgoing): Promise<Uint8Array> {
    const { to, path, bytes, timeoutMs, authorization, onStart } = outgoing;
    const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>();
    const network = this.#network;
    let isOver = false;
    const ends: (() => void)[] = [];
    const end = (): boolean => {
      if (isOver) return false;
      isOver = true;
      for (const one of ends) one();
      return true;
    };
    const settle = (run: () => void): void => from.deliver(() => void (end() && run()));
    const fail = (code: number, details: string): void =>
      settle(() => reject(new RpcFailure(code, details)));
    const listener = this.at(to, from);
    const place = listener?.world.place ?? to;
    const broken = (): void =>
      network.carry(place, from.place, () => fail(UNAVAILABLE, "the connection broke"));
    const aborts: (() => void)[] = [];
    const abort = (): void => aborts.forEach((run) => run());
    const giveUp = (code: number, details: string): void => {
      if (!end()) return;
      reject(new RpcFailure(code, details));
      if (listener !== undefined) network.send(from, place, () => listener.world.deliver(abort));
    };
    ends.push(from.after(timeoutMs, () => giveUp(DEADLINE_EXCEEDED, "no answer in time")));
    const forget = onStart?.(() => giveUp(CANCELLED, "given up"));
    if (forget !== undefined) ends.push(forget);
    const request = (): Incoming => ({
      path,
      bytes,
      timeoutMs,
      peer: `${from.name}:1`,
      authorization,
      onAbort: (run) => void aborts.push(run),
    });
    const answerFrom = async (incoming: Incoming): Promise<void> => {
      const reply = await listener?.answer(incoming);
      if (listener === undefined || reply === undefined) return;
      network.send(listener.world, from.place, () =>
        settle(() => {
          if ("bytes" in reply) this.count(path);
          settleBy(reply, resolve, reject);
        }),
      );
    };
    const arrive = (): void => {
      if (listener === undefined || this.at(to, from) !== listener) {
        network.carry(place, from.place, () => fail(UNAVAILABLE, "connection refused"));
        return;
      }
      ends.push(listener.whenBroken(broken));
      listener.world.deliver(() => void answerFrom(request()));
    };
    network.request(from, place, arrive);
    return promise;
  }
}

export function failed({ code, message, details }: WireStatus): RpcFailure {
  return new RpcFailure(code, message, details);
}

function settleBy(
  reply: Reply,
  resolve: (bytes: Uint8Array) => void,
  reject: (error: RpcFailure) => void,
): void {
  if ("bytes" in reply) resolve(reply.bytes);
  else reject(failed(reply.status));
}

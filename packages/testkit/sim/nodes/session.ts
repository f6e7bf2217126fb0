import type { IdmintError } from "@idmint/core";
import { GenerateIdsResponse, StreamIdsRequest, StreamIdsResponse } from "@idmint/proto";
import { Status } from "@idmint/proto/rpc";
import { failureOf } from "../../../client/src/servers/errors.ts";
import type { Checker } from "../check/checker.ts";
import type { Network } from "../world/network.ts";
import { type Rpc, RpcFailure, type StreamEnd, UNAVAILABLE } from "../world/rpc.ts";
import { openStream } from "../world/stream.ts";
import type { World } from "../world/world.ts";

const PATH = "/idmint.v1.IdService/StreamIds";

interface Waiting {
  readonly resolve: (answer: GenerateIdsResponse) => void;
  readonly reject: (error: Error) => void;
}

export interface SessionPorts {
  readonly checker: Pick<Checker, "violate">;
  readonly rpc: Rpc;
  readonly network: Network;
}

/** A stream of requests of one caller without an SDK to one server. A request without an answer ends it, and all that waits. */
export class Session {
  readonly #ports: SessionPorts;
  readonly #world: World;
  readonly #to: string;
  readonly #stream: StreamEnd;
  readonly #waiting = new Map<number, Waiting>();
  #calls = 0;
  #lastTag = "";
  #over: IdmintError | undefined;

  constructor(ports: SessionPorts, world: World, to: string, authorization?: string) {
    this.#ports = ports;
    this.#world = world;
    this.#to = to;
    this.#stream = openStream(
      ports,
      world,
      { to, path: PATH, authorization },
      {
        hear: (bytes) => this.#hear(StreamIdsResponse.decode(bytes)),
        over: (failure) =>
          this.#end(failure ?? new RpcFailure(UNAVAILABLE, "the server ended the stream")),
      },
    );
  }

  get isOver(): boolean {
    return this.#over !== undefined;
  }

  /** Asks for ids; `isTagLeft`: leaves out the tag where it is that of the request before. */
  ask(
    tag: string,
    count: number,
    timeoutMs: number,
    isTagLeft: boolean,
  ): Promise<GenerateIdsResponse> {
    if (this.#over !== undefined) return Promise.reject(this.#over);
    const call = ++this.#calls;
    const named = isTagLeft && tag === this.#lastTag ? "" : tag;
    this.#lastTag = tag;
    const { promise, resolve, reject } = Promise.withResolvers<GenerateIdsResponse>();
    this.#waiting.set(call, { resolve, reject });
    const cancel = this.#world.after(timeoutMs, () => this.#stream.cancel());
    const request = StreamIdsRequest.fromPartial({ call, tag: named, count });
    this.#stream.send(StreamIdsRequest.encode(request).finish());
    return promise.finally(cancel);
  }

  /** Asks for nothing more. */
  end(): void {
    this.#stream.end();
  }

  #hear({ call, result }: StreamIdsResponse): void {
    const waiting = this.#waiting.get(call);
    if (waiting === undefined || result === undefined) {
      this.#ports.checker.violate(
        `${this.#to} answered request ${call} of a stream, which nobody waits for`,
      );
      this.#stream.cancel();
      return;
    }
    this.#waiting.delete(call);
    if (result.$case === "error") {
      const { code, message } = result.value;
      const failure = new RpcFailure(code, message, Status.encode(result.value).finish());
      waiting.reject(failureOf(this.#to, 0, failure));
      return;
    }
    this.#ports.rpc.count(PATH);
    if (result.$case === "many") waiting.resolve(result.value);
    else {
      const { id, text, period } = result.value;
      const texts = text === "" ? [] : [text];
      waiting.resolve(GenerateIdsResponse.fromPartial({ ids: [id], texts, period }));
    }
  }

  #end(failure: RpcFailure): void {
    this.#over = failureOf(this.#to, 0, failure);
    for (const { reject } of this.#waiting.values()) reject(this.#over);
    this.#waiting.clear();
  }
}

import type { Network } from "./network.ts";
import {
  CANCELLED,
  failed,
  type Outgoing,
  type Rpc,
  RpcFailure,
  type StreamEnd,
  UNAVAILABLE,
} from "./rpc.ts";
import type { World } from "./world.ts";

/** What the caller of a stream hears. */
export interface StreamEars {
  readonly hear: (bytes: Uint8Array) => void;
  readonly over: (failure: RpcFailure | undefined) => void;
}

/**
 * A stream of messages each way, as gRPC carries it: what is sent arrives in order or not at all, and a connection that breaks ends
 * it. `hear` gets what the server sends; `over` is called once, with what it was ended by.
 */
export function openStream(
  { network, rpc }: { readonly network: Network; readonly rpc: Rpc },
  from: World,
  { to, path, authorization }: Pick<Outgoing, "to" | "path" | "authorization">,
  { hear, over }: StreamEars,
): StreamEnd {
  const listener = rpc.at(to, from);
  const place = listener?.world.place ?? to;
  const there = network.line(from, place);
  let far: StreamEnd | undefined;
  let isOver = false;
  let forget: (() => void) | undefined;
  const ended = (failure: RpcFailure | undefined): void => {
    if (isOver) return;
    isOver = true;
    forget?.();
    over(failure);
  };
  const broken = (what: string): void =>
    network.carry(place, from.place, () =>
      from.deliver(() => ended(new RpcFailure(UNAVAILABLE, what))),
    );
  there(() => {
    if (listener === undefined || rpc.at(to, from) !== listener)
      return broken("connection refused");
    forget = listener.whenBroken(() => broken("the connection broke"));
    const back = network.line(listener.world, from.place);
    listener.world.deliver(() => {
      far = listener.open({
        path,
        peer: `${from.name}:2`,
        authorization,
        send: (bytes) => back(() => from.deliver(() => void (isOver || hear(bytes)))),
        end: (status) =>
          back(() => from.deliver(() => ended(status === undefined ? undefined : failed(status)))),
      });
    });
  });
  const toServer = (run: (end: StreamEnd) => void): void =>
    there(() => listener?.world.deliver(() => void (far !== undefined && run(far))));
  return {
    send: (bytes) => toServer((end) => end.send(bytes)),
    end: () => toServer((end) => end.end()),
    cancel: () => {
      if (isOver) return;
      toServer((end) => end.cancel());
      ended(new RpcFailure(CANCELLED, "given up"));
    },
  };
}

import { Metadata, type ServiceError, status } from "@grpc/grpc-js";
import type { Clock } from "@idmint/core";
import type { ListFiguresResponse, NodeFigures } from "@idmint/proto";
import { NodeServiceClient } from "@idmint/proto/grpc-js";
import type {
  Asking,
  FiguresRequest,
  PeerAnswer,
  PeerFigures,
  Silence,
} from "../../service/figures/fleet.ts";
import { peerCredentials, type PeerTlsFiles } from "./credentials.ts";

export interface PeerFiguresPorts {
  readonly clock: Clock;
  readonly wallClock: () => number;
  /** Whether nobody on the way to an address can read a token, or the operator does not mind. */
  readonly isSafe: (address: string) => boolean;
}

/** A connection is used for so long, since certificates are renewed. */
const MAX_AGE_MS = 60_000;
/** Without a call it is closed after this time. */
const IDLE_MS = 10_000;
/** The processes of a server, each with all that it keeps, in numbers of the largest size. */
const MAX_ANSWER_BYTES = 8 * 1_024 * 1_024;

interface Peer {
  readonly client: NodeServiceClient;
  readonly madeAt: number;
  calls: number;
}

/**
 * Asks servers for their figures by NodeService.ListFigures. Callers that ask every second share a connection to each server.
 *
 * INVARIANT: a call carries what its own caller showed and nothing of anybody else, and no token crosses a network in plain
 * text.
 */
export class GrpcPeerFigures implements PeerFigures<NodeFigures> {
  readonly #tls: PeerTlsFiles | undefined;
  readonly #ports: PeerFiguresPorts;
  readonly #peers = new Map<string, Peer>();

  /** `tls`: files of a server that has TLS; undefined: others are asked without. */
  constructor(tls: PeerTlsFiles | undefined, ports: PeerFiguresPorts) {
    this.#tls = tls;
    this.#ports = ports;
  }

  async ask(
    address: string,
    request: FiguresRequest,
    asking: Asking,
  ): Promise<PeerAnswer<NodeFigures>> {
    const { clock, wallClock, isSafe } = this.#ports;
    if (asking.authorization !== undefined && !isSafe(address)) {
      return noAnswer("this server has no TLS and shows no token over a network (tls.cert_file)");
    }
    let peer: Peer;
    try {
      peer = await this.#take(address);
    } catch {
      return noAnswer("this server cannot read its own TLS files");
    }
    const sentAt = clock.now();
    const outcome = await listFigures(peer.client, request, asking);
    const wayMillis = clock.now() - sentAt;
    const isAnswer = "nodes" in outcome;
    this.#leave(address, peer, isAnswer || isOfServer(outcome));
    if (!isAnswer) return { type: "silent", silence: silenceOf(outcome, asking) };
    const middle = wallClock() - wayMillis / 2;
    const nodes = outcome.nodes.map((node) => {
      const aheadMillis = (node.time?.getTime() ?? middle) - middle;
      return { ...node, aheadMillis, wayMillis };
    });
    return { type: "told", nodes };
  }

  /** Closes all connections. */
  async close(): Promise<void> {
    for (const { client } of this.#peers.values()) client.close();
    this.#peers.clear();
  }

  async #take(address: string): Promise<Peer> {
    const now = this.#ports.clock.now();
    for (const [known, peer] of this.#peers) {
      if (now - peer.madeAt < MAX_AGE_MS) continue;
      this.#peers.delete(known);
      if (peer.calls === 0) peer.client.close();
    }
    const known = this.#peers.get(address);
    if (known !== undefined) return taken(known);
    const channel = await peerCredentials(this.#tls);
    // Another call may have made one meanwhile.
    const made = this.#peers.get(address);
    if (made !== undefined) return taken(made);
    const client = new NodeServiceClient(address, channel, {
      "grpc.use_local_subchannel_pool": 1,
      "grpc.enable_retries": 0,
      // A proxy that the environment names would read the tokens that go to this machine.
      "grpc.enable_http_proxy": 0,
      "grpc.client_idle_timeout_ms": IDLE_MS,
      "grpc.max_receive_message_length": MAX_ANSWER_BYTES,
    });
    const peer = { client, madeAt: now, calls: 0 };
    this.#peers.set(address, peer);
    return taken(peer);
  }

  /**
   * One that could not be reached is not used again: it would wait before it tries to connect. Nor is one that did not
   * answer: it leads to one process, and that server may have others.
   */
  #leave(address: string, peer: Peer, isGood: boolean): void {
    peer.calls--;
    if (!isGood && this.#peers.get(address) === peer) this.#peers.delete(address);
    if (peer.calls === 0 && this.#peers.get(address) !== peer) peer.client.close();
  }
}

function taken(peer: Peer): Peer {
  peer.calls++;
  return peer;
}

function listFigures(
  client: NodeServiceClient,
  { tag, seconds }: FiguresRequest,
  { authorization, timeoutMs, signal }: Asking,
): Promise<ListFiguresResponse | ServiceError> {
  return new Promise((resolve) => {
    const metadata = new Metadata();
    if (authorization !== undefined) metadata.set("authorization", authorization);
    const deadline = Date.now() + Math.max(1, timeoutMs);
    const request = { tag, seconds, thisServer: true };
    const call = client.listFigures(request, metadata, { deadline }, (error, answer) => {
      signal.removeEventListener("abort", cancel);
      resolve(error ?? answer);
    });
    const cancel = (): void => call.cancel();
    if (signal.aborted) cancel();
    else signal.addEventListener("abort", cancel, { once: true });
  });
}

/** Whether the server itself said so. */
function isOfServer({ code }: ServiceError): boolean {
  return code !== status.UNAVAILABLE && code !== status.DEADLINE_EXCEEDED;
}

function silenceOf({ code, details }: ServiceError, { timeoutMs }: Asking): Silence {
  if (code === status.UNAUTHENTICATED || code === status.PERMISSION_DENIED) {
    return { reason: "REFUSED", detail: details };
  }
  if (code === status.UNIMPLEMENTED) {
    return { reason: "OLDER_VERSION", detail: "its version does not tell figures" };
  }
  const isLate = code === status.DEADLINE_EXCEEDED;
  return noAnswer(isLate ? `it did not answer within ${Math.round(timeoutMs)} ms` : details)
    .silence;
}

function noAnswer(detail: string): { readonly type: "silent"; readonly silence: Silence } {
  return { type: "silent", silence: { reason: "NO_ANSWER", detail } };
}

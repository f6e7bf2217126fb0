import { type ChannelCredentials, Metadata } from "@grpc/grpc-js";
import type { Clock } from "@idmint/core";
import type { PeerSighting } from "@idmint/core/server";
import type { GetNodeTimeResponse } from "@idmint/proto";
import { NodeServiceClient } from "@idmint/proto/grpc-js";
import type { PeerClocks } from "../../service/worker-ids/clock-watch.ts";
import { peerCredentials, type PeerTlsFiles } from "./credentials.ts";

/** Peers that are asked at a time; of more, others the next time. */
const MAX_ASKED = 8;
/** A peer that takes longer is passed over. */
const TIMEOUT_MS = 1_000;

export interface PeerClocksOptions {
  /** host:port of each. */
  readonly peers: readonly string[];
  /** Further ones, as they are known now. */
  readonly known: () => readonly string[];
  /** Files of a server that has TLS; undefined: peers are asked without. */
  readonly tls: PeerTlsFiles | undefined;
  /** Of this server, whose own answer says nothing. */
  readonly nodeId: string;
}

/** Asks peers for their clocks by NodeService.GetNodeTime: each on a connection of its own, closed after the answer. */
export class GrpcPeerClocks implements PeerClocks {
  readonly #options: PeerClocksOptions;
  readonly #clock: Clock;
  #turn = 0;

  constructor(options: PeerClocksOptions, clock: Clock) {
    this.#options = options;
    this.#clock = clock;
  }

  async ask(): Promise<readonly PeerSighting[]> {
    const { tls, known } = this.#options;
    const peers = [...new Set([...this.#options.peers, ...known()])];
    const from = peers.length === 0 ? 0 : this.#turn % peers.length;
    this.#turn = (from + MAX_ASKED) % Math.max(1, peers.length);
    const turn = [...peers.slice(from), ...peers.slice(0, from)].slice(0, MAX_ASKED);
    let channel: ChannelCredentials;
    try {
      channel = await peerCredentials(tls);
    } catch {
      // Files that are being renewed: next time.
      return [];
    }
    const sightings = await Promise.all(turn.map((peer) => this.#askOne(peer, channel)));
    return sightings.filter((sighting) => sighting !== undefined);
  }

  /** Undefined when it does not answer in time, or is this server. */
  async #askOne(peer: string, channel: ChannelCredentials): Promise<PeerSighting | undefined> {
    const client = new NodeServiceClient(peer, channel, {
      "grpc.use_local_subchannel_pool": 1,
      "grpc.enable_retries": 0,
      // A proxy that the environment names would be asked for the clocks of servers on this machine.
      "grpc.enable_http_proxy": 0,
    });
    const start = this.#clock.now();
    // The connection is made first: it would count as half of the way otherwise.
    await ready(client, TIMEOUT_MS);
    const sentAt = this.#clock.now();
    const answer = await timeOf(client, TIMEOUT_MS - (sentAt - start));
    const cameAt = this.#clock.now();
    client.close();
    if (answer?.time === undefined || answer.nodeId === this.#options.nodeId) return undefined;
    return { peer, timeMs: answer.time.getTime(), at: (sentAt + cameAt) / 2 };
  }
}

function ready(client: NodeServiceClient, timeoutMs: number): Promise<void> {
  return new Promise((resolve) => {
    client.waitForReady(deadlineIn(timeoutMs), () => resolve());
  });
}

function timeOf(
  client: NodeServiceClient,
  timeoutMs: number,
): Promise<GetNodeTimeResponse | undefined> {
  return new Promise((resolve) => {
    const options = { deadline: deadlineIn(timeoutMs) };
    client.getNodeTime({}, new Metadata(), options, (error, answer) => {
      resolve(error === null ? answer : undefined);
    });
  });
}

function deadlineIn(ms: number): number {
  return Date.now() + Math.max(1, ms);
}

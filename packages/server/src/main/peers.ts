import type { NodeFigures } from "@idmint/proto";
import type { Config } from "../config/table.ts";
import { isLoopback } from "../config/types.ts";
import type { PeerTlsFiles } from "../grpc/peers/credentials.ts";
import type { Emit } from "../service/events.ts";
import type { PeerAnswer, PeerFigures } from "../service/figures/fleet.ts";
import type { ClockParts } from "../service/worker-ids/clocks.ts";
import { hostOf } from "./address.ts";
import { tlsOf } from "./doors/grpc.ts";
import { realSystem } from "./system.ts";

/**
 * Asks other servers. What asks them is loaded when there is one: it speaks through grpc-js, which takes 24 MB, and a server
 * that is alone on its store needs none of it.
 */
export class Peers implements PeerFigures<NodeFigures> {
  readonly #config: Config;
  readonly #emit: Emit;
  #figures: Promise<PeerFigures<NodeFigures> & { close(): Promise<void> }> | undefined;

  constructor(config: Config, emit: Emit) {
    this.#config = config;
    this.#emit = emit;
  }

  readonly clocks: ClockParts["peerClocks"] = (nodeId, known) => {
    const { nodePeers: peers } = this.#config;
    const open = async () => {
      const { GrpcPeerClocks } = await import("../grpc/peers/clocks.ts");
      return new GrpcPeerClocks({ peers, known, tls: this.#tls, nodeId }, realSystem.clock);
    };
    let opened: ReturnType<typeof open> | undefined;
    const ask = async () => {
      if (peers.length === 0 && known().length === 0) return [];
      try {
        return await (await (opened ??= open())).ask();
      } catch (cause) {
        this.#fail(cause);
        return [];
      }
    };
    return { ask };
  };

  /** Asks a server for its figures. */
  async ask(
    ...asked: Parameters<PeerFigures<NodeFigures>["ask"]>
  ): Promise<PeerAnswer<NodeFigures>> {
    try {
      return await (await (this.#figures ??= this.#openFigures())).ask(...asked);
    } catch (cause) {
      this.#fail(cause);
      const detail = "this server cannot ask others, says its log";
      return { type: "silent", silence: { reason: "NO_ANSWER", detail } };
    }
  }

  async close(): Promise<void> {
    const figures = await this.#figures?.catch(() => undefined);
    await figures?.close();
  }

  async #openFigures() {
    const tls = this.#tls;
    const isSafe = (address: string): boolean =>
      tls !== undefined || this.#config.insecure || isLoopback({ host: hostOf(address), port: 0 });
    const { GrpcPeerFigures } = await import("../grpc/peers/figures.ts");
    return new GrpcPeerFigures(tls, { ...realSystem, isSafe });
  }

  /** The files with which this server speaks to others; undefined: it has no TLS. */
  get #tls(): PeerTlsFiles | undefined {
    const own = tlsOf(this.#config);
    return own === undefined ? undefined : { ...own, caFile: this.#config.tlsPeerCaFile };
  }

  #fail(cause: unknown): void {
    this.#emit({ type: "internal-error", where: "asking other servers", cause });
  }
}

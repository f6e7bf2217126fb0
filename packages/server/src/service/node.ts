import type { Counters } from "./counters.ts";
import type { Directory } from "./directory.ts";

export type NodeStateName = "SERVING" | "DRAINING" | "DEGRADED";

export interface NodeStatus {
  readonly nodeId: string;
  readonly version: string;
  readonly state: NodeStateName;
  readonly startedAtMs: number;
  readonly backend: string;
  /** Where the store is, to be shown to people. */
  readonly place: string;
  readonly schemaVersion: number;
  readonly reachable: boolean;
  readonly fenced: string;
  readonly bufferedTags: number;
  readonly issuedIds: number;
  readonly wastedIds: number;
}

export interface NodePorts {
  readonly nodeId: string;
  readonly version: string;
  readonly startedAtMs: number;
  readonly wallClock: () => number;
  readonly store: { readonly backend: string; readonly schemaVersion: number };
  readonly place: string;
  readonly poll: { readonly reachable: boolean; readonly fenced: string };
  /** Whether this server refuses what callers ask of it for its clock, and whether it can make ids without the store. */
  readonly clocks: {
    readonly watch: { readonly isOut: boolean };
    readonly keeper: { readonly hasTime: boolean } | undefined;
  };
  readonly directory: Directory;
  readonly counters: Counters;
}

/** Answers about this one server. */
export class NodeService {
  readonly #ports: NodePorts;
  #draining = false;

  constructor(ports: NodePorts) {
    this.#ports = ports;
  }

  /** From now on new calls are refused. */
  startDraining(): void {
    this.#draining = true;
  }

  get draining(): boolean {
    return this.#draining;
  }

  /**
   * Whether callers should be sent here: the store answers, or ids are in memory or can be made of time that is reserved,
   * the clock is not refused, and the server is not draining.
   */
  get ready(): boolean {
    const { poll, directory, clocks } = this.#ports;
    if (this.#draining || clocks.watch.isOut) return false;
    if (poll.fenced === "" && clocks.keeper?.hasTime === true) return true;
    return (poll.reachable && poll.fenced === "") || directory.holdsIds;
  }

  status(): NodeStatus {
    const { nodeId, version, startedAtMs, store, place, poll, directory, counters } = this.#ports;
    return {
      nodeId,
      version,
      state: this.#state(),
      startedAtMs,
      backend: store.backend,
      place,
      schemaVersion: store.schemaVersion,
      reachable: poll.reachable,
      fenced: poll.fenced,
      bufferedTags: directory.bufferedTags,
      issuedIds: counters.issuedIds,
      wastedIds: counters.wastedIds,
    };
  }

  /** Random name of this process. */
  get id(): string {
    return this.#ports.nodeId;
  }

  /** This server's wall clock, milliseconds since 1970. */
  time(): number {
    return this.#ports.wallClock();
  }

  #state(): NodeStateName {
    if (this.#draining) return "DRAINING";
    const { poll, clocks } = this.#ports;
    return poll.reachable && poll.fenced === "" && !clocks.watch.isOut ? "SERVING" : "DEGRADED";
  }
}

import type { Counters } from "./counters.ts";
import type { Directory } from "./directory.ts";

export type NodeStateName = "SERVING" | "DRAINING" | "DEGRADED";

export interface NodeStatus {
  readonly nodeId: string;
  readonly version: string;
  readonly state: NodeStateName;
  readonly startedAtMs: number;
  readonly backend: string;
  readonly schemaVersion: number;
  readonly reachable: boolean;
  readonly fenced: string;
  readonly bufferedTags: number;
  readonly issuedIds: number;
  readonly wastedIds: number;
  readonly gcCures: GcCures;
}

/** Whether each cure of slow garbage collections is at work in this process. */
export interface GcCures {
  readonly pretenuring: boolean;
  readonly streamRing: boolean;
}

export interface NodePorts {
  readonly nodeId: string;
  readonly version: string;
  readonly startedAtMs: number;
  readonly wallClock: () => number;
  readonly store: { readonly backend: string; readonly schemaVersion: number };
  readonly poll: { readonly reachable: boolean; readonly fenced: string };
  readonly directory: Directory;
  readonly counters: Counters;
  readonly gcCures: () => GcCures;
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

  /** Whether callers should be sent here: the store answers, or ids are in memory, and the server is not draining. */
  get ready(): boolean {
    if (this.#draining) return false;
    const { poll, directory } = this.#ports;
    return (poll.reachable && poll.fenced === "") || directory.holdsIds;
  }

  status(): NodeStatus {
    const { nodeId, version, startedAtMs, store, poll, directory, counters } = this.#ports;
    return {
      nodeId,
      version,
      state: this.#state(),
      startedAtMs,
      backend: store.backend,
      schemaVersion: store.schemaVersion,
      reachable: poll.reachable,
      fenced: poll.fenced,
      bufferedTags: directory.bufferedTags,
      issuedIds: counters.issuedIds,
      wastedIds: counters.wastedIds,
      gcCures: this.#ports.gcCures(),
    };
  }

  /** This server's wall clock, milliseconds since 1970. */
  time(): number {
    return this.#ports.wallClock();
  }

  #state(): NodeStateName {
    if (this.#draining) return "DRAINING";
    const { poll } = this.#ports;
    return poll.reachable && poll.fenced === "" ? "SERVING" : "DEGRADED";
  }
}

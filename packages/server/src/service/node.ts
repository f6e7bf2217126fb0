import { assertNoViolations, type Clock, IdmintError, invalidField } from "@idmint/core";
import {
  type ChangeOptions,
  isForeign,
  isRefusal,
  type IssuingState,
  stoppedSince,
} from "@idmint/core/server";
import type { Counters } from "./counters.ts";
import type { Drain } from "./drain.ts";
import type { NodeWatch, SeenNode } from "./node-watch.ts";
import { decodePageToken, encodePageToken, pageLimitOf, pageSizeViolation } from "./page-token.ts";
import type { Presence } from "./presence.ts";

type NodeStateName = "SERVING" | "DRAINING" | "DEGRADED" | "STOPPED";

export interface NodeStatus {
  readonly nodeId: string;
  readonly version: string;
  readonly state: NodeStateName;
  /** Why it is not SERVING, for people; empty when it is. */
  readonly stateReason: string;
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
  readonly ticketDatabases: readonly TicketHealth[];
  /** Since when all servers are stopped, by the store's clock, milliseconds since 1970; undefined: they issue. */
  readonly stoppedAtMs: number | undefined;
}

export interface NodeHealth {
  readonly ready: boolean;
  readonly state: NodeStateName;
  readonly reason?: string;
}

/** A ticket database; `error`: why no ids are taken from it. */
export interface TicketHealth {
  readonly name: string;
  readonly error: IdmintError | undefined;
}

interface TagsInUse {
  readonly holdsIds: boolean;
  readonly bufferedTags: number;
  /** Tags that are refused, since the store went back for them. */
  readonly fencedTags: number;
  fencedNames(limit: number): readonly string[];
}

export interface NodePorts {
  readonly nodeId: string;
  readonly version: string;
  readonly startedAtMs: number;
  readonly wallClock: () => number;
  readonly store: { readonly backend: string; readonly schemaVersion: number };
  readonly place: string;
  readonly poll: {
    readonly reachable: boolean;
    readonly lost: IdmintError | undefined;
    readonly fenced: string;
    readonly refusesWrites: string;
    readonly issuing: IssuingState;
  };
  /** Whether this server refuses what callers ask of it for its clock, and whether it can make ids without the store. */
  readonly clocks: {
    readonly watch: { readonly isOut: boolean };
    readonly keeper: { readonly hasTime: boolean; readonly isStale: boolean } | undefined;
  };
  readonly redis: { refusals(): readonly string[] };
  /** The tags this server works with. */
  readonly directory: TagsInUse;
  readonly presence: Pick<Presence, "info" | "isCutOff" | "isUnproved" | "silentParts">;
  readonly drain: Pick<Drain, "leaving" | "reason">;
  readonly nodes: Pick<NodeWatch, "nodes" | "version" | "forget">;
  readonly admission: { readonly isLasting: boolean };
  /** Whether there is anybody whom this server could let in. */
  readonly access: { readonly knowsCallers: boolean; readonly unread: IdmintError | undefined };
  readonly clock: Clock;
  readonly counters: Counters;
  readonly ticketDatabases: () => readonly TicketHealth[];
}

/** A server on the store. */
export interface ListedNode extends Pick<SeenNode, "row" | "isAlive" | "traffic"> {
  /** By this server's wall clock: when the row was last seen to move. */
  readonly seenAtMs: number;
}

export interface NodePage {
  readonly nodes: readonly ListedNode[];
  readonly nodesVersion: number;
  readonly nextPageToken: string;
}

const NODE_LIST: readonly string[] = ["nodes"];

/** Answers about this one server, and what it knows of the others. */
export class NodeService {
  readonly #ports: NodePorts;

  constructor(ports: NodePorts) {
    this.#ports = ports;
  }

  /**
   * Whether callers should be sent here: the store answers, or ids are in memory or can be made of time that is reserved,
   * somebody may be let in, the clock is not refused, and the server is not draining and has not been overloaded for long. One that an operator
   * stopped is ready: its refusals say what is the matter, and with no server ready callers would be told of an outage
   * instead.
   */
  get ready(): boolean {
    const { poll, directory, clocks, presence, drain, admission, access } = this.#ports;
    if (drain.leaving !== undefined || clocks.watch.isOut || presence.isCutOff) return false;
    if (admission.isLasting || !access.knowsCallers) return false;
    if (poll.fenced === "" && clocks.keeper?.hasTime === true) return true;
    return (poll.reachable && poll.fenced === "") || directory.holdsIds;
  }

  /** What probes show. `reason`: why no callers should be sent here, where an operator wants that. */
  get health(): NodeHealth {
    const { reason } = this.#ports.drain;
    const { state } = this.#state();
    return { ready: this.ready, state, ...(reason === "" ? {} : { reason }) };
  }

  status(): NodeStatus {
    const { nodeId, version, startedAtMs, store, place, poll, directory, counters } = this.#ports;
    return {
      nodeId,
      version,
      ...this.#state(),
      startedAtMs,
      backend: store.backend,
      place,
      schemaVersion: store.schemaVersion,
      reachable: poll.reachable,
      fenced: poll.fenced,
      bufferedTags: directory.bufferedTags,
      issuedIds: counters.issuedIds,
      wastedIds: counters.wastedIds,
      ticketDatabases: this.#ports.ticketDatabases(),
      stoppedAtMs: stoppedSince(poll.issuing),
    };
  }

  /** Checksum of the list of servers; 0: there is none yet. */
  get nodesVersion(): number {
    return this.#ports.nodes.version;
  }

  /** The servers on the store, by id; from this server's memory. */
  list(query: { readonly pageSize: number; readonly pageToken: string }): NodePage {
    const { pageSize, pageToken } = query;
    const after = decodePageToken(pageToken, NODE_LIST);
    assertNoViolations(
      pageSizeViolation(pageSize),
      after === undefined
        ? { field: "page_token", description: "is not one of this list" }
        : undefined,
    );
    const { nodes } = this.#ports;
    const limit = pageLimitOf(pageSize);
    const left = nodes.nodes.filter(({ row }) => row.id > (after ?? ""));
    const page = left.slice(0, limit);
    const last = page.at(-1);
    return {
      nodes: page.map((node) => this.listed(node)),
      nodesVersion: nodes.version,
      nextPageToken:
        left.length > limit && last !== undefined ? encodePageToken(last.row.id, NODE_LIST) : "",
    };
  }

  /** A server by this server's wall clock. */
  listed({ row, seenAt, isAlive, traffic }: SeenNode): ListedNode {
    const { clock, wallClock } = this.#ports;
    return { row, seenAtMs: wallClock() + seenAt - clock.now(), isAlive, traffic };
  }

  /** Removes the row of a server that is gone for good; nobody waits for it any more. */
  async forget(id: string, { validateOnly = false, by }: ChangeOptions): Promise<void> {
    if (id === "") {
      throw invalidField("node_id", "is required; idmint node list shows them", "FIELD_REQUIRED");
    }
    const { nodes } = this.#ports;
    const node = nodes.nodes.find(({ row }) => row.id === id);
    if (node === undefined) {
      const text = "must be one of the list; idmint node list shows them";
      throw invalidField("node_id", text, "UNKNOWN_VALUE");
    }
    if (node.isAlive) throw stillRuns(id);
    if (!validateOnly && (await nodes.forget(id, by)) === 0) throw stillRuns(id);
  }

  /** This server as its row shows it. */
  get info(): { readonly instance: string; readonly zone: string } {
    return this.#ports.presence.info;
  }

  /** Random name of this process. */
  get id(): string {
    return this.#ports.nodeId;
  }

  /** This server's wall clock, milliseconds since 1970. */
  time(): number {
    return this.#ports.wallClock();
  }

  #state(): Pick<NodeStatus, "state" | "stateReason"> {
    const { poll, drain } = this.#ports;
    if (drain.leaving === "drained") return { state: "DRAINING", stateReason: drain.reason };
    if (drain.leaving === "stopping") {
      return { state: "DRAINING", stateReason: "this server is stopping" };
    }
    const illness = this.#illness();
    if (illness !== "") return { state: "DEGRADED", stateReason: illness };
    if (stoppedSince(poll.issuing) === undefined) return { state: "SERVING", stateReason: "" };
    const stateReason = "an operator stopped all servers; idmint resume-issuing --all ends that";
    return { state: "STOPPED", stateReason };
  }

  #illness(): string {
    const { poll, clocks, directory, presence, admission, access, redis } = this.#ports;
    if (poll.fenced !== "") return `the store went back: ${poll.fenced}`;
    if (!access.knowsCallers) {
      const why = access.unread === undefined ? "" : `: ${access.unread.message}`;
      return `its store did not tell it who its callers are${why}`;
    }
    // Its polls count as failed then.
    if (clocks.keeper?.isStale === true) return STALE_FILE;
    if (!poll.reachable) return whyLost(poll.lost);
    if (poll.refusesWrites !== "") {
      return `sequences are refused, and other kinds go on with what they hold, since the store takes no writes: ${poll.refusesWrites}`;
    }
    const [refusal] = redis.refusals();
    if (refusal !== undefined) {
      return `ids that are counted in Redis are refused (sequences there, redis_snowflakes, and leases of worker ids), and others go on: ${refusal}`;
    }
    if (directory.fencedTags > 0) return refusedTags(directory);
    if (presence.isUnproved) {
      return "it has just started, and waits until a server that knows its store has renewed its row";
    }
    if (presence.silentParts.length > 0) {
      return "databases of the store were not heard of for node.max_offline";
    }
    if (admission.isLasting) return "more calls come than it can answer, and have for a while";
    return clocks.watch.isOut ? "its clock is not confirmed" : "";
  }
}

const STALE_FILE =
  "its snowflake.cache_file can be neither written nor emptied, so a restart without the store would believe what was revoked or paused; remove the file";

/** Tags whose names are told; of the others it is told how many there are. */
const MAX_NAMED = 5;

function refusedTags(directory: TagsInUse): string {
  const names = directory.fencedNames(MAX_NAMED).join(", ");
  const { fencedTags } = directory;
  const more = fencedTags > MAX_NAMED ? ` and ${fencedTags - MAX_NAMED} more` : "";
  return `the store went back for ${fencedTags === 1 ? "one tag" : `${fencedTags} tags`}, which it refuses: ${names}${more}; see idmint store accept`;
}

/** A store that is not used although something answers says why. */
function whyLost(error: IdmintError | undefined): string {
  const isSilent =
    error === undefined ||
    (error.reason === "STORE_UNAVAILABLE" && !isForeign(error) && !isRefusal(error));
  return isSilent ? "the store does not answer" : error.message;
}

function stillRuns(id: string): IdmintError {
  const text = `server ${id} renewed its row a moment ago, so it runs; stop it first, then its row goes by itself`;
  return new IdmintError("NODE_ALIVE", text, { metadata: { node_id: id } });
}

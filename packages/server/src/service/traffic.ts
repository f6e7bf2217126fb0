import {
  assertNoViolations,
  type Clock,
  type FieldViolation,
  IdmintError,
  invalidField,
} from "@idmint/core";
import {
  type AuditNote,
  type ChangeOptions,
  MAX_WEIGHT,
  serverNameOf,
  type Traffic,
  type TrafficStore,
} from "@idmint/core/server";
import type { AdminGate } from "./admin-gate.ts";
import type { Patience } from "./call.ts";
import type { NodeWatch, SeenNode } from "./node-watch.ts";

/** What an operator wants of a server. */
export interface TrafficChange {
  /** Its node_id or instance, or its name without the number of a process. */
  readonly node: string;
  readonly weight?: number;
  readonly isDraining?: boolean;
}

/** What became of it. */
export interface TrafficAnswer {
  /** The processes of that server. */
  readonly nodes: readonly SeenNode[];
  /** Servers that are alive and have not said yet that they follow, at most MAX_LAGGARDS of them. */
  readonly lagging: readonly SeenNode[];
  readonly laggingCount: number;
}

export interface TrafficPorts {
  readonly store: TrafficStore;
  readonly gate: AdminGate;
  readonly nodes: Pick<NodeWatch, "attend" | "nodes" | "trafficOfServer">;
  /** `refresh` fulfils when a poll that began after it has ended, or soon anyway. False: there are no polls any more. */
  readonly poll: { refresh(): Promise<boolean> };
  readonly clock: Clock;
  /** Tells other servers that there is something new in the store. */
  readonly announce: () => void;
}

/** How long an answer waits for servers to say that they follow. They poll about once a second. */
const FOLLOW_MS = 2_500;
/** What is left of a caller's time when the answer goes out. */
const ANSWER_MS = 200;
const MAX_LAGGARDS = 20;
/** Tries of a change that others change too. */
const MAX_TRIES = 5;

/** Changes what operators say of servers, and hears who follows. */
export class TrafficService {
  readonly #ports: TrafficPorts;

  constructor(ports: TrafficPorts) {
    this.#ports = ports;
  }

  async set(
    change: TrafficChange,
    { validateOnly = false, by }: ChangeOptions,
    call: Patience,
  ): Promise<TrafficAnswer> {
    assertNoViolations(weightViolation(change));
    const { nodes, announce } = this.#ports;
    const server = await this.#serverOf(change.node);
    if (validateOnly) return this.#answer(server, applied(nodes.trafficOfServer(server), change));
    const row = await this.#write(server, change, by);
    announce();
    await this.#followed(row, call);
    return this.#answer(server, row);
  }

  /** The name of a server that is in the list, or of which something is kept. */
  async #serverOf(node: string): Promise<string> {
    if (node === "") throw invalidField("node", `is required; ${WHERE}`, "FIELD_REQUIRED");
    const known = this.#knownAs(node);
    if (known !== undefined) return known;
    // It may have started a moment ago.
    this.#ports.nodes.attend();
    await this.#ports.poll.refresh();
    const found = this.#knownAs(node);
    if (found !== undefined) return found;
    throw invalidField("node", `must be a NODE or INSTANCE of the list; ${WHERE}`, "UNKNOWN_VALUE");
  }

  #knownAs(node: string): string | undefined {
    const { nodes } = this.#ports;
    const found = nodes.nodes.find(({ row: { id, instance } }) =>
      [id, instance, serverNameOf(instance)].includes(node),
    );
    if (found !== undefined) return serverNameOf(found.row.instance);
    return nodes.trafficOfServer(node).revision > 0n ? node : undefined;
  }

  async #write(server: string, change: TrafficChange, by: AuditNote | undefined): Promise<Traffic> {
    const { store, gate, nodes } = this.#ports;
    let seen = nodes.trafficOfServer(server);
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const wanted = applied(seen, change);
      // Somebody may have said the same, but it has to be in the store, whatever was seen.
      seen = await gate.run(() => store.setTraffic(wanted, by));
      if (isLike(seen, wanted)) return seen;
    }
    const text = `others change server "${server}" all the time; nothing was changed by this call`;
    throw new IdmintError("OVERLOADED", text, { retryAfterMs: 1_000 });
  }

  /** Waits until all live servers follow a row, or for FOLLOW_MS. */
  async #followed(row: Traffic, { deadline, signal }: Patience): Promise<void> {
    const { nodes, poll, clock } = this.#ports;
    const until = Math.min(clock.now() + FOLLOW_MS, deadline - ANSWER_MS);
    nodes.attend();
    // A server that stops polls no more, and would wait here without ever leaving its event loop to anybody.
    while (await poll.refresh()) {
      const isOver = clock.now() >= until || signal.aborted;
      if (isOver || this.#laggards(row).length === 0) return;
    }
  }

  #laggards({ revision }: Traffic): readonly SeenNode[] {
    return this.#ports.nodes.nodes.filter(({ row, isAlive }) => isAlive && row.traffic < revision);
  }

  #answer(server: string, row: Traffic): TrafficAnswer {
    const all = this.#laggards(row);
    return {
      nodes: this.#ports.nodes.nodes
        .filter((node) => serverNameOf(node.row.instance) === server)
        .map((node) => ({ ...node, traffic: row })),
      lagging: all.slice(0, MAX_LAGGARDS),
      laggingCount: all.length,
    };
  }
}

const WHERE = "idmint node list shows them";

function weightViolation({ weight }: TrafficChange): FieldViolation | undefined {
  if (weight === undefined || (Number.isInteger(weight) && weight >= 0 && weight <= MAX_WEIGHT)) {
    return undefined;
  }
  const description = `must be an integer from 0 to ${MAX_WEIGHT}, got ${weight}`;
  return { field: "weight", description, reason: "VALUE_OUT_OF_RANGE" };
}

function applied(seen: Traffic, { weight, isDraining }: TrafficChange): Traffic {
  return {
    ...seen,
    ...(weight === undefined ? {} : { weight }),
    ...(isDraining === undefined ? {} : { isDraining }),
  };
}

function isLike(row: Traffic, wanted: Traffic): boolean {
  return row.weight === wanted.weight && row.isDraining === wanted.isDraining;
}

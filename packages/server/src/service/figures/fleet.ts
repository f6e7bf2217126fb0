import type { Clock } from "@idmint/core";
import { type CallContext, overloaded } from "../call.ts";
import type { NodeWatch, SeenNode } from "../node-watch.ts";

/** What is wanted of a server. */
export interface FiguresRequest {
  /** Empty: figures of the server itself. */
  readonly tag: string;
  readonly seconds: number;
}

/** A caller on whose behalf another server is asked. */
export interface Asking {
  /** What the caller showed as its header `authorization`, for that server to judge; undefined: nothing. */
  readonly authorization: string | undefined;
  readonly timeoutMs: number;
  /** Aborted when the caller goes away. */
  readonly signal: AbortSignal;
}

type SilenceName =
  | "NO_ADDRESS"
  | "NOT_HEARD"
  | "NO_ANSWER"
  | "REFUSED"
  | "OLDER_VERSION"
  | "TOO_MANY";

/** Why a server did not tell its figures; `detail` is for people. */
export interface Silence {
  readonly reason: SilenceName;
  readonly detail: string;
}

/** What the processes of one server told, or why they did not. */
export type PeerAnswer<Told> =
  | { readonly type: "told"; readonly nodes: readonly Told[] }
  | { readonly type: "silent"; readonly silence: Silence };

/** Other servers. Nothing rejects; an answer comes in the time that it has, or soon after. */
export interface PeerFigures<Told> {
  ask(address: string, request: FiguresRequest, asking: Asking): Promise<PeerAnswer<Told>>;
}

/** The other processes of this server. Answers what those tell that answer in time; never rejects. */
type AskSiblings<Told> = (request: FiguresRequest, timeoutMs: number) => Promise<readonly Told[]>;

export interface SilentNode {
  readonly node: SeenNode;
  readonly silence: Silence;
}

export interface FleetAnswer<Told> {
  readonly nodes: readonly Told[];
  readonly silent: readonly SilentNode[];
  /** How many seconds back the figures go at most. */
  readonly seconds: number;
}

export interface FleetPorts<Told> {
  readonly nodes: Pick<NodeWatch, "attend" | "nodes">;
  readonly peers: PeerFigures<Told>;
  readonly siblings: AskSiblings<Told>;
  readonly clock: Clock;
}

/** How long other servers are waited for, and before them the other processes of a server. */
const PEERS_MS = 1_000;
const SIBLINGS_MS = 600;
/** What is left of a caller's time when the answer goes out. */
const ANSWER_MS = 100;
/** Servers that are asked for one call. */
const MAX_ASKED = 256;
/** Calls that ask other servers at the same time. */
const MAX_GATHERING = 16;
/** Seconds of all processes together in one answer: about 2 MB. */
const MAX_SECONDS = 45_000;

/**
 * Gathers the figures of all servers on the store.
 *
 * INVARIANTS
 * 1. Every server of the list is either told or silent, and none is both.
 * 2. Only addresses of rows in the store are asked, each once, and with nothing of the caller but its own token.
 * 3. A call takes PEERS_MS at most, and no longer than its caller waits.
 */
export class FleetFigures<Told extends { readonly nodeId: string }> {
  readonly #ports: FleetPorts<Told>;
  #gathering = 0;

  constructor(ports: FleetPorts<Told>) {
    this.#ports = ports;
  }

  /** The figures of this server's processes; `own` tells those of this process. */
  async ofServer(
    request: FiguresRequest,
    own: (request: FiguresRequest) => Told,
    call: CallContext,
  ): Promise<FleetAnswer<Told>> {
    const { nodes, siblings } = this.#ports;
    const told = [own(request), ...(await siblings(request, this.#timeLeft(call, SIBLINGS_MS)))];
    const rows = nodes.nodes;
    const { address } = rows.find(({ isOwn }) => isOwn)?.row ?? { address: "" };
    const its = address === "" ? [] : rows.filter(({ row }) => row.address === address);
    return answerOf(told, its, () => undefined, request.seconds);
  }

  /** The same of all servers. Rejects with OVERLOADED when too many calls wait for others already. */
  async ofAll(
    { tag, seconds: wanted }: FiguresRequest,
    own: (request: FiguresRequest) => Told,
    call: CallContext,
  ): Promise<FleetAnswer<Told>> {
    if (this.#gathering >= MAX_GATHERING) {
      throw overloaded(`${MAX_GATHERING} calls ask all servers for their figures already`);
    }
    const { nodes, siblings } = this.#ports;
    nodes.attend();
    const rows = nodes.nodes;
    const seconds = Math.min(wanted, Math.max(1, Math.floor(MAX_SECONDS / rows.length)));
    const request = { tag, seconds };
    this.#gathering++;
    try {
      const asked = addressesOf(rows).slice(0, MAX_ASKED);
      const [its, ...answers] = await Promise.all([
        siblings(request, this.#timeLeft(call, SIBLINGS_MS)),
        ...asked.map((address) => this.#ask(address, request, call)),
      ]);
      const byAddress = new Map(answers.map((answer, at) => [asked[at] ?? "", answer]));
      const others = answers.flatMap((answer) => (answer.type === "told" ? answer.nodes : []));
      const told = [own(request), ...its, ...others];
      return answerOf(told, rows, (address) => byAddress.get(address), seconds);
    } finally {
      this.#gathering--;
    }
  }

  /** Invariants 2 and 3. */
  #ask(address: string, request: FiguresRequest, call: CallContext): Promise<PeerAnswer<Told>> {
    const { signal } = call;
    const timeoutMs = this.#timeLeft(call, PEERS_MS);
    return this.#ports.peers.ask(address, request, {
      authorization: call.authorization(),
      timeoutMs,
      signal,
    });
  }

  #timeLeft({ deadline }: CallContext, atMost: number): number {
    return Math.max(0, Math.min(atMost, deadline - ANSWER_MS - this.#ports.clock.now()));
  }
}

/** Addresses of the other servers that may answer. */
function addressesOf(rows: readonly SeenNode[]): readonly string[] {
  const own = rows.find(({ isOwn }) => isOwn)?.row.address;
  const alive = rows.filter(({ isAlive, row }) => isAlive && row.address !== own);
  return [...new Set(alive.map(({ row }) => row.address))].filter((address) => address !== "");
}

/** Invariant 1. */
function answerOf<Told extends { readonly nodeId: string }>(
  told: readonly Told[],
  rows: readonly SeenNode[],
  answered: (address: string) => PeerAnswer<Told> | undefined,
  seconds: number,
): FleetAnswer<Told> {
  const byId = new Map<string, Told>();
  for (const one of told) if (!byId.has(one.nodeId)) byId.set(one.nodeId, one);
  const nodes = [...byId.values()].toSorted((a, b) => (a.nodeId < b.nodeId ? -1 : 1));
  const silent = rows
    .filter(({ row }) => !byId.has(row.id))
    .map((node) => ({ node, silence: silenceOf(node, rows, answered(node.row.address)) }));
  return { nodes, silent, seconds };
}

function silenceOf<Told>(
  { row, isAlive }: SeenNode,
  rows: readonly SeenNode[],
  answer: PeerAnswer<Told> | undefined,
): Silence {
  if (row.address === "") return SILENCES.noAddress;
  if (!isAlive) return SILENCES.notHeard;
  if (answer?.type === "silent") return answer.silence;
  if (answer?.type === "told") return SILENCES.otherProcess;
  const isHere = rows.some(({ isOwn, row: { address } }) => isOwn && address === row.address);
  return isHere ? SILENCES.sibling : SILENCES.tooMany;
}

const SILENCES = {
  noAddress: {
    reason: "NO_ADDRESS",
    detail: "it has told no address; set node.advertise there",
  },
  notHeard: {
    reason: "NOT_HEARD",
    detail: "it does not renew its row in the store: it ended, was frozen, or is cut off",
  },
  otherProcess: {
    reason: "NO_ANSWER",
    detail: "at its address others answered, and not this process",
  },
  sibling: {
    reason: "NO_ANSWER",
    detail: "it did not answer the other processes of its server in time",
  },
  tooMany: {
    reason: "TOO_MANY",
    detail: `at most ${MAX_ASKED} servers are asked`,
  },
} satisfies Record<string, Silence>;

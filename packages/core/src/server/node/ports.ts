import type { AuditNote } from "../audit/ports.ts";
import type { Issuing } from "../store/issuing.ts";
import type { Traffic } from "./traffic-state.ts";

/** What a server says of itself in its row of the store. */
export interface NodeInfo {
  /** Random name of the process; one that goes on with the leases of another goes on with its row too. */
  readonly id: string;
  /** Stable name, the same after a restart. */
  readonly instance: string;
  /** host:port under which other servers reach it; empty: it told none. */
  readonly address: string;
  readonly version: string;
  /** Where it stands, as its operator names it; may be empty. */
  readonly zone: string;
  /** By its own wall clock, milliseconds since 1970. */
  readonly startedAtMs: number;
  /**
   * How long after sending the last renewal that was acknowledged it stops issuing, in milliseconds; undefined: it never
   * stops by itself.
   */
  readonly maxOfflineMs: number | undefined;
}

/** A server's row in one database as a renewal left it: what the same server has to find there later. */
export interface OwnRow {
  /** Name of the history of the store that it is in: another one after whatever may take the number back rightly. */
  readonly history: string;
  readonly renewals: bigint;
  /** Revision of the store at which it was written, where the store keeps those; else empty. */
  readonly revision: string;
  /** When it was renewed, by the store's clock, milliseconds since 1970. */
  readonly storeMs: number;
}

/** What an earlier life of a server, which is over, was acknowledged last. */
export interface EarlierRow extends OwnRow {
  readonly part: string;
  /** How long ago that renewal was sent, by this machine's clock. */
  readonly agoMs: number;
}

/** A server's word that it runs, sent along with each poll. */
export interface NodeRenewal {
  readonly node: NodeInfo;
  /** Renewals that this process has sent; rises with every one. */
  readonly count: bigint;
  /**
   * The history, and the revision within it, up to which everything that operators changed was applied to all that this
   * server holds *before this was sent*. As `changes` answered them.
   */
  readonly incarnation: string;
  readonly obeyed: bigint;
  /** The highest revision of Traffic that the server followed before this was sent. */
  readonly traffic: bigint;
  /** Whether the server may take the store for the one that others know (newcomer-state.ts), so that its row speaks for that. */
  readonly isProved: boolean;
  /**
   * Of this row, for databases in which this life of the server was not proved yet. A row that is lower when it is renewed for
   * the first time shows that the store went back, and is not renewed. Absent: nothing is known.
   */
  readonly earlier?: readonly EarlierRow[] | undefined;
}

/** A server's row. */
export interface NodeRow extends NodeInfo {
  /** Changes with every renewal that was carried out. Its value means nothing else. */
  readonly renewals: bigint;
  readonly incarnation: string;
  readonly obeyed: bigint;
  readonly traffic: bigint;
  readonly isProved: boolean;
}

/** One database of a store, as a poll found it. */
export interface StorePart {
  /** Empty for a store that is one database. */
  readonly name: string;
  readonly incarnation: string;
  readonly revision: bigint;
  /** Whether the renewal that was sent along is in this server's row, durably. */
  readonly isRenewed: boolean;
  /** The row as that renewal left it; absent: it was not renewed, or the store proves nothing by it. */
  readonly own?: OwnRow | undefined;
  /**
   * Whether the first renewal found the row of the server's earlier life, or its trace, in the same history, and this poll nothing
   * that is missing.
   */
  readonly hasEarlier?: boolean | undefined;
  /** All rows of servers, one's own included or not; undefined when they were not asked for. */
  readonly nodes: readonly NodeRow[] | undefined;
  /** What operators said of servers; at most MAX_TRAFFIC rows. */
  readonly traffic: readonly Traffic[];
  readonly issuing: Issuing;
  /** Nonce of the ask for claims that stands; absent: there is none. */
  readonly ask?: string | undefined;
}

/** Which row of a server. */
export interface NodeRowKey {
  /** Database of the store that has the row. */
  readonly part: string;
  readonly id: string;
  /** The row must still have this number, so that a server that came back is not forgotten; undefined: whichever. */
  readonly renewals: bigint | undefined;
}

/** Removes rows of servers. They are written by `changes`, with the poll's renewal. */
export interface NodeStore {
  /** Answers how many rows were removed. At most 1,000 keys. `by`: the operator who removes the rows of one server. */
  forgetNodes(keys: readonly NodeRowKey[], by?: AuditNote): Promise<number>;
  /** Of a store in several databases: those whose servers have to be heard for a tag. Not set: the store is one. */
  readonly partsOf?: (tag: string) => readonly string[];
}

/** Most rows of servers that a database holds; a further server gets none, and so issues nothing. */
export const MAX_NODES = 1_000;

/** How long a server issues without its store unless it is configured otherwise. */
export const DEFAULT_MAX_OFFLINE_MS = 1_800_000;

/** Stands for all servers of a history that was lost when a store was accepted: their rows may have been lost with it. */
export function lostNodes(incarnation: string, maxOfflineMs: number | undefined): NodeRow {
  return {
    id: `before-${incarnation}`.slice(0, 128),
    instance: "servers-from-before-the-accept",
    address: "",
    version: "",
    zone: "",
    startedAtMs: 0,
    maxOfflineMs,
    renewals: 1n,
    incarnation: "",
    obeyed: 0n,
    traffic: 0n,
    isProved: false,
  };
}

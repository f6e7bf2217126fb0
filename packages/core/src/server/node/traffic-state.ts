import { IdmintError } from "../../errors.ts";
import type { AuditNote } from "../audit/ports.ts";

/**
 * How much of the callers' load servers get, as operators said, and who follows that. Pure.
 *
 * INVARIANTS
 * 1. Nothing that an operator said is lost to another who did not know of it: a row is written only over one that its writer
 *    had seen. Whoever had not gets the row instead, and decides anew.
 * 2. A row that is written gets a revision above all rows, so one number says how far a server follows all of them.
 * 3. Databases of one store that were not written alike, since one was away, are read alike: the row with the highest
 *    revision counts.
 */
export interface Traffic {
  /** Name of the server: its instance, without the number of a process. */
  readonly server: string;
  /** Share of the load relative to the weights of others. */
  readonly weight: number;
  readonly isDraining: boolean;
  readonly revision: bigint;
}

/** Keeps what operators said of servers. Each poll answers all rows. */
export interface TrafficStore {
  /**
   * Writes a server's row over what had been seen up to `wanted.revision`. Answers the row as it is then: the written one, or
   * one that is newer than what was seen.
   */
  setTraffic(wanted: Traffic, by?: AuditNote): Promise<Traffic>;
}

export const DEFAULT_WEIGHT = 100;
export const MAX_WEIGHT = 1_000;
/** Most servers of which something else than the default is kept. */
export const MAX_TRAFFIC = 1_000;

/** A store in one database, or several of them, as they were polled. */
export interface TrafficState {
  readonly parts: Map<string, readonly Traffic[]>;
  readonly servers: Map<string, Traffic>;
  /** Of all rows the highest. */
  revision: bigint;
}

export function createTrafficState(): TrafficState {
  return { parts: new Map(), servers: new Map(), revision: 0n };
}

/** The name under which a server's row is kept. Processes of one server have one address, and so one row. */
export function serverNameOf(instance: string): string {
  return instance.replace(/\/\d+$/, "");
}

/** What a server has of which nobody said anything. */
function usualTraffic(server: string): Traffic {
  return { server, weight: DEFAULT_WEIGHT, isDraining: false, revision: 0n };
}

/** What is known of the server that an instance belongs to. */
export function trafficOf(state: TrafficState, instance: string): Traffic {
  const server = serverNameOf(instance);
  return state.servers.get(server) ?? usualTraffic(server);
}

/** A poll was answered. True: something is another than before. */
export function sawTraffic(
  state: TrafficState,
  parts: readonly { readonly name: string; readonly traffic: readonly Traffic[] }[],
): boolean {
  let isOther = false;
  for (const { name, traffic } of parts) {
    // Hardly ever has anybody said anything of any server.
    if (traffic.length > 0 || state.parts.get(name)?.length !== 0) isOther = true;
    state.parts.set(name, traffic);
  }
  if (!isOther) return false;
  const before = new Map(state.servers);
  const beforeRevision = state.revision;
  state.servers.clear();
  state.revision = 0n;
  for (const row of [...state.parts.values()].flat()) {
    const other = state.servers.get(row.server);
    if (other === undefined || isAbove(row, other)) state.servers.set(row.server, row);
    if (row.revision > state.revision) state.revision = row.revision;
  }
  const isSame =
    before.size === state.servers.size &&
    beforeRevision === state.revision &&
    [...state.servers].every(([server, row]) => isLike(before.get(server), row));
  return !isSame;
}

/** What has to become of the rows of a database. */
export interface TrafficChange {
  /** The server's row as it is then. */
  readonly row: Traffic;
  readonly isWritten: boolean;
  /** Servers whose rows say what would be so without them, where room is needed. */
  readonly removed: readonly string[];
}

/** Invariants 1 and 2. Throws where there is no room. */
export function trafficAfter(rows: readonly Traffic[], wanted: Traffic): TrafficChange {
  const old = rows.find(({ server }) => server === wanted.server);
  if (old !== undefined && old.revision > wanted.revision) {
    return { row: old, isWritten: false, removed: [] };
  }
  let highest = wanted.revision;
  for (const { revision } of rows) if (revision > highest) highest = revision;
  const isFull = old === undefined && rows.length >= MAX_TRAFFIC;
  const removed = isFull ? rows.filter(isUsual).map(({ server }) => server) : [];
  if (isFull && removed.length === 0) throw tooManyServers();
  return { row: { ...wanted, revision: highest + 1n }, isWritten: true, removed };
}

/** Of two with the same revision the more careful one counts, so that all servers decide alike. */
function isAbove(row: Traffic, other: Traffic): boolean {
  if (row.revision !== other.revision) return row.revision > other.revision;
  if (row.isDraining !== other.isDraining) return row.isDraining;
  return row.weight < other.weight;
}

function isUsual({ weight, isDraining }: Traffic): boolean {
  return weight === DEFAULT_WEIGHT && !isDraining;
}

function isLike(row: Traffic | undefined, other: Traffic): boolean {
  return (
    row?.weight === other.weight &&
    row.isDraining === other.isDraining &&
    row.revision === other.revision
  );
}

function tooManyServers(): IdmintError {
  const text = `${MAX_TRAFFIC} servers are drained or have a weight other than ${DEFAULT_WEIGHT}; undrain those that are gone and give them ${DEFAULT_WEIGHT}`;
  return new IdmintError("OVERLOADED", text);
}

import type { Order } from "./endpoints-state.ts";
import { rendezvousOrder, unit } from "./rendezvous.ts";

/**
 * Which servers a client knows of, and which of them a tag prefers: pure, without a clock, a socket or a random number.
 * `endpoints.ts` runs it.
 *
 * INVARIANTS
 * 1. Seeds, the addresses that the client was made with, always stay.
 * 2. A list never takes away the last way: one without a usable address changes nothing, and servers that a newer list lacks
 *    stay, behind all others, until they fail.
 * 3. A list counts only if a seed answered it, or a server that an earlier list which counted names. Names of servers are
 *    random, so no server of another store has such a name. What its list names shows nothing: a copy of this store has the
 *    rows of these servers.
 * 4. At most `MAX_LEARNED` addresses and `MAX_NODE_IDS` names are remembered besides the seeds.
 */

/** Most learned addresses. A client of a larger fleet uses some of its servers, others than the next client does. */
export const MAX_LEARNED = 64;
/** Most names of servers that are remembered: those of two lists of the longest kind. */
export const MAX_NODE_IDS = 2_000;
/** A newer list is fetched up to this long after it was heard of, and at least half as long: not by all clients at once. */
export const FETCH_AFTER_MS = 5_000;
/** Tags of order PER_CLIENT take up a newer list over this time, each at a moment of its own. */
export const MOVE_MS = 5_000;
/** Longest wait after a list that could not be had. */
const FETCH_AGAIN_MS = 300_000;
/** Who has not heard of any other server for so long is cut off from the store: what it lists is old. */
const STALE_MS = 30_000;

/** A server as a list names it. */
export interface ListedServer {
  readonly nodeId: string;
  readonly address: string;
  readonly zone: string;
  readonly weight: number;
  readonly isDraining: boolean;
  readonly isAlive: boolean;
  /** When it was last heard of, by the clock of the server that answered the list. */
  readonly heardAtMs: number;
}

export interface ServerList {
  /** The name of the server that answered it. */
  readonly nodeId: string;
  readonly version: number;
  readonly servers: readonly ListedServer[];
}

/** A server behind one address. */
interface Server {
  readonly address: string;
  readonly zone: string;
  readonly weight: number;
  readonly isDraining: boolean;
}

interface News {
  readonly from: string;
  readonly dueAtMs: number;
  /** Somebody told a name that the last list lacks. Names are not in its version, so the same version is no reason not to fetch it. */
  readonly isOfName: boolean;
}

export interface ServersState {
  readonly seeds: readonly string[];
  /** Servers of the last list that counted, seeds among them. */
  readonly listed: ReadonlyMap<string, Server>;
  /** Learned addresses that the last list lacks, the oldest first. */
  readonly left: readonly string[];
  /** Names of the servers of this store, also of earlier lists. */
  readonly nodeIds: ReadonlySet<string>;
  /** Of the last list; 0: none yet. */
  readonly version: number;
  /** When the last list was taken up. */
  readonly changedAtMs: number;
  /** The newer list that was heard of: who has it, and from when on it is fetched. */
  readonly news: News | undefined;
  readonly isFetching: boolean;
  /** Fetches that failed in a row. */
  readonly failures: number;
  /** Versions that were found old, by who answers them. */
  readonly stale: ReadonlyMap<string, number>;
}

/** Who chooses. */
export interface Chooser {
  readonly zone: string;
  /** Random, so that clients choose different servers. */
  readonly clientId: string;
}

export function initialServers(seeds: readonly string[]): ServersState {
  return {
    seeds,
    listed: new Map(),
    left: [],
    nodeIds: new Set(),
    version: 0,
    changedAtMs: -Infinity,
    news: undefined,
    isFetching: false,
    failures: 0,
    stale: new Map(),
  };
}

/** An answer of `from` told the version of its list. */
export function versionTold(
  state: ServersState,
  { from, version, nowMs, jitter }: Told,
): ServersState {
  if (version === 0) return state;
  if (version === state.version) {
    const { news } = state;
    return news?.from === from && !news.isOfName ? { ...state, news: undefined } : state;
  }
  if (state.stale.get(from) === version) return state;
  return heardOfList(state, { from, nowMs, jitter }, false);
}

interface Told {
  readonly from: string;
  readonly version: number;
  readonly nowMs: number;
  /** Random, in [0, 1). */
  readonly jitter: number;
}

/** Somebody told a name that the last list lacks: a newer one is asked of `from`. */
export function wantList(state: ServersState, of: Omit<Told, "version">): ServersState {
  return heardOfList(state, of, true);
}

/** The first list is fetched at once. */
function heardOfList(
  state: ServersState,
  { from, nowMs, jitter }: Omit<Told, "version">,
  isOfName: boolean,
): ServersState {
  const { news } = state;
  if (news !== undefined) {
    return isOfName && !news.isOfName ? { ...state, news: { ...news, isOfName } } : state;
  }
  if (state.isFetching) return state;
  const isFirst = state.version === 0 && state.failures === 0;
  const afterMs = Math.min(FETCH_AGAIN_MS, FETCH_AFTER_MS * 2 ** Math.min(16, state.failures));
  const dueAtMs = isFirst ? nowMs : nowMs + (afterMs / 2) * (1 + jitter);
  return { ...state, news: { from, dueAtMs, isOfName } };
}

/** Whom to ask for its list now; undefined: nobody. */
export function fetchDue(state: ServersState, nowMs: number): string | undefined {
  const { news, isFetching } = state;
  return !isFetching && news !== undefined && news.dueAtMs <= nowMs ? news.from : undefined;
}

export function fetchBegan(state: ServersState): ServersState {
  return { ...state, isFetching: true, news: undefined };
}

export function fetchFailed(state: ServersState): ServersState {
  return { ...state, isFetching: false, failures: state.failures + 1 };
}

/** `from` answered its list. `usable` says of an address whether it is one. */
export function listFetched(
  before: ServersState,
  list: ServerList,
  by: { readonly from: string; readonly nowMs: number } & Chooser,
  isUsable: (address: string) => boolean,
): ServersState {
  const state = { ...before, isFetching: false, failures: 0 };
  // Invariant 3.
  const isTrusted = isOfStore(state, by.from, list.nodeId);
  const isKnown = (address: string): boolean => state.listed.has(address);
  const all = isTrusted
    ? serversOf(list.servers, { isUsable, isKnown })
    : new Map<string, Server>();
  // Invariant 2.
  if (all.size === 0 || isStale(list.servers)) {
    return { ...state, stale: new Map(state.stale).set(by.from, list.version) };
  }
  const listed = bounded(all, state.seeds, by);
  const known = [...state.left, ...state.listed.keys()];
  const left = known.filter((at) => !listed.has(at) && !state.seeds.includes(at));
  const learned = [...listed.keys()].filter((at) => !state.seeds.includes(at)).length;
  return {
    ...state,
    listed,
    left: left.slice(Math.max(0, left.length - (MAX_LEARNED - learned))),
    nodeIds: remembered(state.nodeIds, list.servers),
    version: list.version,
    changedAtMs: by.nowMs,
    stale: new Map(),
  };
}

/** A server that the last list lacks has failed. */
export function serverLeft(state: ServersState, address: string): ServersState {
  return state.left.includes(address)
    ? { ...state, left: state.left.filter((at) => at !== address) }
    : state;
}

export function isLearned(state: ServersState, address: string): boolean {
  return !state.seeds.includes(address);
}

/** Whether what came from `address` counts, if its sender tells this name. */
export function isOfStore(state: ServersState, address: string, nodeId: string): boolean {
  return !isLearned(state, address) || state.nodeIds.has(nodeId);
}

/** Learned addresses that may be used. */
export function learnedOf(state: ServersState): readonly string[] {
  return [...state.listed.keys(), ...state.left].filter((address) => isLearned(state, address));
}

/**
 * The order in which `key` prefers the servers: those of the own zone by weight; those of other zones by weight; seeds that
 * the list does not name, such as a load balancer; those of weight 0; those that drain; those that the last list lacks.
 */
export function orderOf(state: ServersState, zone: string, key: string): Order {
  const servers = [...state.listed.values()];
  const ready = servers.filter(({ isDraining }) => !isDraining);
  const areAllZero = ready.every(({ weight }) => weight === 0);
  const weightOf = ({ weight }: Server): number => (areAllZero ? 1 : weight);
  const isNear = (server: Server): boolean => zone !== "" && server.zone === zone;
  const ranked = (group: readonly Server[]): readonly string[] =>
    rendezvousOrder(
      group.map((server) => ({ address: server.address, weight: weightOf(server) || 1 })),
      key,
    );
  const weighted = ready.filter((server) => weightOf(server) > 0);
  const idle = ready.filter((server) => weightOf(server) === 0);
  const seeds = state.seeds.filter((address) => !state.listed.has(address));
  const addresses = [
    ...ranked(weighted.filter(isNear)),
    ...ranked(weighted.filter((server) => !isNear(server))),
    ...rendezvousOrder(
      seeds.map((address) => ({ address, weight: 1 })),
      key,
    ),
    ...ranked(idle.filter(isNear)),
    ...ranked(idle.filter((server) => !isNear(server))),
    ...ranked(servers.filter(({ isDraining }) => isDraining)),
    ...state.left,
  ];
  return {
    addresses,
    near: new Set(servers.filter(isNear).map(({ address }) => address)),
  };
}

/**
 * The servers of a list by address; several processes behind one address are one server. One that is not alive stays what it
 * was, since the client finds out by itself when it is back, and is not learned anew.
 */
function serversOf(
  servers: readonly ListedServer[],
  is: {
    readonly isUsable: (address: string) => boolean;
    readonly isKnown: (address: string) => boolean;
  },
): Map<string, Server> {
  const byAddress = new Map<string, Server>();
  for (const { address, zone, weight, isDraining } of servers.filter(({ isAlive }) => isAlive)) {
    if (address === "" || !is.isUsable(address)) continue;
    const other = byAddress.get(address);
    byAddress.set(address, {
      address,
      zone: other?.zone ?? zone,
      weight: Math.max(weight, other?.weight ?? 0),
      isDraining: isDraining && other?.isDraining !== false,
    });
  }
  if (byAddress.size === 0) return byAddress;
  for (const { address, zone, weight, isDraining, isAlive } of servers) {
    if (isAlive || byAddress.has(address) || !is.isKnown(address)) continue;
    byAddress.set(address, { address, zone, weight, isDraining });
  }
  return byAddress;
}

/** Who answered the list was heard of just now; everybody else a while ago. */
function isStale(servers: readonly ListedServer[]): boolean {
  const heard = servers
    .filter(({ isAlive }) => isAlive)
    .map(({ heardAtMs }) => heardAtMs)
    .toSorted((a, b) => b - a);
  const [own, next] = heard;
  return own !== undefined && next !== undefined && own - next > STALE_MS;
}

/** Invariant 4. Those of the own zone first, then by the client's own choice, whatever they weigh. */
function bounded(
  all: ReadonlyMap<string, Server>,
  seeds: readonly string[],
  { zone, clientId }: Chooser,
): ReadonlyMap<string, Server> {
  const learned = [...all.values()].filter(({ address }) => !seeds.includes(address));
  if (learned.length <= MAX_LEARNED) return all;
  const farness = (server: Server): number =>
    (zone !== "" && server.zone === zone ? 0 : 1) + unit(server.address, clientId);
  const surplus = learned.toSorted((a, b) => farness(a) - farness(b)).slice(MAX_LEARNED);
  const kept = new Map(all);
  for (const { address } of surplus) kept.delete(address);
  return kept;
}

function remembered(
  nodeIds: ReadonlySet<string>,
  servers: readonly ListedServer[],
): ReadonlySet<string> {
  const all = new Set(nodeIds);
  for (const { nodeId } of servers) {
    // The newest last.
    all.delete(nodeId);
    all.add(nodeId);
  }
  return new Set([...all].slice(-MAX_NODE_IDS));
}

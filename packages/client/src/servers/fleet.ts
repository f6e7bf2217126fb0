import { type Clock, IdmintError, type Random } from "@idmint/core";
import type { EndpointChange } from "../events.ts";
import { isListedAddress } from "./addresses.ts";
import type { Transport } from "./channel.ts";
import {
  type EndpointEvent,
  type EndpointsState,
  type LoadPlan,
  nextEndpoints,
  type Order,
  planLoad,
} from "./endpoints-state.ts";
import { unit } from "./rendezvous.ts";
import {
  fetchBegan,
  fetchDue,
  fetchFailed,
  initialServers,
  isLearned,
  isOfStore,
  learnedOf,
  listFetched,
  MOVE_MS,
  orderOf,
  serverLeft,
  type ServersState,
  versionTold,
  wantList,
} from "./servers-state.ts";

export interface FleetPorts {
  readonly transport: Transport;
  readonly clock: Clock;
  readonly random: Random;
  readonly emit: (event: EndpointChange) => void;
}

export interface FleetOptions {
  /** The addresses that the client was made with. */
  readonly addresses: readonly string[];
  /** Where the client stands; empty: nowhere. */
  readonly zone: string;
  readonly rpcDeadlineMs: number;
}

/** Longest that a look at a server may take: nobody waits for it, and the next one begins anew. */
const PROBE_TIMEOUT_MS = 2_000;

/** Most endpoints that are looked at ahead at once, and how soon one is looked at again. */
const MAX_LOOKS = 8;
const LOOK_AGAIN_MS = 1_000;
/** Share of a request's time that such a look may take; it begins when `LOOK_AFTER` of that time is over. */
const LOOK_SHARE = 0.5;
export const LOOK_AFTER = 0.25;

/** How the loads of one tag go through the servers. */
export interface Route {
  /** Which servers it prefers is hashed of this. */
  readonly key: string;
  /** Its place among all routes when they move, from 0 to 1. */
  readonly patience: number;
  /**
   * Whether the ids of one client have to rise. Then the servers that it comes to may lack ids high enough, and ask the store
   * for each tag that moves.
   */
  isOrdered: boolean;
}

/**
 * The servers as a client knows them: runs `endpoints-state.ts` and `servers-state.ts`, fetches lists and looks at servers.
 *
 * INVARIANT: ids come from servers of one store. The addresses that the client was made with are trusted. All others come from
 * lists that servers of this store answered, and an address may lead anywhere: a wrong `node.advertise`, or the address of a
 * server that is gone and that somebody else has now. A server of another store has tags of the same names, and its ids would
 * be repeats. So a learned address is not used before a server there has told a name that a list of this store has, each of its
 * answers is used only if it tells such a name too, and a refusal of it counts only when the name was asked for once more. Names
 * are random, and a server's row is in its store before it answers anything.
 */
export class Fleet {
  readonly #ports: FleetPorts;
  readonly #zone: string;
  readonly #rpcDeadlineMs: number;
  /** Random: clients of the same tag prefer different servers, each by its weight. */
  readonly #clientId: string;
  readonly #orders = new WeakMap<
    Route,
    { readonly of: ServersState["listed"]; readonly order: Order }
  >();
  readonly #lookedAtMs = new Map<string, number>();
  #state: EndpointsState = new Map();
  #servers: ServersState;

  constructor({ addresses, zone, rpcDeadlineMs }: FleetOptions, ports: FleetPorts) {
    this.#ports = ports;
    this.#zone = zone;
    this.#rpcDeadlineMs = rpcDeadlineMs;
    this.#clientId = ports.random().toString(36);
    this.#servers = initialServers(addresses);
    for (const endpoint of addresses) this.#note({ type: "seed", endpoint });
  }

  /** Endpoints that are known. */
  get size(): number {
    return this.#state.size;
  }

  /** How a tag goes through the servers: other clients go other ways. */
  routeOf(tag: string): Route {
    const key = `${this.#clientId}/${tag}`;
    return { key, patience: unit("", key), isOrdered: true };
  }

  /** The same for all clients of a zone, so that calls of many of them share the round trips of one server. */
  sharedRouteOf(tag: string): Route {
    return { key: tag, patience: unit("", `${this.#clientId}/${tag}`), isOrdered: false };
  }

  /** Where a request goes now that was sent to `asked` before. What has to be looked at beside it is looked at. */
  plan(route: Route, asked: ReadonlySet<string>): LoadPlan {
    this.#fetchIfDue();
    const nowMs = this.#ports.clock.now();
    const order = this.#orderOf(route, nowMs);
    const plan = planLoad(this.#state, order, { nowMs, patience: route.patience, asked });
    for (const endpoint of plan.probes) void this.#probe(endpoint);
    return plan;
  }

  /**
   * A request of this route has no answer for a while: looks at those that it would ask next, so that not each of them costs
   * it a whole time-out if several are away.
   */
  lookAhead(route: Route, asked: ReadonlySet<string>): void {
    const nowMs = this.#ports.clock.now();
    const { addresses } = this.#orderOf(route, nowMs);
    const isDue = (endpoint: string): boolean =>
      !asked.has(endpoint) &&
      nowMs - (this.#lookedAtMs.get(endpoint) ?? -Infinity) >= LOOK_AGAIN_MS;
    for (const endpoint of addresses.filter(isDue).slice(0, MAX_LOOKS)) {
      this.#lookedAtMs.set(endpoint, nowMs);
      const mode = this.#state.get(endpoint)?.mode;
      if (mode === "cooling") void this.#probe(endpoint);
      else if (mode === "well") void this.#assertThere(endpoint);
    }
  }

  /** Whether nothing is known against asking it. */
  isWell(endpoint: string): boolean {
    return this.#state.get(endpoint)?.mode === "well";
  }

  /** Whether an address was learned from a list, and so may lead anywhere. */
  isLearned(endpoint: string): boolean {
    return isLearned(this.#servers, endpoint);
  }

  /** Whether an answer may be used that tells this name of the server that sent it. */
  isOfStore(endpoint: string, nodeId: string): boolean {
    return isOfStore(this.#servers, endpoint, nodeId);
  }

  /** Asks for the name of the server at a learned address: whether it is one of this store. Undefined: nobody answers. */
  async identify(
    endpoint: string,
  ): Promise<{ readonly isOfStore: boolean; readonly isServing: boolean } | undefined> {
    const timeoutMs = Math.min(PROBE_TIMEOUT_MS, this.#rpcDeadlineMs);
    const found = await this.#ports.transport.identify(endpoint, timeoutMs);
    if (found === undefined) return undefined;
    return {
      isOfStore: this.isOfStore(endpoint, found.nodeId),
      isServing: found.isServing,
    };
  }

  /** It answered, and told the version of its list. */
  answered(endpoint: string, version: number): void {
    const { clock, random } = this.#ports;
    const nowMs = clock.now();
    this.#note({ type: "answered", endpoint, nowMs });
    if (version === this.#servers.version && this.#servers.news === undefined) return;
    this.#servers = versionTold(this.#servers, {
      from: endpoint,
      version,
      nowMs,
      jitter: random(),
    });
    this.#fetchIfDue();
  }

  /** It refused for good: it is there and well. */
  refused(endpoint: string): void {
    this.#note({ type: "answered", endpoint, nowMs: this.#ports.clock.now() });
  }

  failed(endpoint: string, error: IdmintError): void {
    const { clock, random } = this.#ports;
    const nowMs = clock.now();
    const retryAfterMs = error.retryAfterMs ?? 0;
    this.#note({ type: "failed", endpoint, nowMs, jitter: random(), retryAfterMs });
    this.#emitFailure(endpoint, error, nowMs);
    const servers = serverLeft(this.#servers, endpoint);
    if (servers === this.#servers) return;
    this.#servers = servers;
    this.#forget(endpoint);
  }

  /** A learned address leads to a server that no list names: one of another store, or one that has just started. */
  foreign(endpoint: string): IdmintError {
    const { clock, random } = this.#ports;
    const nowMs = clock.now();
    this.#note({ type: "foreign", endpoint, nowMs, jitter: random() });
    const text = `${endpoint} is no server that the servers of this store list; nothing that it answers is used`;
    const error = new IdmintError("SERVER_UNAVAILABLE", text, { metadata: { server: endpoint } });
    this.#emitFailure(endpoint, error, nowMs);
    this.#wantList();
    return error;
  }

  /** A route whose moves cost the store something takes up a newer list at its own moment, so that not all move at once. */
  #orderOf(route: Route, nowMs: number): Order {
    const { listed, changedAtMs } = this.#servers;
    const known = this.#orders.get(route);
    if (known !== undefined) {
      const isDue = !route.isOrdered || nowMs >= changedAtMs + route.patience * MOVE_MS;
      if (known.of === listed || !isDue) return known.order;
    }
    const order = orderOf(this.#servers, this.#zone, route.key);
    this.#orders.set(route, { of: listed, order });
    return order;
  }

  #emitFailure(address: string, error: IdmintError, nowMs: number): void {
    const coolDownMs = Math.max(0, (this.#state.get(address)?.retryAtMs ?? nowMs) - nowMs);
    this.#ports.emit({ type: "endpoint-failed", address, error, coolDownMs });
  }

  async #probe(endpoint: string): Promise<void> {
    const { transport, clock, random } = this.#ports;
    const isProved = this.#state.get(endpoint)?.mode !== "unproved";
    this.#note({ type: "probeBegan", endpoint });
    const well = isProved
      ? await transport.isServing(endpoint, Math.min(PROBE_TIMEOUT_MS, this.#rpcDeadlineMs))
      : await this.#proves(endpoint);
    // A connection that does not answer may hang for long: the next look makes one of its own.
    if (well === undefined) transport.forget(endpoint);
    const nowMs = clock.now();
    this.#note({ type: "probed", endpoint, well: well === true, nowMs, jitter: random() });
  }

  async #assertThere(endpoint: string): Promise<void> {
    const timeoutMs = this.#rpcDeadlineMs * LOOK_SHARE;
    if ((await this.#ports.transport.isServing(endpoint, timeoutMs)) !== undefined) return;
    const text = `${endpoint} does not say within ${timeoutMs} ms whether it serves`;
    this.failed(endpoint, new IdmintError("SERVER_UNAVAILABLE", text));
  }

  async #proves(endpoint: string): Promise<boolean | undefined> {
    const found = await this.identify(endpoint);
    if (found === undefined) return undefined;
    if (!found.isOfStore) this.#wantList();
    return found.isOfStore && found.isServing;
  }

  /** Somebody answers whom the list does not name: it may be old. */
  #wantList(): void {
    const isWell = (endpoint: string): boolean => this.isWell(endpoint);
    const from = this.#servers.seeds.find(isWell) ?? [...this.#state.keys()].find(isWell);
    if (from === undefined) return;
    const { clock, random } = this.#ports;
    this.#servers = wantList(this.#servers, { from, nowMs: clock.now(), jitter: random() });
  }

  #fetchIfDue(): void {
    const from = fetchDue(this.#servers, this.#ports.clock.now());
    if (from !== undefined) void this.#fetch(from);
  }

  async #fetch(from: string): Promise<void> {
    this.#servers = fetchBegan(this.#servers);
    const { transport, clock, emit } = this.#ports;
    const list = await transport.listNodes(from, this.#rpcDeadlineMs);
    if (list === undefined) {
      this.#servers = fetchFailed(this.#servers);
      return;
    }
    const { listed } = this.#servers;
    const by = { from, nowMs: clock.now(), zone: this.#zone, clientId: this.#clientId };
    const isForeign = !this.isOfStore(from, list.nodeId);
    this.#servers = listFetched(this.#servers, list, by, isListedAddress);
    // Somebody else is asked next.
    if (isForeign) this.foreign(from);
    if (this.#servers.listed === listed) return;
    this.#takeUp();
    const servers = [...this.#servers.listed.values()];
    const inZone = servers.filter(({ zone }) => zone === this.#zone).length;
    emit({ type: "servers-listed", servers: servers.length, inZone });
  }

  #takeUp(): void {
    for (const address of this.#servers.left) {
      // Whoever left, and is not known to be well, is not worth another try. A connection to the others is not kept.
      if (this.isWell(address)) this.#ports.transport.forget(address);
      else this.#servers = serverLeft(this.#servers, address);
    }
    const learned = new Set(learnedOf(this.#servers));
    for (const endpoint of learned) this.#note({ type: "learned", endpoint });
    for (const endpoint of this.#state.keys()) {
      if (this.isLearned(endpoint) && !learned.has(endpoint)) this.#forget(endpoint);
    }
  }

  #forget(endpoint: string): void {
    this.#note({ type: "forgotten", endpoint });
    this.#lookedAtMs.delete(endpoint);
    this.#ports.transport.forget(endpoint);
  }

  #note(event: EndpointEvent): void {
    const before = this.#state.get(event.endpoint)?.mode;
    this.#state = nextEndpoints(this.#state, event);
    const after = this.#state.get(event.endpoint)?.mode;
    if (before !== undefined && before !== "well" && after === "well") {
      this.#ports.emit({ type: "endpoint-well", address: event.endpoint });
    }
  }
}

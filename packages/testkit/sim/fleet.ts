import { IdmintError } from "@idmint/core";
import { applyPlan, planTag, type Store } from "@idmint/core/server";
import type { Transport } from "../../client/src/servers/channel.ts";
import type { ServerEvent } from "../../server/src/service/events.ts";
import type { ExcludedName } from "./check/grant-log.ts";
import { Checker } from "./check/checker.ts";
import { accessSettings } from "./access/access-plan.ts";
import { Badges } from "./access/badges.ts";
import { Meetings } from "./check/meetings.ts";
import { Network } from "./world/network.ts";
import { simKind } from "./kinds.ts";
import { BEGIN_MS, type Plan } from "./plan.ts";
import { EventQueue } from "./world/queue.ts";
import { Dice } from "./world/random.ts";
import { Rpc } from "./world/rpc.ts";
import { SimRedis } from "./nodes/redis.ts";
import { RedisSite } from "./nodes/redis-site.ts";
import { SimSdk } from "./nodes/sdk.ts";
import { SimServer, type SimServerParts } from "./nodes/server.ts";
import { type PlantedStore, StoreSite } from "./nodes/store-site.ts";
import { type SimTicket, simTicket } from "./nodes/ticket.ts";
import { TicketSite } from "./nodes/ticket-site.ts";
import { strangerAt } from "./nodes/stranger.ts";
import { simStore } from "./nodes/store.ts";
import type { Caller } from "./nodes/transport.ts";
import { Trace } from "./world/trace.ts";
import { World } from "./world/world.ts";

const STORE_TIMEOUT_MS = 1_000;
const TICKET_DATABASES = ["a", "b", "c"] as const;
/** How long a server waits for Redis; for a store it waits longer. */
export const REDIS_TIMEOUT_MS = 500;
/** Maxima last for seconds, so that they are raised in a history. */
const REDIS_SETTINGS = { "redis.raise_below": "5s", "redis.raise_by": "10s" } as const;
/** Who runs a server starts it again when its start failed. */
const RESTART_MS = 1_000;
const MOST_OFFSET_MS = 2_000;
/** Clocks of machines that nobody corrects: within the share by which servers wait longer for others. */
const MOST_DRIFT = 0.002;

/** Faults that are planted in a fleet on purpose, to see that the checker notices them. */
export interface Planted {
  readonly store?: PlantedStore;
  /** Stands between a server and its store. */
  readonly serverStore?: (store: Store) => Store;
  /** Stands between a program's SDK and the network. */
  readonly transport?: (transport: Transport) => Transport;
  /** Changes code of the product for as long as the history runs; the answer takes that back. */
  readonly patch?: () => () => void;
}

export interface FleetOptions {
  readonly planted?: Planted;
  readonly sink?: ((line: string) => void) | undefined;
  /** Sentences of docs/guarantees.md that excuse nothing in this history, since what they are about cannot arise. */
  readonly noExcuses?: readonly ExcludedName[];
}

/** The nodes of a history, and all that stands between them. */
export class Fleet {
  readonly plan: Plan;
  readonly queue = new EventQueue();
  readonly trace: Trace;
  readonly checker: Checker;
  readonly meetings: Meetings;
  readonly network: Network;
  readonly rpc: Rpc;
  readonly site: StoreSite;
  readonly #redis: readonly RedisSite[];
  readonly #tickets: readonly TicketSite[];
  readonly badges: Badges;
  readonly addresses: readonly string[];
  readonly #planted: Planted;
  readonly #dice: Dice;
  readonly #servers: (SimServer | undefined)[] = [];
  readonly #sdks: (SimSdk | undefined)[] = [];
  readonly #lives = new Map<string, number>();
  readonly #deadSdks: SimSdk[] = [];
  readonly #onSdk: (sdk: SimSdk) => void;
  #strangers = 0;
  #isOver = false;

  /** `onSdk` is told of each program that begins. */
  constructor(
    plan: Plan,
    { planted = {}, sink, noExcuses }: FleetOptions,
    onSdk: (sdk: SimSdk) => void,
  ) {
    const { seed } = plan;
    this.plan = plan;
    this.addresses = Array.from({ length: plan.servers }, (_, at) => addressOf(at));
    this.trace = new Trace(this.queue, sink);
    this.checker = new Checker(this.queue, this.trace, noExcuses);
    this.meetings = new Meetings(plan.tags);
    this.network = new Network(seed, this.queue);
    this.rpc = new Rpc(this.network);
    this.badges = new Badges(seed, plan.access, plan.maxOfflineMs);
    this.site = new StoreSite(seed, this, planted.store);
    const names = plan.tags.some((tag) => simKind(tag).isInRedis) ? ["a"] : [];
    this.#redis = names.map((name) => new RedisSite(seed, name, this));
    const hasTickets = plan.tags.some(({ kind }) => kind === "ticket");
    const databases = hasTickets ? TICKET_DATABASES : [];
    this.#tickets = databases.map((name) => new TicketSite(seed, name, this));
    this.#planted = planted;
    this.#dice = new Dice(`${seed}/fleet`);
    this.#onSdk = onSdk;
  }

  /** Servers that run now, or start. */
  get servers(): readonly SimServer[] {
    return this.#servers.filter((server) => server !== undefined);
  }

  get sdks(): readonly SimSdk[] {
    return this.#sdks.filter((sdk) => sdk !== undefined);
  }

  /** How often each method was answered, the ones too that never were. */
  get methods(): ReadonlyMap<string, number> {
    const paths = this.servers[0]?.services?.api.keys() ?? [];
    return new Map([...[...paths].map((path) => [path, 0] as const), ...this.rpc.answered]);
  }

  redis(target: number): RedisSite | undefined {
    return this.#redis[target % Math.max(1, this.#redis.length)];
  }

  tickets(target: number): TicketSite | undefined {
    return this.#tickets[target % Math.max(1, this.#tickets.length)];
  }

  server(target: number): SimServer | undefined {
    return this.#servers[target % this.plan.servers];
  }

  sdk(target: number): SimSdk | undefined {
    return this.#sdks[target % this.plan.sdks];
  }

  serverName(target: number): string {
    return `s${(target % this.plan.servers) + 1}`;
  }

  sdkName(target: number): string {
    return `p${(target % this.plan.sdks) + 1}`;
  }

  /** A new life of a node. */
  world(place: string): World {
    const life = (this.#lives.get(place) ?? 0) + 1;
    this.#lives.set(place, life);
    const offsetMs = this.#dice.between(-MOST_OFFSET_MS, MOST_OFFSET_MS);
    const drift = this.#dice.between(-MOST_DRIFT, MOST_DRIFT);
    return new World(`${place}#${life}`, this.plan.seed, this.queue, { offsetMs, drift });
  }

  /** Whoever it is, as it calls a server. */
  caller(world: World): Caller {
    return { rpc: this.rpc, world, authorization: this.badges.of(world) };
  }

  storeOf(world: World): Store {
    const { site, network, queue } = this;
    return simStore({ world, site, network, queue, timeoutMs: STORE_TIMEOUT_MS });
  }

  get #settings(): SimServerParts["settings"] {
    const { acceptsAlone, access, limitTags, maxOfflineMs, pollMs } = this.plan;
    return {
      "store.timeout": `${STORE_TIMEOUT_MS}ms`,
      "node.max_offline": `${maxOfflineMs}ms`,
      "limits.tags": String(limitTags),
      poll_interval: `${pollMs}ms`,
      ...(acceptsAlone ? { epoch_gap: "1000000" } : {}),
      ...(this.#redis.length > 0 ? REDIS_SETTINGS : {}),
      ...accessSettings(access),
      drain_delay: "500ms",
      drain_time: "2s",
    };
  }

  startServer(target: number): void {
    const at = target % this.plan.servers;
    if (this.#isOver || this.#servers[at] !== undefined) return;
    const world = this.world(this.serverName(at));
    const store = this.#planted.serverStore?.(this.storeOf(world)) ?? this.storeOf(world);
    const server = new SimServer({
      world,
      instance: this.serverName(at),
      address: addressOf(at),
      store,
      redisServers: this.#redis.map((site) => this.#redisOf(world, site)),
      ticketDatabases: this.ticketsOf(world),
      rpc: this.rpc,
      settings: this.#settings,
      emit: (event) => this.#hear(world, event),
    });
    this.#servers[at] = server;
    this.trace.note(world.name, "starts");
    server.start().then(
      () => this.trace.note(world.name, "serves"),
      (thrown: unknown) => {
        const { reason } = IdmintError.from(thrown);
        this.trace.note(world.name, `does not start: ${reason}`);
        if (reason === "INTERNAL") this.checker.violate(`${world.name}: ${String(thrown)}`);
        this.#end(at, server, RESTART_MS);
      },
    );
  }

  /** All ticket databases, as a node reaches them. */
  ticketsOf(world: World): readonly SimTicket[] {
    const { network, queue } = this;
    const timeoutMs = STORE_TIMEOUT_MS;
    return this.#tickets.map((site) => simTicket({ world, site, network, queue, timeoutMs }));
  }

  /** An operator spreads the slots over some of the databases, and may die meanwhile. */
  moveSlots(target: number, size: number): void {
    const world = this.world("mover");
    const databases = this.ticketsOf(world);
    const names = databases.map(({ name }) => name);
    const to = names.filter((_, at) => at !== target % (names.length + 1));
    const [tag] = this.plan.tags.filter(({ kind }) => kind === "ticket");
    const kind = this.site.database.rows.get(tag?.name ?? "")?.kind;
    if (kind?.kind !== "ticket") return;
    this.trace.note(world.name, `moves slots to ${to.join(", ")}`);
    if (size < 0.5) world.killAfter(Math.floor(size * 40));
    void planTag(databases, kind.slotsId, to)
      .then((plan) => applyPlan(databases, plan))
      .then(
        () => this.trace.note(world.name, "has moved them"),
        (thrown: unknown) => {
          const { reason } = IdmintError.from(thrown);
          this.trace.note(world.name, `cannot move slots: ${reason}`);
          if (reason === "INTERNAL") this.checker.violate(String(thrown));
        },
      );
  }

  #redisOf(world: World, site: RedisSite): SimRedis {
    return new SimRedis({ world, site, network: this.network, timeoutMs: REDIS_TIMEOUT_MS });
  }

  /** Ends its process in the middle of what it does; it starts again after a while. */
  killServer(target: number, afterActions: number, restartMs: number): void {
    const at = target % this.plan.servers;
    const server = this.#servers[at];
    if (server === undefined) return;
    this.#cut(server.world, afterActions, () => this.#end(at, server, restartMs));
  }

  /** SIGTERM. */
  closeServer(target: number, restartMs: number): void {
    const at = target % this.plan.servers;
    const server = this.#servers[at];
    if (server?.isServing !== true) return;
    this.trace.note(server.world.name, "is told to stop");
    void server.close().then(() => this.#end(at, server, restartMs));
  }

  startSdk(target: number): void {
    const at = target % this.plan.sdks;
    if (this.#isOver || this.#sdks[at] !== undefined) return;
    const world = this.world(this.sdkName(at));
    const { addresses, rpc } = this;
    // Each knows some of the servers, and learns the others from them.
    const first = world.dice.int(0, addresses.length - 1);
    const known = [...addresses.slice(first), ...addresses.slice(0, first)].slice(0, 2);
    const options = { addresses: known, holdForMs: 5_000, min: world.dice.pick([1, 5, 50]) };
    const authorization = (): string | undefined => this.badges.of(world);
    const sdk = new SimSdk({ world, rpc, authorization }, options, this.#planted.transport);
    this.#sdks[at] = sdk;
    this.trace.note(world.name, "begins");
    this.#onSdk(sdk);
  }

  /**
   * For a while, an address leads programs that learned it to a server of another store. That one is a copy which was made a
   * moment ago: it has the same tags, and the rows of these servers.
   */
  misleadTo(target: number): () => void {
    const address = addressOf(target % this.plan.servers);
    const { plan, queue, rpc, site, trace } = this;
    const place = `x${++this.#strangers}`;
    const world = new World(`${place}#1`, plan.seed, queue);
    trace.note(world.name, `of another store is at ${address}`);
    return strangerAt({
      world,
      address,
      rpc,
      snapshot: site.database.snapshot(),
      settings: this.#settings,
      emit: (event) => this.#hear(world, event),
      misleads: (caller) =>
        this.sdks.some((sdk) => sdk.world === caller && !sdk.addresses.includes(address)),
    });
  }

  /** Every other server reaches a second primary. What counts elsewhere besides knows one store. */
  splitStore(target: number): (() => void) | undefined {
    const { plan, site } = this;
    if (this.#redis.length > 0 || this.#tickets.length > 0) return undefined;
    const all = Array.from({ length: plan.servers }, (_, at) => this.serverName(at));
    return site.split(all.filter((_, at) => (at + target) % 2 === 0));
  }

  killSdk(target: number, afterActions: number, restartMs: number): void {
    const at = target % this.plan.sdks;
    const sdk = this.#sdks[at];
    if (sdk === undefined) return;
    this.#cut(sdk.world, afterActions, () => {
      if (this.#sdks[at] !== sdk) return;
      this.#sdks[at] = undefined;
      this.#deadSdks.push(sdk);
      this.#startLater(restartMs, () => this.startSdk(at));
    });
  }

  /** It ends in order, and gives back what it holds. */
  closeSdk(target: number, restartMs: number): void {
    const at = target % this.plan.sdks;
    const sdk = this.#sdks[at];
    if (sdk === undefined || sdk.isClosing) return;
    this.trace.note(sdk.world.name, "is closed");
    void sdk.close().then(() => {
      sdk.world.kill();
      if (this.#sdks[at] !== sdk) return undefined;
      this.#sdks[at] = undefined;
      this.#startLater(restartMs, () => this.startSdk(at));
      return undefined;
    });
  }

  /** Its event loop stops; the answer lets it go on. */
  pause(world: World | undefined, isSuspended: boolean): (() => void) | undefined {
    if (world === undefined || world.isStopped) return undefined;
    this.trace.note(world.name, isSuspended ? "is suspended" : "is paused");
    world.stop(isSuspended);
    return () => {
      this.trace.note(world.name, "goes on");
      world.goOn();
    };
  }

  /** Nothing starts again from now on. */
  async close(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.sdks.map((sdk) => sdk.close()));
    await Promise.all(this.servers.map((server) => server.close()));
  }

  /** What the process of the simulation counts of programs that were killed. Nothing of it acts. */
  forget(): void {
    for (const { world, client } of [...this.#deadSdks, ...this.sdks]) {
      world.kill();
      void client.close();
    }
  }

  #cut(world: World, afterActions: number, dead: () => void): void {
    world.killAfter(afterActions);
    const look = (leftMs: number): void => {
      if (leftMs <= 0) world.kill();
      if (!world.isDead) {
        this.queue.after(1, () => look(leftMs - 1));
        return;
      }
      this.trace.note(world.name, "is dead");
      dead();
    };
    look(afterActions === 0 ? 0 : 50);
  }

  #end(at: number, server: SimServer, restartMs: number): void {
    server.world.kill();
    server.end();
    if (this.#servers[at] !== server) return;
    this.#servers[at] = undefined;
    this.#startLater(restartMs, () => this.startServer(at));
  }

  /** After this time, or soon after nothing goes wrong any more. */
  #startLater(ms: number, start: () => void): void {
    const stormLeftMs = BEGIN_MS + this.plan.stormMs - this.queue.now;
    this.queue.after(Math.min(ms, Math.max(RESTART_MS, stormLeftMs)), start);
  }

  #hear({ name }: World, event: ServerEvent): void {
    if (event.type !== "internal-error") return;
    this.checker.violate(
      `${name}: an error that nobody foresaw, in ${event.where}: ${String(event.cause)}`,
    );
  }
}

function addressOf(at: number): string {
  return `10.0.0.${at + 1}:7600`;
}

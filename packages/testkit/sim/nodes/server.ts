import type { Store } from "@idmint/core/server";
import { callerOf, DEFAULT_DEADLINE_MS, DoorCall } from "../../../server/src/api/caller.ts";
import { draining } from "../../../server/src/api/draining.ts";
import { statusOf } from "../../../server/src/api/status/status.ts";
import { type ConfigSources, loadConfig } from "../../../server/src/config/load.ts";
import type { Config } from "../../../server/src/config/table.ts";
import { follow } from "../../../server/src/main/following.ts";
import { Running } from "../../../server/src/main/running.ts";
import { createServices, type Services } from "../../../server/src/main/services.ts";
import type { ElectedRedis } from "../../../server/src/service/redis/redis-tags.ts";
import type { Emit } from "../../../server/src/service/events.ts";
import type { System } from "../../../server/src/service/system.ts";
import { StoreWait } from "../../../server/src/service/upstream/store-wait.ts";
import { InFlight } from "../../../server/src/in-flight.ts";
import type { Incoming, IncomingStream, Listener, Reply, Rpc, StreamEnd } from "../world/rpc.ts";
import { KEY, KEY_ID } from "../kinds.ts";
import type { SimTicket } from "./ticket.ts";
import { uuidsOf } from "./text-makers.ts";
import { ServerStream } from "./server-stream.ts";
import type { World } from "../world/world.ts";

export interface SimServerParts {
  readonly world: World;
  readonly instance: string;
  readonly address: string;
  readonly store: Store;
  readonly redisServers: readonly ElectedRedis[];
  readonly ticketDatabases: readonly SimTicket[];
  readonly rpc: Pick<Rpc, "listen">;
  readonly settings: NonNullable<ConfigSources["defaults"]>;
  readonly emit: Emit;
}

const KEYS = new Map([[KEY_ID, KEY]]);
const NO_FLAGS = { pretenuring: "unavailable", heapGrowth: "unavailable" } as const;
/** Configurations by what they are read from: reading one takes longer than a second of a history. */
const configs = new Map<string, Config>();

function configOf(settings: SimServerParts["settings"]): Config {
  const key = JSON.stringify(settings);
  const config = configs.get(key) ?? loadConfig({ defaults: settings });
  configs.set(key, config);
  return config;
}

/** What a server's services need of the machine, out of its world. */
function systemOf(world: World): System {
  return {
    clock: world.clock,
    timers: world,
    afterTurn: (run) => world.afterTurn(run),
    // Simulated work takes no time.
    idleMs: () => world.now(),
    random: () => world.dice.next(),
    randomBytes: (count) => world.dice.bytes(count),
    randomToken: () => world.dice.token(),
    wallClock: () => Math.floor(world.wall()),
    uuids: uuidsOf(world),
    process: { hostname: world.name, pid: world.dice.int(1, 32_000) },
  };
}

/** A call as a door hands it to the table of methods. */
class SimCall extends DoorCall {
  readonly peer: string;
  readonly caller: string;
  readonly #deadline: () => number;
  readonly #authorization: string | undefined;

  constructor(
    { access }: Services,
    { peer, authorization }: Pick<Incoming, "peer" | "authorization">,
    deadline: () => number,
  ) {
    super(access);
    this.peer = peer;
    this.caller = callerOf(peer);
    this.#authorization = authorization;
    this.#deadline = deadline;
  }

  get deadline(): number {
    return this.#deadline();
  }

  authorization(): string | undefined {
    return this.#authorization;
  }

  certificateNames(): readonly string[] {
    return [];
  }
}

/**
 * A server: what `startServer` puts together behind its doors and in front of its store, with the real parts. What is missing are
 * the doors themselves, telemetry, and files.
 */
export class SimServer implements Listener {
  readonly world: World;
  readonly address: string;
  readonly #parts: SimServerParts;
  readonly #broken = new Set<() => void>();
  readonly #streams = new Set<ServerStream>();
  readonly #waiting: InFlight;
  #inFlight = 0;
  #services: Services | undefined;
  #running: Running | undefined;
  #stopListening: (() => void) | undefined;

  constructor(parts: SimServerParts) {
    this.#parts = parts;
    this.world = parts.world;
    this.address = parts.address;
    this.#waiting = new InFlight(parts.world);
  }

  get isServing(): boolean {
    return this.#running !== undefined && !this.world.isDead;
  }

  /** Its name in the store. */
  get id(): string | undefined {
    return this.#services?.presence.id;
  }

  get services(): Services | undefined {
    return this.#services;
  }

  /** Calls that wait for an answer. */
  get inFlight(): number {
    return this.#inFlight;
  }

  /** Rejects when the store did not answer for too long. */
  async start(): Promise<void> {
    const { world, instance, store, rpc, settings, emit, ...places } = this.#parts;
    const { redisServers, ticketDatabases } = places;
    const config = { ...configOf(settings), instance };
    const system = systemOf(world);
    const services = createServices(config, { store, emit, system, places, keys: KEYS });
    this.#services = services;
    const storeWait = new StoreWait({ ...system, emit }, config.storeStartTimeoutMs);
    const grpc = {
      recheck: (): void => {
        for (const stream of this.#streams) stream.recheck();
      },
    };
    await follow(services, undefined, { system, store, emit, config, grpc, storeWait });
    services.redis.start();
    this.#stopListening = rpc.listen(this.address, this);
    services.presence.advertise(this.address);
    this.#running = new Running({
      ...config,
      ...system,
      services,
      stores: [store, ...redisServers, ...ticketDatabases],
      telemetry: { metrics: undefined, stop: () => Promise.resolve() },
      grpc: this.#door(),
      http: undefined,
      emit,
      flush: () => Promise.resolve(),
      grpcAddress: this.address,
      adminAddress: "",
      httpAddress: "",
      v8Flags: NO_FLAGS,
    });
  }

  async answer({ path, bytes, timeoutMs, onAbort, ...from }: Incoming): Promise<Reply> {
    const services = this.#services;
    if (services === undefined) throw new Error("a call before the start");
    const handler = services.api.get(path);
    if (handler?.kind !== "unary") throw new Error(`no method ${path}`);
    const deadline = this.world.now() + timeoutMs;
    const call = new SimCall(services, from, () => deadline);
    onAbort(() => call.abort());
    const ended = this.#begun();
    try {
      return { bytes: await handler.handle(bytes, call) };
    } catch (thrown) {
      const { counters } = services;
      return { status: statusOf(thrown, path, { counters, emit: this.#parts.emit }) };
    } finally {
      ended();
    }
  }

  open(stream: IncomingStream): StreamEnd {
    const services = this.#services;
    const handler = services?.api.get(stream.path);
    if (services === undefined || handler?.kind !== "stream") throw new Error("no stream");
    const call = new SimCall(services, stream, () => this.world.now() + DEFAULT_DEADLINE_MS);
    const opened = new ServerStream(handler, stream, call, {
      ...services,
      emit: this.#parts.emit,
      begun: () => this.#begun(),
      onEnd: (ended) => this.#streams.delete(ended),
    });
    this.#streams.add(opened);
    opened.recheck();
    return opened;
  }

  whenBroken(broken: () => void): () => void {
    this.#broken.add(broken);
    return () => this.#broken.delete(broken);
  }

  /** SIGTERM. */
  async close(): Promise<void> {
    await this.#running?.close();
    this.end();
  }

  /** Its process is gone: connections break. */
  end(): void {
    this.#stopListening?.();
    for (const broken of this.#broken) broken();
    this.#broken.clear();
  }

  #door(): ConstructorParameters<typeof Running>[0]["grpc"] {
    return {
      connections: 0,
      leave: () => undefined,
      refuse: () => undefined,
      stay: () => undefined,
      limitStreams: () => new Set(),
      idle: (boundMs) => this.#waiting.idle(boundMs),
      close: () => {
        for (const stream of this.#streams) stream.stop(draining("stopping"));
        return Promise.resolve();
      },
    };
  }

  /** A call waits for its answer, until the answer is called. */
  #begun(): () => void {
    this.#inFlight++;
    this.#waiting.begun();
    return () => {
      this.#inFlight--;
      this.#waiting.ended();
    };
  }
}

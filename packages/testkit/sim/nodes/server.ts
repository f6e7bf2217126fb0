import type { Store } from "@idmint/core/server";
import { callerOf, DoorCall } from "../../../server/src/api/caller.ts";
import { statusOf } from "../../../server/src/api/status/status.ts";
import { type ConfigSources, loadConfig } from "../../../server/src/config/load.ts";
import type { Config } from "../../../server/src/config/table.ts";
import { follow } from "../../../server/src/main/following.ts";
import { Running } from "../../../server/src/main/running.ts";
import { createServices, type Services } from "../../../server/src/main/services.ts";
import type { Emit } from "../../../server/src/service/events.ts";
import type { System } from "../../../server/src/service/system.ts";
import { StoreWait } from "../../../server/src/service/upstream/store-wait.ts";
import type { Incoming, Listener, Reply, Rpc } from "../world/rpc.ts";
import type { World } from "../world/world.ts";

export interface SimServerParts {
  readonly world: World;
  readonly instance: string;
  readonly address: string;
  readonly store: Store;
  readonly rpc: Rpc;
  readonly settings: NonNullable<ConfigSources["defaults"]>;
  readonly emit: Emit;
}

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
    randomToken: () => world.dice.token(),
    wallClock: () => Math.floor(world.wall()),
  };
}

/** No stream is open whose caller may have lost the right to it. */
const NO_STREAMS = { recheck: (): void => undefined };

/** A call as a door hands it to the table of methods. */
class SimCall extends DoorCall {
  readonly deadline: number;
  readonly peer: string;
  readonly caller: string;

  constructor(services: Services, deadline: number, peer: string) {
    super(services.access);
    this.deadline = deadline;
    this.peer = peer;
    this.caller = callerOf(peer);
  }

  authorization(): undefined {
    return undefined;
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
  readonly #idle: (() => void)[] = [];
  #inFlight = 0;
  #services: Services | undefined;
  #running: Running | undefined;
  #stopListening: (() => void) | undefined;

  constructor(parts: SimServerParts) {
    this.#parts = parts;
    this.world = parts.world;
    this.address = parts.address;
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
    const { world, instance, store, rpc, settings, emit } = this.#parts;
    const config = { ...configOf(settings), instance };
    const system = systemOf(world);
    const services = createServices(config, { store, emit, system });
    this.#services = services;
    const storeWait = new StoreWait({ ...system, emit }, config.storeStartTimeoutMs);
    await follow(services, undefined, { system, store, emit, config, grpc: NO_STREAMS, storeWait });
    services.redis.start();
    this.#stopListening = rpc.listen(this.address, this);
    services.presence.advertise(this.address);
    this.#running = new Running({
      ...config,
      ...system,
      services,
      stores: [store],
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

  async answer({ path, bytes, timeoutMs, peer, onAbort }: Incoming): Promise<Reply> {
    const services = this.#services;
    if (services === undefined) throw new Error("a call before the start");
    const handler = services.api.get(path);
    if (handler?.kind !== "unary") throw new Error(`no method ${path}`);
    const call = new SimCall(services, this.world.now() + timeoutMs, peer);
    onAbort(() => call.abort());
    this.#inFlight++;
    try {
      return { bytes: await handler.handle(bytes, call) };
    } catch (thrown) {
      const { counters } = services;
      return { status: statusOf(thrown, path, { counters, emit: this.#parts.emit }) };
    } finally {
      this.#inFlight--;
      if (this.#inFlight === 0) for (const run of this.#idle.splice(0)) run();
    }
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
      idle: (boundMs) => this.#untilIdle(boundMs),
      close: () => Promise.resolve(),
    };
  }

  #untilIdle(boundMs: number): Promise<void> {
    if (this.#inFlight === 0) return Promise.resolve();
    const { promise, resolve } = Promise.withResolvers<void>();
    const cancel = this.world.after(boundMs, resolve);
    this.#idle.push(resolve);
    return promise.finally(cancel);
  }
}

import type { Socket } from "node:net";
import { IdmintError } from "@idmint/core";
import { type Config, OPTIONS } from "../config/table.ts";
import type { HttpDoor } from "../http/door.ts";
import { type Probes, probeRoutes } from "../http/probes.ts";
import { Front, type Takers } from "../processes/front.ts";
import type { DoorName, Start } from "../processes/messages.ts";
import { Processes } from "../processes/processes.ts";
import { SpawnedProcess } from "../processes/spawned-process.ts";
import { type Emit, emitter } from "../service/events.ts";
import { logEvents } from "../telemetry/log-events.ts";
import { createLogger } from "../telemetry/logger.ts";
import { scraped } from "../telemetry/scrape.ts";
import { startServer } from "./app.ts";
import { MAX_ADMIN_CONNECTIONS } from "./doors/grpc.ts";
import { createHttpDoor } from "./doors/http.ts";
import { withRoom } from "./doors/room.ts";
import { listen } from "./neighbours.ts";
import { longestStopMs, type Serving } from "./running.ts";
import { expectedOfAll } from "../store/pins/expected.ts";
import { openStoreMemory, type StoreMemory } from "../store/pins/memory.ts";
import { memoryBytes, realSystem } from "./system.ts";

/** On top of what a process waits for its store: for its code, and for all that it asks the store then. */
const START_MARGIN_MS = 60_000;
/** On top of what a process needs to stop: for the messages between processes on a busy machine. */
const STOP_MARGIN_MS = 2_000;

/**
 * Starts a server in as many processes as `processes` says; with one it is this process. Rejects as `startServer` does,
 * and nothing is left behind then.
 * `signal` ends a start that waits for its store.
 */
export function startServing(config: Config, signal?: AbortSignal): Promise<Serving> {
  if (config.processes > 1) return startProcesses(config, { signal });
  return startServer(config, signal === undefined ? {} : { signal });
}

/**
 * The composition root of the parent of several processes. It has the ports, answers the probes for all and looks after
 * the processes; it opens no store and makes no ids.
 */
export async function startProcesses(
  asked: Config,
  {
    makesDemoTag = false,
    signal,
  }: { readonly makesDemoTag?: boolean; readonly signal?: AbortSignal | undefined } = {},
): Promise<Serving> {
  const { logLevel: level, logFormat: format } = asked;
  const log = createLogger({ level, format });
  const emit = emitter([logEvents(log.logger, () => realSystem.clock.now())]);
  const config = withRoom(asked, memoryBytes(), emit);
  const { storeExpectId, storeMoreUrls, snowflakeCacheFile: cacheFile } = config;
  const expected = expectedOfAll(storeExpectId, storeMoreUrls.keys());
  const onFailed = (error: IdmintError): void => emit({ type: "pin-file-failed", error });
  const memory = await openStoreMemory({ expected, cacheFile, onFailed });
  const parent = new Parent(config, { makesDemoTag, memory, emit, flush: () => log.flush() });
  const stop = (): void => parent.stopStart();
  signal?.addEventListener("abort", stop);
  try {
    await parent.start();
    return parent;
  } catch (error) {
    await parent.undo();
    throw error;
  } finally {
    signal?.removeEventListener("abort", stop);
  }
}

interface ParentParts {
  readonly makesDemoTag: boolean;
  readonly memory: StoreMemory;
  readonly emit: Emit;
  readonly flush: () => Promise<void>;
}

class Parent implements Serving {
  readonly #config: Config;
  readonly #makesDemoTag: boolean;
  readonly #memory: StoreMemory;
  readonly #emit: Emit;
  readonly #flush: () => Promise<void>;
  readonly #processes: Processes;
  readonly #front: Front;
  readonly #adminFront: Front | undefined;
  readonly #httpFront: Front | undefined;
  readonly #probes: Probes;
  /** Answers probes on connections of HTTP that no process takes. */
  #http: HttpDoor | undefined;
  #scraping: Promise<string> | undefined;
  #isFirst = true;
  #grpcAddress = "";
  #adminAddress = "";
  #httpAddress = "";
  #closed: Promise<void> | undefined;
  /** Until when its processes answer although they were told to stop; undefined: they were not, or were told to hurry. */
  #answersUntil: number | undefined;

  constructor(config: Config, { makesDemoTag, memory, emit, flush }: ParentParts) {
    this.#config = config;
    this.#makesDemoTag = makesDemoTag;
    this.#memory = memory;
    this.#emit = emit;
    this.#flush = flush;
    const { clock, timers, random } = realSystem;
    const options = {
      count: config.processes,
      startLimitMs: config.storeStartTimeoutMs + START_MARGIN_MS,
      stopLimitMs: longestStopMs(config) + STOP_MARGIN_MS,
    };
    this.#processes = new Processes(options, {
      spawn: (at, listener) => new SpawnedProcess(this.#startOf(at), clock, listener),
      metrics: () => this.#metrics(),
      settle: (place, storeId) => this.#settle(place, storeId),
      entered: (incarnation) => void memory.entered(incarnation),
      onServing: () => this.#fronts.forEach((front) => front.offer()),
      onStopping: () => this.#fronts.forEach((front) => front.stopWaiting()),
      clock,
      timers,
      random,
      emit,
    });
    const onRefused = (peer: string, why: string): void =>
      emit({ type: "connection-refused", peer, why });
    const limits = { maxConnections: config.limitConnections, onRefused };
    const takers = (door: DoorName): Takers => {
      const processes = this.#processes;
      return { hand: (socket, onClosed) => processes.hand(socket, door, onClosed) };
    };
    const { adminAddress, httpAddress } = config;
    this.#front = new Front({ ...config.grpcAddress, ...limits }, takers("grpc"));
    if (adminAddress !== undefined) {
      const forAdmins = { ...limits, maxConnections: MAX_ADMIN_CONNECTIONS };
      this.#adminFront = new Front({ ...adminAddress, ...forAdmins }, takers("admin"));
    }
    if (httpAddress !== "none") {
      const otherwise = (socket: Socket): void => this.#http?.reserve(socket);
      this.#httpFront = new Front({ ...httpAddress, ...limits, otherwise }, takers("http"));
    }
    this.#probes = {
      ready: () => this.#processes.status(),
      grpcAddress: () => this.#grpcAddress,
      metrics: config.metricsCollect === "on" ? () => this.#metrics() : undefined,
    };
  }

  get grpcAddress(): string {
    return this.#grpcAddress;
  }

  get adminAddress(): string {
    return this.#adminAddress;
  }

  get httpAddress(): string {
    return this.#httpAddress;
  }

  /** Takes all ports before it starts a process. */
  async start(): Promise<void> {
    const { grpcAddress, adminAddress, httpAddress } = this.#config;
    if (this.#httpFront !== undefined && httpAddress !== "none") {
      const ports = { clock: realSystem.clock, emit: this.#emit };
      this.#http = await createHttpDoor(this.#config, probeRoutes(this.#probes), ports);
      this.#httpAddress = await listen(this.#httpFront, OPTIONS.httpAddress, httpAddress);
    }
    if (this.#adminFront !== undefined && adminAddress !== undefined) {
      this.#adminAddress = await listen(this.#adminFront, OPTIONS.adminAddress, adminAddress);
    }
    this.#grpcAddress = await listen(this.#front, OPTIONS.grpcAddress, grpcAddress);
    await this.#processes.start();
    const { grpcAddress: grpc, adminAddress: admin, httpAddress: http } = this;
    this.#emit({ type: "serving", grpcAddress: grpc, adminAddress: admin, httpAddress: http });
  }

  /** Ends a start that is under way; `start` rejects when no process is left. */
  stopStart(): void {
    this.#processes.close().catch(() => undefined);
  }

  /** Undoes a start that failed: no process is left then, only ports. */
  async undo(): Promise<void> {
    for (const front of this.#fronts) front.close();
    await this.#http?.close(0);
    await this.#memory.close();
    await this.#flush();
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  kill(): void {
    this.#processes.kill();
  }

  hurry(): boolean {
    const until = this.#answersUntil ?? 0;
    if (realSystem.clock.now() >= until) return false;
    this.#answersUntil = undefined;
    this.#processes.hurry();
    return true;
  }

  async #close(): Promise<void> {
    const { drainDelayMs: delayMs } = this.#config;
    this.#emit({ type: "draining", delayMs });
    this.#answersUntil = realSystem.clock.now() + delayMs;
    try {
      await this.#processes.close();
    } finally {
      this.#emit({ type: "processes-stopped" });
      await this.undo();
    }
  }

  /** One collection at a time, whoever asks meanwhile. */
  #metrics(): Promise<string> {
    this.#scraping ??= scraped({ collect: () => this.#processes.metrics() }, this.#emit).finally(
      () => {
        this.#scraping = undefined;
      },
    );
    return this.#scraping;
  }

  /** The first process that finds a store decides for all. */
  async #settle(place: string, storeId: string): Promise<string | undefined> {
    try {
      return await this.#memory.settle(place, storeId);
    } catch (error) {
      this.#emit({ type: "pin-file-failed", error: IdmintError.from(error) });
      return undefined;
    }
  }

  get #fronts(): readonly Front[] {
    return [this.#front, this.#adminFront, this.#httpFront].filter((each) => each !== undefined);
  }

  #startOf(at: number): Start {
    const makesDemoTag = this.#makesDemoTag && at === 0 && this.#isFirst;
    // Not when that process is started again: somebody may have deleted the tag since.
    if (at === 0) this.#isFirst = false;
    return {
      type: "start",
      process: at + 1,
      config: { ...this.#config, processes: 1 },
      grpcPort: this.#front.port,
      adminPort: this.#adminFront?.port ?? 0,
      httpPort: this.#httpFront?.port ?? 0,
      makesDemoTag,
      known: this.#memory.known,
    };
  }
}

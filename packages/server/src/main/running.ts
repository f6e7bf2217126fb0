import { bounded, type Timers } from "@idmint/core";
import type { Store } from "@idmint/core/server";
import { draining } from "../api/draining.ts";
import { encodedFigures } from "../api/nodes/figures.ts";
import type { Config } from "../config/table.ts";
import type { Counters } from "../service/counters.ts";
import type { DrainedDoor } from "../service/drain.ts";
import type { Emit, V8Flags } from "../service/events.ts";
import type { FiguresRequest } from "../service/figures/fleet.ts";
import { GIVE_BACK_MS } from "../service/issue/give-back.ts";
import type { NodeService } from "../service/node.ts";
import type { TagService } from "../service/tags/service.ts";
import type { Metrics } from "../telemetry/metrics/metrics.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import { type Services, STORE_GRACE_MS } from "./services.ts";

/** How long the last answers may take to be sent, once everything else is done. */
const CLOSE_GRACE_MS = 1_000;
/** How long the store may take to close; one that hangs must not keep the process. */
const STORE_CLOSE_MS = 2_000;
const TICK_MS = 1_000;

/** What listens, in one process or in several. */
export interface Serving {
  /** host:port, with the port that was taken. */
  readonly grpcAddress: string;
  /** For administrators; empty: they are served at grpcAddress. */
  readonly adminAddress: string;
  /** Empty: there is none. */
  readonly httpAddress: string;
  /**
   * Stops: NOT_SERVING at once, DRAINING after `drain_delay`, calls in flight may finish for `drain_time`, then nothing is
   * issued any more, what is unused goes back to the store, and everything is closed. Calling it again answers the same
   * promise.
   */
  close(): Promise<void>;
  /** While it stops: refuses calls now, and not when `drain_delay` is over. False: it refuses them already. */
  hurry(): boolean;
  /** Ends the other processes of this server at once, where there are any. */
  kill?(): void;
}

/** What a running server is. */
export interface RunningServer extends Serving {
  readonly node: NodeService;
  readonly tags: TagService;
  readonly counters: Readonly<Counters>;
  /** Undefined: none are collected. */
  readonly metrics: Pick<Metrics, "collect"> | undefined;
  /** What ListFigures tells of this process, encoded. */
  figures(request: FiguresRequest): Uint8Array;
}

/** Longest that `close` takes: the delay, the calls in flight, giving back, and the closing. */
export function longestStopMs(
  config: Pick<Config, "drainDelayMs" | "drainTimeMs" | "storeTimeoutMs">,
): number {
  return (
    config.drainDelayMs +
    config.drainTimeMs +
    GIVE_BACK_MS +
    config.storeTimeoutMs +
    STORE_GRACE_MS +
    CLOSE_GRACE_MS +
    3 * STORE_CLOSE_MS
  );
}

/** What a running server needs of the door that carries its calls. */
interface CallDoor extends Pick<DrainedDoor, "leave" | "refuse" | "stay"> {
  readonly connections: number;
  limitStreams(held: ReadonlyMap<string, number>): ReadonlySet<string>;
  idle(boundMs: number): Promise<void>;
  close(graceMs: number): Promise<void>;
}

interface HttpPort {
  readonly connections: number;
  leave(): void;
  stay(): void;
  idle(boundMs: number): Promise<void>;
  close(graceMs: number): Promise<void>;
}

export interface RunningParts {
  readonly services: Services;
  readonly stores: readonly Pick<Store, "close">[];
  readonly telemetry: Pick<Telemetry, "metrics" | "stop">;
  readonly timers: Timers;
  readonly grpc: CallDoor;
  /** Undefined: HTTP is not served. */
  readonly http: HttpPort | undefined;
  readonly emit: Emit;
  readonly flush: () => Promise<void>;
  readonly grpcAddress: string;
  readonly adminAddress: string;
  readonly httpAddress: string;
  readonly drainDelayMs: number;
  readonly drainTimeMs: number;
  readonly v8Flags: V8Flags;
}

/** A server that listens. One ticker samples the buffers and updates its health. */
export class Running implements RunningServer {
  readonly grpcAddress: string;
  readonly adminAddress: string;
  readonly httpAddress: string;
  readonly #parts: RunningParts;
  #stopTicker: (() => void) | undefined;
  #sampling = false;
  #closed: Promise<void> | undefined;

  constructor(parts: RunningParts) {
    this.#parts = parts;
    const { grpcAddress, adminAddress, httpAddress, v8Flags, services, emit } = parts;
    this.grpcAddress = grpcAddress;
    this.adminAddress = adminAddress;
    this.httpAddress = httpAddress;
    this.#openDrain();
    services.audit.start();
    this.#tickLater();
    emit({ type: "serving", grpcAddress, adminAddress, httpAddress, v8Flags });
  }

  #openDrain(): void {
    const { services, grpc, http } = this.#parts;
    const { drain, health, node } = services;
    const update = (): void => health.setServing(node.ready);
    update();
    // It may start drained.
    if (drain.leaving !== undefined) http?.leave();
    drain.open({
      leave: (forMs) => {
        grpc.leave(forMs);
        http?.leave();
      },
      refuse: () => grpc.refuse(),
      stay: () => {
        grpc.stay();
        http?.stay();
      },
      idle: (boundMs) => grpc.idle(boundMs),
      update,
    });
  }

  get node(): NodeService {
    return this.#parts.services.node;
  }

  get tags(): TagService {
    return this.#parts.services.tags;
  }

  get metrics(): Metrics | undefined {
    return this.#parts.telemetry.metrics;
  }

  figures(request: FiguresRequest): Uint8Array {
    return encodedFigures(this.#parts.services.told, request);
  }

  get counters(): Readonly<Counters> {
    return this.#parts.services.counters;
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  hurry(): boolean {
    return this.#parts.services.drain.hurry();
  }

  async #close(): Promise<void> {
    const { services, grpc, http, stores, telemetry, timers, emit, flush } = this.#parts;
    const atMost = (boundMs: number, work: Promise<unknown>): Promise<void> =>
      settledWithin(boundMs, work, timers);
    const { drain, health, poll, directory } = services;
    const { drainDelayMs, drainTimeMs } = this.#parts;
    emit({ type: "draining", delayMs: drain.leaving === undefined ? drainDelayMs : 0 });
    await drain.stop();
    services.admission.stop();
    await Promise.all([grpc.idle(drainTimeMs), http?.idle(drainTimeMs)]);
    this.#stopTicker?.();
    poll.stop();
    services.access.stop();
    services.clocks.watch.stop();
    services.redis.stop();
    services.capacity.stop();
    services.told.figures.stop();
    const { givenBack, wasted } = await directory.drain(draining("stopping"));
    if (services.ledger !== undefined) await atMost(STORE_CLOSE_MS, services.ledger.close());
    // A server that keeps leases goes on with them, and with the same row.
    if (services.clocks.keeper?.hasTime !== true)
      await atMost(STORE_CLOSE_MS, services.nodes.leave());
    health.close();
    await Promise.all([grpc.close(CLOSE_GRACE_MS), http?.close(CLOSE_GRACE_MS)]);
    await atMost(STORE_CLOSE_MS, services.audit.stop());
    await atMost(STORE_CLOSE_MS, Promise.all(stores.map((store) => store.close())));
    emit({ type: "stopped", givenBack, wasted });
    await telemetry.stop();
    await flush();
  }

  #tickLater(): void {
    this.#stopTicker = this.#parts.timers.after(TICK_MS, () => {
      this.#tickLater();
      void this.#tick();
    });
  }

  async #tick(): Promise<void> {
    const { services, grpc, http, emit } = this.#parts;
    const { directory, health, node, counters, presence } = services;
    presence.check();
    // While the store is away all rows stand still, so what was known before is right more often.
    services.admission.check(services.poll.reachable ? services.nodes.live : undefined);
    services.admission.narrowed(grpc.limitStreams(services.admission.held));
    health.setServing(node.ready);
    counters.connections = grpc.connections + (http?.connections ?? 0);
    if (this.#sampling) return;
    this.#sampling = true;
    try {
      await directory.sample();
    } catch (cause) {
      emit({ type: "internal-error", where: "the ticker", cause });
    }
    this.#sampling = false;
  }
}

/** Waits until the work has settled, but not longer than `boundMs`. */
async function settledWithin(
  boundMs: number,
  work: Promise<unknown>,
  timers: Timers,
): Promise<void> {
  const settled = work.catch(() => undefined);
  await bounded(settled, boundMs, timers, () => undefined);
}

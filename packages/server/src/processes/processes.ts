import type { Socket } from "node:net";
import { type Clock, IdmintError, type Random, type Timers } from "@idmint/core";
import type { Emit } from "../service/events.ts";
import { pick } from "./balance.ts";
import type { WorkerEnd, WorkerListener, WorkerPort } from "./spawned-process.ts";
import {
  onWorkersEvent,
  startWorkers,
  type WorkersEffect,
  type WorkersEvent,
  type WorkersState,
} from "./processes-state.ts";

/** Longest start of one worker. Its store has its own time-outs, so this limit is for a worker that hangs. */
const START_LIMIT_MS = 60_000;

export interface WorkersPorts {
  /** Starts the process of a worker, numbered from 0. The listener is called later, never at once. */
  readonly spawn: (worker: number, listener: WorkerListener) => WorkerPort;
  /** A worker has begun to take connections. */
  readonly onServing: () => void;
  /** They are stopping: connections that no worker takes now will not be taken. */
  readonly onStopping: () => void;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
  readonly emit: Emit;
}

export interface WorkersOptions {
  readonly count: number;
  /** How long all of them may take to stop. Those that take longer are killed. */
  readonly stopLimitMs: number;
}

/** What the probes say of all workers together. */
export interface WorkersStatus {
  /** At least one is ready, and they are not draining. */
  readonly ready: boolean;
  /** SERVING when all are; STARTING, DRAINING; DEGRADED otherwise. */
  readonly state: string;
  readonly workers: { readonly total: number; readonly ready: number };
}

/** The worker processes behind one address: runs what `workers-state.ts` decides, and hands connections out. */
export class Workers {
  readonly #options: WorkersOptions;
  readonly #ports: WorkersPorts;
  readonly #state: WorkersState;
  readonly #begin: readonly WorkersEffect[];
  /** By worker; undefined when there is no process. */
  readonly #processes: (WorkerPort | undefined)[];
  /** Of each worker: what cancels its start limit or its back-off. */
  readonly #timers: ((() => void) | undefined)[];
  readonly #started = Promise.withResolvers<void>();
  readonly #over = Promise.withResolvers<void>();
  #lastError: Error | undefined;
  #startError: Error | undefined;
  #cancelStopLimit: (() => void) | undefined;
  #last = -1;
  #killed = 0;

  constructor(options: WorkersOptions, ports: WorkersPorts) {
    this.#options = options;
    this.#ports = ports;
    [this.#state, this.#begin] = startWorkers(options.count);
    this.#processes = this.#state.workers.map(() => undefined);
    this.#timers = this.#state.workers.map(() => undefined);
    // A caller that closes early may never have waited for the start.
    this.#started.promise.catch(() => undefined);
  }

  /** Fulfils when all serve. Rejects with the error of the first that did not, when none is left. */
  async start(): Promise<void> {
    this.#run(this.#begin);
    await this.#started.promise;
  }

  status(): WorkersStatus {
    const { phase } = this.#state;
    const total = this.#processes.length;
    const well = this.#serving().filter((each) => each?.isReady === true && !each.isSilent);
    const ready = well.length;
    const workers = { total, ready };
    if (phase === "starting") return { ready: false, state: "STARTING", workers };
    if (phase !== "serving") return { ready: false, state: "DRAINING", workers };
    const isWhole = ready === total && well.every((each) => each?.state === "SERVING");
    return { ready: ready > 0, state: isWhole ? "SERVING" : "DEGRADED", workers };
  }

  /** Connections that workers have. */
  get open(): number {
    return this.#processes.reduce((sum, each) => sum + (each?.open ?? 0), 0);
  }

  /** Hands a connection to a worker; false when none takes any now. */
  hand(socket: Socket): boolean {
    const candidates = this.#serving();
    const at = pick(candidates, this.#last);
    if (at === undefined) return false;
    this.#last = at;
    candidates[at]?.hand(socket);
    return true;
  }

  /** Drains all at once, and fulfils when all have ended. Rejects when some had to be killed. May be called again. */
  async close(): Promise<void> {
    this.#on({ type: "stop" });
    await this.#over.promise;
    if (this.#killed === 0) return;
    throw new IdmintError(
      "INTERNAL",
      `worker processes that did not stop in time were killed: ${this.#killed}; their unused ids are a gap`,
    );
  }

  /** Ends all at once. */
  kill(): void {
    this.#on({ type: "force" });
  }

  /** The processes that take connections; a draining one answers for itself that it does. */
  #serving(): readonly (WorkerPort | undefined)[] {
    return this.#processes.map((each, at) => {
      const worker = this.#state.workers[at];
      return worker?.servingSince === undefined ? undefined : each;
    });
  }

  #on(event: WorkersEvent): void {
    this.#run(onWorkersEvent(this.#state, event));
  }

  #run(effects: readonly WorkersEffect[]): void {
    for (const effect of effects) this.#do(effect);
  }

  #do(effect: WorkersEffect): void {
    switch (effect.type) {
      case "spawn":
        this.#spawn(effect.worker);
        break;
      case "wait":
        this.#after(effect.worker, effect.delayMs, "due");
        break;
      case "drain":
        this.#processes[effect.worker]?.drain();
        this.#boundStop();
        break;
      case "kill":
        if (this.#state.phase === "stopping") this.#killed++;
        this.#processes[effect.worker]?.kill();
        break;
      case "started":
        this.#started.resolve();
        break;
      case "start-failed":
        // Told when all are gone.
        this.#startError = this.#lastError;
        break;
      case "over":
        this.#ended();
        break;
    }
  }

  #spawn(worker: number): void {
    this.#after(worker, START_LIMIT_MS, "late");
    this.#processes[worker] = this.#ports.spawn(worker, {
      onServing: () => this.#served(worker),
      onEnd: (end) => this.#gone(worker, end),
    });
  }

  #served(worker: number): void {
    this.#timers[worker]?.();
    const pid = this.#processes[worker]?.pid ?? 0;
    this.#ports.emit({ type: "worker-serving", worker: worker + 1, pid });
    this.#on({ type: "serving", worker, now: this.#ports.clock.now() });
    this.#ports.onServing();
  }

  #gone(worker: number, { code, signal, error }: WorkerEnd): void {
    const { clock, random, emit } = this.#ports;
    this.#timers[worker]?.();
    const pid = this.#processes[worker]?.pid ?? 0;
    this.#processes[worker] = undefined;
    this.#lastError = error ?? endError(worker + 1, code, signal);
    const effects = onWorkersEvent(this.#state, {
      type: "ended",
      worker,
      now: clock.now(),
      jitter: random(),
    });
    const wait = effects.find((effect) => effect.type === "wait");
    const restartInMs = wait === undefined ? undefined : Math.round(wait.delayMs);
    emit({ type: "worker-ended", worker: worker + 1, pid, code, signal, error, restartInMs });
    this.#run(effects);
  }

  #after(worker: number, delayMs: number, type: "due" | "late"): void {
    this.#timers[worker] = this.#ports.timers.after(delayMs, () => this.#on({ type, worker }));
  }

  #boundStop(): void {
    if (this.#cancelStopLimit !== undefined) return;
    const { stopLimitMs } = this.#options;
    this.#cancelStopLimit = this.#ports.timers.after(stopLimitMs, () =>
      this.#on({ type: "force" }),
    );
    this.#ports.onStopping();
  }

  #ended(): void {
    this.#cancelStopLimit?.();
    for (const cancel of this.#timers) cancel?.();
    const stopped = new IdmintError("DRAINING", "it was told to stop while it started");
    this.#started.reject(this.#startError ?? stopped);
    this.#over.resolve();
  }
}

function endError(worker: number, code: number | null, signal: NodeJS.Signals | null): Error {
  const how = signal === null ? `with exit code ${code}` : `by ${signal}`;
  return new IdmintError("INTERNAL", `worker ${worker} ended ${how} before it took calls`);
}

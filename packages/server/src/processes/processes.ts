import type { Socket } from "node:net";
import { type Clock, IdmintError, type Random, type Timers } from "@idmint/core";
import type { Emit } from "../service/events.ts";
import type { FiguresRequest } from "../service/figures/fleet.ts";
import { metricsOfSeveral } from "../telemetry/metrics/several.ts";
import type { MetricSnapshot } from "../telemetry/metrics/table.ts";
import { pick } from "./balance.ts";
import type { DoorName, Probe, ProbeAnswer } from "./messages.ts";
import type { ProcessEnd, ProcessListener, ProcessPort } from "./spawned-process.ts";
import {
  onProcessesEvent,
  startProcesses,
  type ProcessesEffect,
  type ProcessesEvent,
  type ProcessesState,
} from "./processes-state.ts";

export interface ProcessesPorts {
  /** Starts the process of a number, from 0. The listener is called later, never at once. */
  readonly spawn: (process: number, listener: ProcessListener) => ProcessPort;
  /** What the metrics of all processes are as text; rejects when they cannot be collected. */
  readonly metrics: () => Promise<string>;
  /** Which store a place belongs to, for all processes; undefined where that cannot be kept. */
  readonly settle: (place: string, storeId: string) => Promise<string | undefined>;
  /** The store's history is this one now. */
  readonly entered: (incarnation: string) => void;
  /** A process has begun to take connections. */
  readonly onServing: () => void;
  /** They are stopping: connections that no process takes now will not be taken. */
  readonly onStopping: () => void;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
  readonly emit: Emit;
}

export interface ProcessesOptions {
  readonly count: number;
  /** Longest start of one process. It waits for its store by itself, so this limit is for a process that hangs. */
  readonly startLimitMs: number;
  /** How long all of them may take to stop. Those that take longer are killed. */
  readonly stopLimitMs: number;
}

/** What the probes say of all processes together. */
export interface ProcessesStatus {
  /** At least one is ready, and they are not draining. */
  readonly ready: boolean;
  /**
   * SERVING or STOPPED when all are; STARTING; DRAINING when they stop or an operator drained all; DEGRADED otherwise.
   */
  readonly state: string;
  /** Why none is ready, where an operator wants that. */
  readonly reason?: string;
  readonly processes: { readonly total: number; readonly ready: number };
}

/** The processes behind one address: runs what `processes-state.ts` decides, and hands connections out. */
export class Processes {
  readonly #options: ProcessesOptions;
  readonly #ports: ProcessesPorts;
  readonly #state: ProcessesState;
  readonly #begin: readonly ProcessesEffect[];
  /** By number; undefined when there is no process. */
  readonly #processes: (ProcessPort | undefined)[];
  /** Of each number: what cancels its start limit or its back-off. */
  readonly #timers: ((() => void) | undefined)[];
  readonly #started = Promise.withResolvers<void>();
  readonly #over = Promise.withResolvers<void>();
  #lastError: Error | undefined;
  #startError: Error | undefined;
  #cancelStopLimit: (() => void) | undefined;
  #last = -1;
  #killed = 0;

  constructor(options: ProcessesOptions, ports: ProcessesPorts) {
    this.#options = options;
    this.#ports = ports;
    [this.#state, this.#begin] = startProcesses(options.count);
    this.#processes = this.#state.processes.map(() => undefined);
    this.#timers = this.#state.processes.map(() => undefined);
    // A caller that closes early may never have waited for the start.
    this.#started.promise.catch(() => undefined);
  }

  /** Fulfils when all serve. Rejects with the error of the first that did not, when none is left. */
  async start(): Promise<void> {
    this.#run(this.#begin);
    await this.#started.promise;
  }

  status(): ProcessesStatus {
    const { phase } = this.#state;
    const total = this.#processes.length;
    const well = this.#serving().filter((each) => each?.isReady === true && !each.isSilent);
    const ready = well.length;
    const processes = { total, ready };
    if (phase === "starting") return { ready: false, state: "STARTING", processes };
    if (phase !== "serving") return { ready: false, state: "DRAINING", processes };
    const reasons = this.#serving().map((each) => each?.reason ?? "");
    const [reason = ""] = reasons;
    if (reasons.every((one) => one !== "")) {
      return { ready: false, state: "DRAINING", reason, processes };
    }
    const areAll = (state: string): boolean =>
      ready === total && well.every((each) => each?.state === state);
    const state = ["SERVING", "STOPPED"].find(areAll) ?? "DEGRADED";
    return { ready: ready > 0, state, processes };
  }

  /** The metrics of all processes that serve. */
  async metrics(): Promise<MetricSnapshot> {
    const all = this.#serving().map(async (each, at) => {
      return { process: at + 1, metrics: await each?.collect() };
    });
    return metricsOfSeveral(await Promise.all(all));
  }

  /** The figures of all but one of them, encoded. One that hangs is not asked, so that it has no pile to answer later. */
  async #figuresOfOthers(
    than: number,
    request: FiguresRequest,
    timeoutMs: number,
  ): Promise<readonly Uint8Array[]> {
    const others = this.#serving().filter((_, at) => at !== than);
    const asked = others.filter((each) => each?.isSilent === false);
    const told = await Promise.all(asked.map(async (each) => each?.figures(request, timeoutMs)));
    return told.filter((each) => each !== undefined);
  }

  /**
   * Hands a connection to a process, and tells when it has ended; answers what closes it for somebody else. Undefined when none
   * takes any now. Of HTTP none goes to one that is silent, since the parent can answer probes by itself.
   */
  hand(socket: Socket, door: DoorName, onClosed: () => void): (() => void) | undefined {
    const candidates = this.#serving();
    const at = pick(candidates, this.#last);
    if (at === undefined) return undefined;
    if (door === "http" && candidates[at]?.isSilent === true) return undefined;
    this.#last = at;
    return candidates[at]?.hand(socket, door, onClosed);
  }

  /** Drains all at once, and fulfils when all have ended. Rejects when some had to be killed. May be called again. */
  async close(): Promise<void> {
    this.#on({ type: "stop" });
    await this.#over.promise;
    if (this.#killed === 0) return;
    throw new IdmintError(
      "INTERNAL",
      `processes that did not stop in time were killed: ${this.#killed}; their unused ids are a gap`,
    );
  }

  /** While they stop: refuses calls now, and not when `drain_delay` is over. */
  hurry(): void {
    for (const process of this.#processes) process?.drain();
  }

  /** Ends all at once. */
  kill(): void {
    this.#on({ type: "force" });
  }

  /** The processes that take connections; a draining one answers for itself that it does. */
  #serving(): readonly (ProcessPort | undefined)[] {
    return this.#processes.map((each, at) => {
      const process = this.#state.processes[at];
      return process?.servingSince === undefined ? undefined : each;
    });
  }

  #on(event: ProcessesEvent): void {
    this.#run(onProcessesEvent(this.#state, event));
  }

  #run(effects: readonly ProcessesEffect[]): void {
    for (const effect of effects) this.#do(effect);
  }

  #do(effect: ProcessesEffect): void {
    switch (effect.type) {
      case "spawn":
        this.#spawn(effect.process);
        break;
      case "wait":
        this.#after(effect.process, effect.delayMs, "due");
        break;
      case "drain":
        this.#processes[effect.process]?.drain();
        this.#boundStop();
        break;
      case "kill":
        if (this.#state.phase === "stopping") this.#killed++;
        this.#processes[effect.process]?.kill();
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

  #spawn(process: number): void {
    this.#after(process, this.#options.startLimitMs, "late");
    this.#processes[process] = this.#ports.spawn(process, {
      onServing: () => this.#served(process),
      onProbe: (of) => this.#probed(of),
      onFigures: (request, timeoutMs) => this.#figuresOfOthers(process, request, timeoutMs),
      onSettle: (place, storeId) => this.#ports.settle(place, storeId),
      onEntered: (incarnation) => this.#ports.entered(incarnation),
      onEnd: (end) => this.#gone(process, end),
    });
  }

  async #probed(of: Probe): Promise<ProbeAnswer> {
    if (of === "ready") return { ready: this.status() };
    try {
      return { metrics: await this.#ports.metrics() };
    } catch {
      return {};
    }
  }

  #served(process: number): void {
    this.#timers[process]?.();
    const pid = this.#processes[process]?.pid ?? 0;
    this.#ports.emit({ type: "process-serving", process: process + 1, pid });
    this.#on({ type: "serving", process, now: this.#ports.clock.now() });
    this.#ports.onServing();
  }

  #gone(process: number, { code, signal, error }: ProcessEnd): void {
    const { clock, random, emit } = this.#ports;
    this.#timers[process]?.();
    const pid = this.#processes[process]?.pid ?? 0;
    this.#processes[process] = undefined;
    this.#lastError = error ?? endError(process + 1, code, signal);
    const effects = onProcessesEvent(this.#state, {
      type: "ended",
      process,
      now: clock.now(),
      jitter: random(),
    });
    const wait = effects.find((effect) => effect.type === "wait");
    const restartInMs = wait === undefined ? undefined : Math.round(wait.delayMs);
    emit({ type: "process-ended", process: process + 1, pid, code, signal, error, restartInMs });
    this.#run(effects);
  }

  #after(process: number, delayMs: number, type: "due" | "late"): void {
    this.#timers[process] = this.#ports.timers.after(delayMs, () => this.#on({ type, process }));
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
    const stopped = new IdmintError("CALL_CANCELLED", "told to stop while it started");
    this.#started.reject(this.#startError ?? stopped);
    this.#over.resolve();
  }
}

function endError(process: number, code: number | null, signal: NodeJS.Signals | null): Error {
  const how = signal === null ? `with exit code ${code}` : `by ${signal}`;
  return new IdmintError("INTERNAL", `process ${process} ended ${how} before it took calls`);
}

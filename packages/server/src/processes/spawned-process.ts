import { type ChildProcess, fork } from "node:child_process";
import type { Socket } from "node:net";
import { fileURLToPath } from "node:url";
import { type Clock, IdmintError } from "@idmint/core";
import type { FiguresRequest } from "../service/figures/fleet.ts";
import type { MetricSnapshot } from "../telemetry/metrics/table.ts";
import { nodeTimers } from "../timers.ts";
import type { Candidate } from "./balance.ts";
import {
  type DoorName,
  errorOf,
  type Probe,
  type ProbeAnswer,
  type Start,
  type ToParent,
  type ToProcess,
} from "./messages.ts";
import { Questions } from "./questions.ts";

/** A process reports its health every second. One that missed three reports hangs, or was stopped. */
const SILENT_AFTER_MS = 3_500;
/** How long a scrape waits for the metrics of one process. */
const COLLECT_MS = 2_000;

/** How a process ended. */
export interface ProcessEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** What it said was wrong, or why there never was a process. */
  readonly error: Error | undefined;
}

/** What is told of a process. */
export interface ProcessListener {
  /** It takes connections from now on. */
  readonly onServing: () => void;
  /** It wants to know what a probe is told. Never rejects. */
  readonly onProbe: (of: Probe) => Promise<ProbeAnswer>;
  /** It found this store at a place; answers which one belongs there, or nothing where that cannot be kept. */
  readonly onSettle: (place: string, storeId: string) => Promise<string | undefined>;
  /** It works in this history of the store. */
  readonly onEntered: (incarnation: string) => void;
  /** It asks for the figures of the others; answers those that come in time. */
  readonly onFigures: (
    request: FiguresRequest,
    timeoutMs: number,
  ) => Promise<readonly Uint8Array[]>;
  /** Once, and the last. */
  readonly onEnd: (end: ProcessEnd) => void;
}

/** What the parent does with a process. */
export interface ProcessPort extends Candidate {
  readonly pid: number | undefined;
  /** Its state in words, as NodeService says it; STARTING before it serves. */
  readonly state: string;
  /** Why an operator wants no callers sent to it; empty otherwise. */
  readonly reason: string;
  /** Its metrics; undefined: it did not tell them in time. */
  collect(): Promise<MetricSnapshot | undefined>;
  /** Its figures, encoded; undefined: it did not tell them in time. */
  figures(request: FiguresRequest, timeoutMs: number): Promise<Uint8Array | undefined>;
  /** Hands a connection over; `onClosed` is told when it has ended. Answers what closes it for somebody else. */
  hand(socket: Socket, door: DoorName, onClosed: () => void): () => void;
  drain(): void;
  kill(): void;
}

/** One process, seen from the parent. */
export class SpawnedProcess implements ProcessPort {
  readonly #clock: Clock;
  readonly #listener: ProcessListener;
  readonly #child: ChildProcess | undefined;
  /** Sent but not yet confirmed, by their numbers. */
  readonly #inTransit = new Map<number, Socket>();
  /** Who is told that they ended, by their numbers: the connections that it has. */
  readonly #open = new Map<number, () => void>();
  #handed = 0;
  #ready = false;
  #state = "STARTING";
  #reason = "";
  #heardAt: number;
  #error: Error | undefined;
  readonly #collecting = new Questions<MetricSnapshot>(nodeTimers);
  readonly #telling = new Questions<Uint8Array>(nodeTimers);
  #hasEnded = false;

  constructor(start: Start, clock: Clock, listener: ProcessListener) {
    this.#clock = clock;
    this.#listener = listener;
    this.#heardAt = clock.now();
    try {
      this.#child = this.#fork();
    } catch (thrown) {
      this.#error = IdmintError.from(thrown);
      setImmediate(() => this.#end(null, null));
      return;
    }
    this.#send(start);
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  get state(): string {
    return this.#state;
  }

  get reason(): string {
    return this.#reason;
  }

  get open(): number {
    return this.#open.size;
  }

  get isReady(): boolean {
    return this.#ready;
  }

  get isSilent(): boolean {
    return this.#clock.now() - this.#heardAt > SILENT_AFTER_MS;
  }

  hand(socket: Socket, door: DoorName, onClosed: () => void): () => void {
    const number = this.#handed++;
    this.#open.set(number, onClosed);
    this.#inTransit.set(number, socket);
    this.#send({ type: "connection", door, number }, socket);
    return () => this.#send({ type: "give-way", door, number });
  }

  async collect(): Promise<MetricSnapshot | undefined> {
    return this.#collecting.ask((number) => this.#send({ type: "collect", number }), COLLECT_MS);
  }

  async figures(request: FiguresRequest, timeoutMs: number): Promise<Uint8Array | undefined> {
    const ask = (number: number): void => this.#send({ type: "tell-figures", number, request });
    return this.#telling.ask(ask, timeoutMs);
  }

  drain(): void {
    this.#send({ type: "drain" });
  }

  kill(): void {
    this.#child?.kill("SIGKILL");
  }

  #fork(): ChildProcess {
    // Beside this file, as .ts unbuilt and as .js built.
    const file = import.meta.url.endsWith(".ts") ? "./process-main.ts" : "./process-main.js";
    const child = fork(fileURLToPath(new URL(file, import.meta.url)), [], {
      serialization: "advanced",
      // Stdout is data, and this process has none.
      stdio: ["ignore", "ignore", "inherit", "ipc"],
    });
    child.on("message", (message: unknown) => this.#hear(message as ToParent));
    // `close` comes after the last message, `exit` may come before it.
    child.once("close", (code, signal) => this.#end(code, signal));
    child.on("error", (error) => {
      this.#error ??= error;
      // There never was a process, so it will not end.
      if (child.pid === undefined) this.#end(null, null);
    });
    return child;
  }

  #send(message: ToProcess, socket?: Socket): void {
    const failed = (error: Error | null): void => {
      // The process is about to end, and its connections with it.
      if (error !== null) socket?.destroy();
    };
    if (this.#child?.connected !== true) failed(new Error("the process is gone"));
    else if (socket === undefined) this.#child.send(message, failed);
    else this.#child.send(message, socket, {}, failed);
  }

  #hear(message: ToParent): void {
    this.#heardAt = this.#clock.now();
    switch (message.type) {
      case "serving":
        this.#listener.onServing();
        break;
      case "failed":
        this.#error = errorOf(message.fault);
        break;
      case "health":
        this.#ready = message.ready;
        this.#state = message.state;
        this.#reason = message.reason;
        break;
      case "metrics":
        this.#collecting.answered(message.number, message.metrics);
        break;
      case "figures":
        this.#telling.answered(message.number, message.told);
        break;
      case "ask-figures":
        void this.#askFigures(message);
        break;
      case "probe":
        void this.#tellProbe(message.number, message.of);
        break;
      case "settle":
        void this.#settle(message);
        break;
      case "entered":
        this.#listener.onEntered(message.incarnation);
        break;
      case "connections":
        for (const number of message.taken) this.#inTransit.delete(number);
        for (const number of message.closed) this.#closed(number);
        break;
    }
  }

  #closed(number: number): void {
    const onClosed = this.#open.get(number);
    this.#open.delete(number);
    onClosed?.();
  }

  async #settle({
    number,
    place,
    storeId,
  }: Extract<ToParent, { readonly type: "settle" }>): Promise<void> {
    const settled = await this.#listener.onSettle(place, storeId);
    this.#send({ type: "settled", number, storeId: settled });
  }

  async #tellProbe(number: number, of: Probe): Promise<void> {
    this.#send({ type: "probed", number, answer: await this.#listener.onProbe(of) });
  }

  async #askFigures({
    number,
    request,
    timeoutMs,
  }: Extract<ToParent, { readonly type: "ask-figures" }>): Promise<void> {
    const told = await this.#listener.onFigures(request, timeoutMs);
    this.#send({ type: "told-figures", number, told });
  }

  #end(code: number | null, signal: NodeJS.Signals | null): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    // These were still waiting to be sent. Of those that were sent, nothing is left in this process.
    for (const socket of this.#inTransit.values()) socket.destroy();
    for (const number of this.#open.keys()) this.#closed(number);
    this.#collecting.end();
    this.#telling.end();
    this.#listener.onEnd({ code, signal, error: this.#error });
  }
}

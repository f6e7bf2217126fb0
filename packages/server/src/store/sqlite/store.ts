import { Worker } from "node:worker_threads";
import { type AcceptStore, type Store, storeUnavailable } from "@idmint/core";
import type { SqliteConfig } from "../shared/config.ts";
import { storeClosed } from "../shared/failures.ts";
import {
  assertBatch,
  assertGap,
  assertGrants,
  assertLease,
  assertMarks,
  assertNames,
  assertPage,
  assertRaise,
  assertRenewal,
  MAX_BATCH,
} from "../shared/limits.ts";
import { monotonicMs } from "./database.ts";
import { locate } from "./location.ts";
import { deadlineOf } from "./open.ts";
import { type Answer, type Calls, fromWire, type Request, type WorkerData } from "./protocol.ts";

/** Most requests that wait for the worker. */
const MAX_PENDING = 10_000;
/** Shortest time between two starts of the worker, in milliseconds. */
const RESTART_PAUSE_MS = 1_000;

interface Pending {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
  readonly timer: NodeJS.Timeout;
}

/**
 * The SQLite store as the main thread sees it: every call is a message to a worker thread, so a slow disk or a locked
 * file never holds up the event loop.
 *
 * Modes: open (a worker runs), broken (the worker died; the next call starts another), closed.
 */
export class SqliteStore implements Store, AcceptStore {
  readonly backend = "sqlite";
  readonly maxBatch: number = MAX_BATCH;
  readonly schemaVersion: number;
  readonly #config: SqliteConfig;
  readonly #clockOffset: SharedArrayBuffer | undefined;
  readonly #pending = new Map<number, Pending>();
  #worker: Worker | undefined;
  #startedAtMs: number;
  #nextId = 1;
  #closing: Promise<void> | undefined;

  private constructor({ config, clockOffset }: WorkerData, worker: Worker, schemaVersion: number) {
    this.#config = config;
    this.#clockOffset = clockOffset;
    this.schemaVersion = schemaVersion;
    this.#worker = worker;
    this.#startedAtMs = monotonicMs();
    this.#listen(worker);
  }

  /** `clockOffset` is for tests; see WorkerData. */
  static async open(config: SqliteConfig, clockOffset?: SharedArrayBuffer): Promise<SqliteStore> {
    // Once: a thread that takes over later opens the same file, wherever links lead by then.
    const data: WorkerData = { config: locate(config), clockOffset };
    const worker = startWorker(data);
    const schemaVersion = await opened(worker, deadlineOf(config));
    return new SqliteStore(data, worker, schemaVersion);
  }

  async grant(requests: Parameters<Calls["grant"]>[0]): ReturnType<Calls["grant"]> {
    assertGrants(requests);
    return requests.length === 0 ? [] : this.#call("grant", [requests]);
  }

  async raise(...args: Parameters<Calls["raise"]>): ReturnType<Calls["raise"]> {
    assertRaise(args[0]);
    return this.#call("raise", args);
  }

  async exchangeMarks(
    ...args: Parameters<Calls["exchangeMarks"]>
  ): ReturnType<Calls["exchangeMarks"]> {
    assertMarks(...args);
    return this.#call("exchangeMarks", args);
  }

  async giveBack(...args: Parameters<Calls["giveBack"]>): ReturnType<Calls["giveBack"]> {
    assertBatch(args[0]);
    return args[0].length === 0 ? [] : this.#call("giveBack", args);
  }

  async createTag(...args: Parameters<Calls["createTag"]>): ReturnType<Calls["createTag"]> {
    return this.#call("createTag", args);
  }

  async getTags(...args: Parameters<Calls["getTags"]>): ReturnType<Calls["getTags"]> {
    assertNames(args[0]);
    return this.#call("getTags", args);
  }

  async listTags(...args: Parameters<Calls["listTags"]>): ReturnType<Calls["listTags"]> {
    assertPage(args[0].limit);
    return this.#call("listTags", args);
  }

  async listPeriods(...args: Parameters<Calls["listPeriods"]>): ReturnType<Calls["listPeriods"]> {
    assertPage(args[0].limit);
    return this.#call("listPeriods", args);
  }

  async updateTag(...args: Parameters<Calls["updateTag"]>): ReturnType<Calls["updateTag"]> {
    return this.#call("updateTag", args);
  }

  async advanceTag(...args: Parameters<Calls["advanceTag"]>): ReturnType<Calls["advanceTag"]> {
    return this.#call("advanceTag", args);
  }

  async returnToPeriod(
    ...args: Parameters<Calls["returnToPeriod"]>
  ): ReturnType<Calls["returnToPeriod"]> {
    return this.#call("returnToPeriod", args);
  }

  async setTagState(...args: Parameters<Calls["setTagState"]>): ReturnType<Calls["setTagState"]> {
    return this.#call("setTagState", args);
  }

  async leaseWorker(...args: Parameters<Calls["leaseWorker"]>): ReturnType<Calls["leaseWorker"]> {
    assertLease(args[0]);
    return this.#call("leaseWorker", args);
  }

  async renewWorker(...args: Parameters<Calls["renewWorker"]>): ReturnType<Calls["renewWorker"]> {
    assertRenewal(args[0]);
    return this.#call("renewWorker", args);
  }

  async releaseWorker(
    ...args: Parameters<Calls["releaseWorker"]>
  ): ReturnType<Calls["releaseWorker"]> {
    return this.#call("releaseWorker", args);
  }

  async listWorkers(...args: Parameters<Calls["listWorkers"]>): ReturnType<Calls["listWorkers"]> {
    assertPage(args[0].limit);
    return this.#call("listWorkers", args);
  }

  async changes(...args: Parameters<Calls["changes"]>): ReturnType<Calls["changes"]> {
    assertNames(args[0].watched);
    assertPage(args[0].limit);
    return this.#call("changes", args);
  }

  async forgetNodes(...args: Parameters<Calls["forgetNodes"]>): ReturnType<Calls["forgetNodes"]> {
    assertNames(args[0]);
    return args[0].length === 0 ? 0 : this.#call("forgetNodes", args);
  }

  async accept(...args: Parameters<Calls["accept"]>): ReturnType<Calls["accept"]> {
    assertGap(args[0]);
    return this.#call("accept", args);
  }

  /** Lets the requests before it end, then closes the file. Once is enough; again does no harm. */
  async close(): Promise<void> {
    this.#closing ??= this.#end();
    await this.#closing;
  }

  async #end(): Promise<void> {
    const worker = this.#worker;
    if (worker === undefined) return;
    const ended = new Promise<void>((resolve) => worker.once("exit", () => resolve()));
    const request: Request = { close: true };
    worker.postMessage(request);
    // A worker that hangs in a system call cannot be asked; its thread ends with the process.
    const timer = setTimeout(() => void worker.terminate(), deadlineOf(this.#config));
    await ended;
    clearTimeout(timer);
  }

  async #call<Name extends keyof Calls>(
    call: Name,
    args: readonly unknown[],
  ): Promise<Awaited<ReturnType<Calls[Name]>>> {
    if (this.#closing !== undefined) throw storeClosed();
    if (this.#pending.size >= MAX_PENDING)
      throw storeUnavailable("too many requests wait for the store");
    const worker = this.#running();
    const timeoutMs = deadlineOf(this.#config);
    const id = this.#nextId++;
    const value = await new Promise<unknown>((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#pending.delete(id);
        reject(storeUnavailable(`the store did not answer within ${timeoutMs} ms`));
      }, timeoutMs);
      this.#pending.set(id, { resolve, reject, timer });
      const request: Request = { id, call, args, deadlineMs: monotonicMs() + timeoutMs };
      worker.postMessage(request);
    });
    return value as Awaited<ReturnType<Calls[Name]>>;
  }

  #running(): Worker {
    if (this.#worker !== undefined) return this.#worker;
    const now = monotonicMs();
    if (now - this.#startedAtMs < RESTART_PAUSE_MS) {
      throw storeUnavailable("the store's thread has ended and is started again in a second");
    }
    this.#startedAtMs = now;
    const worker = startWorker({ config: this.#config, clockOffset: this.#clockOffset });
    this.#worker = worker;
    this.#listen(worker);
    return worker;
  }

  #listen(worker: Worker): void {
    worker.on("message", (answer: Answer) => this.#settle(worker, answer));
    worker.on("error", (error: unknown) => this.#lose(worker, error));
    worker.on("exit", () => this.#lose(worker, new Error("the thread has ended")));
  }

  #settle(worker: Worker, answer: Answer): void {
    if ("opened" in answer) return;
    if ("refused" in answer) {
      this.#lose(worker, fromWire(answer.refused));
      return;
    }
    const pending = this.#pending.get(answer.id);
    // Nobody waits for it any more: a grant that comes this late is burnt.
    if (pending === undefined) return;
    this.#pending.delete(answer.id);
    clearTimeout(pending.timer);
    if ("error" in answer) pending.reject(fromWire(answer.error));
    else pending.resolve(answer.value);
  }

  /** The worker is gone: what it was asked has an unknown outcome. */
  #lose(worker: Worker, cause: unknown): void {
    if (this.#worker !== worker) return;
    this.#worker = undefined;
    for (const { reject, timer } of this.#pending.values()) {
      clearTimeout(timer);
      reject(storeUnavailable("the store's thread has ended", cause));
    }
    this.#pending.clear();
  }
}

/** The worker's file lies beside this one, as .ts unbuilt and as .js built. */
const YOUNG_MB = 4;

function startWorker(workerData: WorkerData): Worker {
  const file = import.meta.url.endsWith(".ts") ? "./worker.ts" : "./worker.js";
  // Its objects live for one message; without a bound V8 lets them pile up to tens of megabytes before it looks.
  const resourceLimits = { maxYoungGenerationSizeMb: YOUNG_MB };
  return new Worker(new URL(file, import.meta.url), {
    name: "idmint-sqlite",
    workerData,
    resourceLimits,
  });
}

async function opened(worker: Worker, timeoutMs: number): Promise<number> {
  try {
    return await new Promise<number>((resolve, reject) => {
      const timer = setTimeout(() => {
        reject(storeUnavailable(`the store could not be opened within ${timeoutMs} ms`));
      }, timeoutMs + 2_000);
      worker.once("message", (answer: Answer) => {
        clearTimeout(timer);
        if ("opened" in answer) resolve(answer.opened.schemaVersion);
        else if ("refused" in answer) reject(fromWire(answer.refused));
      });
      worker.once("error", (error) => {
        clearTimeout(timer);
        reject(storeUnavailable("the store's thread could not start", error));
      });
    });
  } catch (error) {
    await worker.terminate();
    throw error;
  }
}

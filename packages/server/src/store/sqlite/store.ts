import { Worker as Thread } from "node:worker_threads";
import {
  type CallAnswers,
  type CallArgs,
  MAX_BATCH,
  type Store,
  type StoreCall,
  storeCalls,
  storeUnavailable,
} from "@idmint/core/server";
import { ACCEPT_TIMEOUT_MS, type SqliteConfig } from "../shared/config.ts";
import { passingPins, type StorePins } from "../pins/pin.ts";
import { storeClosed } from "../shared/failures.ts";
import { monotonicMs } from "./file/connection.ts";
import { isThere, locate } from "./file/location.ts";
import { deadlineOf } from "./open.ts";
import { type Answer, fromWire, type Opened, type Request, type ThreadData } from "./protocol.ts";

/** Most requests that wait for the thread. */
const MAX_PENDING = 10_000;
/** Shortest time between two starts of the thread, in milliseconds. */
const RESTART_PAUSE_MS = 1_000;

interface Pending {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
  readonly timer: NodeJS.Timeout;
}

/**
 * Opens the SQLite store as the main thread sees it: every call is a message to a thread of its own, so a slow disk or a
 * locked file never holds up the event loop. `clockOffset` is for tests; see ThreadData.
 */
export async function open(
  config: SqliteConfig,
  pins: StorePins = passingPins(),
  clockOffset?: SharedArrayBuffer,
): Promise<Store> {
  const pin = pins.of("");
  // A store that is known to be somewhere is only away.
  if (pin.id !== undefined && !isThere(config.path)) throw storeUnavailable("its file is gone");
  // Once: a thread that takes over later opens the same file, wherever links lead by then.
  const data: ThreadData = { config: locate(config), storeId: pin.id, clockOffset };
  const thread = startThread(data);
  const { schemaVersion, storeId } = await opened(thread, deadlineOf(config), async (id) => {
    // A file that has lost its id grants nothing, and says so by itself.
    if (id !== "") await pin.believe(id);
  });
  const channel = new Channel({ ...data, storeId }, thread);
  return {
    ...storeCalls((name, args) => channel.ask(name, args)),
    changes: ({ watched, ...query }) => {
      // Floors are watched by their sum (file/identity.ts), and what need not be copied to the thread costs nothing.
      const versions = watched.map(({ tag, version }) => ({ tag, version }));
      return channel.ask("changes", [{ ...query, watched: versions }]);
    },
    backend: config.backend,
    maxBatch: MAX_BATCH,
    schemaVersion,
    close: () => channel.close(),
  };
}

/**
 * The main thread's end of the channel to the store's thread.
 *
 * Modes: open (a thread runs), broken (the thread died; the next call starts another), closed.
 */
class Channel {
  readonly #data: ThreadData;
  readonly #pending = new Map<number, Pending>();
  #thread: Thread | undefined;
  #startedAtMs: number;
  #nextId = 1;
  #closing: Promise<void> | undefined;

  constructor(data: ThreadData, thread: Thread) {
    this.#data = data;
    this.#thread = thread;
    this.#startedAtMs = monotonicMs();
    this.#listen(thread);
  }

  /** Lets the requests before it end, then closes the file. Once is enough; again does no harm. */
  async close(): Promise<void> {
    this.#closing ??= this.#end();
    await this.#closing;
  }

  async #end(): Promise<void> {
    const thread = this.#thread;
    if (thread === undefined) return;
    const ended = new Promise<void>((resolve) => thread.once("exit", () => resolve()));
    const request: Request = { close: true };
    thread.postMessage(request);
    // A thread that hangs in a system call cannot be asked; it ends with the process.
    const timer = setTimeout(() => void thread.terminate(), deadlineOf(this.#data.config));
    await ended;
    clearTimeout(timer);
  }

  async ask<Name extends StoreCall>(call: Name, args: CallArgs[Name]): Promise<CallAnswers[Name]> {
    if (this.#closing !== undefined) throw storeClosed();
    if (this.#pending.size >= MAX_PENDING)
      throw storeUnavailable("too many requests wait for the store");
    const thread = this.#running();
    const timeoutMs = call === "accept" ? ACCEPT_TIMEOUT_MS : deadlineOf(this.#data.config);
    const id = this.#nextId++;
    const value = await new Promise<unknown>((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#pending.delete(id);
        reject(storeUnavailable(`the store did not answer within ${timeoutMs} ms`));
      }, timeoutMs);
      this.#pending.set(id, { resolve, reject, timer });
      const request: Request = { id, call, args, deadlineMs: monotonicMs() + timeoutMs };
      thread.postMessage(request);
    });
    return value as CallAnswers[Name];
  }

  #running(): Thread {
    if (this.#thread !== undefined) return this.#thread;
    const now = monotonicMs();
    if (now - this.#startedAtMs < RESTART_PAUSE_MS) {
      throw storeUnavailable("the store's thread has ended and is started again in a second");
    }
    this.#startedAtMs = now;
    const thread = startThread(this.#data);
    this.#thread = thread;
    this.#listen(thread);
    return thread;
  }

  #listen(thread: Thread): void {
    thread.on("message", (answer: Answer) => this.#settle(thread, answer));
    thread.on("error", (error: unknown) => this.#lose(thread, error));
    thread.on("exit", () => this.#lose(thread, new Error("the thread has ended")));
  }

  #settle(thread: Thread, answer: Answer): void {
    if ("opened" in answer) return;
    if ("refused" in answer) {
      this.#lose(thread, fromWire(answer.refused));
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

  /** The thread is gone: what it was asked has an unknown outcome. */
  #lose(thread: Thread, cause: unknown): void {
    if (this.#thread !== thread) return;
    this.#thread = undefined;
    for (const { reject, timer } of this.#pending.values()) {
      clearTimeout(timer);
      reject(storeUnavailable("the store's thread has ended", cause));
    }
    this.#pending.clear();
  }
}

/** The thread's objects live for one message; without a bound V8 lets them pile up to tens of megabytes before it looks. */
const YOUNG_MB = 4;

function startThread(data: ThreadData): Thread {
  // It lies beside this file, as .ts unbuilt and as .js built.
  const file = import.meta.url.endsWith(".ts") ? "./thread.ts" : "./thread.js";
  return new Thread(new URL(file, import.meta.url), {
    name: "idmint-sqlite",
    workerData: data,
    resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
  });
}

async function opened(
  thread: Thread,
  timeoutMs: number,
  believe: (storeId: string) => Promise<void>,
): Promise<Opened> {
  try {
    const found = await new Promise<Opened>((resolve, reject) => {
      const timer = setTimeout(() => {
        reject(storeUnavailable(`the store could not be opened within ${timeoutMs} ms`));
      }, timeoutMs + 2_000);
      thread.once("message", (answer: Answer) => {
        clearTimeout(timer);
        if ("opened" in answer) resolve(answer.opened);
        else if ("refused" in answer) reject(fromWire(answer.refused));
      });
      thread.once("error", (error) => {
        clearTimeout(timer);
        reject(storeUnavailable("the store's thread could not start", error));
      });
    });
    await believe(found.storeId);
    return found;
  } catch (error) {
    await thread.terminate();
    throw error;
  }
}

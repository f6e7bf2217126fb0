import { type AcceptStore, IdmintError, type Store, storeUnavailable } from "@idmint/core";
import { storeClosed } from "./shared/failures.ts";
import { MAX_BATCH } from "./shared/limits.ts";

type FullStore = Store & AcceptStore;
type Answer<M extends keyof FullStore> = FullStore[M] extends (...args: never) => infer R
  ? R
  : never;
type Asked<M extends keyof FullStore> = FullStore[M] extends (...args: infer A) => unknown
  ? A
  : never;

/**
 * A store that did not answer when a server started that can begin without it. Whatever is asked of it first opens it;
 * until that succeeds every method rejects with why it does not.
 */
export class LateStore implements FullStore {
  readonly backend: string;
  readonly maxBatch: number = MAX_BATCH;
  readonly groupOf = (tag: string): string => this.#opened?.groupOf?.(tag) ?? "";
  readonly partsOf = (tag: string): readonly string[] => this.#opened?.partsOf?.(tag) ?? [""];
  readonly #open: () => Promise<FullStore>;
  #opened: FullStore | undefined;
  /** One attempt at a time; whoever comes meanwhile waits for it. */
  #opening: Promise<FullStore> | undefined;
  #isClosed = false;

  /** `open` must settle in bounded time. */
  constructor(backend: string, open: () => Promise<FullStore>) {
    this.backend = backend;
    this.#open = open;
  }

  /** 0 until it is open. */
  get schemaVersion(): number {
    return this.#opened?.schemaVersion ?? 0;
  }

  async grant(...args: Asked<"grant">): Answer<"grant"> {
    return (await this.#store()).grant(...args);
  }

  async raise(...args: Asked<"raise">): Answer<"raise"> {
    return (await this.#store()).raise(...args);
  }

  async exchangeMarks(...args: Asked<"exchangeMarks">): Answer<"exchangeMarks"> {
    return (await this.#store()).exchangeMarks(...args);
  }

  async giveBack(...args: Asked<"giveBack">): Answer<"giveBack"> {
    return (await this.#store()).giveBack(...args);
  }

  async leaseWorker(...args: Asked<"leaseWorker">): Answer<"leaseWorker"> {
    return (await this.#store()).leaseWorker(...args);
  }

  async renewWorker(...args: Asked<"renewWorker">): Answer<"renewWorker"> {
    return (await this.#store()).renewWorker(...args);
  }

  async releaseWorker(...args: Asked<"releaseWorker">): Answer<"releaseWorker"> {
    return (await this.#store()).releaseWorker(...args);
  }

  async listWorkers(...args: Asked<"listWorkers">): Answer<"listWorkers"> {
    return (await this.#store()).listWorkers(...args);
  }

  async createTag(...args: Asked<"createTag">): Answer<"createTag"> {
    return (await this.#store()).createTag(...args);
  }

  async getTags(...args: Asked<"getTags">): Answer<"getTags"> {
    return (await this.#store()).getTags(...args);
  }

  async listTags(...args: Asked<"listTags">): Answer<"listTags"> {
    return (await this.#store()).listTags(...args);
  }

  async listPeriods(...args: Asked<"listPeriods">): Answer<"listPeriods"> {
    return (await this.#store()).listPeriods(...args);
  }

  async updateTag(...args: Asked<"updateTag">): Answer<"updateTag"> {
    return (await this.#store()).updateTag(...args);
  }

  async returnToPeriod(...args: Asked<"returnToPeriod">): Answer<"returnToPeriod"> {
    return (await this.#store()).returnToPeriod(...args);
  }

  async advanceTag(...args: Asked<"advanceTag">): Answer<"advanceTag"> {
    return (await this.#store()).advanceTag(...args);
  }

  async setTagState(...args: Asked<"setTagState">): Answer<"setTagState"> {
    return (await this.#store()).setTagState(...args);
  }

  async changes(...args: Asked<"changes">): Answer<"changes"> {
    return (await this.#store()).changes(...args);
  }

  async forgetNodes(...args: Asked<"forgetNodes">): Answer<"forgetNodes"> {
    return (await this.#store()).forgetNodes(...args);
  }

  async accept(...args: Asked<"accept">): Answer<"accept"> {
    return (await this.#store()).accept(...args);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#opened?.close();
  }

  async #store(): Promise<FullStore> {
    if (this.#opened !== undefined) return this.#opened;
    if (this.#isClosed) throw storeClosed();
    this.#opening ??= this.#openOnce();
    return this.#opening;
  }

  async #openOnce(): Promise<FullStore> {
    try {
      const store = await this.#open();
      if (this.#isClosed) {
        await store.close();
        throw storeClosed();
      }
      this.#opened = store;
      return store;
    } catch (error) {
      throw passing(error);
    } finally {
      this.#opening = undefined;
    }
  }
}

/** The server serves already: its callers hear that the store is away, and its log why, with addresses and names. */
function passing(error: unknown): unknown {
  const isAway =
    error instanceof IdmintError &&
    (error.reason === "STORE_REFUSED" || error.reason === "STORE_UNAVAILABLE");
  return isAway ? storeUnavailable("the store did not answer yet", error) : error;
}

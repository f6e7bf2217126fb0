import { IdmintError } from "@idmint/core";
import {
  checkedCall,
  MAX_BATCH,
  type Store,
  storeCalls,
  storeRefusesNow,
  storeUnavailable,
} from "@idmint/core/server";
import { storeClosed } from "./shared/failures.ts";

/**
 * A store that did not answer when a server started that can begin without it. Whatever is asked of it first opens it;
 * until that succeeds every call rejects with why it does not. `open` opens it as its backend does, in bounded time.
 */
export function lateStore(backend: string, open: () => Promise<Store>): Store {
  const opener = new Opener(open);
  return {
    ...storeCalls(async (name, args) => {
      const store = await opener.store();
      return checkedCall(name, args, store).catch(passingRefusal);
    }),
    backend,
    maxBatch: MAX_BATCH,
    groupOf: (tag) => opener.opened?.groupOf?.(tag) ?? "",
    partsOf: (tag) => opener.opened?.partsOf?.(tag) ?? [""],
    listen: (heard) => opener.listen(heard),
    /** 0 until it is open. */
    get schemaVersion() {
      return opener.opened?.schemaVersion ?? 0;
    },
    close: () => opener.close(),
  };
}

/** Opens a store once: one attempt at a time, and whoever comes meanwhile waits for it. */
class Opener {
  readonly #open: () => Promise<Store>;
  #opened: Store | undefined;
  #opening: Promise<Store> | undefined;
  #isClosed = false;
  #heard: (() => void) | undefined;

  constructor(open: () => Promise<Store>) {
    this.#open = open;
  }

  /** Listens once it is open. */
  listen(heard: () => void): void {
    this.#heard = heard;
    this.#opened?.listen?.(heard);
  }

  get opened(): Store | undefined {
    return this.#opened;
  }

  async store(): Promise<Store> {
    if (this.#opened !== undefined) return this.#opened;
    if (this.#isClosed) throw storeClosed();
    this.#opening ??= this.#openOnce();
    return this.#opening;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#opened?.close();
  }

  async #openOnce(): Promise<Store> {
    try {
      const store = await this.#open();
      if (this.#isClosed) {
        await store.close();
        throw storeClosed();
      }
      this.#opened = store;
      if (this.#heard !== undefined) store.listen?.(this.#heard);
      return store;
    } catch (error) {
      throw passing(error);
    } finally {
      this.#opening = undefined;
    }
  }
}

/** A store refuses for good only before it has served. This server serves already, so its callers may try again. */
function passingRefusal(error: unknown): never {
  const isRefused = error instanceof IdmintError && error.reason === "STORE_REFUSED";
  throw isRefused ? storeRefusesNow(error.message, error) : error;
}

/** The server serves already: its callers hear that the store is away, and its log why, with addresses and names. */
function passing(error: unknown): unknown {
  const isAway =
    error instanceof IdmintError &&
    (error.reason === "STORE_REFUSED" || error.reason === "STORE_UNAVAILABLE");
  return isAway ? storeUnavailable("the store did not answer yet", error) : error;
}

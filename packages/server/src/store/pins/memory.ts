import { IdmintError, invalidField } from "@idmint/core";
import type { PinPorts } from "./pin.ts";
import {
  type KnownStores,
  NOTHING_KNOWN,
  pinFileOf,
  readPinFile,
  writePinFile,
} from "./pin-file.ts";

/** Histories that are remembered as left; an operator makes one with every accept. */
const MAX_LEFT = 1_000;

/** What a process knows of its store before it asks it, and where it says what it has learned. */
export interface StoreMemory extends PinPorts {
  readonly known: KnownStores;
  /** The store's history is this one now. Never rejects: what cannot be written is known until the process ends. */
  entered(incarnation: string): Promise<void>;
}

export interface MemoryOptions {
  /** store.expect_id; it goes before what the file says. */
  readonly expectId: string | undefined;
  /** snowflake.cache_file; undefined: nothing is kept. */
  readonly cacheFile: string | undefined;
  /** A history could not be written down. */
  readonly onFailed: (error: IdmintError) => void;
}

/** For a server in one process, and for the parent of several. */
export async function openStoreMemory(options: MemoryOptions): Promise<StoreMemory> {
  const { expectId, cacheFile, onFailed } = options;
  const file = cacheFile === undefined ? undefined : pinFileOf(cacheFile);
  const found = file === undefined ? NOTHING_KNOWN : await readPinFile(file);
  const stores = new Map(found.stores);
  if (expectId !== undefined) stores.set("", expectId);
  const write = async (known: KnownStores): Promise<void> => {
    if (file !== undefined) await writePinFile(file, known);
  };
  return new OwnMemory({ ...found, stores }, write, onFailed);
}

/**
 * INVARIANT: what is settled is durable before it is believed, and the first that comes is settled for all processes of this
 * server. One thing is written at a time.
 */
class OwnMemory implements StoreMemory {
  #known: KnownStores;
  readonly #write: (known: KnownStores) => Promise<void>;
  readonly #onFailed: MemoryOptions["onFailed"];
  #turn: Promise<unknown> = Promise.resolve();
  #isFailing = false;

  constructor(
    known: KnownStores,
    write: (known: KnownStores) => Promise<void>,
    onFailed: MemoryOptions["onFailed"],
  ) {
    this.#known = known;
    this.#write = write;
    this.#onFailed = onFailed;
  }

  get known(): KnownStores {
    return this.#known;
  }

  settle(place: string, storeId: string): Promise<string> {
    return this.#inTurn(async () => {
      const pinned = this.#known.stores.get(place);
      if (pinned !== undefined) return pinned;
      const stores = new Map(this.#known.stores).set(place, storeId);
      try {
        await this.#save({ ...this.#known, stores });
      } catch (cause) {
        const { code = "unknown" } = cause as NodeJS.ErrnoException;
        const text = `must be where a file can be written that says which store this server belongs to (${code})`;
        throw invalidField("snowflake.cache_file", text);
      }
      return storeId;
    });
  }

  entered(incarnation: string): Promise<void> {
    return this.#inTurn(async () => {
      const { present, left } = this.#known;
      // Another process of this server may be behind.
      if (incarnation === present || left.includes(incarnation)) return;
      const gone = present === undefined ? left : [...left, present].slice(-MAX_LEFT);
      const known = { ...this.#known, present: incarnation, left: gone };
      try {
        await this.#save(known);
        this.#isFailing = false;
      } catch (cause) {
        this.#known = known;
        if (!this.#isFailing) this.#onFailed(IdmintError.from(cause));
        this.#isFailing = true;
      }
    });
  }

  async #save(known: KnownStores): Promise<void> {
    await this.#write(known);
    this.#known = known;
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(work);
    this.#turn = done.catch(() => undefined);
    return done;
  }
}

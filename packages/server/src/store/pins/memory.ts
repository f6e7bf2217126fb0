import { IdmintError, invalidField } from "@idmint/core";
import { type Lock, takeLock } from "../kept/lock.ts";
import type { PinPorts } from "./pin.ts";
import {
  type KnownStores,
  NOTHING_KNOWN,
  pinFileOf,
  readPinFile,
  writePinFile,
} from "./pin-file.ts";

const FIELD = "snowflake.cache_file";

/** Histories that are remembered as left; an operator makes one with every accept. */
const MAX_LEFT = 1_000;

/** What a process knows of its store before it asks it, and where it says what it has learned. */
export interface StoreMemory extends PinPorts {
  readonly known: KnownStores;
  /** The store's history is this one now. Never rejects: what cannot be written is known until the process ends. */
  entered(incarnation: string): Promise<void>;
  /** Lets another process have the file, after what is being written. */
  close(): Promise<void>;
}

export interface MemoryOptions {
  /** What store.expect_id names, by place; it goes before what the file says. */
  readonly expected: ReadonlyMap<string, string>;
  /** snowflake.cache_file; undefined: nothing is kept. */
  readonly cacheFile: string | undefined;
  /** A history could not be written down. */
  readonly onFailed: (error: IdmintError) => void;
}

/** For a server in one process, and for the parent of several. Close it. */
export async function openStoreMemory(options: MemoryOptions): Promise<StoreMemory> {
  const { expected, cacheFile, onFailed } = options;
  const kept = cacheFile === undefined ? undefined : await openKept(cacheFile);
  const found = kept?.found ?? NOTHING_KNOWN;
  const stores = new Map([...found.stores, ...expected]);
  return new OwnMemory({ ...found, stores }, kept, onFailed);
}

/**
 * Has a server belong to another store from its next start on. What it knew of that store's histories, of its further
 * databases and of ticket databases is forgotten: they are pinned anew. Answers the id of before.
 */
export async function adoptStore(cacheFile: string, storeId: string): Promise<string | undefined> {
  const { file, found, lock } = await openKept(cacheFile);
  try {
    await writePinFile(file, { ...NOTHING_KNOWN, stores: new Map([["", storeId]]) });
  } finally {
    lock.close();
  }
  return found.stores.get("");
}

/** The id of the store that a server with this cache file belongs to; undefined: it keeps none yet. */
export async function keptStoreId(cacheFile: string): Promise<string | undefined> {
  return (await readPinFile(pinFileOf(cacheFile))).stores.get("");
}

interface Kept {
  readonly file: string;
  readonly found: KnownStores;
  readonly lock: Lock;
}

async function openKept(cacheFile: string): Promise<Kept> {
  const file = pinFileOf(cacheFile);
  const lock = locked(`${file}.lock`);
  try {
    return { file, found: await readPinFile(file), lock };
  } catch (error) {
    lock.close();
    throw error;
  }
}

function locked(file: string): Lock {
  let lock: Lock | undefined;
  try {
    lock = takeLock(file);
  } catch (error) {
    const { code = "unknown" } = error as NodeJS.ErrnoException;
    throw invalidField(FIELD, `must be in a folder where ${file} can be made (${code})`);
  }
  if (lock !== undefined) return lock;
  throw invalidField(FIELD, `is in use by a server that runs (${file} is locked); stop it first`);
}

/**
 * INVARIANT: what is settled is durable before it is believed, and the first that comes is settled for all processes of this
 * server. One thing is written at a time.
 */
class OwnMemory implements StoreMemory {
  #known: KnownStores;
  readonly #kept: Kept | undefined;
  readonly #onFailed: MemoryOptions["onFailed"];
  #lock: Lock | undefined;
  #turn: Promise<unknown> = Promise.resolve();
  #isFailing = false;

  constructor(known: KnownStores, kept: Kept | undefined, onFailed: MemoryOptions["onFailed"]) {
    this.#known = known;
    this.#kept = kept;
    this.#lock = kept?.lock;
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
        throw invalidField(FIELD, text);
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

  async close(): Promise<void> {
    await this.#turn;
    this.#lock?.close();
    this.#lock = undefined;
  }

  async #save(known: KnownStores): Promise<void> {
    if (this.#kept !== undefined) await writePinFile(this.#kept.file, known);
    this.#known = known;
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(work);
    this.#turn = done.catch(() => undefined);
    return done;
  }
}

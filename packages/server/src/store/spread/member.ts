import { IdmintError } from "@idmint/core";
import { open as openPostgres, type PostgresStore } from "../postgres/store.ts";
import type { PostgresConfig } from "../shared/config.ts";
import type { StorePins } from "../pins/pin.ts";
import { storeClosed } from "../shared/failures.ts";

/** One of the databases. It may be away when this is made: then it is opened by the first use that finds it back. */
export class Member {
  readonly name: string;
  readonly #config: PostgresConfig;
  readonly #pins: StorePins;
  readonly #assertOurs: (store: PostgresStore) => void;
  #store: PostgresStore | undefined;
  #opening: Promise<PostgresStore> | undefined;
  #isClosed = false;

  constructor(
    name: string,
    config: PostgresConfig,
    pins: StorePins,
    assertOurs: (store: PostgresStore) => void,
  ) {
    this.name = name;
    this.#config = config;
    this.#pins = pins;
    this.#assertOurs = assertOurs;
  }

  /** The store in this database, if it was opened. */
  get opened(): PostgresStore | undefined {
    return this.#store;
  }

  /** The same, opened now if it was not; rejects with STORE_UNAVAILABLE when it is away. */
  async store(): Promise<PostgresStore> {
    if (this.#store !== undefined) return this.#store;
    if (this.#isClosed) throw storeClosed();
    this.#opening ??= this.#open().finally(() => {
      this.#opening = undefined;
    });
    return this.#opening;
  }

  /** Opens it if it is there. False: it is away. Rejects with what else speaks against it. */
  async tryOpen(): Promise<boolean> {
    try {
      await this.store();
      return true;
    } catch (error) {
      if (IdmintError.from(error).reason === "STORE_UNAVAILABLE") return false;
      throw error;
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#opening?.catch(() => undefined);
    await this.#store?.close();
  }

  async #open(): Promise<PostgresStore> {
    const store = await openPostgres(this.#config, this.#pins);
    try {
      this.#assertOurs(store);
    } catch (error) {
      await store.close();
      throw error;
    }
    this.#store = store;
    return store;
  }
}

import { storeIsForeign } from "@idmint/core/server";
import { expectedStores } from "./expected.ts";

/** What is known of stores before they are asked, and where it is said what was learned. */
export interface PinPorts {
  /** Ids by place: what was pinned in an earlier life, or told by an operator. */
  readonly known: { readonly stores: ReadonlyMap<string, string> };
  /**
   * Makes an id durable as that of the store which a place must lead to, where there is a place for it. Fulfils with the id
   * that is pinned: this one, unless somebody pinned another one before.
   */
  settle(place: string, storeId: string): Promise<string>;
}

/** Which stores a process belongs to. A place is a database of a store, or a ticket database; "" is the store's first one. */
export class StorePins {
  readonly #ports: PinPorts;
  readonly #pins = new Map<string, StorePin>();

  constructor(ports: PinPorts) {
    this.#ports = ports;
  }

  of(place: string): StorePin {
    let pin = this.#pins.get(place);
    if (pin === undefined) {
      const known = this.#ports.known.stores.get(place);
      pin = new StorePin(known, (storeId) => this.#ports.settle(place, storeId));
      this.#pins.set(place, pin);
    }
    return pin;
  }
}

/** Pins for as long as somebody has them. `expectId`: as store.expect_id has it. Default: the first stores found. */
export function passingPins(expectId?: string): StorePins {
  return new StorePins({
    known: { stores: expectedStores(expectId) },
    settle: async (_place, storeId) => storeId,
  });
}

/**
 * Which store a place must lead to. An address is only a way to a store: names and proxies turn, and volumes are mounted
 * elsewhere.
 *
 * INVARIANT: nothing that a store says is believed, and nothing is written to it, before `believe` has fulfilled with its id
 * over the very connection that is used. The first id that is believed stays for good; a store with another one is away.
 */
export class StorePin {
  #id: string | undefined;
  readonly #settle: (storeId: string) => Promise<string>;
  #settling: Promise<string> | undefined;

  constructor(known: string | undefined, settle: (storeId: string) => Promise<string>) {
    this.#id = known;
    this.#settle = settle;
  }

  /** Undefined before a store was believed. */
  get id(): string | undefined {
    return this.#id;
  }

  /** Rejects with STORE_UNAVAILABLE for the id of another store. */
  async believe(storeId: string): Promise<void> {
    if (this.#id === undefined) {
      this.#settling ??= this.#settle(storeId).finally(() => {
        this.#settling = undefined;
      });
      this.#id ??= await this.#settling;
    }
    if (storeId !== this.#id) throw storeIsForeign(storeId, this.#id);
  }
}

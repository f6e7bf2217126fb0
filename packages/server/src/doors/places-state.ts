/** A place that is taken. */
export interface Place<Its> {
  readonly address: string;
  readonly its: Its;
  isFree: boolean;
}

/** The places of one address. */
interface Held<Its> {
  count: number;
  /** In the order of their arrival, with some that are free again; the last is not. */
  places: Place<Its>[];
}

/** What a newcomer gets. */
export type Taken<Its> =
  | { readonly place: Place<Its>; readonly loser: Its | undefined }
  | "no place is free";

/**
 * Who has the places for connections. Pure; each step is O(1) on average.
 *
 * INVARIANT: one address that takes all places keeps nobody of another address out. While places are free, all get one. When
 * none is, and one address holds more than half of them, its newest gives way to a newcomer whose address holds at least two
 * fewer: so it never holds fewer than the newcomer's then, and two addresses do not take turns. Who holds half or less loses
 * nothing: a proxy in front of many callers is one address.
 */
export class Places<Its> {
  readonly #most: number;
  readonly #held = new Map<string, Held<Its>>();
  /** The addresses that hold so many. */
  readonly #holding = new Map<number, Set<string>>();
  #greatest = 0;
  #taken = 0;

  constructor(most: number) {
    this.#most = most;
  }

  get taken(): number {
    return this.#taken;
  }

  /** How many an address holds. */
  of(address: string): number {
    return this.#held.get(address)?.count ?? 0;
  }

  take(address: string, its: Its): Taken<Its> {
    let loser: Its | undefined;
    if (this.#taken >= this.#most) {
      const isGreedy = this.#greatest * 2 > this.#most;
      if (!isGreedy || this.of(address) + 2 > this.#greatest) return "no place is free";
      const newest = this.#newestOfGreediest();
      if (newest === undefined) return "no place is free";
      this.free(newest);
      loser = newest.its;
    }
    const held = this.#held.get(address) ?? { count: 0, places: [] };
    this.#held.set(address, held);
    const place = { address, its, isFree: false };
    held.places.push(place);
    this.#count(address, held, 1);
    return { place, loser };
  }

  /** Gives a place back; once more does nothing. */
  free(place: Place<Its>): void {
    const held = this.#held.get(place.address);
    if (place.isFree || held === undefined) return;
    place.isFree = true;
    this.#count(place.address, held, -1);
    while (held.places.at(-1)?.isFree === true) held.places.pop();
    if (held.places.length > 2 * held.count) held.places = held.places.filter((p) => !p.isFree);
    if (held.count === 0) this.#held.delete(place.address);
  }

  #newestOfGreediest(): Place<Its> | undefined {
    const [address = ""] = this.#holding.get(this.#greatest) ?? [];
    return this.#held.get(address)?.places.at(-1);
  }

  #count(address: string, held: Held<Its>, by: 1 | -1): void {
    const before = this.#holding.get(held.count);
    before?.delete(address);
    if (before?.size === 0) this.#holding.delete(held.count);
    held.count += by;
    this.#taken += by;
    if (held.count > 0) {
      const now = this.#holding.get(held.count) ?? new Set();
      this.#holding.set(held.count, now.add(address));
    }
    if (held.count > this.#greatest) this.#greatest = held.count;
    else if (!this.#holding.has(this.#greatest)) this.#greatest -= 1;
  }
}

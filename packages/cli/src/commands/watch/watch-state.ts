// Rates out of looks at a server. Pure.

/** What one look saw. */
export interface Look {
  readonly atMs: number;
  /** The process that answered: its counts begin at 0. */
  readonly nodeId: string;
  readonly issued: bigint;
  readonly wasted: bigint;
  readonly floors: ReadonlyMap<string, bigint>;
}

/** Ids a second; undefined while that is not known. */
export interface Rates {
  readonly issued: number | undefined;
  readonly wasted: number | undefined;
  readonly granted: ReadonlyMap<string, number>;
}

/** Looks that a rate is made of: floors rise by whole segments, so a single second says little. */
const LOOKS = 11;

/** INVARIANT: a rate is made of two counts of one process, or of two floors. Floors outlive processes. */
export class Watched {
  readonly #looks: Look[] = [];

  add(look: Look): Rates {
    this.#looks.push(look);
    if (this.#looks.length > LOOKS) this.#looks.shift();
    const own = this.#looks.find(({ nodeId }) => nodeId === look.nodeId);
    const since = (first: Look | undefined, count: (of: Look) => bigint): number | undefined =>
      first === undefined || first === look
        ? undefined
        : perSecond(count(look) - count(first), look.atMs - first.atMs);
    const granted = new Map<string, number>();
    for (const [tag, floor] of look.floors) {
      const first = this.#looks.find(({ floors }) => floors.has(tag));
      const rate = since(first, ({ floors }) => floors.get(tag) ?? floor);
      if (rate !== undefined) granted.set(tag, rate);
    }
    return {
      issued: since(own, ({ issued }) => issued),
      wasted: since(own, ({ wasted }) => wasted),
      granted,
    };
  }
}

/** A floor goes down when a server gives ids back, which is no rate. */
function perSecond(count: bigint, ms: number): number {
  return ms <= 0 || count < 0n ? 0 : (Number(count) * 1_000) / ms;
}

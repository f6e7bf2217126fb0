/** Ids of one slot of a tag, from the first to the last, as a ticket database granted them. */
export interface TicketGrant {
  readonly tag: string;
  readonly first: bigint;
  readonly last: bigint;
}

/** What ticket databases granted, all together. */
export class TicketLog {
  readonly #granted = new Map<string, TicketGrant[]>();

  /** Answers an id that was granted before. */
  add(grant: TicketGrant, slots: number): bigint | undefined {
    const { tag, first, last } = grant;
    const key = keyOf(tag, slots, first);
    const all = this.#granted.get(key) ?? [];
    const before = all.find((one) => one.first <= last && first <= one.last);
    all.push(grant);
    this.#granted.set(key, all);
    if (before === undefined) return undefined;
    return first > before.first ? first : before.first;
  }

  isGranted(tag: string, slots: number, id: bigint): boolean {
    const all = this.#granted.get(keyOf(tag, slots, id)) ?? [];
    return all.some(({ first, last }) => first <= id && id <= last);
  }
}

function keyOf(tag: string, slots: number, id: bigint): string {
  return `${tag} ${id % BigInt(slots)}`;
}

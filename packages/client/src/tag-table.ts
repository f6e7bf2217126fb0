import { IdmintError } from "@idmint/core";

/** A tag as a table of them sees it. */
interface Tag {
  readonly name: string;
  /** Whether it holds nothing that a new object of the same name would lack. */
  readonly isEmpty: boolean;
}

/**
 * The tags of a client by their names. Names may come from outside, and most of those may be of no tag: what is empty is held
 * weakly, and does not count.
 *
 * INVARIANT: there is one object at most of a name. One that is held weakly is found as long as it lives, and one that loads is
 * held strongly before it asks any server.
 */
export class TagTable<T extends Tag> {
  readonly #max: number;
  readonly #inUse = new Map<string, T>();
  readonly #empty = new Map<string, WeakRef<T>>();

  constructor(max: number) {
    this.#max = max;
  }

  get(name: string): T | undefined {
    return this.#inUse.get(name) ?? this.#empty.get(name)?.deref();
  }

  /** Holds it from now on. Throws OVERLOADED when there are too many. */
  hold(tag: T): void {
    const { name } = tag;
    if (this.#inUse.has(name)) return;
    if (this.#inUse.size >= this.#max) {
      const text = `this client already uses ${this.#max} tags; raise the option maxTags to use more`;
      throw new IdmintError("OVERLOADED", text, { metadata: { tag: name } });
    }
    this.#inUse.set(name, tag);
    this.#empty.delete(name);
  }

  /** Holds those weakly that are empty, and forgets names whose tags are gone. To be called about once a second. */
  sweep(): void {
    for (const [name, ref] of this.#empty) {
      if (ref.deref() === undefined) this.#empty.delete(name);
    }
    for (const [name, tag] of this.#inUse) {
      if (!tag.isEmpty) continue;
      this.#inUse.delete(name);
      this.#empty.set(name, new WeakRef(tag));
    }
  }

  /** Those that are in use. */
  values(): Iterable<T> {
    return this.#inUse.values();
  }

  /** All that live. */
  all(): readonly T[] {
    const empty = [...this.#empty.values()].map((ref) => ref.deref());
    return [...this.#inUse.values(), ...empty.filter((tag) => tag !== undefined)];
  }
}

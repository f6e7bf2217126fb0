import type { FaultKind } from "../fault-kinds.ts";

/** How long after a fault calls still meet what it left behind. */
export const AFTER_MS = 3_000;

/** A fault and a kind of tag, as one text. */
export function pairOf(fault: FaultKind, kind: string): string {
  return `${fault} × ${kind}`;
}

/** Calls for ids of which kinds met which faults. A fault counts once for a kind, however many calls met it. */
export class Meetings {
  readonly counts = new Map<string, number>();
  readonly #kinds: ReadonlyMap<string, string>;
  readonly #present = new Set<{ readonly fault: FaultKind; readonly met: Set<string> }>();

  constructor(tags: readonly { readonly name: string; readonly kind: string }[]) {
    this.#kinds = new Map(tags.map(({ name, kind }) => [name, kind]));
  }

  /** A fault befalls the fleet; the answer says that it is over. */
  begin(fault: FaultKind): () => void {
    const one = { fault, met: new Set<string>() };
    this.#present.add(one);
    return () => void this.#present.delete(one);
  }

  called(tag: string): void {
    const kind = this.#kinds.get(tag);
    if (kind === undefined) return;
    for (const { fault, met } of this.#present) {
      if (met.has(kind)) continue;
      met.add(kind);
      const pair = pairOf(fault, kind);
      this.counts.set(pair, (this.counts.get(pair) ?? 0) + 1);
    }
  }
}

/**
 * UUIDs, as one part of 53 bits each: where two parts are the same, the files are read again for the whole. Of a hundred million UUIDs
 * half a pair has one part in common.
 */
export class UuidCheck {
  #parts = new Float64Array(1_024);
  #length = 0;

  /** Of one tag. */
  add(uuid: string): void {
    if (this.#length === this.#parts.length) {
      const larger = new Float64Array(this.#parts.length * 2);
      larger.set(this.#parts);
      this.#parts = larger;
    }
    this.#parts[this.#length++] = partOf(uuid);
  }

  get count(): number {
    return this.#length;
  }

  /** Parts that more than one UUID has. */
  suspects(): ReadonlySet<number> {
    const sorted = this.#parts.subarray(0, this.#length).toSorted();
    const twice = new Set<number>();
    for (let at = 1; at < sorted.length; at++) {
      const part = sorted[at];
      if (part !== undefined && part === sorted[at - 1]) twice.add(part);
    }
    return twice;
  }
}

/** The last 13 hexadecimal digits: they are random in every version that is used here. */
export function partOf(uuid: string): number {
  return Number.parseInt(uuid.replaceAll("-", "").slice(-13), 16);
}

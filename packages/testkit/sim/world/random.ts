/**
 * A seeded source of random numbers (sfc32). Everything that a history leaves to chance comes out of one, and each place that
 * draws has one of its own, named by its text: so a fault that is left out does not move what others draw.
 */
export class Dice {
  #a: number;
  #b: number;
  #c: number;
  #counter = 1;

  constructor(seed: string) {
    const word = wordsOf(seed);
    this.#a = word();
    this.#b = word();
    this.#c = word();
    for (let at = 0; at < 12; at++) this.next();
  }

  /** In [0, 1). */
  next(): number {
    const sum = (((this.#a + this.#b) | 0) + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + sum) | 0;
    return (sum >>> 0) / 4_294_967_296;
  }

  /** A whole number, both ends included. */
  int(from: number, to: number): number {
    return from + Math.floor(this.next() * (to - from + 1));
  }

  between(from: number, to: number): number {
    return from + this.next() * (to - from);
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(from: readonly T[]): T {
    const picked = from[Math.floor(this.next() * from.length)];
    if (picked === undefined) throw new RangeError("nothing to pick from");
    return picked;
  }

  /** Of an exponential distribution: most are short, a few are long. */
  about(mean: number): number {
    return -Math.log(1 - this.next()) * mean;
  }

  bytes(count: number): Uint8Array {
    return Uint8Array.from({ length: count }, () => this.int(0, 255));
  }

  /** A text of 128 bits, as `randomToken` of a server makes them. */
  token(): string {
    let text = "";
    for (let at = 0; at < 4; at++) {
      text += Math.floor(this.next() * 4_294_967_296)
        .toString(16)
        .padStart(8, "0");
    }
    return text;
  }
}

/** Words that hang on every letter of a text. */
function wordsOf(text: string): () => number {
  let hash = 1_779_033_703 ^ text.length;
  for (let at = 0; at < text.length; at++) {
    hash = Math.imul(hash ^ text.charCodeAt(at), 3_432_918_353);
    hash = (hash << 13) | (hash >>> 19);
  }
  return () => {
    hash = Math.imul(hash ^ (hash >>> 16), 2_246_822_507);
    hash = Math.imul(hash ^ (hash >>> 13), 3_266_489_909);
    hash ^= hash >>> 16;
    return hash;
  };
}

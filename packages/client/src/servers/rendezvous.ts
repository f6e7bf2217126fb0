/**
 * Weighted rendezvous hashing: which server a key prefers. Every (server, key) pair has a score, and the servers of a key
 * are ordered by it. A server comes first for the share of all keys that its weight is of all weights. When a server comes,
 * goes or gets another weight, only keys that move to it or away from it change their first choice.
 */

/** Murmur3's finaliser: every bit of the input changes about half of the output's. */
function mix(hash: number): number {
  let h = hash;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

/** FNV-1a over UTF-16 code units, continued from a state. */
function absorb(state: number, text: string): number {
  let h = state;
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193);
  return h;
}

/** 53 bits that depend on both texts, as an exact number. Two 32-bit lanes, since one would tie too often. */
export function score(server: string, key: string): number {
  // 0xffff is no character of an address or a tag, so ("ab", "c") and ("a", "bc") differ.
  const text = `${server}\uffff${key}`;
  const high = mix(absorb(0x811c9dc5, text));
  const low = mix(absorb(0x9e3779b9, text) ^ high);
  return (high & 0x1fffff) * 2 ** 32 + low;
}

/** The same as a number from 0 to 1. */
export function unit(server: string, key: string): number {
  return (score(server, key) + 0.5) / 2 ** 53;
}

/** A server that keys are spread over. */
interface Weighted {
  readonly address: string;
  /** Above 0. */
  readonly weight: number;
}

/** The addresses, the key's first choice first. */
export function rendezvousOrder(servers: readonly Weighted[], key: string): readonly string[] {
  // −ln u is exponential, and the smallest of several divided by their rates is each one's in proportion to its rate.
  const scored = servers.map(({ address, weight }) => ({
    address,
    distance: -Math.log(unit(address, key)) / weight,
  }));
  return scored.toSorted((a, b) => a.distance - b.distance).map(({ address }) => address);
}

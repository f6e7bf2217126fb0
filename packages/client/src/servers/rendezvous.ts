/**
 * Rendezvous hashing: which endpoint a tag prefers. Every (endpoint, tag) pair has a score, the tag's endpoints are
 * ordered by it. All instances of the SDK agree without talking to each other, and when an endpoint comes or goes only
 * the tags that preferred it move.
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
export function score(endpoint: string, tag: string): number {
  // 0xffff is no character of an address or a tag, so ("ab", "c") and ("a", "bc") differ.
  const text = `${endpoint}\uffff${tag}`;
  const high = mix(absorb(0x811c9dc5, text));
  const low = mix(absorb(0x9e3779b9, text) ^ high);
  return (high & 0x1fffff) * 2 ** 32 + low;
}

/** The indexes of the endpoints, the tag's first choice first. Equal scores keep the order given. */
export function rendezvousOrder(endpoints: readonly string[], tag: string): readonly number[] {
  const scores = endpoints.map((endpoint) => score(endpoint, tag));
  const scoreOf = (index: number): number => scores[index] ?? 0;
  return endpoints.map((_, index) => index).toSorted((a, b) => scoreOf(b) - scoreOf(a));
}

/** Who the number of a UUID of version 2 names. */
export type DceDomain = "PERSON" | "GROUP" | "ORG";

/** The number of each domain within an id. */
export const DCE_DOMAINS: Readonly<Record<DceDomain, number>> = { PERSON: 0, GROUP: 1, ORG: 2 };

/** From 1582-10-15, where the time of UUIDs begins, to 1970, in milliseconds. */
export const GREGORIAN_OFFSET_MS = 12_219_292_800_000;
/** A tick of a version 2 id is 2^32 of the 100-nanosecond steps of version 1, since the number takes their place. */
export const DCE_TICK_MS: number = 2 ** 32 / 10_000;
const SEQUENCES = 64;
const NODE_BYTES = 6;

/** What the ids of version 2 that one process makes are told apart by. */
export interface DceState {
  /** About seven minutes long. */
  tick: number;
  /** 0 … 63. */
  sequence: number;
  node: Uint8Array;
}

/** State of a process that has made none; `random` gives that many random bytes. */
export function createDceState(random: (count: number) => Uint8Array): DceState {
  return { tick: -1, sequence: 0, node: randomNode(random) };
}

/** Never an address of a network card: those have the multicast bit clear. */
function randomNode(random: (count: number) => Uint8Array): Uint8Array {
  const node = Uint8Array.from(random(NODE_BYTES));
  node[0] = (node[0] ?? 0) | 1;
  return node;
}

/**
 * The next UUID of version 2, as 16 bytes; `number` is 0 … 2^32 − 1, `nowMs` milliseconds since 1970.
 *
 * INVARIANT: no triple (tick, sequence, node) is used twice. The format has only 64 sequences in seven minutes; when they
 * are used up, or the clock went back, the node becomes another random one instead of any of them being used again.
 */
export function nextDceUuid(
  state: DceState,
  domain: DceDomain,
  number: number,
  nowMs: number,
  random: (count: number) => Uint8Array,
): Uint8Array {
  const tick = Math.floor((nowMs + GREGORIAN_OFFSET_MS) / DCE_TICK_MS);
  if (tick > state.tick) {
    state.sequence = 0;
  } else if (tick < state.tick || state.sequence === SEQUENCES - 1) {
    state.node = randomNode(random);
    state.sequence = 0;
  } else {
    state.sequence++;
  }
  state.tick = tick;
  const bytes = new Uint8Array(16);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, number);
  view.setUint16(4, tick % 2 ** 16);
  view.setUint16(6, 0x2000 | Math.floor(tick / 2 ** 16));
  bytes[8] = 0x80 | state.sequence;
  bytes[9] = DCE_DOMAINS[domain];
  bytes.set(state.node, 10);
  return bytes;
}

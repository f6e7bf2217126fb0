// Bytes and texts, broken in ways that readers know least.
import type { Dice } from "../../sim/world/random.ts";

const BYTES = [0, 1, 0x7f, 0x80, 0xff, 0x0a, 0x0b, 0xc3, 0xed] as const;

export function noise(dice: Dice, most: number): Buffer {
  return Buffer.from(Array.from({ length: dice.int(0, most) }, () => dice.int(0, 255)));
}

const BREAKS: readonly ((bytes: Buffer, at: number, dice: Dice) => Buffer)[] = [
  (bytes, at, dice) => {
    bytes[at] = (bytes[at] ?? 0) ^ (1 << dice.int(0, 7));
    return bytes;
  },
  (bytes, at, dice) => {
    bytes[at] = dice.pick(BYTES);
    return bytes;
  },
  (bytes, at) => bytes.subarray(0, at),
  (bytes, at, dice) => Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + dice.int(1, 20))]),
  (bytes, at, dice) => Buffer.concat([bytes.subarray(0, at), noise(dice, 12), bytes.subarray(at)]),
  (bytes, at, dice) => {
    const part = bytes.subarray(at, at + dice.int(1, 40));
    return Buffer.concat([bytes.subarray(0, at), part, bytes.subarray(at)]);
  },
  (bytes, at, dice) =>
    Buffer.concat([
      bytes.subarray(0, at),
      Buffer.alloc(dice.int(1, 60), dice.int(0, 255)),
      bytes.subarray(at),
    ]),
];

/** The bytes, broken in up to `most` places. */
export function broken(dice: Dice, of: Uint8Array, most = 3): Buffer {
  let bytes: Buffer = Buffer.from(of);
  for (let times = dice.int(1, most); times > 0; times--) {
    bytes = dice.pick(BREAKS)(bytes, dice.int(0, Math.max(0, bytes.length - 1)), dice);
  }
  return bytes;
}

/** A text, broken in up to `most` places: letters go, come twice, or are others of `alphabet`. */
export function brokenText(dice: Dice, of: string, alphabet: readonly string[], most = 3): string {
  let text = of;
  for (let times = dice.int(1, most); times > 0; times--) {
    const at = dice.int(0, text.length);
    const end = at + dice.int(0, 6);
    const more = dice.pick([dice.pick(alphabet), "", text.slice(at, end).repeat(2)]);
    text = text.slice(0, at) + more + text.slice(end);
  }
  return text;
}

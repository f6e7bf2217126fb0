// Blocks of headers, on one connection: every form of RFC 7541, and what is none.
import { HpackDecoder, HpackError } from "../../../server/src/fast/http2/hpack/decoder.ts";
import type { Dice } from "../../sim/world/random.ts";
import { broken, noise } from "../draw/bytes.ts";
import type { Target } from "../target.ts";

const LIST_BYTES = 2_000;

/** RFC 7541, 5.1. */
function integer(value: number, flags: number, bits: number): number[] {
  const most = 2 ** bits - 1;
  if (value < most) return [flags | value];
  const octets = [flags | most];
  let left = value - most;
  for (; left >= 128; left = Math.floor(left / 128)) octets.push((left % 128) + 128);
  return [...octets, left];
}

const STRINGS = ["", "a", ":path", "te", "content-length", "/idmint.v1.IdService/GenerateId", "0"];

function string(dice: Dice): number[] {
  // What is flagged as Huffman's code is seldom right: mostly some of it is.
  if (dice.chance(0.3)) {
    const code = [...noise(dice, 20), ...(dice.chance(0.5) ? [0xff] : [])];
    return [...integer(code.length, 0x80, 7), ...code];
  }
  const text = dice.chance(0.1) ? "v".repeat(dice.int(100, 5_000)) : dice.pick(STRINGS);
  return [...integer(text.length, 0, 7), ...Buffer.from(text, "latin1")];
}

function index(dice: Dice): number {
  return dice.chance(0.9) ? dice.int(1, 75) : dice.pick([0, 127, 4_096, 2 ** 28, 2 ** 35]);
}

const FORMS: readonly ((dice: Dice) => number[])[] = [
  (dice) => integer(index(dice), 0x80, 7),
  (dice) => [...integer(index(dice), 0x40, 6), ...string(dice)],
  (dice) => [0x40, ...string(dice), ...string(dice)],
  (dice) => [...integer(index(dice), 0, 4), ...string(dice)],
  (dice) => [dice.pick([0, 0x10]), ...string(dice), ...string(dice)],
  (dice) => [...integer(index(dice), 0x10, 4), ...string(dice)],
  (dice) => integer(dice.pick([0, 31, 100, 4_096, 4_097, 2 ** 28]), 0x20, 5),
];

function draw(dice: Dice): string {
  const blocks = Array.from({ length: dice.int(1, 6) }, () => {
    const octets = Array.from({ length: dice.int(0, 12) }, () => dice.pick(FORMS)(dice)).flat();
    const bytes = Buffer.from(octets);
    return dice.chance(0.3) ? broken(dice, bytes) : bytes;
  });
  return blocks.map((block) => block.toString("hex")).join(" ");
}

/** What the blocks say, and where they end; anything thrown that is not of HPACK goes on. */
function decoded(blocks: readonly Buffer[], at: number): string {
  const decoder = new HpackDecoder(LIST_BYTES);
  const told: string[] = [];
  try {
    for (const block of blocks) {
      let size = 0;
      // Elsewhere in a buffer it is the same block.
      const bytes = Buffer.concat([Buffer.alloc(at, 0xff), block, Buffer.alloc(at, 0xff)]);
      decoder.decode(bytes, at, at + block.length, (field) => {
        size += field.size;
        told.push(`${field.name}: ${field.value}`);
      });
      if (size > LIST_BYTES) throw new Error(`${size} bytes of fields were told`);
    }
  } catch (thrown) {
    if (!(thrown instanceof HpackError)) throw thrown;
    told.push(`refused: ${thrown.message}`);
  }
  return told.join("\n");
}

export function hpackTarget(): Target {
  return {
    draw,
    run: (input) => {
      const blocks = input.split(" ").map((block) => Buffer.from(block, "hex"));
      const [once, again] = [decoded(blocks, 0), decoded(blocks, 7)];
      return once === again ? undefined : `once ${once}\nagain ${again}`;
    },
    atOnce: 1,
    withinMs: 2_000,
  };
}

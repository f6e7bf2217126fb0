// What is read and written by hand is compared with the generated code.
import { GenerateIdRequest, GenerateIdResponse } from "@idmint/proto";
import { expect, test } from "vitest";
import { generateIdRequest, generateIdResponse } from "../../src/api/codec/generate-id.ts";
import { KnownRequests } from "../../src/api/codec/known-requests.ts";

const MESSAGES = process.env["IDMINT_LONG"] === "1" ? 1_000_000 : 100_000;
const SEED = Number(process.env["IDMINT_SEED"] ?? Date.now() % 2 ** 31);

/** Mulberry32: as random as this needs, and again the same for a seed. */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Of any size up to 63 bits, each as often. */
function anyId(random: () => number): bigint {
  const bits = Math.floor(random() * 64);
  const high = BigInt(Math.floor(random() * 2 ** 32));
  const low = BigInt(Math.floor(random() * 2 ** 32));
  return ((high << 32n) | low) & ((1n << BigInt(bits)) - 1n);
}

/** What decoding gives, as text. */
function outcome(decode: (bytes: Uint8Array) => unknown, bytes: Uint8Array): string {
  try {
    return JSON.stringify(decode(bytes));
  } catch {
    return "refused";
  }
}

const EDGES = [0n, 1n, 127n, 128n, 2n ** 53n - 1n, 2n ** 53n, 2n ** 53n + 1n, 2n ** 63n - 1n];

test(`${MESSAGES} answers have the bytes that the generated code writes`, () => {
  const random = randomOf(SEED);
  const pick = (): bigint =>
    random() < 0.1 ? (EDGES[Math.floor(random() * EDGES.length)] as bigint) : anyId(random);
  for (let i = 0; i < MESSAGES; i++) {
    const isOther = random() < 0.1;
    const message: GenerateIdResponse = {
      id: pick(),
      epoch: pick(),
      period: isOther && random() < 0.5 ? "2026-11-23" : "",
      text: isOther ? "20261123-1" : "",
      periodEndTime: isOther && random() < 0.5 ? new Date(1_700_000_000_000) : undefined,
    };
    const ours = generateIdResponse.encode(message).finish();
    const theirs = GenerateIdResponse.encode(message).finish();
    if (Buffer.compare(ours, theirs) === 0) continue;
    throw new Error(`seed ${SEED}: ${JSON.stringify(message, (_, v: unknown) => String(v))}`);
  }
});

test(`${MESSAGES} requests are read as the generated code reads them, right and wrong ones`, () => {
  const random = randomOf(SEED);
  const names = Array.from({ length: 6_000 }, (_, i) => `tag-${i}.${"ü".repeat(i % 3)}`);
  for (let i = 0; i < MESSAGES; i++) {
    const tag = names[Math.floor(random() ** 2 * names.length)] ?? "";
    const name = random() < 0.05 ? "x".repeat(Math.floor(random() * 300)) : "";
    const bytes = GenerateIdRequest.encode({ tag, name }).finish();
    if (random() < 0.2) bytes[Math.floor(random() * bytes.length)] = Math.floor(random() * 256);
    const ours = outcome((each) => generateIdRequest.decode(each), bytes);
    const theirs = outcome((each) => GenerateIdRequest.decode(each), bytes);
    if (ours === theirs) continue;
    throw new Error(`seed ${SEED}: ${Buffer.from(bytes).toString("hex")}: ${ours}, not ${theirs}`);
  }
});

test("a known request is not decoded again, and its bytes may be written over", () => {
  let decoded = 0;
  const requests = new KnownRequests((bytes) => {
    decoded++;
    return { text: Buffer.from(bytes).toString() };
  });
  const bytes = Buffer.from("orders");
  const of = (all: Buffer) => requests.of(all, 0, all.length);
  const first = of(bytes);
  bytes.fill("x");
  expect(of(Buffer.from("orders"))).toBe(first);
  expect(requests.of(Buffer.from("my orders here"), 3, 9)).toBe(first);
  expect(of(bytes)).toEqual({ text: "xxxxxx" });
  expect(decoded).toBe(2);
  expect(Object.isFrozen(first)).toBe(true);
});

test("a request that does not decode is refused each time, and leaves nothing", () => {
  const requests = new KnownRequests((): object => {
    throw new RangeError("no request");
  });
  for (let i = 0; i < 2; i++)
    expect(() => requests.of(Buffer.from("?"), 0, 1)).toThrow("no request");
});

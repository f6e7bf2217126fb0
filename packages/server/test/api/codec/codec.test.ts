// What is read and written by hand is compared with the generated code.
import {
  AllocateSegmentRequest,
  AllocateSegmentResponse,
  GenerateIdRequest,
  GenerateIdResponse,
  type GenerateIdsResponse,
  Order,
  type Segment,
  StreamIdsRequest,
  StreamIdsResponse,
} from "@idmint/proto";
import { expect, test } from "vitest";
import {
  allocateSegmentRequest,
  allocateSegmentResponse,
} from "../../../src/api/codec/allocate-segment.ts";
import type { Codec } from "../../../src/api/codec/codec.ts";
import { generateIdRequest, generateIdResponse } from "../../../src/api/codec/generate-id.ts";
import { KnownRequests } from "../../../src/api/codec/known-requests.ts";
import { streamIdsRequest, streamIdsResponse } from "../../../src/api/codec/stream-ids.ts";

const MESSAGES = process.env["IDMINT_LONG"] === "1" ? 1_000_000 : 30_000;
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
    return JSON.stringify(decode(bytes), (_, value: unknown) =>
      typeof value === "bigint" ? String(value) : value,
    );
  } catch {
    return "refused";
  }
}

const EDGES = [0n, 1n, 127n, 128n, 2n ** 53n - 1n, 2n ** 53n, 2n ** 53n + 1n, 2n ** 63n - 1n];

type Random = () => number;

function pick<T>(random: Random, values: readonly T[]): T {
  return values[Math.floor(random() * values.length)] as T;
}

const number = (random: Random): bigint => (random() < 0.1 ? pick(random, EDGES) : anyId(random));
const int32 = (random: Random): number =>
  Math.floor(2 ** (random() * 31)) - (random() < 0.1 ? 1 : 0);
/** Mostly what is usual; otherwise what only the generated code writes. */
const seldom = <T>(random: Random, usual: T, unusual: T): T => (random() < 0.9 ? usual : unusual);

function segment(random: Random): Segment {
  return { base: number(random), increment: int32(random), count: int32(random) };
}

function segments(random: Random): Segment[] {
  return Array.from({ length: Math.floor(random() ** 3 * 8) }, () => segment(random));
}

function oneId(random: Random): GenerateIdResponse {
  const isOther = random() < 0.1;
  return {
    id: number(random),
    epoch: number(random),
    period: isOther && random() < 0.5 ? "2026-11-23" : "",
    text: isOther ? "20261123-1" : "",
    periodEndTime: isOther && random() < 0.5 ? new Date(1_700_000_000_000) : undefined,
  };
}

function manyIds(random: Random): GenerateIdsResponse {
  return {
    segments: segments(random),
    ids: seldom<bigint[]>(random, [], [1n, number(random)]),
    texts: seldom<string[]>(random, [], ["20261123-1"]),
    epoch: number(random),
    period: seldom(random, "", "2026-11-23"),
    periodEndTime: seldom(random, undefined, new Date(1_700_000_000_000)),
    nodesVersion: seldom(random, 0, int32(random)),
    nodeId: seldom(random, "", "node"),
  };
}

function streamed(random: Random): StreamIdsResponse {
  const call = seldom(random, int32(random), 2 ** 32 - 1);
  const error = { code: 5, message: "TAG_NOT_FOUND: none", details: [] };
  const result = pick<StreamIdsResponse["result"]>(random, [
    { $case: "one", value: oneId(random) },
    { $case: "many", value: manyIds(random) },
    seldom<StreamIdsResponse["result"]>(random, { $case: "error", value: error }, undefined),
  ]);
  return { call, result };
}

function allocation(random: Random): AllocateSegmentResponse {
  const nanos = seldom(random, 0, int32(random) % 1_000_000_000);
  return {
    segments: segments(random),
    epoch: number(random),
    releaseToken: pick(random, ["", "12.kZ6mJ", "x".repeat(200), "ü"]),
    maxAge: seldom(random, { seconds: number(random), nanos }, undefined),
    order: pick(random, [Order.UNSPECIFIED, Order.UNORDERED, Order.PER_CLIENT, Order.STRICT]),
    maxCount: int32(random),
    nodesVersion: seldom(random, Math.floor(random() * 2 ** 32), 0),
    nodeId: pick(random, ["", "8f14e45f-ceea-467f-a0ab-1b5d1f9d4a37", "Knöt"]),
  };
}

/** Each with how its messages are made; at least so many of them are written by hand. */
const WRITERS: readonly [
  string,
  Codec<unknown>,
  Codec<unknown>,
  (random: Random) => unknown,
  number,
][] = [
  ["GenerateId", generateIdResponse, GenerateIdResponse, oneId, 0.7],
  ["StreamIds", streamIdsResponse, StreamIdsResponse, streamed, 0.3],
  ["AllocateSegment", allocateSegmentResponse, AllocateSegmentResponse, allocation, 0.1],
];

test.each(WRITERS)(
  `${MESSAGES} answers of %s have the bytes that the generated code writes`,
  (_, ours, theirs, make, share) => {
    const random = randomOf(SEED);
    const place = Buffer.alloc(4_096);
    let byHand = 0;
    for (let i = 0; i < MESSAGES; i++) {
      const message = make(random);
      const expected = theirs.encode(message).finish();
      const size = ours.sizeOf?.(message) ?? -1;
      let isRight = Buffer.compare(ours.encode(message).finish(), expected) === 0;
      if (size >= 0) {
        byHand++;
        place.fill(0xee, 0, size + 8);
        ours.write?.(message, place, 4);
        const around = [place.readUInt32BE(0), place.readUInt32BE(4 + size)];
        isRight &&= place.compare(expected, 0, expected.length, 4, 4 + size) === 0;
        isRight &&= around.every((bytes) => bytes === 0xeeeeeeee);
      }
      if (isRight) continue;
      throw new Error(`seed ${SEED}: ${JSON.stringify(message, (__, v: unknown) => String(v))}`);
    }
    expect(byHand / MESSAGES).toBeGreaterThan(share);
  },
);

const NAMES = Array.from({ length: 6_000 }, (_, i) => `tag-${i}.${"ü".repeat(i % 3)}`);
const tagOf = (random: Random): string => NAMES[Math.floor(random() ** 2 * NAMES.length)] ?? "";
const nameOf = (random: Random): string =>
  random() < 0.05 ? "x".repeat(Math.floor(random() * 300)) : "";

const READERS: readonly [string, Codec<unknown>, Codec<unknown>, (random: Random) => unknown][] = [
  [
    "GenerateId",
    generateIdRequest,
    GenerateIdRequest,
    (random) => ({ tag: tagOf(random), name: nameOf(random) }),
  ],
  [
    "StreamIds",
    streamIdsRequest,
    StreamIdsRequest,
    (random) => ({
      call: seldom(random, int32(random), 2 ** 32 - 1),
      tag: random() < 0.5 ? "" : tagOf(random),
      count: random() < 0.5 ? 0 : seldom(random, int32(random), -1),
      name: nameOf(random),
    }),
  ],
  [
    "AllocateSegment",
    allocateSegmentRequest,
    AllocateSegmentRequest,
    (random) => ({
      tag: tagOf(random),
      count: int32(random),
      after: seldom(random, 0n, number(random)),
      instance: random() < 0.5 ? "" : "worker-1",
    }),
  ],
];

test.each(READERS)(
  `${MESSAGES} requests of %s are read as the generated code reads them, right and wrong ones`,
  (_, ours, theirs, make) => {
    const random = randomOf(SEED);
    for (let i = 0; i < MESSAGES; i++) {
      let bytes = Buffer.from(theirs.encode(make(random)).finish());
      if (random() < 0.2) bytes[Math.floor(random() * bytes.length)] = Math.floor(random() * 256);
      if (random() < 0.1) bytes = bytes.subarray(0, Math.floor(random() * bytes.length));
      if (random() < 0.1) bytes = Buffer.concat([bytes, theirs.encode(make(random)).finish()]);
      const expected = outcome((each) => theirs.decode(each), bytes);
      // What lies around a message is none of it.
      const begin = Math.floor(random() * 8);
      const place = Buffer.alloc(bytes.length + 16, Math.floor(random() * 256));
      bytes.copy(place, begin);
      const got = [
        outcome((each) => ours.decode(each), bytes),
        outcome((each) => ours.decodeAt?.(each, begin, begin + bytes.length), place),
      ];
      if (got.every((each) => each === expected)) continue;
      throw new Error(
        `seed ${SEED}: ${bytes.toString("hex")}: ${got.join(" and ")}, not ${expected}`,
      );
    }
  },
);

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

import fc from "fast-check";
import { expect, test } from "vitest";
import { PendingStreams, StreamRing } from "../../src/grpc/stream-ring.ts";

interface Named {
  readonly name: number;
}

const named = (name: number): Named => ({ name });

test("a ring answers as a Map does, in any order of numbers, with streams that stay and streams that go", () => {
  // Few numbers, so that places are wanted twice; some far apart, some even, some past 31 bits.
  const number = fc.oneof(
    { weight: 6, arbitrary: fc.integer({ min: 0, max: 400 }) },
    { weight: 3, arbitrary: fc.integer({ min: 0, max: 3 }).map((n) => 1 + n * 128) },
    { weight: 1, arbitrary: fc.constantFrom(2 ** 31 - 1, 2 ** 31, 2 ** 32 + 1, -1) },
  );
  const step = fc.oneof(
    { weight: 4, arbitrary: fc.tuple(fc.constant("set" as const), number) },
    { weight: 3, arbitrary: fc.tuple(fc.constant("delete" as const), number) },
    { weight: 1, arbitrary: fc.tuple(fc.constant("get" as const), number) },
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 400, size: "max" }), (steps) => {
      const map = new Map<number, Named>();
      const ring = new StreamRing<Named>();
      for (const [kind, key] of steps) {
        if (kind === "set") {
          const stream = named(key);
          map.set(key, stream);
          expect(ring.set(key, stream)).toBe(ring);
        } else if (kind === "delete") {
          expect(ring.delete(key)).toBe(map.delete(key));
        }
        expect(ring.get(key)).toBe(map.get(key));
        expect(ring.has(key)).toBe(map.has(key));
        expect(ring.size).toBe(map.size);
      }
      const sorted = [...map].toSorted(([a], [b]) => a - b);
      expect([...ring]).toEqual(sorted);
      expect([...ring.keys()]).toEqual(sorted.map(([key]) => key));
      expect([...ring.values()]).toEqual(sorted.map(([, stream]) => stream));
      ring.clear();
      expect([ring.size, ...ring]).toEqual([0]);
    }),
  );
});

test("thousands of streams at once are all found and all gone afterwards", () => {
  const ring = new StreamRing<Named>();
  const count = 20_000;
  for (let i = 0; i < count; i++) ring.set(2 * i + 1, named(i));
  expect(ring.size).toBe(count);
  for (let i = 0; i < count; i++) expect(ring.get(2 * i + 1)?.name).toBe(i);
  for (let i = count - 1; i >= 0; i--) expect(ring.delete(2 * i + 1)).toBe(true);
  expect([ring.size, ...ring]).toEqual([0]);
});

test("a stream that outlives a hundred thousand others is still found, and they are too", () => {
  const ring = new StreamRing<Named>();
  const old = named(-1);
  ring.set(1, old);
  for (let i = 1; i <= 100_000; i++) {
    const stream = named(i);
    ring.set(2 * i + 1, stream);
    expect(ring.get(2 * i + 1)).toBe(stream);
    expect(ring.delete(2 * i + 1)).toBe(true);
  }
  expect(ring.get(1)).toBe(old);
  expect(ring.size).toBe(1);
});

test("streams that are removed while all are visited are not visited any more", () => {
  const ring = new StreamRing<Named>();
  for (let i = 0; i < 300; i++) ring.set(2 * i + 1, named(2 * i + 1));
  const visited: number[] = [];
  const self = {};
  ring.forEach(function visit(this: unknown, stream, number, same) {
    expect([this, same, stream.name]).toEqual([self, ring, number]);
    visited.push(number);
    ring.delete(number);
    ring.delete(number + 2);
  }, self);
  expect(visited).toEqual(Array.from({ length: 150 }, (_, i) => 4 * i + 1));
  expect(ring.size).toBe(0);
});

test("pending streams answer as a Set does", () => {
  const pool = Array.from({ length: 5 }, (_, i) => named(i));
  const step = fc.tuple(fc.boolean(), fc.integer({ min: 0, max: pool.length - 1 }));
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const set = new Set<Named>();
      const pending = new PendingStreams<Named>();
      for (const [isAdded, at] of steps) {
        const stream = pool[at];
        if (stream === undefined) throw new Error("no such stream");
        if (isAdded) {
          set.add(stream);
          pending.add(stream);
        } else {
          expect(pending.delete(stream)).toBe(set.delete(stream));
        }
        expect(pending.size).toBe(set.size);
        expect(pending.has(stream)).toBe(set.has(stream));
      }
      const visited: Named[] = [];
      pending.forEach((stream) => void visited.push(stream));
      const byName = (a: Named, b: Named): number => a.name - b.name;
      expect(visited.toSorted(byName)).toEqual([...set].toSorted(byName));
      pending.clear();
      expect([pending.size, ...pending.entries(), ...pending.keys()]).toEqual([0]);
    }),
  );
});

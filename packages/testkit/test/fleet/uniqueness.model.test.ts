import { appendFileSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Segment } from "@idmint/core";
import fc from "fast-check";
import { afterAll, expect, test } from "vitest";
import { readRecords, RECORD_BYTES, Recorder } from "../../src/fleet/record.ts";
import { judge, type Verdict } from "../../src/fleet/uniqueness.ts";

const folder = mkdtempSync(path.join(tmpdir(), "idmint-uniqueness-"));
let files = 0;

afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

interface Answer extends Segment {
  readonly file: number;
  readonly stream: number;
}

function judgeAnswers(answers: readonly Answer[]): Verdict {
  const recorders = new Map<number, [string, Recorder]>();
  for (const answer of answers) {
    const known = recorders.get(answer.file);
    const [name, recorder] = known ?? newRecorder();
    if (known === undefined) recorders.set(answer.file, [name, recorder]);
    recorder.segments(answer.stream, [answer]);
  }
  for (const [, recorder] of recorders.values()) recorder.close();
  return judge([...recorders.values()].map(([name]) => name));
}

function newRecorder(): [string, Recorder] {
  const name = path.join(folder, `${files++}.ids`);
  return [name, new Recorder(name)];
}

function idsOf({ base, count, increment }: Segment): bigint[] {
  return Array.from({ length: count }, (_, at) => base + BigInt(at * increment));
}

const origins = fc.constantFrom(1n, 2n ** 31n - 100n, 2n ** 53n - 100n, 2n ** 63n - 1_000n);

const answers = fc
  .tuple(
    origins,
    fc.array(
      fc.record({
        offset: fc.nat(300),
        count: fc.integer({ min: 1, max: 12 }),
        increment: fc.constantFrom(1, 1, 1, 1, 3),
        file: fc.nat(2),
        stream: fc.nat(2),
      }),
      { minLength: 1, maxLength: 40 },
    ),
  )
  .map(([origin, list]) => list.map((each) => ({ ...each, base: origin + BigInt(each.offset) })));

test("what is received, distinct, repeated, missing and out of order is counted as a plain set counts it", () => {
  fc.assert(
    fc.property(answers, (list) => {
      const verdict = judgeAnswers(list);
      const all = list.flatMap(idsOf);
      const distinct = new Set(all);
      expect(verdict.received).toBe(all.length);
      expect(verdict.distinct).toBe(distinct.size);
      expect(verdict.repeated).toBe(all.length - distinct.size);
      const sorted = [...distinct].toSorted((a, b) => (a < b ? -1 : 1));
      expect(verdict.lowest).toBe(sorted[0]);
      expect(verdict.highest).toBe(sorted.at(-1));
      expect(verdict.missing).toBe(sorted.at(-1)! - sorted[0]! + 1n - BigInt(distinct.size));
      const gaps = sorted.filter((id, at) => at > 0 && id !== sorted[at - 1]! + 1n).length;
      expect(verdict.gaps).toBe(gaps);
      let inversions = 0;
      const highest = new Map<string, bigint>();
      for (const answer of list) {
        const key = `${answer.file}/${answer.stream}`;
        const last = idsOf(answer).at(-1)!;
        if (answer.base <= (highest.get(key) ?? -1n)) inversions++;
        if (last > (highest.get(key) ?? -1n)) highest.set(key, last);
      }
      expect(verdict.inversions).toBe(inversions);
      for (const { first, last, owners } of verdict.repeats) {
        const holders = (id: bigint): number => all.filter((other) => other === id).length;
        expect(holders(first)).toBeGreaterThan(1);
        expect(holders(last)).toBeGreaterThan(1);
        expect(owners.length).toBeGreaterThan(1);
      }
    }),
  );
});

/** Ids handed out right: neighbouring segments, each to some stream, in pieces. */
const fair = fc
  .tuple(
    origins,
    fc.array(fc.record({ count: fc.integer({ min: 1, max: 50 }), owner: fc.nat(5) }), {
      minLength: 2,
      maxLength: 60,
    }),
  )
  .map(([origin, parts]) => {
    let base = origin;
    return parts.map(({ count, owner }) => {
      const answer = { base, count, increment: 1, file: owner % 3, stream: owner };
      base += BigInt(count);
      return answer;
    });
  });

test("ids handed out once are found to be whole, and one planted repeat among them is found", () => {
  fc.assert(
    fc.property(fair, fc.nat(), fc.nat(), fc.nat(), (list, which, where, when) => {
      const clean = judgeAnswers(list);
      expect(clean.repeated).toBe(0);
      expect(clean.repeats).toEqual([]);
      expect(clean.missing).toBe(0n);
      expect(clean.inversions).toBe(0);
      const victim = list[which % list.length]!;
      const id = victim.base + BigInt(where % victim.count);
      const again = { base: id, count: 1, increment: 1, file: 9, stream: 0 };
      const planted = judgeAnswers(list.toSpliced(when % (list.length + 1), 0, again));
      expect(planted.repeated).toBe(1);
      expect(planted.repeats).toMatchObject([{ first: id, last: id }]);
      expect(planted.repeats[0]?.owners.length).toBe(2);
    }),
  );
});

test("a file that ends in the middle of a record is read up to there", () => {
  const [name, recorder] = newRecorder();
  recorder.id(0, 1n);
  recorder.id(0, 2n);
  recorder.close();
  truncateSync(name, 2 * RECORD_BYTES - 1);
  expect([...readRecords(name)].map(({ base }) => base)).toEqual([1n]);
});

test("a file of something else is an error, not an empty verdict", () => {
  const name = path.join(folder, "other.ids");
  writeFileSync(name, "");
  appendFileSync(name, "x".repeat(RECORD_BYTES));
  expect(() => judge([name])).toThrow("not a file of records");
});

test("calls in vain are counted and are no ids", () => {
  const [name, recorder] = newRecorder();
  recorder.id(0, 5n);
  recorder.askedInVain(0, 100);
  recorder.close();
  expect(judge([name])).toMatchObject({ received: 1, callsInVain: 1, idsInVain: 100, missing: 0n });
});

test("tens of millions of ids, and a million ranges out of order, are judged in seconds", () => {
  // Every other id of a million, shuffled by a stride, then one segment of fifty million above them.
  const total = 1_000_000;
  const [name, recorder] = newRecorder();
  recorder.close();
  const bytes = Buffer.alloc(total * RECORD_BYTES);
  for (let at = 0; at < total; at++) {
    bytes.writeBigInt64LE(BigInt((at * 7_919) % total) * 2n, at * RECORD_BYTES);
    bytes.writeDoubleLE(Date.now(), at * RECORD_BYTES + 8);
    bytes.writeUInt32LE(1, at * RECORD_BYTES + 16);
    bytes.writeUInt32LE(1, at * RECORD_BYTES + 20);
    bytes.writeUInt32LE(at % 7, at * RECORD_BYTES + 24);
  }
  writeFileSync(name, bytes);
  const [other, second] = newRecorder();
  second.segments(0, [{ base: 2n * BigInt(total), count: 50_000_000, increment: 1 }]);
  second.id(0, 777_776n);
  second.close();
  const start = performance.now();
  const verdict = judge([name, other]);
  expect(verdict).toMatchObject({ received: total + 50_000_001, repeated: 1, gaps: total });
  expect(verdict.repeats).toMatchObject([{ first: 777_776n, last: 777_776n }]);
  expect(performance.now() - start).toBeLessThan(20_000);
});

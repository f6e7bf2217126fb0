import { expect, test } from "vitest";
import { MarksHeard, RedisLog } from "../../sim/check/redis-log.ts";
import { type Counted, countedIn, lossesOf } from "../../sim/nodes/redis-losses.ts";
import { RedisHashes, type RedisSnapshot } from "../../src/memory/redis/hashes.ts";

const TAG = "counted";
const MAX = 400n;

/** A Redis that counts one tag, as a history looks at it. */
class Counting {
  readonly hashes: RedisHashes = new RedisHashes({ wallClock: () => 1_700_000_000_000 });
  counted: Counted = new Map();

  count(generation: bigint, cur: bigint, max: bigint = MAX): RedisSnapshot {
    const { runId, replId } = this.hashes;
    this.hashes.set(TAG, { generation, cur, max, run_id: runId, replid: replId });
    return this.look();
  }

  look(): RedisSnapshot {
    const snapshot = this.hashes.snapshot();
    this.counted = countedIn(snapshot, this.counted);
    return snapshot;
  }

  /** Which ids may come twice once it is set back to that. */
  repeatable(restored: RedisSnapshot, told?: Counted): readonly bigint[] {
    const log = new RedisLog();
    const moments = { now: this.counted, restored, told, process: this.hashes };
    for (const loss of lossesOf(moments)) log.setBack(loss);
    return Array.from({ length: 2_000 }, (_, at) => BigInt(at)).filter((id) =>
      log.isExcluded(TAG, id),
    );
  }
}

test("a key that was evicted and put back had counted all the same", () => {
  const redis = new Counting();
  const restored = redis.count(1n, 232n);
  redis.count(1n, 235n);
  redis.hashes.remove(TAG);
  redis.look();
  expect(redis.repeatable(restored)).toEqual([233n, 234n, 235n]);
});

test("what all were told of before its key was evicted has to be noticed", () => {
  const redis = new Counting();
  const restored = redis.count(1n, 232n);
  redis.count(1n, 233n);
  const told = redis.counted;
  redis.count(1n, 235n);
  redis.hashes.remove(TAG);
  redis.look();
  expect(redis.repeatable(restored, told)).toEqual([]);
});

test("what had a new start since may repeat ids up to its bound, and none above", () => {
  const redis = new Counting();
  const restored = redis.count(1n, 398n);
  redis.count(2n, 500n, 600n);
  expect(redis.repeatable(restored)).toEqual([399n, 400n]);
});

test("what another process had is given a new start", () => {
  const redis = new Counting();
  const restored = redis.count(1n, 232n);
  redis.count(1n, 235n);
  redis.hashes.begin(false);
  expect(redis.repeatable(restored)).toEqual([]);
});

function heardEverySecond(heard: MarksHeard, who: string, fromMs: number, toMs: number): void {
  for (let at = fromMs; at <= toMs; at += 1_000) heard.heard(who, at);
}

test("all is told until 3 s ago, or until 3 s before servers heard nothing more", () => {
  const heard = new MarksHeard();
  heardEverySecond(heard, "s1", 0, 20_000);
  heardEverySecond(heard, "s2", 500, 20_500);
  expect(heard.toldUntil(20_900)).toBe(17_900);
  expect(heard.toldUntil(24_000)).toBe(17_500);
  // Also when they have heard nothing for so long that each alone would be taken to be gone.
  expect(heard.toldUntil(40_000)).toBe(17_500);
});

test("one that heard nothing holds up what all are told, and one that is gone does not", () => {
  const heard = new MarksHeard();
  heardEverySecond(heard, "s1", 0, 10_000);
  heardEverySecond(heard, "s2", 500, 14_500);
  expect(heard.toldUntil(14_900)).toBe(7_500);
  heardEverySecond(heard, "s2", 15_500, 24_500);
  expect(heard.toldUntil(24_900)).toBe(21_900);
});

test("before servers heard of anything, nothing is told", () => {
  expect(new MarksHeard().toldUntil(1_000)).toBe(-Infinity);
});

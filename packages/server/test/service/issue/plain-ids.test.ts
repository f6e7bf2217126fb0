// Segments for callers that keep them: one range each, and nothing of it is lost or given twice.
import { type Segment, segmentOf } from "@idmint/core";
import type { TagSettings } from "@idmint/core/server";
import { MemoryStore } from "@idmint/testkit";
import fc from "fast-check";
import { expect, test } from "vitest";
import { headOf, PlainIds } from "../../../src/service/issue/plain-ids.ts";
import { SETTINGS, setUp } from "../directory-world.ts";

const CLIENT = { instance: "tinyid/test", principal: "" };

function handingOut(tinyidStep: number): TagSettings {
  const { kind } = SETTINGS;
  if (kind.kind !== "segment") throw new Error("not a segment");
  return { ...SETTINGS, kind: { ...kind, tinyidStep } };
}

/** A server, and what callers of bare numbers ask of it. */
function serverOn(store: MemoryStore) {
  const world = setUp(store);
  return { ...world, plain: new PlainIds(world) };
}

function idsOf({ base, increment, count }: Segment): bigint[] {
  return Array.from({ length: count }, (_, at) => base + BigInt(at * increment));
}

test("segments of several servers, in one range each, hold no id twice and lose none that is taken back", async () => {
  const store = new MemoryStore();
  await store.createTag(handingOut(25));
  const servers = [serverOn(store), serverOn(store)];
  const seen: bigint[] = [];
  const sizes = new Set<number>();
  for (let round = 0; round < 60; round++) {
    const { plain, ids, call } = servers[round % 2]!;
    const { segment } = await plain.segment("orders", call, CLIENT);
    sizes.add(segment.count);
    seen.push(...idsOf(segment));
    if (round % 3 === 0) seen.push((await ids.generateId("orders", call)).id);
  }
  expect(new Set(seen).size).toBe(seen.length);
  // The servers' loads of 10 ids lie between each other, so hardly any answer of 25 is one range.
  expect(Math.min(...sizes)).toBeLessThan(25);
  // What did not fit was handed out later: all that the store gave is seen, or in the memory of the two.
  const [tag] = await store.getTags(["orders"]);
  const gone = Number(tag?.floor ?? 0n);
  expect(gone - seen.length).toBeLessThanOrEqual(2 * 100);
});

test("a tag that is not known is asked for, and one that says nothing hands out none", async () => {
  const store = new MemoryStore();
  await store.createTag(SETTINGS);
  const { plain, call } = serverOn(store);
  expect(plain.stepOf("orders")).toBeUndefined();
  expect(await plain.findStep("orders", call)).toBe(0);
  expect(plain.stepOf("orders")).toBe(0);
  expect(() => plain.segment("orders", call, CLIENT)).toThrow("WRONG_KIND");
  const ordered = new MemoryStore();
  await ordered.createTag({ ...handingOut(25), order: "PER_CLIENT" });
  const other = serverOn(ordered);
  await expect(other.plain.segment("orders", other.call, CLIENT)).rejects.toThrow("WRONG_KIND");
});

test("a tag of the same settings but the step hands out none", async () => {
  const store = new MemoryStore();
  await store.createTag(handingOut(25));
  await store.createTag({ ...SETTINGS, name: "other" });
  await store.createTag({ ...handingOut(25), name: "third" });
  const { plain, call } = serverOn(store);
  const names = ["orders", "other", "third"];
  const steps = await Promise.all(names.map((name) => plain.findStep(name, call)));
  expect(steps).toEqual([25, 0, 25]);
});

test("a step above what one call may have is refused, and not cut short", async () => {
  const store = new MemoryStore();
  await store.createTag(handingOut(1_001));
  const { plain, call } = serverOn(store);
  await expect(plain.segment("orders", call, CLIENT)).rejects.toThrow("COUNT_OUT_OF_RANGE");
});

test("the head of an answer and its rest are the answer", () => {
  const segments = fc.array(
    fc.tuple(fc.integer({ min: 0, max: 2 }), fc.integer({ min: 1, max: 5 })),
    { minLength: 1, maxLength: 6 },
  );
  fc.assert(
    fc.property(segments, fc.constantFrom(1, 3), (parts, increment) => {
      let next = 7n;
      const all = parts.map(([gap, count]) => {
        const segment = segmentOf(next + BigInt(gap * increment), count, increment);
        next = segment.base + BigInt(count * increment);
        return segment;
      });
      const { head, rest } = headOf(all);
      const ids = all.flatMap(idsOf);
      expect(idsOf(head)).toEqual(ids.slice(0, head.count));
      expect(rest).toBe(ids.length - head.count);
      // It is as long as it can be.
      if (rest > 0) expect(ids[head.count]).not.toBe(head.base + BigInt(head.count * increment));
    }),
  );
});

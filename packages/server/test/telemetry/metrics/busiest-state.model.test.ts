// Which tags have series of their own, against a count of everything that was issued.
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  beginRanking,
  type CountedTag,
  countNamed,
  createBusiestState,
  endRanking,
  lookAtTag,
  wastedOf,
} from "../../../src/telemetry/metrics/busiest-state.ts";

const LIMIT = 3;
const NAMES = ["a", "b", "c", "d", "e", "f"] as const;

class World {
  readonly state = createBusiestState(LIMIT);
  readonly tags = new Map<string, CountedTag & { issued: number }>();
  issued = 0;
  wasted = 0;
  now = 0;
  #series = new Map<string, number>();
  #rest = 0;

  issue(name: string, count: number): void {
    let tag = this.tags.get(name);
    if (tag === undefined) this.tags.set(name, (tag = { name, issued: 0, ranked: 0 }));
    tag.issued += count;
    this.issued += count;
  }

  waste(name: string, count: number): void {
    wastedOf(this.state, name, count);
    this.wasted += count;
  }

  /** The tag is not used any more; it may be looked up again. */
  leave(name: string): void {
    this.tags.delete(name);
  }

  /** Answers what a scrape shows. */
  collect(): Map<string, number> {
    const ranking = beginRanking(this.state, this.now);
    const before = new Set(this.state.named.keys());
    const had = [...this.tags.values()].filter((tag) => lookAtTag(this.state, ranking, tag));
    expect(had.every(({ name }) => before.has(name))).toBe(true);
    endRanking(this.state, ranking, this.now);
    for (const tag of had) {
      const named = this.state.named.get(tag.name);
      if (named !== undefined) countNamed(this.state, named, tag, this.now);
    }
    const series = new Map([...this.state.named].map(([name, { ids }]) => [name, ids]));
    this.#judge(series);
    return series;
  }

  #judge(series: Map<string, number>): void {
    // Invariant 1.
    expect(series.size).toBeLessThanOrEqual(LIMIT);
    // Invariant 2.
    for (const [name, ids] of series) {
      const earlier = this.#series.get(name);
      if (earlier !== undefined) expect(ids).toBeGreaterThanOrEqual(earlier);
      else expect(ids).toBe(0);
    }
    const rest = this.issued - this.state.attributedIds;
    expect(rest).toBeGreaterThanOrEqual(this.#rest);
    expect(this.wasted).toBeGreaterThanOrEqual(this.state.attributedWaste);
    this.#series = series;
    this.#rest = rest;
  }
}

const name = fc.constantFrom(...NAMES);
const step = fc.oneof(
  fc.record({ do: fc.constant("issue" as const), name, count: fc.integer({ min: 1, max: 50 }) }),
  fc.record({ do: fc.constant("waste" as const), name, count: fc.integer({ min: 1, max: 50 }) }),
  fc.record({ do: fc.constant("leave" as const), name, count: fc.constant(0) }),
  fc.record({
    do: fc.constant("collect" as const),
    name,
    count: fc.constantFrom(1, 500, 5_000, 20_000),
  }),
);

test("no counter goes down, and the places are never more than there are, whoever is busy when", () => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 20, maxLength: 120 }), (steps) => {
      const world = new World();
      for (const { do: what, name: tag, count } of steps) {
        if (what === "issue") world.issue(tag, count);
        else if (what === "waste") world.waste(tag, count);
        else if (what === "leave") world.leave(tag);
        else {
          world.now += count;
          world.collect();
        }
      }
    }),
    { numRuns: 300 },
  );
});

test("all that tags with places issue after they got them is in their series", () => {
  const world = new World();
  for (const tag of ["a", "b"]) world.issue(tag, 5);
  world.collect();
  for (const tag of ["a", "b"]) world.issue(tag, 7);
  expect(world.collect()).toEqual(
    new Map([
      ["a", 7],
      ["b", 7],
    ]),
  );
  expect(world.issued - world.state.attributedIds).toBe(10);
  // One that was left and looked up again counts from 0.
  world.leave("a");
  world.issue("a", 3);
  expect(world.collect().get("a")).toBe(10);
});

test("a tag gets a place once it is more than twice as busy as the idlest that has one, and not before", () => {
  const world = new World();
  const round = (counts: Record<string, number>): string[] => {
    for (const [tag, count] of Object.entries(counts)) world.issue(tag, count);
    world.now += 10_000;
    return [...world.collect().keys()].toSorted();
  };
  expect(round({ a: 100, b: 100, c: 100, d: 100 })).toHaveLength(LIMIT);
  const held = round({ a: 100, b: 100, c: 100, d: 100 });
  const [out = ""] = ["a", "b", "c", "d"].filter((tag) => !held.includes(tag));
  expect(round({ a: 100, b: 100, c: 100, d: 100, [out]: 200 })).toEqual(held);
  expect(round({ a: 100, b: 100, c: 100, d: 100, [out]: 201 })).toContain(out);
});

test("a rate is of the last second or more", () => {
  const world = new World();
  world.issue("a", 1);
  world.collect();
  world.issue("a", 500);
  world.now += 500;
  world.collect();
  expect(world.state.named.get("a")?.rate).toBe(0);
  world.issue("a", 500);
  world.now += 1_500;
  world.collect();
  expect(world.state.named.get("a")?.rate).toBe(500);
});

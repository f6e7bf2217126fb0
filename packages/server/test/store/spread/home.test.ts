import { expect, test } from "vitest";
import { homeOf } from "../../../src/store/spread/home.ts";

const TAGS = Array.from({ length: 3_000 }, (_, at) => `team.orders-${at}`);

test("homes are spread evenly, and a further database takes its share and moves no other tag", () => {
  const three = ["b", "c", "default"];
  const four = ["b", "c", "d", "default"];
  const counts = new Map<string, number>();
  for (const tag of TAGS) {
    const before = homeOf(three, tag);
    const after = homeOf(four, tag);
    counts.set(after, (counts.get(after) ?? 0) + 1);
    expect([before, "d"]).toContain(after);
  }
  for (const name of four) {
    expect(counts.get(name)).toBeGreaterThan(600);
    expect(counts.get(name)).toBeLessThan(900);
  }
});

test("homes are what they were in every release", () => {
  const homes = ["t", "orders", "a.b", "x/y", "team.orders-1", "0"].map((tag) =>
    homeOf(["b", "c", "default"], tag),
  );
  expect(homes).toEqual(["c", "default", "c", "b", "c", "c"]);
});
